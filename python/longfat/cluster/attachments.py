"""Traces and Python classes that a specification names: sent by content, since workers have other files.

- A file (a trace, or the source of a class) is written into the worker's own folder.
- A class of the running program (a script, a notebook) is pickled.
- A class of an installed module stays where it is; the worker's source must equal the client's.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longfat.extensions.names import (
    FILE_SUFFIX,
    INTERACTIVE,
    SEPARATOR,
    content_hash,
    file_hash,
    register_as,
    registered,
    split,
)
from longfat.study.relative_files import with_names
from longfat.system.files import write_whole

Contents = Mapping[str, bytes]
"""What workers need, by hash."""

FILE, CLASS, MODULE = "file", "class", "module"


class AttachmentError(RuntimeError):
    """A worker lacks a module of the client, or has another version of it. The text is one line."""


@dataclass(frozen=True)
class Attachment:
    """A trace or a class by its name in the specification, and the hash of its content."""

    name: str
    kind: str
    digest: str

    @property
    def is_sent(self) -> bool:
        """Whether the worker needs its content."""
        return self.kind != MODULE

    def content(self) -> bytes:
        """Returns what the worker needs. Raises OSError for an unreadable file."""
        if self.kind == CLASS:
            import cloudpickle

            pickled: bytes = cloudpickle.dumps(registered(self.name))
            return pickled
        return Path(_file(self.name)).read_bytes()


def attachments_of(spec: dict[str, Any]) -> tuple[Attachment, ...]:
    """Returns the files and classes of a specification. Raises OSError for an unreadable file."""
    found: dict[str, Attachment] = {}

    def note_file(name: str) -> str:
        found[name] = Attachment(name, FILE, file_hash(name))
        return name

    def note_class(name: str) -> str:
        found[name] = Attachment(name, _kind(name), content_hash(name))
        return name

    with_names(spec, note_file, note_class)
    return tuple(found.values())


def _kind(name: str) -> str:
    cls = registered(name)
    if cls is not None and cls.__module__ == INTERACTIVE:
        return CLASS
    return FILE if split(name)[0].endswith(FILE_SUFFIX) else MODULE


def _file(name: str) -> str:
    """Returns the file of a trace or of a class."""
    return name if not _is_source(name) else split(name)[0]


def _is_source(name: str) -> bool:
    return SEPARATOR in name and split(name)[0].endswith(FILE_SUFFIX)


_guard = threading.Lock()
_classes: set[str] = set()


def missing(attachments: Sequence[Attachment], contents: Contents, folder: Path) -> bool:
    """Returns whether this process needs contents that it has not received."""
    return any(
        one.is_sent and one.digest not in contents and not _is_placed(one, folder) for one in attachments
    )


def localised(
    spec: dict[str, Any], attachments: Sequence[Attachment], contents: Contents, folder: Path
) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns a specification for this process, and its local names with the original ones.

    Raises AttachmentError for a module that differs from the client's.
    """
    local = {one.name: _place(one, contents, folder) for one in attachments}
    found = with_names(spec, local.__getitem__, local.__getitem__)
    return found, {here: there for there, here in local.items() if here != there}


def _local_name(one: Attachment, folder: Path) -> str:
    if one.kind == CLASS:
        return f"longfat_class_{one.digest}{SEPARATOR}{split(one.name)[1]}"
    file = folder / one.digest / Path(_file(one.name)).name
    return f"{file}{SEPARATOR}{split(one.name)[1]}" if _is_source(one.name) else str(file)


def _is_placed(one: Attachment, folder: Path) -> bool:
    name = _local_name(one, folder)
    return name in _classes if one.kind == CLASS else Path(_file(name)).is_file()


def _place(one: Attachment, contents: Contents, folder: Path) -> str:
    if one.kind == MODULE:
        _require_same(one)
        return one.name
    name = _local_name(one, folder)
    with _guard:
        if not _is_placed(one, folder):
            content = contents[one.digest]
            if one.kind == CLASS:
                import cloudpickle

                register_as(name, cloudpickle.loads(content))
                _classes.add(name)
            else:
                file = Path(_file(name))
                file.parent.mkdir(parents=True, exist_ok=True)
                write_whole(file, content)
    return name


def _require_same(one: Attachment) -> None:
    try:
        here = content_hash(one.name)
    except (ValueError, OSError) as error:
        raise AttachmentError(f"the worker at {os.uname().nodename} lacks a class: {error}") from None
    if here != one.digest:
        module = split(one.name)[0]
        raise AttachmentError(f"the worker at {os.uname().nodename} has another version of module {module}")
