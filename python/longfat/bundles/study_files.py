"""The files of a study: collected for a bundle, with names relative to the study file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from longfat.extensions.names import FILE_SUFFIX, SEPARATOR, split
from longfat.study import Study
from longfat.study.reading import read_study
from longfat.study.relative_files import with_names

FOLDER = "files"


def relative(study: Study) -> tuple[dict[str, Any], dict[str, Path]]:
    """Returns the tables of a study with relative file names, and the files by these names.

    Raises:
        ValueError: for a class without a file, such as one that a notebook defines.
    """
    found: dict[str, Path] = {}

    def name_of(file: str) -> str:
        path = Path(file)
        number, name = 1, f"{FOLDER}/{path.name}"
        while found.get(name, path) != path:
            number += 1
            name = f"{FOLDER}/{path.stem}-{number}{path.suffix}"
        found[name] = path
        return name

    def class_of(name: str) -> str:
        where, cls = split(name)
        if where.endswith(FILE_SUFFIX):
            return f"{name_of(where)}{SEPARATOR}{cls}"
        if where == "__main__":
            raise ValueError(
                f"{cls}: a class of a notebook has no file: move it to one and run the study again"
            )
        return name

    data = study.model_dump(mode="python", exclude_unset=True, by_alias=True)
    return with_names(data, name_of, class_of), found


def classes(study_file: Path) -> list[str]:
    """Returns the names of the Python classes of a study file, without an import of any."""
    found: list[str] = []

    def note(name: str) -> str:
        found.append(name)
        return name

    with_names(read_study(study_file).data, str, note)
    return list(dict.fromkeys(found))
