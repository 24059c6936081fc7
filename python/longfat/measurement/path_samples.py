"""Samples of a path in a file, so that a measurement can be broken off and go on later."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from longfat.files import write_whole

_FORMAT = "longfat path 1"


class SampleFile:
    """A line of JSON for each probe, below one that says what it is of; one that was cut off is ignored."""

    def __init__(self, path: Path, about: Mapping[str, str]) -> None:
        self._path = path
        self._head = {"format": _FORMAT, **about}

    def open(self) -> list[dict[str, Any]]:
        """What is there, or a new file; ValueError where it is of another measurement."""
        if not self._path.exists() or self._path.stat().st_size == 0:
            write_whole(self._path, (json.dumps(self._head) + "\n").encode())
            return []
        head, *lines = self._path.read_text(encoding="utf-8").split("\n")
        try:
            found = json.loads(head)
        except json.JSONDecodeError:
            found = None
        if not isinstance(found, dict) or found.get("format") != _FORMAT:
            raise ValueError(f"{self._path}: it is no file of longfat path's samples")
        for key, value in self._head.items():
            if found.get(key) != value:
                raise ValueError(f"{self._path}: its {key} is {found.get(key)}, not {value}")
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
        """Adds them at the end; OSError adds none."""
        text = "".join(json.dumps(sample) + "\n" for sample in samples).encode()
        with self._path.open("ab", buffering=0) as file:
            before = file.tell()
            try:
                while text:
                    text = text[file.write(text) :]
            except OSError as error:
                file.truncate(before)
                raise OSError(error.errno, error.strerror, str(self._path)) from None
