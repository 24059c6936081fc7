"""Flows of trials, which have a separate table."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.runner.conftest import Behaviour, Scripted
from tests.runs import run_study

from longfat import _native
from longfat.api.runs import load_run
from longfat.results.run import Cell
from longfat.results.trial import Record, Records, Trial, cell_key
from longfat.store import parts, store
from longfat.store.store import open_store
from longfat.study import Study
from longfat.system.flow_table import flow_table, height
from longfat.worlds.executor import record_from_json


def reported(numbers: np.ndarray[Any, np.dtype[Any]]) -> str:
    return b64encode(numbers.tobytes()).decode()


def column(name: str, values: np.ndarray[Any, np.dtype[Any]], **more: Any) -> dict[str, Any]:
    """Returns a column in the format of the native module."""
    return {"name": name, "dtype": values.dtype.str.replace("|", "<"), "values": reported(values), **more}


def two_flows(trial: Trial) -> Record:
    flows = [
        column("flow", np.array([0, 1], "<u1")),
        column("from", np.array([0, 1], "<u1"), words=["s1", "s2"]),
        column("protocol", np.array([0, 0], "<u1"), words=["tcp"]),
        column("goodput_bps", np.array([1e6 + trial.number] * 2, "<f8")),
    ]
    return Record(
        {"goodput_bps": 2e6 + trial.number, "goodput_bps@s1": 1e6, "goodput_bps@s2": 1e6}, None, flows
    )


def test_flows_are_stored_and_come_back_with_their_trial(
    study: Study, folder: Path, scripted: Callable[[Behaviour], list[Scripted]]
) -> None:
    scripted(two_flows)
    for result in (run_study(study, folder=folder), load_run(folder)):
        flows = result.flows_to_polars()
        assert flows.height == 2 * result.to_polars().height
        assert flows.columns[:4] == ["world", "protocol", "path_loss", "trial"]
        assert set(flows["from"]) == {"s1", "s2"}
        assert set(flows["protocol"]) == {"gbn", "sr"}
        assert set(flows["flow_protocol"]) == {"tcp"}
        assert result.cells[0].metrics["goodput_bps@s2"].mean == 1e6


def test_without_flows_there_is_no_table(
    study: Study, folder: Path, scripted: Callable[[], list[Scripted]]
) -> None:
    scripted()
    result = run_study(study, folder=folder)
    assert parts.listed(folder, "flows") == []
    with pytest.raises(ValueError, match="no records of flows"):
        result.flows_to_polars()


def test_flows_are_written_before_their_records(
    folder: Path, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr(store, "write_whole", lambda path, _: written.append(path.name))
    cell = Cell("sim", "sr", {}, {"path": {}, "protocol": {}, "workload": {}})
    with open_store(folder, study.name, "1", fresh=False) as opened:
        trial = Trial("00" * 16, cell, 0, 1)
        opened.add(trial, Records.of(0, two_flows(trial)))
        opened.flush()
    assert written == [f"flows-00001-{opened.writer}.parquet", f"part-00001-{opened.writer}.parquet"]


def test_fresh_removes_flows_too(
    study: Study, folder: Path, scripted: Callable[[Behaviour], list[Scripted]]
) -> None:
    scripted(two_flows)
    before = run_study(study, folder=folder).flows_to_polars()
    after = run_study(study, folder=folder, fresh=True).flows_to_polars()
    assert after.equals(before)
    assert len(parts.listed(folder, "flows")) == len(parts.listed(folder))


def test_a_metric_without_a_value_is_left_out_of_a_record() -> None:
    record = record_from_json(
        '{"metrics": {"goodput_bps": 1, "fct_mean_s": null}, "error": null, "flows": []}'
    )
    assert record == Record({"goodput_bps": 1.0})


def test_trials_with_different_types_share_a_table() -> None:
    small = [
        column("flow", np.array([0, 1], "<u1")),
        column("size_bytes", np.array([200, 0], "<u1"), present=reported(np.array([1, 0], "u1"))),
        column("to", np.array([1, 0], "<u1"), words=["b", "c"]),
        column("path_bytes", np.array([1, 2, 3], "<u1"), lengths=reported(np.array([2, 1], "<u4"))),
    ]
    large = [
        column("flow", np.array([0], "<u1")),
        column("size_bytes", np.array([5_000_000_000], "<i8")),
        column("to", np.array([0], "<u1"), words=["d"]),
        column("path_bytes", np.array([70_000, 0, 0], "<u4"), lengths=reported(np.array([3], "<u4"))),
    ]
    table = flow_table(small, large, small)
    assert table.schema == {
        "flow": pl.Int64,
        "size_bytes": pl.Int64,
        "to": pl.String,
        "path_bytes": pl.List(pl.Int64),
    }
    first = [(0, 200, "c", [1, 2]), (1, None, "b", [3])]
    assert table.rows() == [*first, (0, 5_000_000_000, "d", [70_000, 0, 0]), *first]
    assert [height(trial) for trial in (small, large, [])] == [2, 1, 0]


def test_flows_have_class_size_paths_and_losses() -> None:
    bottleneck = {"rate": "50Mbit/s", "delay": "5ms", "queue": "100pkt"}
    links = [{"from": "a", "to": "b", "name": name, **bottleneck} for name in ("one", "two")]
    spec = {
        "topology": {"kind": "free", "hosts": ["a", "b"], "links": links},
        "protocol": {"kind": "mptcp"},
        "workload": {
            "kind": "arrivals",
            "sizes": "bounded-pareto",
            "arrivals": "100/s",
            "duration": "4s",
            "classes": ["100kB"],
            "from": "a",
            "to": "b",
        },
        "seed": 3,
    }
    record = json.loads(_native.simulate(json.dumps(spec)))
    flows = flow_table(record["flows"])
    assert flows.height > 300
    assert flows["flow"].to_list() == list(range(flows.height))
    assert set(flows["class"]) == {0, 1}
    assert ((flows["size_bytes"] > 100_000) == (flows["class"] == 1)).all()
    done = flows.filter(pl.col("fct_s").is_not_null())
    # One long flow is incomplete, so that only the short ones have a mean.
    assert record["metrics"]["fct_mean_s"] is None
    short = done.filter(pl.col("class") == 0)
    assert short["fct_s"].mean() == pytest.approx(record["metrics"]["fct_mean_s@G0"])
    for name in ("retransmissions", "timeouts", "packets_sent"):
        assert flows[name].sum() == record["metrics"][name]
    # Both paths carry data. Their sum is the flow's size plus retransmissions.
    assert set(flows["path_bytes"].list.len()) == {2}
    assert (done["path_bytes"].list.sum() >= done["size_bytes"]).all()
    kept = done.filter(pl.col("retransmissions") == 0)
    assert kept.height > 100
    assert (kept["path_bytes"].list.sum() == kept["size_bytes"]).all()
    used = (flows.explode("path_bytes")["path_bytes"] > 0).sum()
    assert used == flows["paths"].sum()


def test_trial_keys_depend_on_the_content_of_link_traces(tmp_path: Path) -> None:
    recorded = tmp_path / "trace"

    def key(content: str) -> str:
        recorded.write_text(content)
        spec: dict[str, Any] = {"topology": {"links": [{"from": "a", "to": "b", "trace": str(recorded)}]}}
        return cell_key(Cell("sim", "a", {}, spec), 1, "1")

    assert key("1\n") != key("1\n2\n")
