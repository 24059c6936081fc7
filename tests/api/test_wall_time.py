"""Transfers, relays, emulated trials and scripts from Python."""

from __future__ import annotations

import json
import queue
import signal
import threading
import time
from pathlib import Path
from typing import ClassVar

import polars as pl
import pytest
from tests.conftest import Cli

import longfat as lf
from longfat import _native
from longfat.api.protection import INSECURE
from longfat.system.progress import Silent

ROOT = Path(__file__).parents[2]


def test_a_file_is_sent_through_a_relay(tmp_path: Path) -> None:
    file = tmp_path / "file.bin"
    file.write_bytes(bytes(range(256)) * 8000)
    with (
        lf.receive(tmp_path / "in", listen="127.0.0.1:0") as receiver,
        lf.relay(lf.Path(delay="5ms", loss="1%"), receiver.address, seed=3) as relay,
    ):
        assert receiver.code is not None
        sent = lf.send(file, relay.address, code=receiver.code)
        assert receiver.address in repr(receiver)
    assert sent.is_complete
    assert sent.report["rtt_s"] >= 0.01
    assert (tmp_path / "in" / "file.bin").read_bytes() == file.read_bytes()
    assert [one["name"] for one in receiver.files] == ["file.bin"]
    assert relay.report["forward"]["delivered_bytes"] > 102_400
    assert relay.report["forward"]["rate_bps"] > 0
    assert sent.to_polars()["outcome"].to_list() == ["stored"]


def test_a_slow_handler_of_events_does_not_delay_a_transfer(tmp_path: Path) -> None:
    file = tmp_path / "file.bin"
    file.write_bytes(bytes(100_000))
    address: queue.Queue[str] = queue.Queue()
    stopped = threading.Event()

    def handle(text: str) -> bool:
        event = json.loads(text)
        if event["event"] == "listening":
            address.put(event["address"])
        elif event["event"] != "tick":
            time.sleep(0.5)
        return not stopped.is_set()

    arguments = ("127.0.0.1:0", str(tmp_path / "in"), INSECURE.document, "{}", handle)
    (tmp_path / "in").mkdir()
    thread = threading.Thread(target=_native.receive_files, args=arguments)
    thread.start()
    sent = lf.send(file, address.get(timeout=60), insecure=True)
    stopped.set()
    thread.join(60)
    assert sent.report["seconds"] < 0.5


def test_an_interruption_keeps_the_events_before_it(tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.bin" for number in range(3)]
    for file in files:
        file.write_bytes(file.name.encode())
    (tmp_path / "in").mkdir()
    stored: list[str] = []

    def handle(text: str) -> None:
        event = json.loads(text)
        if event["event"] == "listening":
            arguments = {"files": files, "address": event["address"], "insecure": True}
            threading.Thread(target=lf.send, kwargs=arguments).start()
        elif event["event"] == "started" and event["file"] == 0:
            # All three files arrive during the pause.
            time.sleep(1)
            signal.raise_signal(signal.SIGINT)
        elif event["event"] == "stored":
            stored.append(event["name"])

    with pytest.raises(KeyboardInterrupt):
        _native.receive_files("127.0.0.1:0", str(tmp_path / "in"), INSECURE.document, "{}", handle)
    assert sorted(stored) == ["0.bin", "1.bin", "2.bin"]


def test_small_files_share_round_trips(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    for number in range(300):
        (folder / f"{number}.txt").write_text(str(number))
    with (
        lf.receive(tmp_path / "in", listen="127.0.0.1:0", insecure=True) as receiver,
        lf.relay(lf.Path(delay="20ms"), receiver.address) as relay,
    ):
        sent = lf.send(folder, relay.address, insecure=True, recursive=True)
    assert sent.is_complete
    # Batches of 8 files with two round trips each would take more than 3 s.
    assert sent.report["seconds"] < 3


def test_send_shows_its_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Recorded(Silent):
        lines: ClassVar[list[str]] = []

        def show(self, key: str, text: str, part: float | None = None) -> None:
            assert key == "all"
            assert part is not None
            self.lines.append(text)

    monkeypatch.setattr(
        "longfat.api.transfers.watching", lambda requested, **_: Recorded() if requested else Silent()
    )
    file = tmp_path / "file.bin"
    file.write_bytes(bytes(1_000_000))
    with lf.receive(tmp_path / "in", listen="127.0.0.1:0", insecure=True) as receiver:
        lf.send(file, receiver.address, insecure=True, progress=False)
        assert Recorded.lines == []
        lf.send(file, receiver.address, insecure=True, progress=True)
    assert Recorded.lines[0].startswith("file.bin: ")
    assert " of 1.00 MB, " in Recorded.lines[0]


def test_an_idle_receiver_stops(tmp_path: Path) -> None:
    receiver = lf.receive(tmp_path / "in", listen="127.0.0.1:0", insecure=True)
    receiver.stop()
    assert "stopped" in repr(receiver)


def test_a_receiver_for_one_sender_ends(tmp_path: Path) -> None:
    file = tmp_path / "file.txt"
    file.write_text("text")
    receiver = lf.receive(tmp_path / "in", listen="127.0.0.1:0", insecure=True, once=True)
    lf.send([file], receiver.address, insecure=True, protocol=lf.GoBackN(window=4))
    receiver.wait(timeout=30)
    assert receiver.failures == []


def test_mistakes_in_transfers_name_the_parameter(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^address: "):
        lf.send("file", "nowhere", insecure=True)
    with pytest.raises(ValueError, match=r"^choose one of code, keys and insecure"):
        lf.send("file", "127.0.0.1:9", insecure=True, keys=True)
    with pytest.raises(ValueError, match=r"^set code, keys or insecure"):
        lf.send("file", "127.0.0.1:9")
    with pytest.raises(ValueError, match=r"^to: 127\.0\.0\.1:9 is also listen"):
        lf.relay({}, "127.0.0.1:9", listen="127.0.0.1:9")
    with pytest.raises(ValueError, match=r"path\.dealy"):
        lf.relay({"dealy": "1ms"}, "127.0.0.1:9")


def test_scripts_have_outcomes() -> None:
    found = lf.packetdrill(ROOT / "tests" / "packetdrill" / "paws.pkt")
    assert found.is_passed
    assert repr(found).startswith("1 passed of 1")
    assert found.to_polars()["outcome"].to_list() == ["pass"]


@pytest.mark.usefixtures("emulated")
def test_a_trial_between_kernels() -> None:
    trial = lf.emulate("reno", lf.Path(rate="10Mbit/s", delay="5ms", queue="50pkt"), "200kB")
    assert 1e6 < trial.goodput < 10e6


@pytest.mark.slow
def test_a_run_writes_its_trials(cli: Cli, tmp_path: Path) -> None:
    run = ("run", "arq/loss", "--quick", "--repeats", "2", "--world", "sim")
    cli(*run, "--csv", "trials.csv")
    frame = pl.read_csv(tmp_path / "trials.csv")
    assert {"protocol", "path_loss", "goodput_bps"} <= set(frame.columns)
    text = cli(*run, "--csv", "-").stdout
    assert text.count("\n") == frame.height + 1
    assert "unknown suffix" in cli(*run, "--csv", "trials.xls", ok=False).stderr
