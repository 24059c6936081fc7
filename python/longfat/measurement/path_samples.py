"""Samples of a path in a file, so that a later measurement can resume."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from longfat.system.files import write_whole

_FORMAT = "longfat path 1"


class SampleFile:
    """One line of JSON for each probe, after a header line. An incomplete last line is ignored."""

    def __init__(self, path: Path, about: Mapping[str, str]) -> None:
        self._path = path
        self._head = {"format": _FORMAT, **about}

    def open(self) -> list[dict[str, Any]]:
        """Returns the samples of the file, or creates it. Raises ValueError for another's file."""
        if not self._path.exists() or self._path.stat().st_size == 0:
            write_whole(self._path, (json.dumps(self._head) + "\n").encode())
            return []
        head, *lines = self._path.read_text(encoding="utf-8", errors="replace").split("\n")
        try:
            found = json.loads(head)
        except json.JSONDecodeError:
            found = None
        if not isinstance(found, dict) or found.get("format") != _FORMAT:
            raise ValueError(f"--samples: {self._path}: not a sample file of longfat path: use another file")
        for key, value in self._head.items():
            if found.get(key) != value:
                raise ValueError(f"{self._path}: {key} is {found.get(key)}, expected {value}")
        samples = []
        whole = len(head) + 1
        for line in lines:
            try:
                samples.append(json.loads(line))
            except json.JSONDecodeError:
                break
            whole += len(line.encode()) + 1
        with self._path.open("r+b") as file:
            file.truncate(whole)
        return samples

    def add(self, samples: Iterable[Mapping[str, Any]]) -> None:
        """Appends samples. Raises OSError without adding any."""
        text = "".join(json.dumps(sample) + "\n" for sample in samples).encode()
        with self._path.open("ab", buffering=0) as file:
            before = file.tell()
            try:
                while text:
                    text = text[file.write(text) :]
            except OSError as error:
                file.truncate(before)
                raise OSError(error.errno, error.strerror, str(self._path)) from None
