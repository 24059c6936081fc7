"""`longfat predict`: its input, output and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Refused
from tests.conftest import Cli, document

T1_BULK = ["predict", "--rate", "T1", "--delay", "30ms", "--size", "1MB"]


def test_a_single_hop_is_predicted(cli: Cli) -> None:
    reported = document(cli(*T1_BULK, "--json"))
    assert reported["total_s"] == pytest.approx(1e6 * 8 / 1.544e6 + 0.03)
    assert reported["dominant"] == "bandwidth"
    assert sum(part["seconds"] for part in reported["parts"]) == pytest.approx(reported["total_s"])
    assert sum(reported["shares"].values()) == pytest.approx(1)
    shown = cli(*T1_BULK).stdout
    assert "5.211" in shown
    assert "Mostly bandwidth" in shown


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--protocol", "tcp"], "Controller: CUBIC (--congestion)"),
        (["--protocol", "tcp", "--loss", "1%", "--congestion", "reno"], "Controller: Reno (--congestion)"),
        (["--protocol", "udp"], ""),
    ],
)
def test_the_assumed_controller_is_named(cli: Cli, words: list[str], line: str) -> None:
    shown = cli("predict", "--rate", "T1", "--delay", "30ms", "--size", "1MB", *words).stdout
    assert line in shown
    assert bool(line) == ("Controller" in shown)


def test_hops_have_reverse_properties(cli: Cli) -> None:
    hop = "rate=10Mbit/s delay=5ms reverse.rate=1Mbit/s reverse.delay=1ms"
    reported = document(cli("predict", "--hop", hop, "--protocol", "ping", "--size", "972B", "--json"))
    assert reported["total_s"] == pytest.approx(8000 / 1e7 + 0.005 + 8000 / 1e6 + 0.001)


def test_a_path_model_is_predicted(cli: Cli, tmp_path: Path) -> None:
    model = tmp_path / "model.toml"
    model.write_text(
        """[path]
