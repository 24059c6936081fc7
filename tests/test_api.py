from __future__ import annotations

import importlib
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import longfat as lf

Data = dict[str, Any]


def test_a_notebooks_first_lines(data: Data, tmp_path: Path, write: Callable[..., Path]) -> None:
    result = lf.run(write(data), out=tmp_path / "run")
    assert result.to_polars().height == 24
    assert [claim.id for claim in result.claims] == ["sr-not-behind"]
    assert result.report.is_file()
    assert lf.load_run(tmp_path / "run").cells == result.cells
    assert json.loads(json.dumps(result.to_json()))["study"] == "small"


def test_options_are_those_of_the_command_line(data: Data, tmp_path: Path) -> None:
    result = lf.run(
        data,
        out=tmp_path / "run",
        repeats=2,
        settings={"path.loss": ["1%", "2%"], "path.delay": "3ms", "protocols.sr.window": 8},
        seed=3,
        worlds=["sim"],
    )
    assert [cell.n for cell in result.cells] == [2] * 4
    assert result.study.network["path"]["delay"] == "3ms"
    assert result.study.protocol("sr").settings["window"] == 8
    assert result.study.seed == 3


def test_a_transfer_has_metrics() -> None:
    path = lf.Path(rate="10Mbit/s", delay="20ms", loss="1%")
    trial = lf.simulate(protocol=lf.GoBackN(window=8), path=path, size="200kB", seed=1)
    assert trial.goodput == trial.goodput_bps == trial.metrics["goodput_bps"]
    assert "goodput_bps" in dir(trial)
    assert trial == lf.simulate(lf.GoBackN(window=8), path, "200kB", seed=1)
    assert trial != lf.simulate(lf.GoBackN(window=8), path, "200kB", seed=2)
    assert trial == lf.simulate(
        {"kind": "go-back-n", "window": 8}, path.settings, workload=trial.spec["workload"]
    )
    with pytest.raises(AttributeError, match="goodput_bps"):
        _ = trial.goodputt


