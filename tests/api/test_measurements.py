"""`lf.ping`, `lf.transact`, `lf.path` and `lf.predict` correspond to the commands of these names."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.conftest import Cli

import longfat as lf


def test_ping_returns_a_row_for_each_request() -> None:
    found = lf.ping(
        "127.0.0.1", protocol="udp", port=9, count=3, sizes=(8, 100), interval="1ms", timeout="200ms"
    )
    frame = found.to_polars()
    assert frame.height == 6
    assert frame["size"].unique().sort().to_list() == [8, 100]
    assert "127.0.0.1" in repr(found)
    assert "<table>" in found._repr_html_()


def test_parameters_are_checked_under_their_names() -> None:
    with pytest.raises(ValueError, match=r"^timeout: 1ns is out of range"):
        lf.ping("127.0.0.1", timeout="1ns")
    with pytest.raises(ValueError, match=r"^protocol: tcp requires port"):
        lf.ping("127.0.0.1", protocol="tcp")
    with pytest.raises(ValueError, match=r"^sizes: "):
        lf.ping("127.0.0.1", sizes="8..")
    with pytest.raises(ValueError, match=r'^host: "no such host" cannot be resolved'):
        lf.path("no such host")
    with pytest.raises(ValueError, match=r'^protocol: "sctp" is unknown'):
        lf.transact("127.0.0.1", protocol="sctp")


def test_a_prediction_equals_that_of_the_command(cli: Cli) -> None:
    words = ("--rate", "10Mbit/s", "--delay", "20ms", "--protocol", "tcp", "--size", "1MB", "--json")
    document = json.loads(cli("predict", *words).stdout)
    found = lf.predict(["rate=10Mbit/s delay=20ms"], "1MB", protocol="tcp")
    assert found.document() == document
    same = lf.predict(lf.Path(rate="10Mbit/s", delay="20ms"), "1MB", protocol="tcp")
    assert same.seconds == pytest.approx(found.seconds)
    assert found.to_polars()["seconds"].sum() == pytest.approx(found.seconds)
    assert "1.00 MB" in repr(found)


def test_predictions_refuse_what_has_no_closed_form() -> None:
    with pytest.raises(ValueError, match=r"^congestion: applies to lossy paths only: set loss"):
        lf.predict(lf.Path(rate="1Mbit/s", delay="1ms"), "1MB", protocol="tcp", congestion="reno")
    with pytest.raises(ValueError, match=r"^set either size or packets"):
        lf.predict(lf.Path(rate="1Mbit/s", delay="1ms"))


@pytest.mark.parametrize(
    ("words", "absent"),
    [
        (["ping", "127.0.0.1", "--count", "1", "--timeout", "10ms"], ["scipy", "altair", "polars"]),
        (["send", "none", "127.0.0.1:1", "--insecure"], ["scipy", "altair", "polars", "numpy"]),
        (["recv", "--keys", "--trusted", "/none"], ["scipy", "altair", "polars", "numpy"]),
        (
            ["--help"],
            [
                "scipy",
                "altair",
                "polars",
                "pydantic",
                "numpy",
                "rich",
                "longfat._native",
                "longfat.cli.commands.run",
            ],
        ),
    ],
)
def test_light_commands_import_little(words: list[str], absent: list[str]) -> None:
    program = f"""
import sys
sys.argv = ["longfat", *{words}]
from longfat.cli import main
try:
    main()
except SystemExit:
    pass
print(sorted(set({absent}) & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"
