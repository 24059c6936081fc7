"""Commands, files and Python examples of README.md and docs/ work.

Comments before a block mark it: `file: NAME` (write the block to this file), `append: NAME`, `skip: REASON`,
`project: WHAT` (the block runs in the project's folder). Commands that are not run are parsed.

Built-in studies run with `--quick`, because the test is about the page.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from tests import in_process

from longfat.cli.app import app
from longfat.study import builtin

ROOT = Path(__file__).parents[2]
MACHINE = pytest.mark.xdist_group("machine")
"""Pages whose commands create network namespaces: other tests expect to find only their own."""
PAGES = (
    "README.md",
    "docs/tutorial.md",
    "docs/controllers.md",
    pytest.param("docs/trace.md", marks=MACHINE),
    pytest.param("docs/shell.md", marks=MACHINE),
    pytest.param("docs/net.md", marks=MACHINE),
    "docs/packetdrill.md",
    pytest.param("docs/path.md", marks=MACHINE),
    "docs/predict.md",
    "docs/python.md",
    "docs/ttcp.md",
)
ALL_PAGES = sorted(str(path.relative_to(ROOT)) for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*?) -->\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
LINK = re.compile(r"\]\((?P<target>[^)#\s]+)?(?:#(?P<anchor>[^)\s]+))?\)")
TIMEOUT_S = 600


def blocks(page: str) -> Iterator[tuple[str, str, str]]:
    """Yields (mark, kind, text) of each fenced block."""
    for match in BLOCK.finditer((ROOT / page).read_text(encoding="utf-8")):
        yield match["mark"] or "", match["kind"], match["text"]


def commands(text: str) -> list[str]:
    """Returns the longfat commands of a console block."""
    lines = text.replace("\\\n", " ").splitlines()
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ longfat ")]


def quick(command: str) -> str:
    """Returns the command, with `--quick` if it runs a built-in study."""
    words = shlex.split(command, comments=True)
    is_study = len(words) > 2 and words[1] == "run" and words[2] in builtin()
    return f"{command.partition(' #')[0]} --quick" if is_study and "--quick" not in words else command


def run(command: str | list[str], folder: Path) -> None:
    """Runs a command of a page in a folder.

    `longfat` runs in this process unless the command needs a shell.
    """
    if isinstance(command, str) and not set(command) & set("|<>$;&"):
        done = in_process.run(folder, shlex.split(command, comments=True)[1:])
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        command if isinstance(command, list) else ["sh", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_examples_of_a_page_run(page: str, tmp_path: Path) -> None:
    tried = 0
    for mark, kind, text in blocks(page):
        action, _, name = mark.partition(": ")
        if action in ("file", "append"):
            with (tmp_path / name).open("w" if action == "file" else "a", encoding="utf-8") as file:
                file.write(text)
        elif action == "skip":
            continue
        elif kind == "console":
            for command in commands(text):
                run(quick(command), ROOT if action == "project" else tmp_path)
                tried += 1
        elif kind == "python":
            run([sys.executable, "-P", "-c", text], tmp_path)
            tried += 1
    assert tried > 0


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
def test_links_lead_somewhere(page: str) -> None:
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
