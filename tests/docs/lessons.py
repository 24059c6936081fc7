"""Runs the commands of the lessons and writes their outputs into the pages: `python -m tests.docs.lessons`.

`python -m tests.docs.lessons README` does so for README, and draws its chart.

Blocks marked `file: NAME` are written to files. Each console block has one command and its output.
`<!-- calc: EXPRESSION = VALUE -->` documents a number that is computed from others, and
`<!-- trace: ... -->` one that is read from a trace (`tests/docs/observations.py`).
"""

from __future__ import annotations

import html
import math
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests import in_process
from tests.docs import observations

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "learn"
README = ROOT / "README.md"
IMAGE = ROOT / "docs" / "images" / "loss.svg"
"""The chart of README's study."""
COLUMNS, README_COLUMNS = "100", "160"
"""The width of the outputs on the pages."""

_BLOCK = re.compile(
    r"(?:^<!-- file: (?P<file>\S+) -->\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
_FIGURE = re.compile(r'aria-label="([^"]*; Figure: [^"]*)"')
_MEAN = re.compile(
    r"Packet loss \(%\): (?P<x>[\d.]+); Goodput \(Mbit/s\): (?P<y>[\d.]+); Protocol: (?P<protocol>[\w ]+); "
    r"Figure: measured; Trials: \d+"
)
_ROW = re.compile(r"^ +([\d.]+)%" + r" +([\d.]+) ±[\d.]+ +[~≤][\d.]+" * 3, re.MULTILINE)
_PROTOCOLS = ("TCP Reno", "TCP CUBIC", "TCP BBRv3")
"""The protocols of README's study, in the order of its table."""
_CALC = re.compile(r"<!-- calc: (?P<expression>.*?) = (?P<value>\S+) -->")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_NAMES = re.compile(
    r"RFC \d+|(?:^# )\d+\. |\((?:[A-Z][\w ]+\.?, )?(?:19|20)\d\d\)|[Ll]essons? \d"
    r"|\]\([^)]*\)|\*\*Objective \(15 minutes\)|(?:^(?:# )?|\*\*|(?<=\? ))\d\. ",
    re.MULTILINE,
)
"""Numbers that name something: documents, years, lessons, questions."""


def pages() -> list[Path]:
    """Returns the lessons in their order."""
    return sorted(FOLDER.glob("[1-9]*-*.md"), key=lambda page: int(page.name.partition("-")[0]))


def solutions() -> list[Path]:
    """Returns the pages of solutions."""
    return sorted(FOLDER.glob("solutions*.md"))


def files() -> str:
    """Returns the study files of all lessons, for the pages of solutions."""
    return "\n".join(page.read_text(encoding="utf-8") for page in pages())


def rewritten(text: str, others: str = "", image: Path | None = None) -> str:
    """Returns a page with current outputs of its commands, which use its files and those of other pages.

    `image` is a file for the chart of README's study.
    """
    with tempfile.TemporaryDirectory() as folder:
        for match in _BLOCK.finditer(others):
            if match["file"]:
                (Path(folder) / match["file"]).write_text(match["text"], encoding="utf-8")

        def one(match: re.Match[str]) -> str:
            if match["file"]:
                (Path(folder) / match["file"]).write_text(match["text"], encoding="utf-8")
            elif match["kind"] == "console":
                return f"```console\n{_shown(match['text'], Path(folder))}```"
            return match[0]

        made = _BLOCK.sub(one, text)
        if image is not None:
            done = in_process.run(Path(folder), ["chart", "loss", "--out", image])
            assert done.returncode == 0, done.stderr
        return made


def drawn(image: Path) -> set[str]:
    """Returns the descriptions of the figures of a chart: their values, protocols and kinds."""
    return {html.unescape(one) for one in _FIGURE.findall(image.read_text(encoding="utf-8"))}


def drawn_means(image: Path) -> dict[tuple[str, str], float]:
    """Returns the measured means of README's chart by packet loss and protocol."""
    found = (_MEAN.fullmatch(figure) for figure in drawn(image))
    return {(one["x"], one["protocol"]): float(one["y"]) for one in found if one is not None}


def printed_means(text: str) -> dict[tuple[str, str], str]:
    """Returns the means of README's table as printed, by packet loss and protocol."""
    found: dict[tuple[str, str], str] = {}
    for x, *means in _ROW.findall(text):
        found |= {(x, protocol): mean for protocol, mean in zip(_PROTOCOLS, means, strict=True)}
    return found


def _shown(block: str, folder: Path) -> str:
    """Returns a command with its output, without the report's file name."""
    command = block.partition("\n")[0]
    done = in_process.run(folder, shlex.split(command)[2:])
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    lines = [line.rstrip() for line in done.stdout.splitlines() if not line.startswith("Report: ")]
    return "\n".join([command, *lines]).rstrip() + "\n"


def wrong_calculations(text: str) -> list[str]:
    """Returns the calculations of a lesson whose values are wrong."""
    wrong = []
    for match in _CALC.finditer(text):
        names = {"ceil": math.ceil, "sqrt": math.sqrt, "cbrt": math.cbrt, "round": round}
        value = eval(match["expression"], {"__builtins__": {}}, names)  # the project's own pages
        digits = len(match["value"].partition(".")[2])
        if abs(value - float(match["value"])) > 0.5001 * 10**-digits:
            wrong.append(f"{match[0]}: {value}")
    return wrong


ASK = re.compile(
    r"<!-- ask: (?P<question>[^|]*) \| (?P<value>\S+) ±(?P<close>\S+) \| (?P<low>\S+) (?P<high>\S+) \| "
    r"(?P<why>.*?) -->"
)


def wrong_questions(text: str, others: str = "") -> list[str]:
    """Returns the questions of a lesson whose answers no output, calculation or trace contains.

    Answers are within the range of the question.
    """
    known = _known(text) | _known(others)
    wrong = []
    for match in ASK.finditer(text):
        value, low, high = (float(match[name]) for name in ("value", "low", "high"))
        if not low <= value <= high:
            wrong.append(f"{match[0]}: out of range")
        unknown = [one for one in (match["value"], *_numbers(match["why"])) if one not in known]
        if unknown:
            wrong.append(f"{match[0]}: unknown numbers {unknown}")
    return wrong


def questions(text: str) -> int:
    """Returns the number of questions in a text."""
    return len(ASK.findall(text))


def unsupported_numbers(text: str, others: str = "") -> list[str]:
    """Returns the numbers in a page's text that no command, output, study, calculation or trace contains.

    Exercises are exempt; `others` is a text with further studies and outputs.
    """
    known = _known(text) | _known(others)
    text = text.partition("\n## Exercises")[0]
    prose = _NAMES.sub("", re.sub(r"`[^`]*`", "", _COMMENT.sub("", _BLOCK.sub("", text))))
    return [number for number in _numbers(prose) if number not in known]


def unstated_answers(text: str) -> list[str]:
    """Returns the closing questions of a lesson whose answers the page does not state.

    A page states its prose, studies and outputs above the questions, and the results of the calculations
    next to them. Numbers in the expressions of comments do not count.
    """
    above, _, rest = text.partition("## Questions")
    closing = rest.partition("## Exercises")[0]
    stated = set(_numbers(_COMMENT.sub("", above))) | {match["value"] for match in _CALC.finditer(closing)}
    return [match[0] for match in ASK.finditer(closing) if match["value"] not in stated]


def outdated_operands(text: str, others: str = "") -> list[str]:
    """Returns the calculations of a page with an operand that its outputs no longer contain.

    Only decimals with three significant digits are checked: shorter ones are constants.
    """
    stated = set(_numbers(_COMMENT.sub("", text + others)))
    stated |= {match["value"] for match in _CALC.finditer(text)}
    stated |= {match["value"] for match in observations.TRACE.finditer(text)}
    return [
        f"{match[0]}: {number}"
        for match in _CALC.finditer(text)
        for number in re.findall(r"(?<![\w.])\d+\.\d+(?![\w.])", match["expression"])
        if len(number.replace(".", "").lstrip("0")) >= 3 and number not in stated
    ]


def _known(text: str) -> set[str]:
    """Returns the numbers of a page's studies, outputs, calculations and traces."""
    known: set[str] = set()
    for match in _BLOCK.finditer(text):
        known |= set(_numbers(match["text"]))
    for match in _CALC.finditer(text):
        known |= {match["value"], *_numbers(match["expression"])}
    return known | {match["value"] for match in observations.TRACE.finditer(text)}


def _numbers(text: str) -> Iterator[str]:
    for match in re.finditer(r"(?<![A-Za-z_.\d])\d+(?:[.,]\d+)*", text):
        yield match[0].replace(",", "")


def write() -> None:
    """Writes the outputs of all lessons, or of those named as arguments."""
    os.environ["COLUMNS"] = COLUMNS
    if any(name in README.name for name in sys.argv[1:]):
        os.environ["COLUMNS"] = README_COLUMNS
        README.write_text(rewritten(README.read_text(encoding="utf-8"), image=IMAGE), encoding="utf-8")
    for page in pages():
        if len(sys.argv) < 2 or any(name in page.name for name in sys.argv[1:]):
            text = page.read_text(encoding="utf-8")
            page.write_text(rewritten(text), encoding="utf-8")
            print(page.name, *wrong_calculations(text), *unsupported_numbers(page.read_text()), sep="\n  ")
    if len(sys.argv) < 2 or "solutions" in sys.argv[1:]:
        for page in solutions():
            page.write_text(rewritten(page.read_text(encoding="utf-8"), files()), encoding="utf-8")


if __name__ == "__main__":
    write()