def test_a_failed_transfer_reports_the_reason() -> None:
    with pytest.raises(lf.TransferError):
        lf.simulate(lf.StopAndWait(), lf.Path(rate="1Mbit/s", delay="1ms", loss="100%"), "10kB")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: lf.Path(rate="10Mbit/s", dealy="20ms"), "path.dealy"),  # type: ignore[call-arg]
        (lambda: lf.Path(rate="10Mbit/s", loss="200%"), "path.loss"),
        (lambda: lf.GoBackN(windwo=8), "protocol.windwo"),  # type: ignore[call-arg]
        (lambda: lf.Path(delay=20), "path.delay"),  # type: ignore[arg-type]
        (lambda: lf.Workload("fiel"), "workload.kind"),  # type: ignore[arg-type]
        (lambda: lf.Protocol("go-back"), "protocol.kind"),
        (lambda: lf.simulate(lf.StopAndWait(), lf.Path(rate="1Mbit/s"), "ten"), "workload.*ten"),
        (lambda: lf.simulate(lf.StopAndWait(), lf.Path(rate="1Mbit/s")), "either size"),
    ],
)
def test_a_mistake_names_its_key(make: Callable[[], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_settings_are_values() -> None:
    assert lf.GoBackN(window=8) == lf.Protocol("go-back-n", window=8)
    assert lf.GoBackN(window=8) != lf.GoBackN(window=9)
    assert len({lf.GoBackN(window=8), lf.Protocol("go-back-n", window=8)}) == 1


def test_every_public_name_is_there_and_documented() -> None:
    assert sorted(lf.__all__) == lf.__all__
    for name in lf.__all__:
        assert getattr(lf, name).__doc__, name
    # No package of the same name hides the function.
    importlib.import_module("longfat.runner")
    assert callable(lf.run)
    with pytest.raises(AttributeError):
        _ = lf.nothing


SHARED: Data = {"pairs": 2, "bottleneck": {"rate": "10Mbit/s", "delay": "10ms", "queue": "50pkt"}}
BULK: Data = {"kind": "bulk", "duration": "3s", "warm_up": "1s"}


def test_flows_share_a_topology() -> None:
    trial = lf.simulate(lf.Tcp("reno"), lf.Topology("dumbbell", **SHARED), workload=BULK)
    assert trial.goodput == pytest.approx(10e6 * 1448 / 1500, rel=0.04)
    assert trial.metrics["goodput_bps@s1"] + trial.metrics["goodput_bps@s2"] == pytest.approx(trial.goodput)
    assert [flow["from"] for flow in trial.flows] == ["s1", "s2"]
    by_name = lf.simulate(
        {"kind": "tcp", "congestion": "reno"}, topology=SHARED | {"kind": "dumbbell"}, workload=BULK
    )
    assert by_name.metrics == trial.metrics


def test_traffic_takes_its_part() -> None:
    rival = {"name": "rival", "protocol": {"kind": "udp"}, "workload": {"kind": "bulk", "rate": "4Mbit/s"}}
    path = lf.Path(rate="10Mbit/s", delay="10ms", queue="50pkt")
    alone, shared = (
        lf.simulate(lf.Tcp("vegas"), path, workload=BULK, traffic=traffic) for traffic in ([], [rival])
    )
    assert shared.traffic_goodput == pytest.approx(4e6, rel=0.02)
    assert shared.goodput < alone.goodput - 3.9e6
    with pytest.raises(ValueError, match=r"traffic\.workload\.rate"):
        lf.simulate(lf.Tcp(), path, workload=BULK, traffic=[rival | {"workload": {"kind": "bulk"}}])


def test_a_trial_has_one_network() -> None:
    shared = lf.Topology("dumbbell", **SHARED)
    with pytest.raises(ValueError, match="either path or topology"):
        lf.simulate(lf.Tcp(), workload=BULK)
    with pytest.raises(ValueError, match="either path or topology"):
        lf.simulate(lf.Tcp(), lf.Path(), topology=shared, workload=BULK)
    with pytest.raises(ValueError, match='did you mean "dumbbell"'):
        lf.Topology("dumbel")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="congestion"):
        lf.Tcp("renoo")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seed": -1}, "^seed: -1 is out of range: 0 to 2"),
        ({"seed": 2**64}, "^seed: 18446744073709551616 is out of range"),
        ({"seed": 1.5}, r"^seed: 1\.5: must be a whole number$"),
        ({"seed": True}, "^seed: true: must be a whole number$"),
        ({"trial": -1}, "^trial: -1 is out of range"),
    ],
)
def test_an_invalid_seed_or_trial_is_one_plain_message(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lf.simulate("cubic", lf.Path(rate="1Mbit/s"), "20kB", **settings)


def test_settings_have_their_own_label_in_messages(data: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^settings: path\.dealy: unknown key"):
        lf.run(data, settings={"path.dealy": "2ms"})


def test_mptcp_connect_warns_when_the_path_manager_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    near, far = socket.socketpair()
    requests: list[str] = []

    def ask(_name: str, request: dict[str, Any]) -> dict[str, Any]:
        requests.extend(request)
        if "begin" in request:
            raise lf.mptcp._NoManagerError("the path manager stopped")
        return {"opening": {"from": "127.0.0.1", "opening": 1}}

    monkeypatch.setattr("longfat._native.mptcp_support", lambda: "user")
    for name, value in (
        ("_manager", lambda *_: "m"),
        ("_request", ask),
        ("_open", lambda *_: near),
        ("token", lambda _: 1),
    ):
        monkeypatch.setattr(lf.mptcp, name, value)
    with near, far, pytest.warns(lf.mptcp.MptcpWarning, match="the path manager stopped: the kernel chooses"):
        assert lf.mptcp.connect(("127.0.0.1", 1)) is near
    assert requests == ["open", "begin"]
