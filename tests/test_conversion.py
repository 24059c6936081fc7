"""Settings in Python: objects, dicts, NumPy values and controller classes mix freely."""

from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import longfat as lf
from longfat.extensions.names import content_hash
from longfat.study import load_study
from longfat.study.plain import plain

Data = dict[str, Any]
PATH = lf.Path(rate="10Mbit/s", delay="5ms", queue="50pkt")
FILE = {"kind": "file", "size": "100kB"}


class Steady(lf.CongestionController):
    """A controller with a constant window."""

    def __init__(self, packets: int = 20) -> None:
        self.window = packets * self.segment

    def on_acknowledged(self, ack: lf.Acknowledgement) -> None:
        pass

    def on_lost(self, loss: lf.Loss) -> None:
        pass

    def on_timeout(self, now: float, in_flight: int) -> None:
        pass


def test_a_study_takes_objects_names_and_classes(tmp_path: Path) -> None:
    result = lf.run(
        {
            "title": "Mixed",
            "path": PATH,
            "workload": FILE,
            "protocols": (
                lf.Tcp("cubic"),
                "reno",
                Steady,
                lf.GoBackN(window=np.int64(8), name="gbn"),
                {"name": "small", "kind": "tcp", "congestion": {"kind": Steady, "packets": np.int32(4)}},
            ),
            "traffic": [
                {
                    "name": "rival",
                    "protocol": lf.Tcp({"kind": Steady, "packets": np.int8(3)}),
                    "workload": {"kind": "bulk"},
                }
            ],
            "sweep": {"protocols.gbn.window": np.linspace(4, 8, 2), "path.queue": ("20pkt", "50pkt")},
            "repeats": np.int64(1),
        },
        settings={"seed": np.uint8(3), "path.loss": np.array(["0%", "1%"]), "path.delay": pl.Series(["1ms"])},
        out=tmp_path / "run",
    )
    names = [entry.name for entry in result.study.protocols]
    assert names == ["cubic", "reno", "Steady", "gbn", "small"]
    assert all(cell.n == 1 for cell in result.cells)
    assert result.study.sweep["protocols.gbn.window"] == [4, 8]
    assert result.study.seed == 3
    assert result.study.path == {"rate": "10Mbit/s", "delay": "5ms", "queue": "50pkt"}
    assert lf.load_run(tmp_path / "run").cells == result.cells


def test_a_topology_is_an_object_in_a_study_too() -> None:
    shape = lf.Topology("dumbbell", pairs=np.int64(2), bottleneck=PATH)
    data: Data = {
        "title": "Shared",
        "topology": shape,
        "protocols": ["cubic"],
        "workload": {"kind": "bulk", "duration": "1s"},
    }
    assert load_study(data).network["topology"]["bottleneck"] == PATH.settings
    trial = lf.simulate("cubic", shape, workload=data["workload"], traffic=(), seed=np.int64(2))
    assert trial.spec["topology"] == shape.settings


