"""Files of `longfat run` for continuous integration, `longfat compare`, and the composite action."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml  # type: ignore[import-untyped]
from tests.conftest import Cli, command

import longfat
from longfat.analysis.run_comparison import compare

ROOT = Path(__file__).parents[2]
STUDY = """
title = "A gate"
repeats = 5

[path]
rate = "10Mbit/s"
delay = "5ms"
loss = "{loss}"

[workload]
kind = "file"
size = "200kB"

[[protocols]]
name = "gbn"
kind = "go-back-n"
window = 16

[[claims]]
id = "fast"
text = "Goodput is at least {least}"
metric = "goodput"
relation = "at-least"
of = "gbn"
value = "{least}"

[[claims]]
id = "no-timeouts"
text = "There are no timeouts | at all"
metric = "timeouts"
relation = "at-most"
of = "gbn"
value = 1000
"""


def study(folder: Path, loss: str = "1%", least: str = "1Mbit/s") -> Path:
    file = folder / "gate.toml"
    file.write_text(STUDY.format(loss=loss, least=least))
    return file


def test_claims_become_test_cases(cli: Cli, tmp_path: Path) -> None:
    file = study(tmp_path, least="9.9Mbit/s")
    junit, summary = tmp_path / "claims.xml", tmp_path / "claims.md"
    options = ("--out", tmp_path / "run", "--junit", junit, "--summary", summary, "--fail-on", "failed")
    done = cli("run", file, *options, ok=False)
    assert done.returncode == 3
    suite = ElementTree.parse(junit).getroot().find("testsuite")
    assert suite is not None
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "2",
        "failures": "1",
        "errors": "0",
        "skipped": "0",
    }
    fast, calm = suite.findall("testcase")
    assert (fast.get("name"), calm.get("name")) == ("fast [sim]", "no-timeouts [sim]")
    failure = fast.find("failure")
    assert failure is not None
    assert "Goodput is at least 9.9Mbit/s" in str(failure.get("message"))
    assert calm.find("failure") is None
    text = summary.read_text()
    assert text.startswith("## A gate\n")
    assert "✗ fails | sim | Goodput is at least 9.9Mbit/s" in text
    assert "no timeouts \\| at all" in text
    assert "| sim | gbn |" in text


def test_an_unknown_suffix_is_refused(cli: Cli, tmp_path: Path) -> None:
    done = cli("run", study(tmp_path), "--junit", tmp_path / "claims.json", ok=False)
    assert done.returncode == 2
    assert "--junit" in done.stderr
    assert "allowed: .xml" in done.stderr


def test_compare_reports_changed_cells(cli: Cli, tmp_path: Path) -> None:
    for name, loss in (("before", "1%"), ("after", "4%"), ("again", "1%")):
        assert cli("run", study(tmp_path, loss), "--out", tmp_path / name).returncode == 0
    same = cli("compare", tmp_path / "before", tmp_path / "again", "--fail-on-change")
    assert same.returncode == 0
    assert "0 of 1 cells changed" in same.stdout
    assert "bit-identical" in same.stdout
    summary = tmp_path / "changes.md"
    arguments = ("compare", tmp_path / "before", tmp_path / "after", "--metric", "goodput")
    changed = cli(*arguments, "--fail-on-change", "--summary", summary, ok=False)
    assert changed.returncode == 3
    assert "1 of 1 cells changed: 1 of 1 comparisons" in changed.stdout
    assert "| sim, gbn | Goodput |" in summary.read_text()
    document = json.loads(cli(*arguments, "--json").stdout)
    (one,) = document["comparisons"]
    assert (one["outcome"], one["n"], document["confidence_of_each"]) == ("lower", 5, 0.95)
    assert one["ratio"]["high"] < 1
    unknown = cli(*arguments, "--metric", "gooput", ok=False)
    assert unknown.returncode == 2
    assert "gooput" in unknown.stderr
    assert cli("compare", tmp_path / "before", tmp_path / "none", ok=False).returncode != 0


def test_comparisons_share_the_confidence() -> None:
    study = {
        "title": "Many cells",
        "path": {"rate": "10Mbit/s", "delay": "5ms", "loss": "1%"},
        "workload": {"kind": "file", "size": "50kB"},
        "sweep": {"path.delay": [f"{delay}ms" for delay in range(1, 11)]},
        "protocols": [{"name": "gbn", "kind": "go-back-n", "window": 8}],
    }
    first, second = (longfat.sweep(study, seeds=5, seed=seed) for seed in (1, 2))
    found = compare(first, second, ["goodput_bps"])
    assert len(found.changes) == 10
    assert found.level == pytest.approx(0.995)
    for change in found.changes:
        low, high = change.difference.low, change.difference.high
        assert low < change.second - change.first < high
        assert change.is_change == (low > 0 or high < 0)


@pytest.mark.parametrize(("least", "code"), [("1Mbit/s", 0), ("9.9Mbit/s", 3)])
def test_the_action_gates(least: str, code: int, tmp_path: Path) -> None:
    action = yaml.safe_load((ROOT / ".github/actions/longfat-study/action.yml").read_text())
    *_, step = action["runs"]["steps"]
    inputs = {name: about.get("default", "") for name, about in action["inputs"].items()}
    inputs |= {"study": str(study(tmp_path, least=least)), "out": str(tmp_path / "gate")}
    environment = {
        name: inputs[value.removeprefix("${{ inputs.").removesuffix(" }}")]
        for name, value in step["env"].items()
    }
    # The action's longfat is this one.
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "longfat"
    program.write_text("#!/bin/sh\nexec " + " ".join(map(str, command())) + ' "$@"\n')
    program.chmod(0o755)
    written = tmp_path / "step.md"
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step["run"]],
        env={
            **os.environ,
            **environment,
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "GITHUB_STEP_SUMMARY": str(written),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert written.read_text().startswith("## A gate")
    assert ElementTree.parse(tmp_path / "gate.xml").getroot().tag == "testsuites"


def test_the_example_workflow_uses_the_inputs_of_the_action() -> None:
    workflow = yaml.safe_load((ROOT / "examples/ci/study.yml").read_text())
    steps = workflow["jobs"]["gate"]["steps"]
    uses = next(step for step in steps if step.get("uses", "").endswith("longfat-study"))
    action = yaml.safe_load((ROOT / uses["uses"] / "action.yml").read_text())
    assert set(uses["with"]) <= set(action["inputs"])
    assert action["inputs"]["study"]["required"]
