"""Commands, files and Python examples of README.md and docs/.

Comments before a block mark it: `file: NAME` (write the block to this file), `append: NAME`, `skip: REASON`
(it needs privileges, a host, two terminals), `minutes: REASON` (only `pytest -m minutes` runs it),
`project: WHAT` (the block runs in the project's folder). All other blocks run. Commands that do not run are
parsed.

Built-in studies run with `--quick`, because the tests are about the page.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from tests import in_process
from tests.offline import loaded

from longfat.cli.app import app
from longfat.study import StudyError, builtin, load_study

ROOT = Path(__file__).parents[2]
ALL_PAGES = sorted(str(path.relative_to(ROOT)) for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*?) -->\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
LINK = re.compile(r"\]\((?P<target>[^)#\s]+)?(?:#(?P<anchor>[^)\s]+))?\)")
TIMEOUT_S = 600
EXACT = ("docs/tutorial.md", "docs/trace.md", "docs/predict.md", "docs/packetdrill.md")
"""Pages whose commands print what the page shows."""
COLUMNS = "140"
VARIABLE = re.compile("…|^(sim|relay): .* in ")
"""Lines that omit something, or have the duration of a run."""
RUNNABLE = ("console", "python", "sh")
COVERED = ("docs/cookbook/", "docs/learn/")
"""Folders whose commands test_cookbook.py and test_lessons.py run."""
NETWORKS = ("docs/trace.md", "docs/shell.md", "docs/net.md", "docs/path.md", "docs/ping.md")
"""Pages whose commands create network namespaces, or remove leftovers on the whole machine."""


LONG = ("docs/bundle.md", "docs/diagnose.md", "docs/explain.md", "docs/path.md", "docs/trace.md")
FIRST = ["README.md"]
FIRST += [f"docs/{name}.md" for name in typer.main.get_command(app).commands]  # type: ignore[attr-defined]
"""Pages that `make test` runs, unless they are long. `make test-all` runs all pages."""


def blocks(page: str) -> Iterator[tuple[str, str, str]]:
    """Yields (mark, kind, text) of each fenced block."""
    for match in BLOCK.finditer((ROOT / page).read_text(encoding="utf-8")):
        yield match["mark"] or "", match["kind"], match["text"]


def commands(text: str) -> list[str]:
    """Returns the longfat commands of a console block."""
    lines = text.replace("\\\n", " ").splitlines()
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ longfat ")]


def quick(command: str) -> str:
    """Returns the command, with `--quick` if it runs a built-in study, and with that run if it draws one."""
    words = shlex.split(command, comments=True)
    if len(words) < 3 or words[2] not in builtin():
        return command
    if words[1] == "chart":
        return command.replace(words[2], f"runs/{words[2]}-quick", 1)
    is_whole = words[1] == "run" and "--quick" not in words
    return f"{command.partition(' #')[0]} --quick" if is_whole else command


def outputs(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yields the longfat commands of a console block with the lines of output that the page shows."""
    _, *parts = re.split(r"^\$ ", text.replace("\\\n", " "), flags=re.MULTILINE)
    for part in parts:
        command, *lines = part.splitlines()
        if command.startswith("longfat "):
            yield command, [line for line in lines if line.strip() and not VARIABLE.search(line)]


def figures(text: str) -> list[str]:
    """Returns the outputs that a block of Python shows: comments behind `print(...)` that start with a digit.

    >>> figures("print(x)  # 5.95 Mbit/s\\nprint(y)  # SI units\\nseed = 1  # 2")
    ['5.95 Mbit/s']
    """
    return re.findall(r"^print\(.*\)  # (\d.*)$", text, re.MULTILINE)


def missing(shown: list[str], output: str) -> list[str]:
    """Returns the shown lines that an output lacks, ignoring differences in spacing.

    >>> missing(["a  b", "c"], "x\\na b\\n")
    ['c']
    """
    printed = " ".join(output.split())
    return [line for line in shown if " ".join(line.split()) not in printed]


def run(command: str, folder: Path) -> str:
    """Runs a command of a page in a folder and returns its output.

    `longfat` runs in this process unless the command needs a shell.
    """
    if not set(command) & set("|<>$;&"):
        done = in_process.run(folder, shlex.split(command, comments=True)[1:])
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def pages(action: str | None = None) -> list[Any]:
    """Returns the pages with runnable blocks that have this mark, by default with those that have none."""
    found = []
    for page in ALL_PAGES:
        marks = [mark.partition(": ")[0] for mark, kind, _ in blocks(page) if kind in RUNNABLE]
        wanted = action in marks if action else set(marks) - {"skip", "minutes", "file", "append"}
        if wanted and not page.startswith(COVERED):
            marks_of_test = [pytest.mark.xdist_group("machine")] if page in NETWORKS else []
            if page not in FIRST or page in LONG:
                marks_of_test.append(pytest.mark.slow)
            found.append(pytest.param(page, marks=marks_of_test))
    return found


