"""The forms of lessons accept answers within the tolerance of their question, and explain others."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.docs import lessons
from tests.requirements import skip_unbuilt

SCRIPT = Path(__file__).parents[2] / "website" / "theme" / "assets" / "lesson.js"
PAGE = """
let submit
const output = {}
const form = {
  dataset: DATA,
  addEventListener: (kind, action) => (submit = action),
  querySelector: name => (name === "input" ? { value: TEXT } : output),
}
globalThis.document = { querySelectorAll: () => [form] }
eval(require("node:fs").readFileSync(process.argv[1], "utf8"))
submit({ preventDefault() {} })
console.log(output.textContent)
"""
JAIN = {"value": "0.994", "close": "0.02", "low": "0.5", "high": "1", "why": "So."}
ROUNDS = {"value": "3", "close": "0", "low": "1", "high": "100", "why": "So."}


def reply(question: dict[str, str], text: str) -> str:
    node = shutil.which("node")
    if node is None:
        skip_unbuilt("no node")
    script = PAGE.replace("DATA", json.dumps(question)).replace("TEXT", json.dumps(text))
    command = [node, "-e", script, str(SCRIPT)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(
    ("question", "text", "right"),
    [
        (JAIN, "0.98", True),
        (JAIN, "0,98", True),
        (JAIN, "0.9", False),
        (ROUNDS, "3", True),
        (ROUNDS, "3.0", True),
        (ROUNDS, "2.8", False),
    ],
)
def test_answers_within_the_tolerance_are_right(question: dict[str, str], text: str, *, right: bool) -> None:
    found = reply(question, text)
    assert found.startswith("Yes, measured: " if right else "Your answer: ")
    assert f"easured: {question['value']}" in found


def test_the_tolerance_is_part_of_the_reply() -> None:
    assert reply(JAIN, "0.9") == (
        "Your answer: 0.9. Measured: 0.994 (accepted: up to 0.02 more or less). So."
    )


def test_other_answers_are_explained() -> None:
    assert reply(JAIN, "2") == "2 is outside the possible range, from 0.5 to 1."
    assert reply(JAIN, "much") == "Write a number, such as 2.5."


def test_tolerances_leave_wrong_answers() -> None:
    """The whole range, or an answer of no change, is not accepted."""
    found = [match for page in lessons.pages() for match in lessons.ASK.finditer(page.read_text("utf-8"))]
    assert len(found) > 20
    for match in found:
        value, close, low, high = (float(match[name]) for name in ("value", "close", "low", "high"))
        assert 0 <= close <= 0.6 * abs(value), match[0]
        assert close <= 0.15 * (high - low), match[0]
