"""Display names of protocols and controllers: one table, which the explorer and the charts agree with."""

from __future__ import annotations

import re
from pathlib import Path

import longfat as lf
from longfat.presentation import names, series_names
from longfat.presentation.run.columns import Column

COUPLED = ("lia", "olia", "balia", "wvegas")
ROOT = Path(__file__).parents[2]


def test_the_unit_of_a_queue_is_in_its_headings() -> None:
    column = Column("queue_mean_packets", 1.0, names.unit_of("queue_mean_packets"))
    assert column.title == "Queue, mean (packets)"
    assert column.narrow_title == "queue\npackets"
    assert Column("drops", 1.0, names.unit_of("drops")).narrow_title == "drops"


def test_every_built_in_controller_has_a_display_name() -> None:
    kinds = {"reno", "cubic", "vegas", "westwood", "dctcp", "prague", "bbr", "bbr-tolerant", "bbr1", "fixed"}
    assert {kind for kind in (*kinds, *COUPLED) if names.protocol(kind) == kind} == set()


def test_names_of_bbr_contain_the_version() -> None:
    title = {kind: series_names.title(kind, {"kind": "tcp", "congestion": kind}) for kind in ("bbr", "bbr1")}
    assert title == {"bbr": "TCP BBRv3", "bbr1": "TCP BBRv1"}
    traces = lf.trace(["bbr", "bbr1"], {"rate": "10Mbit/s", "delay": "5ms"}, "200kB")
    drawn = str(traces.drawing("window"))
    assert "BBRv3" in drawn
    assert "BBRv1" in drawn


def test_the_explorer_has_the_same_names() -> None:
    source = (ROOT / "explorer/src/protocols.ts").read_text()
    labels = re.findall(r'tcp\("TCP ([^"]+)", "([^"]+)"\)', source)
    page = (ROOT / "explorer/src/index.html").read_text()
    select = page.partition('<select name="coupling">')[2].partition("</select>")[0]
    options = re.findall(r'<option value="([^"]+)">([^<]+)</option>', select)
    assert len(labels) >= 6
    assert len(options) >= 7
    for label, kind in [*labels, *((label, kind) for kind, label in options)]:
        assert names.protocol(kind) == label
