from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.runs import run_study

from longfat.api.runs import load_run
from longfat.results.trial import Record, Trial
from longfat.runner import Interrupted
from longfat.runner.progress import Reporter
from longfat.store import parts
from longfat.study import Study, load_study
from longfat.system.progress import Silent

from .conftest import Scripted, goodput

Use = Callable[..., list[Scripted]]


def test_every_trial_of_every_cell_runs_once(scripted: Use, study: Study, folder: Path) -> None:
    created = scripted()
    result = run_study(study, folder=folder)
    assert [cell.n for cell in result.cells] == [4] * 6
    ran = [(t.cell.protocol, t.cell.params["path.loss"], t.number) for t in created[0].ran]
    assert len(set(ran)) == len(ran) == 24
    frame = result.to_polars()
    assert frame.columns[:7] == ["world", "protocol", "path_loss", "trial", "seed", "measured", "error"]
    assert frame.height == 24
    assert frame["goodput_bps"].null_count() == 0


def test_trials_of_one_number_share_seed_and_number(scripted: Use, study: Study, folder: Path) -> None:
    created = scripted()
    run_study(study, folder=folder)
    specs = [t.spec for t in created[0].ran]
    assert {(spec["seed"], spec["trial"]) for spec in specs} == {(7, n) for n in range(4)}
    assert all(set(spec) == {"path", "protocol", "workload", "seed", "trial"} for spec in specs)
    assert all("name" not in spec["protocol"] for spec in specs)


def test_a_second_run_reuses_all_trials(scripted: Use, study: Study, folder: Path) -> None:
    created = scripted()
    first = run_study(study, folder=folder)
    again = run_study(study, folder=folder)
    assert len(created) == 1
    assert again.cells == first.cells
    assert load_run(folder).cells == first.cells
    assert load_run(folder).claims == first.claims


def test_trials_of_another_build_are_noted(scripted: Use, study: Study, folder: Path) -> None:
    class Notes(Silent):
        def __init__(self) -> None:
            self.lines: list[str] = []

        def note(self, text: str) -> None:
            self.lines.append(text)

    scripted()
    run_study(study, folder=folder)
    note = "the folder has trials of another build of longfat; --fresh repeats them"
    same, other = Notes(), Notes()
    run_study(study, folder=folder, reporter=Reporter(same))
    assert note not in same.lines
    about = folder / "run.json"
    content = json.loads(about.read_text())
    content["environment"]["build"] = "another"
    about.write_text(json.dumps(content))
    run_study(study, folder=folder, reporter=Reporter(other))
    assert other.lines[0] == note


