"""`longfat check`: its exit code reports whether the machine emulates the paths."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Refused
from tests.conftest import Cli, Data, document
from tests.waiting import undisturbed

from longfat import _native
from longfat.cli import main
from longfat.worlds import capacity
from longfat.worlds.capacity import MachineCapacity

HOLDS = {"name": "rate", "unit": "bit/s", "asked": 1e7, "measured": 9.99e6, "holds": True, "detail": ""}
DIFFERS = HOLDS | {"measured": 9.5e6, "holds": False}
UNDECIDED = HOLDS | {"name": "queue", "unit": "packets", "asked": 100, "measured": 40, "holds": None}
TOO_FAST = "too fast: 900000 packets/s of 1500 B are requested, and this machine emulates 200000"


@pytest.mark.skipif(sys.platform != "linux", reason="emulated networks need Linux")
@pytest.mark.parametrize(
    ("figures", "refused", "code"),
    [
        ([HOLDS], [], 0),
        ([HOLDS, UNDECIDED], [], 0),
        ([HOLDS, DIFFERS], [], 1),
        ([HOLDS], [TOO_FAST], 1),
    ],
    ids=["holds", "undecided", "differs", "refused"],
)
def test_the_exit_code_reports_the_verdict(
    figures: list[dict[str, Any]],
    refused: list[str],
    code: int,
    data: Data,
    write: Callable[[Data], Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = json.dumps({"figures": figures, "refusals": refused})
    monkeypatch.setattr(_native, "check_path", lambda _spec, _number: report)
    monkeypatch.setattr(capacity, "machine_capacity", lambda: MachineCapacity(2e5, 1e-4, is_busy=False))
    study = str(write(data | {"sweep": {}}))
    for options in ([], ["--json"]):
        monkeypatch.setattr(sys, "argv", ["longfat", "check", study, *options])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        assert ended.value.code == code, shown.err
        begin, *reported = shown.err.splitlines()
        assert begin == "1 path, 3 to 8 s in total"
        assert reported == [f"longfat: sender to receiver: {reason}" for reason in refused]
        if options:
            content = json.loads(shown.out)
            assert content["holds"] == (code == 0)
            assert content["machine"]["packets_per_second"] == 2e5
            (path,) = content["paths"]
            assert (path["from"], path["to"], path["figures"]) == ("sender", "receiver", figures)
        else:
            assert ("not emulated: too fast" in shown.out) == bool(refused)
            assert shown.out.count(" differs") == figures.count(DIFFERS)
            assert "Capacity of this machine: 200,000 packets/s" in shown.out


@pytest.mark.usefixtures("emulated")
def test_a_path_beyond_every_machine_is_refused(cli: Cli, data: Data, write: Callable[[Data], Path]) -> None:
    study = write(data | {"sweep": {}})
    done = cli("check", study, "--set", "path.rate=900Gbit/s", "--json", ok=False)
    assert done.returncode == 1
    content = document(done)
    assert content["holds"] is False
    (path,) = content["paths"]
    (refusal,) = [reason for reason in path["refusals"] if reason.startswith("too fast: ")]
    assert f"longfat: sender to receiver: {refusal}" in done.stderr.splitlines()


@pytest.mark.slow
@pytest.mark.usefixtures("emulated")
def test_measured_properties_are_near_the_requested_ones(
    cli: Cli, data: Data, write: Callable[[Data], Path]
) -> None:
    # The deviation depends on the machine's load; the exit code reports it.
    study = write(data)

    def _figures(content: Data) -> dict[str, Data]:
        (path,) = content["paths"]
        return {figure["name"]: figure for figure in path["figures"]}

    def _is_near(done: subprocess.CompletedProcess[str]) -> bool:
        figures = _figures(document(done))
        return bool(
            figures["rate"]["measured"] == pytest.approx(1e7, rel=0.3)
            and figures["delay"]["measured"] < 0.05
            and 0.02 < figures["loss"]["measured"] < 0.25
        )

    done = undisturbed(lambda: cli("check", study, "--cell", "path.loss=10%", "--json", ok=False), _is_near)
    content = document(done)
    (path,) = content["paths"]
    figures = _figures(content)
    assert figures["rate"]["measured"] == pytest.approx(1e7, rel=0.3)
    assert 0.005 <= figures["delay"]["measured"] < 0.05
    assert 0.02 < figures["loss"]["measured"] < 0.25
    assert path["cell"] == "path.loss = 10%"
    holds = not path["refusals"] and all(figure["holds"] is not False for figure in path["figures"])
    assert (done.returncode, content["holds"]) == (0 if holds else 1, holds)


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        (["nothing.toml"], "nothing.toml: is neither a file nor a built-in study"),
        (["STUDY", "--cell", "path.loss=3%"], "--cell: path.loss = 3% is not swept"),
        (["STUDY", "--cell", "path.rate=1Mbit/s"], '--cell: "path.rate" is not swept'),
        (["STUDY", "--protocol", "tcp"], '--protocol: "tcp" is not in this study'),
        (["STUDY", "--set", "path.rate=10"], "--set: path.rate: "),
    ],
)
def test_invalid_arguments_are_refused(
    options: list[str], reported: str, data: Data, write: Callable[[Data], Path], refused: Refused
) -> None:
    study = str(write(data))
    refused(["check", *(study if word == "STUDY" else word for word in options)], 2, [reported])
