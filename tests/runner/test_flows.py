"""The flows of trials: a table of their own beside the records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.runner.conftest import Behaviour, Scripted

from longfat.results import Cell
from longfat.runner import load_run, run_study, store
from longfat.runner.executor import record_from_json
from longfat.runner.store import open_store
from longfat.runner.trial import Record, Trial, trial_key
from longfat.study import Study


def two_flows(trial: Trial) -> Record:
    flows = [
        {"flow": flow, "from": f"s{flow + 1}", "protocol": "tcp", "goodput_bps": 1e6 + trial.number}
        for flow in range(2)
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
        assert flows.columns[:4] == ["world", "protocol", "path.loss", "trial"]
        assert set(flows["from"]) == {"s1", "s2"}
        assert set(flows["protocol"]) == {"gbn", "sr"}
        assert set(flows["flow_protocol"]) == {"tcp"}
        assert result.cells[0].metrics["goodput_bps@s2"].mean == 1e6


def test_without_flows_there_is_no_table(
    study: Study, folder: Path, scripted: Callable[[], list[Scripted]]
) -> None:
    scripted()
    result = run_study(study, folder=folder)
    assert store.parts(folder, "flows") == []
    with pytest.raises(ValueError, match="told of its flows"):
        result.flows_to_polars()


def test_flows_are_there_before_their_records(
    folder: Path, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr(store, "write_whole", lambda path, _: written.append(path.name))
    cell = Cell("sim", "sr", {}, {"path": {}, "protocol": {}, "workload": {}})
    with open_store(folder, study.name, "1", fresh=False) as opened:
        opened.add(Trial("key", cell, 0, 1), two_flows(Trial("key", cell, 0, 1)))
        opened.flush()
    assert written == ["flows-00001.parquet", "part-00001.parquet"]


def test_fresh_removes_flows_too(
    study: Study, folder: Path, scripted: Callable[[Behaviour], list[Scripted]]
) -> None:
    scripted(two_flows)
    before = run_study(study, folder=folder).flows_to_polars()
    after = run_study(study, folder=folder, fresh=True).flows_to_polars()
    assert after.equals(before)
    assert len(store.parts(folder, "flows")) == len(store.parts(folder))


def test_a_metric_without_a_value_is_left_out_of_a_record() -> None:
    record = record_from_json(
        '{"metrics": {"goodput_bps": 1, "fct_mean_s": null}, "error": null, "flows": []}'
    )
    assert record == Record({"goodput_bps": 1.0})


def test_traces_in_lists_of_links_count_by_what_is_in_them(tmp_path: Path) -> None:
    recorded = tmp_path / "trace"

    def key(content: str) -> str:
        recorded.write_text(content)
        spec: dict[str, Any] = {"topology": {"links": [{"from": "a", "to": "b", "trace": str(recorded)}]}}
        return trial_key(Cell("sim", "a", {}, spec), 1, 0, "1")

    assert key("1\n") != key("1\n2\n")
