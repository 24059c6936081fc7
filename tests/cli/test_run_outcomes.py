"""Exit codes of `longfat run`, and the folders of runs with changed settings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli, only_lines

import longfat as lf
from longfat.presentation.run.report import page
from longfat.study import Overrides

Data = dict[str, Any]
Write = Callable[..., Path]


def claimed(data: Data, relation: str, value: str, **keys: Any) -> Data:
    """Returns the study with one claim about the goodput of its protocol "gbn"."""
    of = {"id": "level", "text": "A level", "metric": "goodput", "of": "gbn"}
    return data | {"claims": [of | {"relation": relation, "value": value}]} | keys


@pytest.mark.parametrize(
    ("relation", "value", "repeats", "verdict", "codes"),
    [
        ("at-least", "1bit/s", 4, "holds", (0, 0, 0)),
        ("at-least", "1Gbit/s", 4, "fails", (0, 3, 3)),
        ("at-least", "1bit/s", 1, "undecided", (0, 0, 4)),
    ],
)
def test_a_claim_sets_the_exit_code_if_requested(
    cli: Cli,
    data: Data,
    write: Write,
    relation: str,
    value: str,
    repeats: int,
    verdict: str,
    codes: tuple[int, int, int],
) -> None:
    study = write(claimed(data, relation, value, repeats=repeats))
    for options, code in zip(([], ["failed"], ["undecided"]), codes, strict=True):
        flags = ["--fail-on", *options] if options else []
        done = cli("run", study, "--json", *flags, ok=False)
        assert done.returncode == code, done.stderr
        assert json.loads(done.stdout)["verdict"] == verdict
        if code:
            last = done.stderr.splitlines()[-1]
            assert last == f"longfat: --fail-on {options[0]}: {verdict}: level"
    assert lf.load_run(Path(study).parent / "runs" / "small").verdict == verdict


def test_a_check_that_cannot_fail_is_refused(cli: Cli, data: Data, write: Write) -> None:
    study = write({key: value for key, value in data.items() if key != "claims"})
    done = cli("run", study, "--fail-on", "failed", ok=False)
    assert done.returncode == 2
    only_lines(done.stderr, ["longfat: --fail-on: the study small has no claims"])
    done = cli("run", study, "--fail-on", "fails", ok=False)
    only_lines(done.stderr, ['longfat: --fail-on: "fails" is unknown'])
    assert not (study.parent / "runs").exists()


def test_verdicts_have_numbers(cli: Cli, data: Data, write: Write) -> None:
    claim = {"id": "ahead", "text": "sr is ahead", "metric": "goodput", "relation": "higher"}
    names = [entry["name"] for entry in data["protocols"]]
    study = write(data | {"claims": [claim | {"of": names[1], "against": names[0]}]})
    (found,) = json.loads(cli("run", study, "--json").stdout)["claims"]
    figures = found["figures"]
    assert figures["metric"] == "goodput_bps"
    assert [one["name"] for one in figures["values"]] == [names[1], names[0]]
    first, second = (one["value"] for one in figures["values"])
    ratio = figures["ratio"]
    assert ratio["value"] == pytest.approx(first / second, rel=1e-6)
    assert ratio["low"] <= ratio["value"] <= ratio["high"]
    assert figures["n"] == data["repeats"]
    assert 1 <= figures["agreeing"] <= figures["comparisons"]


@pytest.mark.slow
def test_changed_settings_have_their_own_folder(cli: Cli, data: Data, write: Write, tmp_path: Path) -> None:
    study = write(data)
    cli("run", study)
    before = (tmp_path / "runs/small/report.html").read_bytes()
    cli("run", study, "--set", "path.delay=100ms")
    cli("run", study, "--seed", "9")
    assert (tmp_path / "runs/small/report.html").read_bytes() == before
    for name in ("small-path.delay=100ms", "small-seed=9"):
        assert lf.load_run(tmp_path / "runs" / name).study.name == "small", name
    # More trials are more of the same run.
    cli("run", study, "--repeats", "5")
    assert {file.name for file in (tmp_path / "runs").iterdir() if file.is_dir()} == {
        "small",
        "small-path.delay=100ms",
        "small-seed=9",
    }


def test_names_of_folders_are_short_safe_and_distinct() -> None:
    def name(*settings: tuple[str, Any]) -> str:
        return Overrides(settings).variant

    assert name(("path.loss", "2%"), ("protocol.window", 8)) == "path.loss=2%,protocol.window=8"
    rates = {name(("path.rate", rate)) for rate in ("1Mbit/s", "1Mbit s")}
    assert len(rates) == 2
    assert all("/" not in one and " " not in one for one in rates)
    many = [("path.loss", [f"{loss}%" for loss in range(count)]) for count in (40, 41)]
    assert len({name(one) for one in many}) == 2
    assert all(len(name(one)) < 100 for one in many)
    assert name(("repeats", 8), ("max_repeats", 9)) == ""


def test_the_answer_precedes_the_report(
    cli: Cli, data: Data, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed report leaves the answer; with the report's path the output has at most 25 lines."""
    done = cli("run", write(data))
    lines = done.stdout.splitlines()
    assert lines[0] == data["title"]
    assert lines[-1] == "Report: runs/small/report.html"
    assert len(lines) <= 25

    def fail(result: object) -> None:
        raise OSError(28, "No space left on device", "runs/small/report.html")

    monkeypatch.setattr(page, "write_report", fail)
    done = cli("run", write(data), ok=False)
    assert done.returncode == 1
    assert done.stdout.splitlines() == lines[:-1]
    only_lines(done.stderr.splitlines()[-1], ["longfat: runs/small/report.html: No space left on device"])


@pytest.mark.parametrize("option", ["--csv", "--junit", "--summary"])
def test_a_file_without_a_folder_is_an_error_before_the_trials(
    cli: Cli, data: Data, write: Write, option: str
) -> None:
    suffix = {"--csv": "csv", "--junit": "xml", "--summary": "md"}[option]
    study = write(data)
    done = cli("run", study, option, f"nodir/x.{suffix}", ok=False)
    assert done.returncode == 2
    only_lines(
        done.stderr, [f"longfat: {option} nodir/x.{suffix}: the folder nodir does not exist; create it"]
    )
    (study.parent / f"x.{suffix}").mkdir()
    done = cli("run", study, option, f"x.{suffix}", ok=False)
    only_lines(done.stderr, [f"longfat: {option} x.{suffix}: is a folder; add the name of a file"])
    assert not (study.parent / "runs").exists()
