"""The identity of the native part."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import pytest

from longfat import _native
from longfat.worlds import environment


def elf(notes: bytes, kind: int = 4) -> io.BytesIO:
    """A 64-bit ELF file with one segment."""
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = ident + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", kind, 4, 120, 120, 120, len(notes), len(notes), 4)
    return io.BytesIO(header + segment + notes)


def note(name: bytes, content: bytes, kind: int) -> bytes:
    padded = [part + bytes(-len(part) % 4) for part in (name, content)]
    return struct.pack("<III", len(name), len(content), kind) + b"".join(padded)


def test_the_build_id_is_that_of_the_note() -> None:
    property_, id_ = note(b"GNU\0", bytes(16), 5), note(b"GNU\0", bytes(range(20)), 3)
    assert environment.build_id(elf(property_ + id_)) == bytes(range(20)).hex()
    assert environment.build_id(elf(note(b"other\0", b"abc", 1) + id_)) == bytes(range(20)).hex()
    for other in (elf(property_), elf(id_, kind=1), elf(b""), io.BytesIO(b"MZ" * 99), io.BytesIO(b"\x7fELF")):
        assert environment.build_id(other) is None


def test_a_file_without_a_build_id_has_a_checksum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = set()
    for content in (b"one", b"two"):
        file = tmp_path / "native.pyd"
        file.write_bytes(content)
        monkeypatch.setattr(_native, "__file__", str(file))
        found.add(environment.build.__wrapped__())
    assert len(found) == 2
    assert all(len(one) == 8 for one in found)