hops = [{ rate = "1Mbit/s", delay = "5ms", loss = "1%" }, { rate = "2Mbit/s", delay = "1ms" }]
[measured]
host = "example"
""",
        encoding="utf-8",
    )
    reported = document(cli("predict", "--path", model, "--size", "1000B", "--json"))
    assert reported["total_s"] == pytest.approx(0.018)
    assert reported["not_in_the_model"] == ["loss"]


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        ([], "no path: give --rate and --delay, --hop, --path or --preset"),
        (["--size", "3B"], "no path: give --rate and --delay"),
        (["--rate", "T1", "--hop", "rate=T1", "--size", "3B"], "set the path once"),
        (
            ["--rate", "T1", "--size", "3B", "--loss", "1%", "--protocol", "tcp", "--congestion", "bbr"],
            "'bbr' is not one of 'cubic', 'reno': no closed form; simulate it: longfat diagnose --from",
        ),
        (
            ["--rate", "T1", "--size", "3B", "--protocol", "quic"],
            "no closed form; simulate it: longfat diagnose --from model.toml, or a study with extends",
        ),
        (["--rate", "T1"], "set either --size or --packets"),
        (["--rate", "4", "--size", "3B"], '--rate: "4" is not a rate'),
        (["--rate", "T1", "--size", "3B", "--reply", "3B"], "--reply: requires --protocol"),
        (
            ["--rate", "T1", "--size", "3B", "--protocol", "tcp", "--packet", "30B"],
            "--packet: 30 B is too small",
        ),
        (
            ["--rate", "T1", "--size", "3B", "--protocol", "tcp", "--window", "9B"],
            "--window: 9B is less than",
        ),
        (["--rate", "T1", "--size", "3B", "--loss", "100%"], "--loss: must be below 100%"),
        (["--rate", "T1", "--size", "3"], '--size: "3" is not a size'),
        (["--rate", "0Mbit/s", "--size", "3B"], "out of range: above 0"),
        (["--hop", "rade=T1", "--size", "3B"], "--hop: rade: unknown key; allowed: rate, delay"),
        (["--hop", "rate=T1 count=1000", "--size", "3B"], "out of range: 1 to 255"),
        (["--hop", "rate", "--size", "3B"], "write KEY=VALUE"),
        (["--rate", "T1", "--size", "3B", "--loss", "2"], '--loss: "2" is not a proportion'),
        (["--rate", "T1", "--size", "3B", "--loss", "2%", "--congestion", "reno"], "use --protocol tcp"),
        (["--rate", "T1", "--size", "3B", "--protocol", "tcp", "--congestion", "reno"], "set --loss"),
        (["--rate", "T1", "--size", "3B", "--loss", "60%", "--protocol", "tcp"], "no mean time"),
        (["--rate", "T1", "--size", "3B", "--service", "1ms"], "--service requires --reply"),
        (["--rate", "T1", "--size", "3B", "--protocol", "tcp", "--packet", "52B"], "too small"),
    ],
)
def test_invalid_arguments_are_refused(words: list[str], reported: str, refused: Refused) -> None:
    refused(["predict", *words], 2, [reported])


def test_an_invalid_model_is_refused(refused: Refused, tmp_path: Path) -> None:
    model = tmp_path / "model.toml"
    model.write_text("title = 3\n", encoding="utf-8")
    refused(["predict", "--path", str(model), "--size", "3B"], 2, ["title: unknown table"])
    refused(["predict", "--path", str(tmp_path / "none.toml"), "--size", "3B"], 2, ["No such file"])


LOSSY = ["predict", "--rate", "20Mbit/s", "--delay", "20ms", "--loss", "2%", "--protocol", "tcp"]


def test_a_lossy_path_takes_the_time_of_the_response_to_loss(cli: Cli) -> None:
    reported = document(cli(*LOSSY, "--size", "10MB", "--json"))
    # Without loss, the transfer would take 4.2 s.
    assert reported["steady_rate_bps"] == pytest.approx(1.9e6, rel=0.01)
    assert reported["total_s"] == pytest.approx(10e6 * 8 / 1.9e6, rel=0.03)
    assert reported["dominant"] == "loss"
    assert sum(reported["shares"].values()) == pytest.approx(1)
    assert reported["segments_before_loss"] == pytest.approx(49)
    assert reported["not_in_the_model"] == ["drops at full queues", "lost ACKs in slow start"]
    rare = [word.replace("2%", "0.1%") for word in LOSSY]
    cubic, reno = (
        document(cli(*rare, "--congestion", name, "--size", "10MB", "--json")) for name in ("cubic", "reno")
    )
    assert cubic["steady_rate_bps"] < reno["steady_rate_bps"]
    assert cubic["response"].startswith("CUBIC at random losses: Linux's Reno-friendly region")
    assert reno["response"].startswith("Mathis with recovery")
    shown = cli(*LOSSY, "--size", "10MB").stdout
    assert "Mostly loss" in shown
    assert "Not in the model: drops at full queues, lost ACKs in slow start" in shown


@pytest.mark.parametrize("name", ["cubic", "reno"])
def test_a_little_more_loss_takes_a_little_longer(cli: Cli, name: str) -> None:
    path = ["predict", "--rate", "50Mbit/s", "--delay", "20ms", "--protocol", "tcp", "--size", "20MB"]
    losses = ("1%", "1.01%")
    below, above = (
        document(cli(*path, "--congestion", name, "--loss", loss, "--json"))["total_s"] for loss in losses
    )
    assert 1 < above / below < 1.02


def test_the_loss_of_a_model_counts(cli: Cli, tmp_path: Path) -> None:
    model = tmp_path / "model.toml"
    hop = 'hops = [{ rate = "20Mbit/s", delay = "20ms", loss = "2%" }]'
    model.write_text(f"[path]\n{hop}\n", encoding="utf-8")
    reported = document(cli("predict", "--path", model, "--protocol", "tcp", "--size", "10MB", "--json"))
    assert reported["total_s"] == document(cli(*LOSSY, "--size", "10MB", "--json"))["total_s"]


def test_bursts_of_loss_are_reported_as_not_modelled(cli: Cli, tmp_path: Path) -> None:
    model = tmp_path / "model.toml"
    loss = '{ model = "every", every = 50 }'
    model.write_text(f'[path]\nrate = "20Mbit/s"\ndelay = "20ms"\nloss = {loss}\n', encoding="utf-8")
    reported = document(cli("predict", "--path", model, "--protocol", "tcp", "--size", "1MB", "--json"))
    assert reported["not_in_the_model"][0].startswith("losses in bursts")
    assert reported["dominant"] == "bandwidth"


def test_datagrams_that_are_lost_are_not_retransmitted(cli: Cli) -> None:
    reported = document(cli("predict", "--rate", "1Mbit/s", "--loss", "2%", "--size", "1000B", "--json"))
    assert (reported["total_s"], reported["loss"]) == (pytest.approx(0.008), pytest.approx(0.02))
    assert reported["not_in_the_model"] == ["loss"]


def test_presets_are_predicted(cli: Cli) -> None:
    """13 Mbit/s down: 1 MB takes 0.6 s to send; the upload at 6 Mbit/s takes longer."""

    def seconds(*words: object) -> float:
        line = ("predict", "--preset", "lte", "--protocol", "tcp", "--size", "1MB", "--json", *words)
        return float(document(cli(*line))["total_s"])

    assert 0.6 < seconds() < 1.1
    assert seconds("--subscriber", "near") > 1.3
    assert seconds("--rate", "T1") > 5.0
    assert seconds("--loss", "2%") > 1.5 * seconds()
    for name in ("3g", "4g", "5g"):
        assert document(cli("predict", "--preset", name, "--size", "100kB", "--json"))["total_s"] > 0


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (["--preset", "moon"], '--preset: "moon" is not known: allowed: lan, '),
        (["--preset", "lte", "--hop", "rate=T1"], "set the path once: by --hop, by --path, by --preset"),
        (["--rate", "T1", "--subscriber", "near"], "--subscriber requires --preset"),
    ],
)
def test_an_invalid_preset_is_refused(words: list[str], reported: str, refused: Refused) -> None:
    refused(["predict", *words, "--size", "1MB"], 2, [reported])