@pytest.mark.parametrize(
    ("given", "same"),
    [
        ("cubic", lf.Tcp("cubic")),
        ("go-back-n", lf.GoBackN()),
        (Steady, lf.Tcp(Steady)),
        (lf.Tcp("vegas", name="v"), {"kind": "tcp", "congestion": "vegas"}),
        ({"kind": "tcp", "congestion": {"kind": Steady}}, lf.Tcp(Steady)),
    ],
)
def test_a_protocol_can_be_a_name_or_a_class(given: Any, same: Any) -> None:
    assert lf.simulate(given, PATH, "50kB").metrics == lf.simulate(same, PATH, "50kB").metrics


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.float64(0.5), 0.5),
        (np.linspace(4, 16, 4), [4, 8, 12, 16]),
        (np.logspace(-1, 1, 3), [0.1, 1, 10]),
        (np.bool_(1), True),
        (np.str_("5ms"), "5ms"),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (range(3), [0, 1, 2]),
        (Path("rates.txt"), "rates.txt"),
        ((f"{n}%" for n in (1, 2)), ["1%", "2%"]),
        (2.0, 2.0),
    ],
)
def test_values_become_plain(given: Any, expected: Any) -> None:
    found = plain({"a": (given,)})["a"][0]
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: lf.Path(rate={1, 2}),  # type: ignore[arg-type]
            r"^path\.rate: \{1, 2\} \(type set\) is not a study value: it has no order$",
        ),
        (
            lambda: lf.Path(delay=datetime.timedelta(seconds=1)),  # type: ignore[arg-type]
            r"^path\.delay: .*type timedelta.*allowed: text",
        ),
        (
            lambda: lf.Tcp(int),  # type: ignore[arg-type]
            r"^protocol\.congestion: class int is not derived from",
        ),
        (
            lambda: lf.simulate("cubic", PATH, "1kB", traffic=["x"]),  # type: ignore[list-item]
            r'^traffic: "x": must be a dict$',
        ),
        (
            lambda: lf.simulate(3, PATH, "1MB"),  # type: ignore[arg-type]
            r"^protocol: 3: must be a dict or an object such as longfat.Protocol$",
        ),
        (
            lambda: load_study({"sweep": {"path.loss": ["1%", b"2%"]}}),
            r'^sweep\."path\.loss"\[2\]: b.2%. .*not text$',
        ),
        (lambda: load_study({"protocols": [{3: 4}]}), r"^protocols\[1\]: 3 .*must be text$"),
    ],
)
def test_an_unconvertible_value_is_one_line(make: Any, words: str) -> None:
    with pytest.raises(lf.StudyError, match=words) as caught:
        make()
    assert len(str(caught.value).splitlines()) == 1


def test_a_class_inside_a_function_is_refused() -> None:
    class Local(Steady):
        pass

    with pytest.raises(lf.StudyError, match="Local is defined inside a function"):
        lf.Tcp(Local)


INTERACTIVE = """
import longfat as lf
class Mine(lf.CongestionController):
    def __init__(self): self.window = {packets} * self.segment
    def on_acknowledged(self, ack): pass
    def on_lost(self, loss): pass
    def on_timeout(self, now, in_flight): pass
"""
USED = """
from longfat.extensions.names import content_hash, register
path = lf.Path(rate="10Mbit/s", delay="5ms")
print(lf.simulate(Mine, path, "1MB").goodput, register(Mine), content_hash(register(Mine)))
"""


def test_a_class_in_a_notebook_is_identified_by_its_code() -> None:
    text = "".join(INTERACTIVE.format(packets=packets) + USED for packets in (4, 4, 8))
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=60
    )
    first, again, other = (line.split() for line in done.stdout.splitlines())
    assert first == again
    assert first[1] == other[1] == "__main__:Mine"
    assert first[0] != other[0]
    assert first[2] != other[2]


def test_a_class_of_a_script_is_named_after_its_file(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(INTERACTIVE.format(packets=4) + USED, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=60
    )
    name = f"{script}:Mine"
    assert done.stdout.split()[1:] == [name, content_hash(name)]


def test_one_protocol_and_one_flow_need_no_list() -> None:
    rival = {"name": "rival", "protocol": "udp", "workload": {"kind": "bulk", "rate": "1Mbit/s"}}
    data = {"title": "One", "path": PATH, "workload": FILE, "protocols": "cubic", "traffic": rival}
    study = load_study(data)
    assert [entry.name for entry in study.protocols] == ["cubic"]
    assert [entry.name for entry in study.traffic] == ["rival"]
    alone, listed = (lf.simulate("cubic", PATH, "50kB", traffic=given) for given in (rival, [rival]))
    assert alone == listed


def test_results_are_shown_in_a_line(tmp_path: Path) -> None:
    data = {"title": "Short", "path": PATH, "workload": FILE, "protocols": ["cubic"], "repeats": 2}
    result = lf.run(data, out=tmp_path / "run")
    assert repr(result).startswith("Short: 1 cells, 2 trials\nProtocol ")
    assert repr(result.cells[0]).startswith("CellResult('sim', 'cubic', {}, n=2, ")
    assert len(repr(result)) + len(repr(result.cells[0])) < 300
