"""Files of `longfat run` for continuous integration, `longfat compare`, and the composite action."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import scipy
import yaml  # type: ignore[import-untyped]
from tests.conftest import Cli, command

import longfat
from longfat.analysis.run_comparison import compare
from longfat.presentation.run import summary as summaries
from longfat.presentation.run.comparison import conclusion
from longfat.presentation.run.displayed import Run
from longfat.results.run import Censored

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


def test_summaries_are_those_of_complete_runs(cli: Cli, tmp_path: Path) -> None:
    file, junit, summary = study(tmp_path), tmp_path / "claims.xml", tmp_path / "claims.md"
    options = ("--out", tmp_path / "run", "--junit", junit, "--summary", summary)
    assert cli("run", file, *options, "--shard", "1/2").returncode == 0
    assert not junit.exists()
    assert not summary.exists()
    assert cli("run", file, *options, "--shard", "2/2").returncode == 0
    assert ElementTree.parse(junit).getroot().find("testsuite") is not None
    assert re.search(r"\| sim \| gbn \| .* \| 5 \|", summary.read_text())


def test_errors_with_control_characters_are_valid_xml() -> None:
    done = run_of(2)
    errors = {"\x1b[31mred\x00\ud800 & <no> ä\U0001f600": 2}
    broken = replace(done, cells=[replace(done.cells[0], n=0, failures=errors)])
    error = ElementTree.fromstring(summaries.junit([broken])).find("testsuite/testcase/error")
    assert error is not None
    found = "2 times: \ufffd[31mred\ufffd\ufffd & <no> ä\U0001f600"
    assert error.get("message") == f"all trials failed: {found}"


def test_the_summary_has_one_unit_for_a_metric_and_the_confidence_of_adaptive_runs() -> None:
    done = longfat.sweep(
        {"path": {"delay": "1ms"}, "size": "200kB", "protocol": "reno"},
        {"path.rate": ["100kbit/s", "10Mbit/s"]},
        seeds=2,
    )
    text = summaries.markdown([replace(done, cells=[replace(cell, confidence=0.99) for cell in done.cells])])
    assert "| world | protocol | point | Goodput (Mbit/s) |" in text
    assert re.search(r"\| path\.rate = 100kbit/s \| 0\.09\d+ \|", text)
    assert "95 % confidence, valid over all looks" in text


def test_an_unknown_suffix_is_refused(cli: Cli, tmp_path: Path) -> None:
    done = cli("run", study(tmp_path), "--junit", tmp_path / "claims.json", ok=False)
    assert done.returncode == 2
    assert "--junit" in done.stderr
    assert "allowed: .xml" in done.stderr


@pytest.mark.slow
def test_compare_reports_changed_cells(cli: Cli, tmp_path: Path) -> None:
    for name, loss in (("before", "1%"), ("after", "4%"), ("again", "1%")):
        assert cli("run", study(tmp_path, loss), "--out", tmp_path / name).returncode == 0
    same = cli("compare", tmp_path / "before", tmp_path / "again", "--fail-on-change")
    assert same.returncode == 0
    assert "0 of 1 cells changed" in same.stdout
    assert "bit-identical" in same.stdout
    assert "The studies differ" not in same.stdout
    summary = tmp_path / "changes.md"
    arguments = ("compare", tmp_path / "before", tmp_path / "after", "--metric", "goodput")
    changed = cli(*arguments, "--fail-on-change", "--summary", summary, ok=False)
    assert changed.returncode == 3
    assert "1 of 1 cells changed: 1 of 1 comparisons" in changed.stdout
    first, head, row, *_ = changed.stdout.splitlines()
    assert first == "The studies differ: path.loss 1% → 4%"
    assert head.split()[-1] == "change"
    assert row.startswith("sim, gbn")
    assert row.split()[-1] == "worse"
    assert changed.stdout.splitlines()[-1].endswith("; 1 worse")
    assert summary.read_text().index("The studies differ") < summary.read_text().index("1 of 1 cells changed")
    assert "| sim, gbn | Goodput |" in summary.read_text()
    document = json.loads(cli(*arguments, "--json").stdout)
    (one,) = document["comparisons"]
    assert (one["outcome"], one["n"], document["confidence_of_each"]) == ("lower", 5, 0.95)
    assert one["effect"] == "worse"
    assert one["ratio"]["high"] < 1
    assert document["settings"] == [{"key": "path.loss", "first": "1%", "second": "4%"}]
    unknown = cli(*arguments, "--metric", "gooput", ok=False)
    assert unknown.returncode == 2
    assert "gooput" in unknown.stderr
    assert cli("compare", tmp_path / "before", tmp_path / "none", ok=False).returncode != 0


def test_changes_are_ordered_by_metric_and_size_and_have_a_direction() -> None:
    study = {
        "title": "Two losses",
        "repeats": 5,
        "path": {"rate": "10Mbit/s", "loss": "0.5%"},
        "workload": {"kind": "file", "size": "200kB"},
        "sweep": {"path.delay": ["5ms", "20ms", "40ms"]},
        "protocols": [{"name": "gbn", "kind": "go-back-n", "window": 8}],
        "metrics": {"doubled": "goodput * 2"},
        "show": ["doubled", "retransmissions", "goodput"],
    }
    worse = study | {"path": {"rate": "10Mbit/s", "loss": "10%"}}
    first, second = (longfat.sweep(one, seeds=5) for one in (study, worse))
    found = compare(first, second)
    changes = found.changed
    order = [change.metric for change in changes]
    assert order == sorted(order, key=list(dict.fromkeys(one.metric for one in found.changes)).index)
    assert {change.effect for change in changes if change.metric in ("goodput_bps", "retransmissions")} == {
        "worse"
    }
    assert {change.effect for change in compare(second, first).changed if change.metric == "goodput_bps"} == {
        "better"
    }
    own = [change for change in changes if change.metric.startswith("doubled")]
    assert own
    assert {change.effect for change in own} == {None}
    goodputs = [abs(math.log(change.ratio.value)) for change in changes if change.metric == "goodput_bps"]
    assert len(goodputs) > 1
    assert goodputs == sorted(goodputs, reverse=True)


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


def test_a_cell_that_breaks_completely_is_a_change(cli: Cli, tmp_path: Path) -> None:
    assert cli("run", study(tmp_path), "--out", tmp_path / "before").returncode == 0
    broken = cli("run", study(tmp_path, "100%"), "--out", tmp_path / "after", ok=False)
    assert "all trials failed" in broken.stderr
    summary = tmp_path / "changes.md"
    arguments = ("compare", tmp_path / "before", tmp_path / "after", "--summary", summary)
    done = cli(*arguments, "--fail-on-change", ok=False)
    assert done.returncode == 3
    for text in (done.stdout, summary.read_text()):
        assert "No longer measured: sim, gbn: goodput" in text
        assert "Failed trials: sim, gbn: 0 of 5 in the first run, 5 of 5 in the second" in text
    document = json.loads(cli(*arguments, "--json").stdout)
    assert document["changed"]
    assert {one["metric"] for one in document["lost"]} >= {"goodput_bps", "completion_s"}
    (failures,) = document["failures"]
    assert (failures["first"], failures["second"]) == (
        {"failed": 0, "tried": 5},
        {"failed": 5, "tried": 5},
    )


def run_of(seeds: int = 5, seed: int = 1, **path: str) -> Run:
    return longfat.sweep(
        {
            "path": {"rate": "10Mbit/s", "delay": "5ms", **path},
            "workload": {"kind": "file", "size": "50kB"},
            "protocols": [{"name": "gbn", "kind": "go-back-n", "window": 8}],
        },
        seeds=seeds,
        seed=seed,
    )


def test_a_missing_cell_is_a_change() -> None:
    both, one = (
        longfat.sweep(
            {"path": {"rate": "10Mbit/s"}, "size": "20kB", "protocol": "reno"},
            {"path.delay": delays},
            seeds=2,
        )
        for delays in (["1ms", "2ms"], ["1ms"])
    )
    assert compare(both, one).is_changed
    assert not compare(one, both).is_changed


def test_a_metric_without_a_value_in_the_second_run_is_lost() -> None:
    first, second = run_of(loss="1%"), run_of(loss="1%")
    del second.cells[0].metrics["goodput_bps"]
    found = compare(first, second)
    assert found.lost == ((first.cells[0].cell, "goodput_bps"),)
    assert found.is_changed


def test_a_metric_measured_too_rarely_in_the_second_run_is_not_lost() -> None:
    first, second = run_of(loss="1%"), run_of(seed=2, loss="1%")
    (cell,) = second.cells
    samples = {**cell.samples, "goodput_bps": [cell.samples["goodput_bps"][0], *[math.nan] * 4]}
    found = compare(first, replace(second, cells=[replace(cell, samples=samples)]))
    assert found.lost == ()
    assert [metric for _, metric in found.too_few] == ["goodput_bps"]


def test_a_metric_unknown_in_the_first_run_is_named() -> None:
    first, second = run_of(loss="1%"), run_of(loss="1%")
    cell = first.cells[0]
    del cell.metrics["goodput_bps"]
    first = replace(first, cells=[replace(cell, censored={"goodput_bps": Censored(5, 5, {}, 0)})])
    found = compare(first, second)
    assert found.unknown == ((cell.cell, "goodput_bps"),)
    assert not found.is_changed
    assert "unknown in the first run" in conclusion(found)


def test_single_trials_of_the_simulator_are_equal_or_different() -> None:
    first, same, slower = run_of(1), run_of(1), run_of(1, delay="6ms")
    equal = compare(first, same)
    assert {change.outcome for change in equal.changes} == {"equal"}
    assert not equal.is_changed
    found = {change.metric: change.outcome for change in compare(first, slower).changes}
    assert (found["goodput_bps"], found["completion_s"]) == ("lower", "higher")


def test_runs_with_different_seeds_are_not_paired() -> None:
    first, second = run_of(seed=1, loss="5%"), run_of(seed=2, loss="5%")
    (found,) = compare(first, second, ["goodput_bps"]).changes
    before, after = (run.cells[0].samples["goodput_bps"] for run in (first, second))
    welch = scipy.stats.ttest_ind(after, before, equal_var=False).confidence_interval(0.95)
    assert (found.difference.low, found.difference.high) == pytest.approx((welch.low, welch.high))
    with pytest.raises(ValueError, match="two trials in common"):
        compare(run_of(1, seed=1, loss="5%"), run_of(1, seed=2, loss="5%"))


def test_an_adaptive_run_is_compared_at_its_own_level() -> None:
    first, second = run_of(loss="1%"), run_of(loss="1%")
    adaptive = replace(first, cells=[replace(cell, confidence=0.99) for cell in first.cells])
    assert compare(adaptive, second, ["goodput_bps"]).level == pytest.approx(0.99)
    assert compare(second, adaptive, ["goodput_bps"]).level == pytest.approx(0.99)


def test_the_comparison_displays_itself(cli: Cli, tmp_path: Path) -> None:
    for name, loss in (("before", "1%"), ("after", "4%")):
        assert cli("run", study(tmp_path, loss), "--out", tmp_path / name).returncode == 0
    found = longfat.compare(tmp_path / "before", tmp_path / "after", metrics=["goodput"])
    assert repr(found).startswith("1 of 1 cells changed")
    frame = found.to_polars()
    assert frame.select("protocol", "metric", "n", "outcome").rows() == [("gbn", "goodput_bps", 5, "lower")]
    assert frame["first"][0] > frame["second"][0] > 1e6
    assert "<table" in found._repr_html_()


@pytest.mark.slow
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
