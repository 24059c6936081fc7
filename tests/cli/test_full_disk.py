"""Full disks: commands fail with one line and leave no partial files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import tomli_w
from tests import requirements
from tests.cli.conftest import Make, Start, at_rate, partial
from tests.conftest import Data, command

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="small disks need Linux's tmpfs"),
]

# Mounts a tmpfs in a new mount namespace, which ends with its last process, and finally lists its files.
SMALL = """
mount -t tmpfs -o size=$1 longfat-test "$2" || exit 77
cd "$2"; shift 2
"$@"
code=$?
echo "--- left:"; find . -mindepth 1 -printf '%P\\n' | sort
exit $code
"""
ENOUGH = "64m"


def small_disk(size: str, folder: Path, *words: object) -> list[str]:
    """Returns the command line that runs a command in a folder of at most `size`."""
    root = [] if os.geteuid() == 0 else ["-Ur"]
    shell = ["unshare", *root, "-m", "--propagation", "private", "sh", "-c", SMALL, "sh"]
    return [*shell, size, str(folder), *map(str, words)]


def run(size: str, folder: Path, *words: object) -> tuple[int, str, list[str], list[str]]:
    """Runs a `longfat` command; returns exit code, standard output, errors, and the files that it left."""
    done = subprocess.run(
        small_disk(size, folder, *command(*words)), capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        requirements.skip("users", f"no small disk: {done.stderr.strip()}")
    out, _, left = done.stdout.partition("--- left:\n")
    assert "Traceback" not in done.stderr, done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("longfat: ")]
    return done.returncode, out, errors, left.splitlines()


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    folder = tmp_path / "disk"
    folder.mkdir()
    return folder


@pytest.fixture
def outside(tmp_path: Path, data: Data) -> Path:
    """A study file on another disk."""
    path = tmp_path / "small.toml"
    path.write_text(tomli_w.dumps(data), encoding="utf-8")
    return path


# The smallest disk has one page: too small for the lock and run.json.
@pytest.mark.parametrize("size", ["4k", "8k", "16k", "20k"])
def test_a_run_leaves_nothing_but_whole_records(size: str, disk: Path, outside: Path) -> None:
    code, out, errors, left = run(size, disk, "run", outside, "--out", "new/run")
    assert (code, out, len(errors)) == (1, "", 1), (out, errors)
    assert "No space left on device" in errors[0]
    assert "new/run/" in errors[0]
    if any(name.startswith("new/run/records/part-") for name in left):
        assert not any(name.endswith(".tmp") for name in left)
    else:
        assert left in ([], ["new"])


@pytest.mark.parametrize(
    "words",
    [
        ("trace", "STUDY", "--protocol", "gbn", "--out", "ladder.svg"),
        ("trace", "STUDY", "--protocol", "gbn", "--pcapng", "all.pcapng"),
        ("chart", "RUN", "--out", "chart.svg"),
        ("chart", "RUN", "--out", "chart.html"),
    ],
    ids=" ".join,
)
def test_a_file_that_does_not_fit_is_removed(
    words: tuple[str, ...], disk: Path, outside: Path, tmp_path: Path, cli: Callable[..., object]
) -> None:
    measured = tmp_path / "measured"
    if "RUN" in words:
        cli("run", outside, "--out", measured)
    places = {"STUDY": outside, "RUN": measured}
    code, _, errors, left = run("4k", disk, *(places.get(word, word) for word in words))
    assert (code, len(errors)) == (1, 1), errors
    assert f"{words[-1]}: No space left on device" in errors[0]
    assert left == []


def test_a_receiver_frees_the_space_of_a_failed_file(
    start: Start, disk: Path, make: Make, tmp_path: Path
) -> None:
    small, middle, large = (
        make("small.bin", 300_000),
        make("middle.bin", 900_000),
        make("large.bin", 3_000_000),
    )
    out = tmp_path / "receiver.out"
    words = command("recv", "--listen", "127.0.0.1:0", "--dir", ".")
    with out.open("wb") as output:
        receiver = subprocess.Popen(
            small_disk("1m", disk, *words),
            stdout=output,
            stderr=output,
        )
    try:
        from tests.waiting import wait_until

        wait_until(lambda: "Listening on " in out.read_text() or receiver.poll() is not None)
        if receiver.poll() is not None:
            requirements.skip("users", f"no small disk: {out.read_text()}")
        address = out.read_text().split("Listening on ")[1].split()[0]
        sender = start("send", large, address)
        sender.fails_with("large.bin", "refused by the receiver: its 3000000 bytes exceed the free space")
        # Another program fills the disk while a file arrives.
        children = Path(f"/proc/{receiver.pid}/task/{receiver.pid}/children").read_text().split()
        inside = Path(f"/proc/{children[0]}/root{disk}")
        sender = start("send", middle, address, *at_rate("2Mbit/s"))
        wait_until(lambda: partial(inside, "middle.bin").exists())
        filler = inside / "filler"
        with pytest.raises(OSError, match="No space left"):
            filler.write_bytes(bytes(2 << 20))
        sender.fails_with("middle.bin", "refused by the receiver: cannot write", "No space left on device")
        filler.unlink()
        # The space is free again.
        sender = start("send", small, address)
        assert sender.finish() == 0, sender.err
        os.kill(int(children[0]), signal.SIGINT)
        receiver.wait(60)
    finally:
        receiver.kill()
        receiver.wait()
    assert out.read_text().partition("--- left:\n")[2].splitlines() == ["small.bin"]
