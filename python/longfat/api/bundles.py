"""`bundle` and `reproduce`: a run as an archive that others can repeat."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longfat.study.worlds import VIRTUAL
from longfat.system.parameters import ParameterError

if TYPE_CHECKING:
    from longfat.bundles.comparison import Comparison


def bundle(run: str | Path, *, out: Path | str | None = None, authors: Sequence[str] | None = None) -> Path:
    """Writes a run and everything that it needs into one archive.

    The archive has the study with relative paths, its traces and Python files, the records, the report,
    version, commit and packages, a README with the commands, and citations. Equal runs give equal bytes.

    Args:
        run: Folder of the run, or the name of its study for the folder in `runs`.
        out: Archive; by default the name of the run's folder with `.zip`, in the current folder.
        authors: Names for the citations.

    Returns:
        The archive.

    Raises:
        ValueError: for a folder without a run, an interrupted run, or a class without a file.
        OSError: if a file cannot be read or written.
    """
    from longfat import _native
    from longfat.api.runs import find_run, load_run
    from longfat.bundles import archive, provenance, study_files, texts
    from longfat.presentation.run.report.page import write_report
    from longfat.store.parts import RECORDS
    from longfat.store.store import RUN_FILE, STUDY_FILE
    from longfat.study.reading import write_toml

    folder = find_run(run)
    if not isinstance(folder, Path):
        raise ParameterError("run", f"{run} is a URL: copy the run into a folder")
    found = load_run(folder)
    if found.interrupted:
        raise ParameterError("run", f"{folder} is incomplete: longfat run resumes it")
    target = Path(out) if out is not None else Path(f"{folder.resolve().name}.zip")
    tables, files = study_files.relative(found.study)
    about = {
        "longfat": str(found.environment.get("longfat")),
        "bundled_by": _native.version(),
        "commit": provenance.commit(),
        "study": found.study.name,
    }
    date = str(found.environment.get("date", ""))
    with tempfile.TemporaryDirectory(prefix="longfat-bundle-") as name:
        made = Path(name)
        text = write_toml(tables)
        (made / STUDY_FILE).write_text(text, encoding="utf-8")
        (made / RUN_FILE).write_text(_portable(folder / RUN_FILE), encoding="utf-8")
        shutil.copytree(folder / RECORDS, made / RECORDS)
        for inside, file in files.items():
            (made / inside).parent.mkdir(exist_ok=True)
            shutil.copyfile(file, made / inside)
        portable = load_run(made)
        # The report shows the study with relative names.
        portable = replace(portable, study=portable.study.with_provenance(text=text))
        write_report(portable)
        texts_of = {
            "README.md": texts.readme(portable, target.name, about, sorted(files)),
            "CITATION.cff": texts.citation_cff(portable.study.title, authors or [], about, date),
            "citation.bib": texts.bibtex(portable, authors or [], about, date),
            "requirements.txt": "\n".join([*provenance.requirements(), ""]),
        }
        for inside, text in texts_of.items():
            (made / inside).write_text(text, encoding="utf-8")
        archive.write(made, target, about)
    return target


def _portable(file: Path) -> str:
    """Returns a run's description without the folders of its machine."""
    about = json.loads(file.read_text(encoding="utf-8"))
    words = about.get("environment", {}).get("argv", [])
    about.get("environment", {})["argv"] = [
        Path(word).name if word.startswith("/") else word for word in words
    ]
    return json.dumps(about, indent=2) + "\n"


RUN = "run"
"""The folder of the repeated run, beside the study and its files."""
UNFINISHED = "unfinished"
"""A file with the hash of the bundle, in the folder of a repetition that is not complete."""


@dataclass(frozen=True)
class Reproduced:
    """A repeated run: its folder, and how its records compare with those of the bundle."""

    folder: Path
    comparison: Comparison
    left_out: tuple[str, ...] = ()
    """Worlds on wall time, which give other values in each run."""

    def document(self) -> dict[str, Any]:
        """Returns everything as JSON values."""
        return {
            "folder": str(self.folder),
            "identical": self.identical,
            "difference": self.comparison.difference,
            "trials": self.comparison.trials,
            "values": self.comparison.values,
            "left_out": list(self.left_out),
        }

    @property
    def identical(self) -> bool:
        """Whether all compared records are equal, bit by bit."""
        return self.comparison.difference is None


def reproduce(
    bundle: Path | str,
    *,
    out: Path | str | None = None,
    allow_code: bool = False,
    any_version: bool = False,
    jobs: int | None = None,
    progress: bool | None = None,
) -> Reproduced:
    """Repeats the run of a bundle in a fresh folder and compares all records of the world sim.

    After an interruption, the same call resumes.

    Args:
        bundle: Archive that `bundle` wrote.
        out: New folder for the study and its repeated run; by default the archive's name with `-reproduced`.
        allow_code: Whether the bundle's Python files may run: they can do what any program can.
        any_version: Whether another version of longfat than the bundle's may run it.
        jobs: Processes; by default one for each core.
        progress: Whether progress is shown; by default on a terminal.

    Raises:
        ValueError: for a damaged bundle, another version, code that is not allowed, a folder that exists, or
            a study without the world sim.
        OSError: if a file cannot be read or written.
        KeyboardInterrupt: on Ctrl-C.
    """
    from longfat import _native
    from longfat.api.runs import InterruptedRun, load_run
    from longfat.api.studies import run
    from longfat.bundles import archive, comparison, study_files
    from longfat.store.store import STUDY_FILE

    file = Path(bundle)
    target = Path(out) if out is not None else Path(f"{file.stem}-reproduced")
    mark = target / UNFINISHED
    resumes = mark.is_file() and mark.read_text(encoding="utf-8") == archive.hash_of(file)
    if target.exists() and not resumes:
        raise ParameterError("out", f"{target} exists: name a new folder")
    with tempfile.TemporaryDirectory(prefix="longfat-reproduce-") as name:
        folder = Path(name)
        _check_version(file, archive.extract(file, folder), _native.version(), any_version=any_version)
        # To load a run imports its classes.
        code = study_files.classes(folder / STUDY_FILE)
        if code and not allow_code:
            names = ", ".join(Path(one).name for one in code)
            raise ParameterError(
                "allow_code", f"{file} has its own code ({names}): allow it only if you trust the source"
            )
        original = load_run(folder)
        study = original.study
        if VIRTUAL not in study.worlds:
            raise ValueError(f"{file}: has no trials in the world {VIRTUAL}, and others differ in each run")
        target.mkdir(exist_ok=True)
        mark.write_text(archive.hash_of(file), encoding="utf-8")
        try:
            shutil.copyfile(folder / STUDY_FILE, target / STUDY_FILE)
            if (folder / study_files.FOLDER).is_dir():
                shutil.copytree(folder / study_files.FOLDER, target / study_files.FOLDER, dirs_exist_ok=True)
            repeated = run(
                target / STUDY_FILE, worlds=[VIRTUAL], out=target / RUN, jobs=jobs, progress=progress
            )
        except Exception:
            shutil.rmtree(target)
            raise
        if repeated.interrupted:
            raise InterruptedRun("interrupted", target / RUN)
        found = comparison.compare(original, repeated, VIRTUAL)
        mark.unlink()
        left_out = tuple(world for world in study.worlds if world != VIRTUAL)
        return Reproduced(target / RUN, found, left_out)


def _check_version(file: Path, about: Mapping[str, Any], version: str, *, any_version: bool) -> None:
    if about.get("longfat") != version and not any_version:
        raise ParameterError(
            "any_version",
            f"{file} is of longfat {about.get('longfat')}, and this is {version}: install that version",
        )
