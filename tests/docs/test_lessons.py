"""The outputs and the numbers of the lessons come from runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs import lessons, observations


@pytest.mark.slow
@pytest.mark.parametrize("page", lessons.pages(), ids=lambda page: page.stem)
def test_outputs_are_current(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", lessons.COLUMNS)
    text = page.read_text(encoding="utf-8")
    assert lessons.rewritten(text) == text, "python -m tests.docs.lessons rewrites the outputs"


@pytest.mark.slow
def test_the_answer_and_the_chart_of_readme_are_current(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", lessons.README_COLUMNS)
    text, image = lessons.README.read_text(encoding="utf-8"), tmp_path / "loss.svg"
    fix = "python -m tests.docs.lessons README rewrites output and chart"
    assert lessons.rewritten(text, image=image) == text, fix
    assert lessons.drawn(image) == lessons.drawn(lessons.IMAGE), fix


def test_the_chart_of_readme_agrees_with_its_table() -> None:
    printed = lessons.printed_means(lessons.README.read_text(encoding="utf-8"))
    drawn = lessons.drawn_means(lessons.IMAGE)
    assert len(drawn) == 12
    rounded = {key: f"{mean:.{len(printed[key].partition('.')[2])}f}" for key, mean in drawn.items()}
    assert rounded == printed, "python -m tests.docs.lessons README rewrites output and chart"


@pytest.mark.parametrize("page", lessons.pages(), ids=lambda page: page.stem)
def test_numbers_of_the_text_come_from_outputs_or_calculations(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert lessons.wrong_calculations(text) == []
    assert lessons.unsupported_numbers(text) == []
    assert lessons.outdated_operands(text) == []


@pytest.mark.parametrize("page", lessons.solutions(), ids=lambda page: page.stem)
def test_numbers_of_the_solutions_come_from_outputs_or_calculations(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert lessons.wrong_calculations(text) == []
    assert lessons.unsupported_numbers(text, lessons.files()) == []
    assert lessons.outdated_operands(text, lessons.files()) == []


@pytest.mark.slow
@pytest.mark.parametrize("page", lessons.pages(), ids=lambda page: page.stem)
def test_causes_and_times_of_the_text_come_from_traces(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert observations.TRACE.search(text)
    assert observations.wrong_observations(text) == []


@pytest.mark.parametrize("page", lessons.pages(), ids=lambda page: page.stem)
def test_answers_come_from_outputs_and_are_in_range(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    solutions = _solutions()
    predictions, _, rest = text.partition("## Experiment")
    closing = rest.partition("## Questions")[2].partition("## Exercises")[0]
    assert lessons.questions(predictions) >= 2
    assert lessons.questions(closing) == closing.count("?\n") == 3
    assert lessons.questions(text) == text.count("<!-- ask")
    # Without the solutions of exercises: the page itself answers its questions.
    assert lessons.wrong_questions(closing, text) == []
    assert lessons.wrong_questions(text, solutions) == []
    assert lessons.unstated_answers(text) == []
    number = page.name.partition("-")[0]
    assert f"<!-- scene: lesson={number} -->" in text
    assert f"`longfat explore lesson={number}`" in text
    assert text.splitlines()[2].startswith("**Objective (15 minutes).** After this lesson you can ")


def test_wrong_answers_are_found() -> None:
    asked = ["12 ±1 | 0 20 | Since 6.", "12 ±1 | 0 10 | So.", "13 ±1 | 0 20 | So."]
    text = "<!-- calc: 6 * 2 = 12 -->\n" + "\n".join(f"<!-- ask: Q | {one} -->" for one in asked)
    assert [line.rpartition(": ")[2] for line in lessons.wrong_questions(text)] == [
        "out of range",
        "unknown numbers ['13']",
    ]


def test_answers_that_only_an_expression_contains_are_found() -> None:
    text = """It needs 7 drops.
<!-- calc: 56 / 8 = 7 -->
## Questions
<!-- calc: 7 + 2 = 9 -->
<!-- ask: Q | 7 ±0 | 0 10 | So. -->
<!-- ask: Q | 8 ±0 | 0 10 | So. -->
<!-- ask: Q | 9 ±0 | 0 10 | So. -->
"""
    assert lessons.wrong_questions(text) == []
    assert lessons.unstated_answers(text) == ["<!-- ask: Q | 8 ±0 | 0 10 | So. -->"]


def test_operands_that_no_output_contains_are_found() -> None:
    outdated = "<!-- calc: 0.191 * 100 = 19 -->"
    text = f"Shares: 0.187\n<!-- calc: 0.187 * 100 = 19 -->\n{outdated}\n<!-- calc: 1 - 0.3 = 0.7 -->\n"
    assert lessons.outdated_operands(text) == [f"{outdated}: 0.191"]


@pytest.mark.slow
@pytest.mark.parametrize("page", lessons.solutions(), ids=lambda page: page.stem)
def test_solutions_are_current(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", lessons.COLUMNS)
    text = page.read_text(encoding="utf-8")
    assert lessons.rewritten(text, lessons.files()) == text
    assert observations.wrong_observations(text, lessons.files()) == []


def _solutions() -> str:
    return "\n".join(page.read_text(encoding="utf-8") for page in lessons.solutions())


def test_solutions_are_complete() -> None:
    text = _solutions()
    for page in lessons.pages():
        exercises = page.read_text(encoding="utf-8").partition("## Exercises")[2]
        number = page.name.partition("-")[0]
        section = text.partition(f"\n## Lesson {number}\n")[2].partition("\n## ")[0]
        assert section.count("\n**") == exercises.count("\n- "), page.name


STUDY = """
title = "a"
path = { rate = "10Mbit/s", delay = "20ms" }
workload = { kind = "file", size = "4kB" }
protocols = ["stop-and-wait"]
"""


def test_wrong_observations_are_found() -> None:
    right, wrong = (f"<!-- trace: a.toml: count('send', frame='data') = {count} -->" for count in (4, 5))
    text = f"<!-- file: a.toml -->\n```toml{STUDY}```\n{right}\n{wrong}\n"
    assert observations.wrong_observations(text) == [f"{wrong}: 4"]


def test_wrong_numbers_are_found() -> None:
    text = "It takes 12 ms.\n<!-- calc: 6 * 2 = 12 -->\n<!-- calc: 6 * 2 = 13 -->\nRFC 9438: 14 s, 1,500 B\n"
    assert lessons.wrong_calculations(text) == ["<!-- calc: 6 * 2 = 13 -->: 12"]
    assert lessons.unsupported_numbers(text) == ["14", "1500"]


def test_every_lesson_has_a_prediction_an_experiment_and_a_solution() -> None:
    assert len(lessons.pages()) == 12
    for page in lessons.pages():
        headings = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("## ")]
        assert headings == ["## Predict", "## Experiment", "## Solution", "## Questions", "## Exercises"]
