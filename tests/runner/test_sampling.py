"""Adaptive runs: the cells that get more trials, and stop conditions."""

from __future__ import annotations

import html
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.runner.conftest import Behaviour, Scripted
from tests.runs import run_study

from longfat.presentation.run import notes
from longfat.presentation.run.report.page import build
from longfat.results.run import Cell
from longfat.results.trial import Record, Trial
from longfat.runner.progress import Reporter
from longfat.runner.sampling import Budget, first_counts, next_counts
from longfat.study import Study, cells, combinations, load_study
from longfat.system.progress import Silent

Use = Callable[[Behaviour], list[Scripted]]


def noisy(spread: float, lead: float) -> Any:
    """Returns trials in which the goodput of "sr" exceeds that of "gbn" by `lead`, with noise in both."""

    def measure(trial: Trial) -> Record:
        noise = spread * random.Random(trial.key).uniform(-1, 1)
        return Record({"goodput_bps": 1e6 * (1 + (lead if trial.cell.protocol == "sr" else 0) + noise)})

    return measure


CLAIM = {"id": "faster", "text": "sr is faster", "metric": "goodput", "of": "sr", "against": "gbn"}


def adaptive(data: dict[str, Any], **keys: Any) -> Study:
    claims = [CLAIM | {"relation": "higher"}]
    return load_study(data | {"precision": "claims", "claims": claims} | keys, name="small")


def test_a_run_ends_when_every_claim_is_decided(scripted: Use, data: dict[str, Any], folder: Path) -> None:
    scripted(noisy(0.3, 0.2))
    result = run_study(adaptive(data, max_repeats=500), folder=folder)
    assert [claim.verdict for claim in result.claims] == ["holds"]
    counts = {cell.n for cell in result.cells}
    assert 4 in counts or max(counts) < 100
    assert 4 < max(counts) < 500
    # Both cells of a comparison have the same trials.
    by_point: dict[str, set[int]] = {}
    for cell in result.cells:
        by_point.setdefault(str(cell.cell.params), set()).add(cell.n)
    assert all(len(found) == 1 for found in by_point.values())


@pytest.mark.parametrize("precision", ["claims", "10%"])
def test_a_run_of_cells_that_are_not_kept_takes_the_same_trials(
    scripted: Use,
    data: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    precision: str,
) -> None:
    scripted(noisy(0.3, 0.2))
    changed: dict[str, Any] = {"max_repeats": 500, "precision": precision}
    kept = run_study(adaptive(data, **changed), folder=tmp_path / "kept")
    monkeypatch.setattr(combinations, "KEPT", 1)
    made = run_study(adaptive(data, **changed), folder=tmp_path / "made")
    assert max(cell.n for cell in kept.cells) > 4
    assert [cell.n for cell in made.cells] == [cell.n for cell in kept.cells]


def test_a_claim_at_its_limit_stays_undecided_and_reports_its_margin(
    scripted: Use, data: dict[str, Any], folder: Path
) -> None:
    scripted(noisy(0.3, 0.0))
    result = run_study(adaptive(data, max_repeats=30), folder=folder)
    assert {cell.n for cell in result.cells} <= {4, 6, 9, 14, 21, 30}
    if result.claims[0].verdict == "undecided":
        assert "too uncertain to decide: needs about" in result.claims[0].detail or "too close" in (
            result.claims[0].detail
        )


def test_trials_go_to_the_widest_intervals(data: dict[str, Any]) -> None:
    study = load_study(data | {"precision": "5%", "repeats": 20}, name="small")
    planned = [Cell("sim", name, {}, {}) for name in "abcd"]
    width = {"a": 3.0, "b": 2.5, "c": 1.5, "d": 0.0}

    def of(cell: Cell) -> float:
        return width[cell.protocol]

    counts = [20, 20, 30, 20]
    assert next_counts(study, planned, counts, of, Budget()) == [30, 30, 45, 20]
    assert next_counts(study, planned, counts, of, Budget(seconds=60)) == [30, 30, 30, 20]
    assert next_counts(study, planned, counts, of, Budget(trials=104)) == [30, 24, 30, 20]
    assert next_counts(study, planned, counts, of, Budget(trials=90)) == counts
    assert next_counts(study, planned, counts, of, Budget(seconds=0)) == counts
    assert first_counts(study, planned, Budget(trials=10)) == [3, 3, 2, 2]


def test_a_run_stops_at_its_number_of_trials_and_continues_with_more(
    scripted: Use, data: dict[str, Any], folder: Path
) -> None:
    created = scripted(noisy(0.3, 0.01))
    few = run_study(adaptive(data), folder=folder, budget=Budget(trials=15))
    assert sum(cell.n for cell in few.cells) == 15
    more = run_study(adaptive(data), folder=folder, budget=Budget(trials=40))
    assert sum(cell.n for cell in more.cells) == 40
    assert sum(len(executor.ran) for executor in created) == 40


def test_no_trial_starts_after_the_time_limit(scripted: Use, study: Study, folder: Path) -> None:
    created = scripted(noisy(0.1, 0.0))
    result = run_study(study, folder=folder, budget=Budget(seconds=0))
    assert result.interrupted
    assert result.cells == []
    assert sum(len(executor.ran) for executor in created) == 0
    assert not run_study(study, folder=folder).interrupted


@pytest.mark.parametrize(
    ("limit", "message"),
    [("10", "is not a duration above zero"), ("5 apples", "unknown unit"), ("0s", "above zero")],
)
def test_a_budget_names_its_option(limit: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^budget: .*{message}"):
        Budget.of(limit, None)


def test_a_precision_of_claims_needs_claims(data: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match='precision: "claims" needs claims'):
        load_study(data | {"precision": "claims", "claims": []}, name="small")


def test_a_run_states_what_it_lacks(scripted: Use, data: dict[str, Any], folder: Path) -> None:
    scripted(noisy(0.3, 0.01))
    keys: dict[str, Any] = {"precision": "1%", "repeats": 4, "max_repeats": 8, "claims": []}
    study = load_study(data | keys, name="small")
    planned = len(cells(study))
    few = run_study(study, folder=folder, budget=Budget(trials=planned - 1))
    missing, imprecise = notes.gaps(study, few.cells)
    assert missing == f"1 of {planned} cells have no trial and are not shown: the run ended early"
    misses = f"{planned - 1} of {planned} cells miss the precision of 1%; the widest, "
    assert imprecise.startswith(misses)
    assert imprecise.endswith(" needs more trials")
    more = run_study(study, folder=folder)
    (line,) = notes.gaps(study, more.cells)
    assert re.search(r"; the widest, .*, needs about [\d,]+ trials$", line)
    assert line in more.remarks()
    assert html.escape(line) in build(more)
    plain = load_study(data, name="small")
    assert not list(notes.gaps(plain, run_study(plain, folder=folder.with_name("plain")).cells))


def test_a_resumed_run_reports_no_look_again(scripted: Use, data: dict[str, Any], folder: Path) -> None:
    """Its first line counts all trials in the folder."""

    class Notes(Silent):
        def __init__(self) -> None:
            self.lines: list[str] = []

        def note(self, text: str) -> None:
            self.lines.append(text)

    scripted(noisy(0.3, 0.2))
    study = adaptive(data, max_repeats=500)
    first, again = Notes(), Notes()
    result = run_study(study, folder=folder, reporter=Reporter(first))
    assert sum("need more trials" in line for line in first.lines) > 1
    run_study(study, folder=folder, reporter=Reporter(again))
    trials = sum(cell.n for cell in result.cells)
    assert again.lines == [f"sim: 0 trials to run, {trials} already there"]