def run_page(page: str, folder: Path, *, skipped: set[str]) -> int:
    """Runs the blocks of a page except those with one of these marks; returns their number."""
    tried = 0
    for mark, kind, text in blocks(page):
        action, _, name = mark.partition(": ")
        if action in ("file", "append"):
            with (folder / name).open("w" if action == "file" else "a", encoding="utf-8") as file:
                file.write(text)
        elif action in skipped:
            continue
        elif kind == "console":
            for command, shown in outputs(text):
                printed = run(quick(command), ROOT if action == "project" else folder)
                if page in EXACT and quick(command) == command:
                    assert missing(shown, printed) == [], f"{command}\n{printed}"
                tried += 1
        elif kind == "python":
            printed = in_process.execute(folder, text, page)
            assert missing(figures(text), printed) == [], printed
            tried += 1
        else:
            assert kind not in RUNNABLE, f"{page}: a block of {kind} needs a mark: {text}"
    return tried


@pytest.mark.parametrize("page", pages())
def test_commands_and_examples_of_a_page_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", COLUMNS)
    assert run_page(page, tmp_path, skipped={"skip", "minutes"}) > 0
    for file in tmp_path.rglob("*.html"):
        assert loaded(file.read_text(encoding="utf-8")) == [], file


@pytest.mark.minutes
@pytest.mark.parametrize("page", pages("minutes"))
def test_long_commands_of_a_page_run(page: str, tmp_path: Path) -> None:
    assert run_page(page, tmp_path, skipped={"skip"}) > 0


@pytest.mark.parametrize("page", ALL_PAGES)
def test_studies_of_a_page_load(page: str, tmp_path: Path) -> None:
    """Blocks of TOML with a title are whole studies, others parts of one."""
    for mark, kind, text in blocks(page):
        action, _, name = mark.partition(": ")
        if action == "file":
            (tmp_path / name).write_text(text, encoding="utf-8")
        if kind != "toml" or action in ("append", "skip"):
            continue
        if re.search(r"^title\s*=", text, re.MULTILINE):
            (tmp_path / "study.toml").write_text(text, encoding="utf-8")
            try:
                load_study(tmp_path / "study.toml")
            except StudyError as error:
                pytest.fail(f"{page}: {error}")
        else:
            tomllib.loads(text)


@pytest.mark.parametrize("page", ALL_PAGES)
def test_commands_of_a_page_parse(page: str) -> None:
    """Commands, options and built-in studies exist."""
    known, folders = builtin(), {name.partition("/")[0] for name in builtin()}
    for _, kind, text in blocks(page):
        if kind == "python":
            compile(text, page, "exec")
        for line in commands(text) if kind == "console" else []:
            _, name, *words = shlex.split(line, comments=True)
            found: Any = typer.main.get_command(app)
            found = found.commands[name]
            if hasattr(found, "commands"):
                name = words.pop(0) if words[0] in found.commands else "open"
                found = found.commands[name]
            found.make_context(name, list(words))
            studies = [word for word in words if re.fullmatch(r"[a-z]+/[a-z0-9-]+", word)]
            assert all(word in known for word in studies if word.partition("/")[0] in folders), line


@pytest.mark.parametrize(
    "page", sorted(str(p.relative_to(ROOT)) for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
)
def test_links_have_targets(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for match in LINK.finditer(re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)):
        target, anchor = match["target"], match["anchor"]
        if target and "://" in target:
            continue
        file = (ROOT / page).parent / target if target else ROOT / page
        assert file.exists(), match[0]
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
            assert anchor in slugs, match[0]


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/extending.md"])
def test_named_files_exist(page: str) -> None:
    """Paths in backticks that start with a folder of the project exist."""
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:crates|python|studies|tests|docs|benchmarks|bpf)/[^`*<]*)`", text))
    assert named
    missing = [path for path in sorted(named) if "NAME" not in path and not (ROOT / path).exists()]
    assert missing == []


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/extending.md"])
def test_named_functions_of_crates_exist(page: str) -> None:
    """`crate::name` in backticks, or `crate::module::name`, is declared in that crate."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for crate, name in re.findall(r"`(\w+)::(?:\w+::)*(\w+)`", text):
        if not (ROOT / "crates" / crate).is_dir():
            continue
        sources = (ROOT / "crates" / crate / "src").rglob("*.rs")
        declared = re.compile(rf"\b(?:fn|struct|enum|trait|mod|type|const) {name}\b")
        assert any(declared.search(file.read_text(encoding="utf-8")) for file in sources), f"{crate}::{name}"


def test_crates_with_unsafe_code_are_named() -> None:
    files = ROOT.glob("crates/*/src/**/*.rs")
    unsafe = {
        file.relative_to(ROOT).parts[1]
        for file in files
        if re.search(r"\bunsafe (?:\{|fn|extern|impl)|#\[unsafe", file.read_text(encoding="utf-8"))
    }
    for page, line in (
        ("ARCHITECTURE.md", "`unsafe` code exists only"),
        ("CONTRIBUTING.md", "forbid(unsafe_code)"),
    ):
        text = (ROOT / page).read_text(encoding="utf-8")
        (found,) = (one for one in text.splitlines() if line in one)
        named = set(re.findall(r"`(?:crates/)?(\w+)`", found.replace("`unsafe`", "")))
        assert named == unsafe, page
