"""Files appear complete or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from longfat.runner import tracing
from longfat.system.files import produce_whole


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The inodes of synced files."""
    found: list[int] = []
    original = os.fsync

    def fsync(handle: int) -> None:
        found.append(os.fstat(handle).st_ino)
        original(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    return found


def test_a_capture_is_synced_under_a_unique_name(tmp_path: Path, synced: list[int]) -> None:
    target = tmp_path / "all.pcapng"
    names: list[str] = []

    def tracer(options: dict[str, Any]) -> dict[str, Any]:
        names.append(options["pcapng"])
        Path(options["pcapng"]).write_bytes(b"packets")
        assert not target.exists() or len(names) > 1
        return {"side": options["side"]}

    for _ in range(2):
        capture = tracing.Capture(target, "sender", None)
        assert tracing._captured(tracer, None, capture) == {"side": "sender"}
        assert target.stat().st_ino in synced
    assert len(set(names)) == 2
    assert [file.name for file in tmp_path.iterdir()] == ["all.pcapng"]


def test_a_failed_producer_leaves_nothing_and_names_the_file(tmp_path: Path) -> None:
    def fail(file: Path) -> None:
        file.write_bytes(b"half")
        raise OSError(f"cannot write {file}: no space")

    with pytest.raises(OSError, match="no space") as raised:
        produce_whole(tmp_path / "all.pcapng", fail)
    assert str(raised.value) == f"cannot write {tmp_path}/all.pcapng: no space"
    assert list(tmp_path.iterdir()) == []
