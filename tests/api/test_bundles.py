"""Bundles: a run that another folder repeats bit by bit, and archives that are none."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests import effort
from tests.conftest import Cli

import longfat as lf
from longfat.api import studies
from longfat.api.runs import InterruptedRun
from longfat.bundles import archive, provenance, texts
from longfat.bundles.archive import BundleError

Data = dict[str, Any]
CONTROLLER = """\
import longfat


class Fixed(longfat.CongestionController):
    def __init__(self, packets: int = 10) -> None:
        self.packets = packets

    def on_acknowledged(self, ack):
        self.window = self.packets * self.segment

    def on_lost(self, loss):
        pass

    def on_timeout(self, now, in_flight):
        pass
"""
TRACE = "".join(f"{n}\n" for n in range(1, 500, 3))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with a Python class and a trace."""
    folder = tmp_path_factory.mktemp("original")
    (folder / "own").mkdir()
    (folder / "own" / "fixed.py").write_text(CONTROLLER)
    (folder / "link.trace").write_text(TRACE)
    (folder / "study.toml").write_text(
        'title = "A fixed window over a recorded link"\nrepeats = 8\n'
        'path = { trace = "link.trace", delay = "10ms", loss = "2%" }\n'
        'workload = { kind = "file", size = "50kB" }\n'
        'protocols = [{ name = "own", kind = "tcp", congestion = "own/fixed.py:Fixed" }, "cubic"]\n'
    )
    lf.run(folder / "study.toml", out=folder / "run")
    return folder / "run"


@pytest.fixture(scope="module")
def bundled(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lf.bundle(run, out=tmp_path_factory.mktemp("bundle") / "b.zip", authors=["Ada Lovelace"])


def test_compiled_files_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "in" / "files" / "__pycache__").mkdir(parents=True)
    (tmp_path / "in" / "files" / "__pycache__" / "x.pyc").write_bytes(b"")
    (tmp_path / "in" / "files" / "x.py").write_text("")
    archive.write(tmp_path / "in", tmp_path / "b.zip", {})
    assert zipfile.ZipFile(tmp_path / "b.zip").namelist() == ["MANIFEST.json", "files/x.py"]


def changed(bundled: Path, folder: Path, change: Any) -> Path:
    """Writes a bundle with other files."""
    inside = folder / "inside"
    about = archive.extract(bundled, inside)
    change(inside)
    target = folder / "changed.zip"
    archive.write(inside, target, {key: about[key] for key in ("longfat", "commit", "study")})
    return target


def test_a_bundle_has_no_paths_of_its_machine(run: Path, bundled: Path) -> None:
    with zipfile.ZipFile(bundled) as found:
        names = set(found.namelist())
        texts = {name: found.read(name) for name in names}
    assert {
        "README.md",
        "CITATION.cff",
        "citation.bib",
        "requirements.txt",
        "study.toml",
        "report.html",
    } <= names
    assert {"files/fixed.py", "files/link.trace", "run.json", "MANIFEST.json"} <= names
    own = str(run.parent).encode()
    assert [name for name, text in texts.items() if own in text] == []
    assert b"files/fixed.py:Fixed" in texts["study.toml"]
    assert b"longfat reproduce b.zip --allow-code" in texts["README.md"]
    assert b'name: "Ada Lovelace"' in texts["CITATION.cff"]
    assert b"author = {Ada Lovelace}" in texts["citation.bib"]
    assert b"polars==" in texts["requirements.txt"]
    assert json.loads(texts["MANIFEST.json"])["longfat"] == lf.version()