def test_each_part_is_read_once(
    scripted: Use, study: Study, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted()
    run_study(study, folder=folder)
    read: list[Path] = []
    whole = parts.frame_of

    def counted(part: Path, content: bytes, wanted: parts.Wanted) -> pl.DataFrame:
        read.append(part)
        return whole(part, content, wanted)

    monkeypatch.setattr(parts, "frame_of", counted)
    load_run(folder)
    assert sorted(read) == parts.listed(folder)
    # A rerun reads the stored keys, then the records.
    read.clear()
    run_study(study, folder=folder)
    assert len(read) == 2 * len(parts.listed(folder))


def test_more_repeats_run_only_missing_trials(scripted: Use, data: dict[str, Any], folder: Path) -> None:
    created = scripted()
    run_study(load_study(data, name="small"), folder=folder)
    data["repeats"] = 6
    result = run_study(load_study(data, name="small"), folder=folder)
    assert sorted({t.number for t in created[1].ran}) == [4, 5]
    assert [cell.n for cell in result.cells] == [6] * 6
    data["repeats"] = 2
    result = run_study(load_study(data, name="small"), folder=folder)
    assert len(created) == 2
    assert [cell.n for cell in result.cells] == [2] * 6


def test_records_of_other_cells_stay_but_do_not_count(
    scripted: Use, data: dict[str, Any], folder: Path
) -> None:
    created = scripted()
    run_study(load_study(data, name="small"), folder=folder)
    data["sweep"]["path.loss"] = ["5%", "20%"]
    result = run_study(load_study(data, name="small"), folder=folder)
    assert {t.cell.params["path.loss"] for t in created[1].ran} == {"20%"}
    assert len(result.cells) == 4
    assert result.to_polars().height == 16


def test_equal_specifications_are_run_once_and_count_for_both(
    scripted: Use, data: dict[str, Any], folder: Path
) -> None:
    created = scripted()
    data["protocols"][1] = {**data["protocols"][0], "name": "sr"}
    result = run_study(load_study(data, name="small"), folder=folder)
    assert len(created[0].ran) == 12
    assert [cell.n for cell in result.cells] == [4] * 6


def test_failures_are_counted_and_shown(scripted: Use, study: Study, folder: Path) -> None:
    def _fail_first(trial: Trial) -> Record:
        return Record(None, "peer silent for 30 s") if trial.number == 0 else goodput(trial)

    scripted(_fail_first)
    result = run_study(study, folder=folder)
    assert all(cell.n == 3 and cell.failures == {"peer silent for 30 s": 1} for cell in result.cells)
    assert result.to_json()["cells"][0]["failures"] == {"peer silent for 30 s": 1}
    assert list(result.cells[0].trials) == [1, 2, 3]


def test_the_order_in_which_trials_end_changes_nothing(scripted: Use, study: Study, tmp_path: Path) -> None:
    frames = []
    for jobs in (1, 2, 7):
        delays = random.Random(jobs)

        def _slow(trial: Trial, delays: random.Random = delays) -> Record:
            threading.Event().wait(delays.random() / 100)
            return goodput(trial)

        scripted(_slow)
        frames.append(run_study(study, folder=tmp_path / str(jobs), jobs=jobs).to_polars())
    assert frames[0].equals(frames[1])
    assert frames[0].equals(frames[2])


def test_ctrl_c_keeps_finished_trials_and_the_next_run_resumes(
    scripted: Use, study: Study, folder: Path
) -> None:
    class Stopping(Reporter):
        """Interrupts the run after a few trials."""

        done = 0

        def advance(self, ended: int, failed: int) -> None:
            self.done += 1
            if self.done == 5:
                raise KeyboardInterrupt

    created = scripted()
    with pytest.raises(Interrupted, match="run the same command again"):
        run_study(study, folder=folder, reporter=Stopping())
    kept = load_run(folder).to_polars().height
    assert 5 <= kept < 24
    result = run_study(study, folder=folder)
    assert len(created[1].ran) == 24 - kept
    assert [cell.n for cell in result.cells] == [4] * 6


def test_bad_input_found_in_a_trial_names_its_cell(scripted: Use, study: Study, folder: Path) -> None:
    def _refuse(trial: Trial) -> Record:
        raise ValueError("window does not fit receive_buffer")

    scripted(_refuse)
    with pytest.raises(ValueError, match=r"gbn \(path.loss = 0%\): window does not fit"):
        run_study(study, folder=folder)


def test_an_unknown_host_is_found_before_the_first_trial(
    scripted: Use, data: dict[str, Any], folder: Path
) -> None:
    created = scripted()
    del data["path"]
    data["topology"] = {"kind": "dumbbell", "pairs": 2, "bottleneck": {"rate": "10Mbit/s", "delay": "5ms"}}
    data["workload"] |= {"from": "s1", "to": "r1"}
    data["sweep"] = {"workload.from": ["s1", "nobody"]}
    reported = r'gbn \(workload.from = nobody\): .*there is no host "nobody": allowed: '
    with pytest.raises(ValueError, match=reported):
        run_study(load_study(data, name="small"), folder=folder)
    assert [len(executor.ran) for executor in created] in ([], [0])
    assert not folder.exists()


def test_unsupported_trials_are_refused_before_the_first_trial(
    scripted: Use, study: Study, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = scripted()
    monkeypatch.setattr(Scripted, "unsupported", lambda _self, trials: [f"{trials[0].place}: no such knob"])
    with pytest.raises(OSError, match=r"world sim: gbn .*: no such knob \(--force runs the other trials\)"):
        run_study(study, folder=folder)
    assert [len(executor.ran) for executor in created] == [0]
    assert not folder.exists()
    assert [cell.n for cell in run_study(study, folder=folder, force=True).cells] == [4] * 6


def test_repeats_grow_until_the_precision_is_reached(
    scripted: Use, data: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def _noisy(trial: Trial) -> Record:
        spread = 0.5 if trial.cell.protocol == "gbn" else 0.001
        return Record({"goodput_bps": 1e6 * (1 + spread * random.Random(trial.key).uniform(-1, 1))})

    scripted(_noisy)
    data |= {"precision": "10%", "max_repeats": 200, "claims": []}
    result = run_study(load_study(data, name="small"), folder=folder)
    for cell in result.cells:
        assert cell.metrics["goodput_bps"].relative_half_width <= 0.1
        assert cell.n == 4 if cell.cell.protocol == "sr" else 4 < cell.n <= 200
        # Later looks at an interval use a higher confidence.
        assert (cell.confidence == 0.975) == (cell.n == 4)
    data["max_repeats"] = 6
    notes: list[str] = []
    reporter = Reporter()
    monkeypatch.setattr(reporter, "note", notes.append)
    result = run_study(load_study(data, name="small"), folder=folder, reporter=reporter)
    assert {cell.n for cell in result.cells} == {4, 6}
    limit = "end at max_repeats = 6; the same command with --set max_repeats=12 continues"
    assert f"precision 10%: 3 of 6 cells {limit}" in notes


def test_the_store_is_plain_parquet(scripted: Use, study: Study, folder: Path) -> None:
    scripted()
    run_study(study, folder=folder)
    frame = pl.read_parquet(folder / "records" / "part-*.parquet")
    assert frame.select("cell_key", "trial").n_unique() == frame.height == 24
    assert {"world", "protocol", "params", "trial", "seed", "version", "error", "goodput_bps"} <= set(
        frame.columns
    )


def test_columns_of_metrics_are_in_the_same_order_whichever_trial_ends_first(
    scripted: Any, study: Study, folder: Path
) -> None:
    def _run(first: str, name: str) -> list[str]:
        extra = {first: {"zeal_s": 1.0}}
        scripted(
            lambda trial: Record(
                {**extra.get(trial.cell.protocol, {"drops": 0.0}), **(goodput(trial).metrics or {})}
            )
        )
        return run_study(study, folder=folder / name).to_polars().columns

    assert _run("gbn", "a") == _run("sr", "b")
