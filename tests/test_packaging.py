"""The package: metadata, source distribution, and the workflows that build both."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked source distribution."""
    folder = tmp_path_factory.mktemp("sdist")
    maturin = Path(sys.executable).with_name("maturin")
    subprocess.run(
        [maturin, "sdist", "--out", folder], cwd=ROOT, check=True, capture_output=True, timeout=300
    )
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as content:
        content.extractall(folder, filter="data")
    return Path(str(archive).removesuffix(".tar.gz"))


@pytest.mark.slow
def test_the_source_distribution_has_what_its_lock_file_lists(sdist: Path) -> None:
    """Cargo refuses a locked build of a workspace with a missing member."""
    for name in ("README.md", "LICENSE-MIT", "LICENSE-APACHE", "python/longfat/studies/arq/loss.toml"):
        assert (sdist / name).is_file(), name
    command = ["cargo", "metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"]
    manifest = str(sdist / "crates" / "python" / "Cargo.toml")
    done = subprocess.run(
        [*command, "--manifest-path", manifest], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    tree = ["cargo", "tree", "--locked", "--offline", "--manifest-path", manifest]
    done = subprocess.run(tree, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.minutes
def test_the_source_distribution_builds(sdist: Path, tmp_path: Path) -> None:
    maturin = Path(sys.executable).with_name("maturin")
    command = [str(maturin), "build", "--locked", "--profile", "dev", "--out", str(tmp_path)]
    subprocess.run(command, cwd=sdist, check=True, timeout=1800)
    assert [file.name for file in tmp_path.glob("longfat-*.whl")]


def test_the_metadata_is_complete() -> None:
    for key in ("description", "readme", "requires-python", "license", "keywords", "classifiers"):
        assert PROJECT[key], key
    assert (ROOT / PROJECT["readme"]).is_file()
    rust = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]
    assert rust["license"].replace(" ", "") == PROJECT["license"].replace(" ", "")
    named = {p.partition("::")[2].strip() for p in PROJECT["classifiers"] if "Python :: 3." in p}
    assert min(named, key=_version).endswith(PROJECT["requires-python"].removeprefix(">="))


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.rpartition(" ")[2].split(".")))


@pytest.mark.parametrize("extra", sorted(PROJECT["optional-dependencies"]))
def test_the_packages_of_an_extra_are_pinned(extra: str) -> None:
    pinned = {
        re.split(r"[=<>]", line)[0].lower().replace("_", "-")
        for file in ROOT.glob("constraints*.txt")
        for line in file.read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    }
    wanted = {re.split(r"[\[<>=;]", one)[0].lower() for one in PROJECT["optional-dependencies"][extra]}
    assert wanted - pinned == set()


DEVELOPMENT = ("dev", "site")
"""Extras for work on longfat, not for its use."""
DISTRIBUTIONS = {
    "vl_convert": "vl-convert-python",
    **dict.fromkeys(("dask", "cloudpickle", "psutil", "tornado"), "distributed"),
}
"""The distributions that install modules of another name, themselves or by what they require."""


def _requirements(*extras: str) -> set[str]:
    listed = list(PROJECT["dependencies"])
    for extra in extras:
        listed += PROJECT["optional-dependencies"][extra]
    return {re.split(r"[\[<>=;]", one)[0].lower() for one in listed}


def _imports(source: str) -> Iterator[str]:
    """Yields the distributions that a program imports."""
    for node in ast.walk(ast.parse(source)):
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module]
        for name in names:
            root = name.partition(".")[0]
            if root not in sys.stdlib_module_names | {"longfat"}:
                yield DISTRIBUTIONS.get(root, root.replace("_", "-"))


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")], ids=lambda page: page.stem)
def test_imports_of_a_page_are_in_an_extra(page: Path) -> None:
    """Or the page names the package: `pip install NAME`, or the reason why its block does not run."""
    extras = [extra for extra in PROJECT["optional-dependencies"] if extra not in DEVELOPMENT]
    text = page.read_text(encoding="utf-8")
    named = set(
        " ".join(map(" ".join, re.findall(r"pip install ([^`\n]*)|<!-- skip: (.*) -->", text))).split()
    )
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        for name in _imports(block):
            assert name in _requirements(*extras) or name in named, name


def test_imports_of_notebooks_are_in_an_extra() -> None:
    allowed = _requirements(*PROJECT["optional-dependencies"])
    for file in ROOT.glob("docs/notebooks/*.ipynb"):
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        source = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        source = re.sub(r"^\s*[%!].*$", "", source, flags=re.MULTILINE)
        assert set(_imports(source)) <= allowed, file.name


def test_imports_of_the_package_are_in_its_requirements() -> None:
    """Those of optional parts are in extras; pytest loads the plugin itself."""
    extras = [extra for extra in PROJECT["optional-dependencies"] if extra not in DEVELOPMENT]
    for file in (ROOT / "python" / "longfat").rglob("*.py"):
        allowed = _requirements(*extras) | ({"pytest"} if file.parent.name == "testing" else set())
        assert set(_imports(file.read_text(encoding="utf-8"))) <= allowed, file


def test_required_packages_in_docstrings_are_in_the_named_extra() -> None:
    found = 0
    for file in (ROOT / "python" / "longfat").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        for extra, packages in re.findall(r"Requires `longfat\[(\w+)\]` \(([\w, ]+)\)", text):
            assert set(packages.split(", ")) <= _requirements(extra), file
            found += 1
        assert not re.search(r"Requires (?!`longfat\[)\w+ and \w+\.", text), file
    assert found


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_workflows_use_files_and_targets_that_exist(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert all(("uses" in step) != ("run" in step) for step in steps)
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step["uses"]) for step in steps if "uses" in step)
    script = "\n".join(step.get("run", "") for step in steps)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make ([\w-]+)", script):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for name in re.findall(r"(?<![\w/-])(?:\.ci/run|constraints\.txt|tests/\w+)", script):
        assert (ROOT / name).exists(), name


def test_wheels_cover_linux_and_macos_on_both_processors() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "wheels.yml").read_text(encoding="utf-8"))
    entries = workflow["jobs"]["wheels"]["strategy"]["matrix"]["include"]
    wanted = {f"{system}-{target}" for system in ("linux", "macos") for target in ("x86_64", "aarch64")}
    assert {entry["name"] for entry in entries} == wanted