def test_equal_runs_give_equal_bytes(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Other tests may write into the source tree meanwhile.
    monkeypatch.setattr(provenance, "commit", lambda: "1234abcd")
    made = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        made.append(zipfile.ZipFile(lf.bundle(run, out=tmp_path / name / "b.zip")))
    first, second = ({one: archived.read(one) for one in archived.namelist()} for archived in made)
    assert [name for name in first if first[name] != second[name]] == []
    assert (tmp_path / "first" / "b.zip").read_bytes() == (tmp_path / "second" / "b.zip").read_bytes()


def test_the_readme_states_what_is_compared(run: Path, tmp_path: Path) -> None:
    loaded = lf.load_run(run)
    about = {"longfat": lf.version(), "bundled_by": lf.version(), "commit": None}
    for worlds, part, made in (
        (("sim",), "compares all records bit by bit.", "Simulated"),
        (("sim", "netns"), "all records of sim bit by bit. Those of netns run on wall time", "Measured"),
        (("netns",), "longfat run study.toml", "Measured"),
    ):
        changed = replace(loaded, study=loaded.study.model_copy(update={"worlds": worlds}))
        assert part in texts.readme(changed, "b.zip", about, [])
        assert f"{made} with longfat" in texts.bibtex(changed, [], about, "2026-01-01")


def test_the_readme_tells_commits_from_changes(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for found, text in (
        ("1234abcd", " (commit 1234abcd), with"),
        ("1234abcd-dirty", " (commit 1234abcd, with changes that are in no commit), with"),
        (None, f"Bundled by longfat {lf.version()}, with"),
    ):
        monkeypatch.setattr(provenance, "commit", lambda found=found: found)
        archived = zipfile.ZipFile(lf.bundle(run, out=tmp_path / f"{found}.zip"))
        assert text in archived.read("README.md").decode()


def test_a_bundle_is_repeated_bit_by_bit_on_another_path(
    run: Path, bundled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The original files must not be used.
    shutil.copytree(run.parent, tmp_path / "kept")
    shutil.rmtree(run.parent)
    try:
        monkeypatch.chdir(tmp_path)
        found = lf.reproduce(bundled, out="again", allow_code=True)
    finally:
        shutil.copytree(tmp_path / "kept", run.parent)
    assert found.identical
    assert found.comparison.trials == 16
    assert str(found.comparison).startswith("identical: 16 trials, ")
    assert (tmp_path / "again" / "run" / "report.html").is_file()


@pytest.mark.slow
def test_a_bundle_is_repeated_by_a_fresh_process_with_another_home(tmp_path: Path) -> None:
    original, elsewhere = tmp_path / "original", tmp_path / "other place"
    (original / "own").mkdir(parents=True)
    elsewhere.mkdir()
    (original / "own" / "fixed.py").write_text(CONTROLLER)
    (original / "link.trace").write_text(TRACE)
    study = (
        'title = "Own controller, recorded link"\nrepeats = 100\n'
        'path = { trace = "link.trace", delay = "10ms", loss = "2%" }\n'
        'workload = { kind = "file", size = "50kB" }\n'
        'protocols = [{ name = "own", kind = "tcp", congestion = "own/fixed.py:Fixed" }, "cubic"]\n'
    )
    (original / "study.toml").write_text(study)
    lf.run(original / "study.toml", out=original / "run")
    lf.bundle(original / "run", out=elsewhere / "b.zip")
    shutil.rmtree(original)
    done = subprocess.run(
        [sys.executable, "-m", "longfat", "reproduce", "b.zip", "--allow-code", "--json"],
        cwd=elsewhere,
        env={"HOME": str(elsewhere), "PATH": "", "PYTHONPATH": str(Path(lf.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert (found["identical"], found["trials"]) == (True, 200)


@pytest.mark.slow
def test_the_first_difference_is_named(bundled: Path, tmp_path: Path) -> None:
    def change(folder: Path) -> None:
        for part in (folder / "records").glob("part-*"):
            value = pl.col("goodput_bps") + pl.when(pl.col("trial") == 3).then(1).otherwise(0)
            pl.read_parquet(part).with_columns(value).write_parquet(part)

    found = lf.reproduce(changed(bundled, tmp_path, change), out=tmp_path / "again", allow_code=True)
    assert not found.identical
    assert "trial 3: goodput_bps is " in str(found.comparison)
    assert "(2 of 16 records differ)" in str(found.comparison), "trial 3 of both protocols"
    assert found.document()["difference"] == found.comparison.difference


@pytest.mark.parametrize(
    "study",
    [
        '[[protocols]]\nname = "own"\nkind = "tcp"\ncongestion = "files/own.py:Own"\n',
        'protocols = ["files/own.py:Own"]\n',
        'protocols = ["reno"]\nextends = "files/more.toml"\n',
    ],
)
def test_code_runs_only_if_it_is_allowed(bundled: Path, tmp_path: Path, study: str) -> None:
    ran = tmp_path / "ran"

    def change(folder: Path) -> None:
        (folder / "files" / "own.py").write_text(
            f"open({str(ran)!r}, 'w')\n{CONTROLLER.replace('Fixed', 'Own')}"
        )
        (folder / "files" / "more.toml").write_text('[path.queue]\nkind = "own.py:Own"\n')
        kept = 'title = "t"\nrepeats = 8\n'
        # To know RTTs, the native part builds the protocol.
        network = '[path]\nrate = "1Mbit/s"\ndelay = "9ms"\n[workload]\nkind = "file"\nsize = "9BDP"\n'
        # Keys of the file come before its tables.
        tables = network + study if study.startswith("[[") else study + network
        (folder / "study.toml").write_text(kept + tables)

    wrong = changed(bundled, tmp_path, change)
    with pytest.raises(ValueError, match=r"has its own code \(own.py:Own\)"):
        lf.reproduce(wrong, out=tmp_path / "again")
    assert not ran.exists()
    assert not (tmp_path / "again").exists()


def test_another_version_is_refused(bundled: Path, tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    archive.extract(bundled, inside)
    archive.write(inside, tmp_path / "old.zip", {"longfat": "0.0.9", "commit": None, "study": "s"})
    with pytest.raises(ValueError, match=r"is of longfat 0.0.9, and this is "):
        lf.reproduce(tmp_path / "old.zip", out=tmp_path / "again", allow_code=True)
    assert lf.reproduce(
        tmp_path / "old.zip", out=tmp_path / "again", allow_code=True, any_version=True
    ).identical


@pytest.mark.slow
def test_an_interrupted_repetition_resumes(
    bundled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = studies.run

    def interrupted(*words: Any, **options: Any) -> Any:
        whole(*words, **options, repeats=3)
        raise InterruptedRun("interrupted", tmp_path)

    out = tmp_path / "again"
    monkeypatch.setattr(studies, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lf.reproduce(bundled, out=out, allow_code=True)
    monkeypatch.undo()
    kept = set((out / "run" / "records").iterdir())
    assert kept
    with pytest.raises(ValueError, match="exists: name a new folder"):
        lf.reproduce(changed(bundled, tmp_path, lambda _: None), out=out, allow_code=True)
    found = lf.reproduce(bundled, out=out, allow_code=True)
    assert found.identical
    assert found.comparison.trials == 16
    assert kept < set((out / "run" / "records").iterdir())
    with pytest.raises(ValueError, match="exists: name a new folder"):
        lf.reproduce(bundled, out=out, allow_code=True)


def test_a_failed_repetition_leaves_no_folder(
    bundled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_words: Any, **_options: Any) -> Any:
        raise OSError("No space left on device")

    monkeypatch.setattr(studies, "run", failing)
    with pytest.raises(OSError, match="No space"):
        lf.reproduce(bundled, out=tmp_path / "again", allow_code=True)
    assert not (tmp_path / "again").exists()


def test_an_offset_before_the_file_is_damage(bundled: Path, tmp_path: Path) -> None:
    content = bytearray(bundled.read_bytes())
    # The offset of the central directory, in the last record of the archive.
    offset = int.from_bytes(content[-6:-2], "little") + 7
    content[-6:-2] = offset.to_bytes(4, "little")
    (tmp_path / "damaged.zip").write_bytes(content)
    with pytest.raises(BundleError, match=r"is damaged: .*Invalid argument"):
        archive.extract(tmp_path / "damaged.zip", tmp_path / "inside")


def test_damaged_archives_are_refused_in_one_line(bundled: Path, tmp_path: Path) -> None:
    draw = random.Random(3)
    whole = bundled.read_bytes()
    refused = 0
    for _ in range(effort.cases(400)):
        content = bytearray(whole[: draw.randrange(len(whole))] if draw.random() < 0.3 else whole)
        for _ in range(draw.randint(0, 20)):
            content[draw.randrange(len(content))] = draw.randrange(256)
        (tmp_path / "damaged.zip").write_bytes(content)
        try:
            archive.extract(tmp_path / "damaged.zip", tmp_path / "inside")
        except BundleError as error:
            refused += "\n" not in str(error)
            continue
        refused += archive.extract(bundled, tmp_path / "whole") == archive.extract(
            tmp_path / "damaged.zip", tmp_path / "inside"
        )
    assert refused == effort.cases(400)


def rewritten(bundled: Path, target: Path, change: Any) -> Path:
    """Writes an archive with other entries, as somebody else might."""
    with zipfile.ZipFile(bundled) as old, zipfile.ZipFile(target, "w") as new:
        entries = {name: old.read(name) for name in old.namelist()}
        change(entries)
        for name, content in entries.items():
            new.writestr(name, content)
    return target


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: e.pop("files/link.trace"), "files/link.trace is missing in this bundle"),
        (lambda e: e.update({"extra": b"x"}), "extra is not in the bundle's manifest"),
        (lambda e: e.update({"study.toml": b"x"}), "study.toml was changed after the bundle was written"),
        (lambda e: e.pop("MANIFEST.json"), "is not a bundle: it has no MANIFEST.json"),
        (lambda e: e.update({"MANIFEST.json": b"{"}), "MANIFEST.json is not JSON"),
        (lambda e: e.update({"MANIFEST.json": b"[]"}), "MANIFEST.json lists no files"),
        (lambda e: e.update({"MANIFEST.json": b'{"format": 9, "sha256": {}}'}), "has the format 9"),
        (
            lambda e: (
                e.clear(),
                e.update({"../out": b"", "MANIFEST.json": b'{"format": 1, "sha256": {"../out": ""}}'}),
            ),
            "../out is outside of the bundle",
        ),
    ],
)
def test_a_wrong_archive_is_one_line(bundled: Path, tmp_path: Path, change: Any, message: str) -> None:
    wrong = rewritten(bundled, tmp_path / "wrong.zip", change)
    with pytest.raises(BundleError) as error:
        lf.reproduce(wrong, out=tmp_path / "again", allow_code=True)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "again").exists()


def test_commands(bundled: Path, tmp_path: Path, cli: Cli) -> None:
    done = cli("reproduce", bundled, "--out", tmp_path / "again", "--allow-code", "--json")
    assert json.loads(done.stdout)["identical"]
    for words, message in (
        (
            ["reproduce", bundled, "--out", tmp_path / "again", "--allow-code"],
            "again exists: name a new folder",
        ),
        (["reproduce", bundled], "--allow-code: "),
        (["reproduce", tmp_path / "none.zip"], "No such file"),
        (["bundle", tmp_path], "is not the folder of a run"),
        (["bundle", "."], "is not the folder of a run"),
    ):
        refused = cli(*words, ok=False)
        assert refused.returncode in (1, 2)
        assert message in refused.stderr
        assert len(refused.stderr.splitlines()) == 1
