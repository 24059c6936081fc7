"""The world `netns`: studies between real kernels; skipped without namespaces.

The tests hold on machines of any speed. test_capacity.py tests the refusal of trials.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests import requirements
from tests.conftest import Cli, Data
from tests.runs import run_study
from tests.waiting import undisturbed

from longfat.kernel.controllers import available, listed
from longfat.study import load_study
from longfat.worlds.netns import controllers

THRESHOLDS = """
title = "Vegas with few packets in the queue, and with many"
worlds = ["netns"]
repeats = 1
path = { rate = "10Mbit/s", delay = "10ms", queue = "100pkt" }
workload = { kind = "bulk", duration = "8s", warm_up = "4s" }
protocols = [
    { name = "few", kind = "tcp", congestion = "vegas" },
    { name = "many", kind = "tcp", congestion = { kind = "vegas", alpha = 20, beta = 24, gamma = 20 } },
]
"""


PRAGUE = """
title = "Prague over the user-space stack"
worlds = ["netns"]
repeats = 1
path = { rate = "10Mbit/s", delay = "10ms", queue = { kind = "dualpi2", step = "5ms" } }
workload = { kind = "bulk", duration = "8s", warm_up = "2s" }
protocols = [{ name = "prague", kind = "tcp", congestion = "prague", stack = "longfat" }]
"""


def _processes_with(mark: str) -> list[str]:
    """Returns the command lines of processes with `mark` in their environment; only they use namespaces."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:  # it has ended, or belongs to another user
            continue
    return found


@pytest.mark.usefixtures("emulated")
def test_a_study_runs_on_real_kernels_and_leaves_nothing(
    between_kernels: Callable[..., Data],
    write: Callable[[Data], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mark = f"LONGFAT_TEST_{tmp_path.name}"
    monkeypatch.setenv(mark, "1")
    slow_start = {"name": "slow", "kind": "tcp", "initial_window": 2}
    file = write(between_kernels("500kB", slow_start))
    result = run_study(load_study(file), folder=tmp_path / "run", force=True)
    reno, slow = result.cells
    assert reno.n == 1
    # 500 kB at 20 Mbit/s take 0.2 s; slow start adds some round trips of 20 ms.
    assert reno.metrics["completion_s"].mean > 0.2
    assert reno.metrics["rtt_mean_s"].mean > 0.02
    assert reno.metrics["host_drops"].mean >= 0
    # Settings without support in the kernel are errors.
    assert slow.n == 0
    assert any("initial_window" in error for error in slow.failures)
    assert _processes_with(mark) == []


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize(
    ("protocol", "reported"),
    [
        ({"initial_window": 2}, "other: protocol.initial_window: not supported by a kernel's TCP"),
        ({"congestion": "fixed"}, "other: protocol.congestion: Linux has no controller with a fixed window"),
        ({"congestion": "westwood"}, "other: protocol.congestion: the kernel has no congestion controller"),
        ({"ecn": "accecn"}, 'other: protocol.ecn: "accecn" is not supported by kernels'),
    ],
)
def test_settings_without_kernel_support_are_refused_before_the_first_trial(
    protocol: Data,
    reported: str,
    between_kernels: Callable[..., Data],
    write: Callable[[Data], Path],
    tmp_path: Path,
    cli: Cli,
) -> None:
    if protocol.get("congestion") in listed():
        return  # this kernel offers Westwood: there is nothing to refuse
    file = write(between_kernels("50kB", {"name": "other", "kind": "tcp", **protocol}))
    done = cli("run", file, ok=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"longfat: world netns: {reported}")
    assert not (tmp_path / "runs" / "small").exists()


@pytest.mark.usefixtures("emulated")
def test_a_run_without_any_measurement_fails(
    between_kernels: Callable[..., Data], write: Callable[[Data], Path], cli: Cli
) -> None:
    if "westwood" in listed():
        return  # this kernel offers Westwood: there is nothing to refuse
    study = between_kernels("50kB", {"name": "other", "kind": "tcp", "congestion": "westwood"})
    study["protocols"] = study["protocols"][1:]
    # The flow lasts for a fixed time, in which it transfers nothing.
    study["workload"] = {"kind": "bulk", "duration": "1s"}
    done = cli("run", write(study), "--force", ok=False)
    assert done.returncode == 1
    assert "longfat: all trials failed" in done.stderr.splitlines()
    assert 'no congestion controller "westwood"' in done.stdout


def test_the_controllers_of_all_flows_are_found() -> None:
    rival = {"name": "rival", "protocol": {"kind": "tcp", "congestion": "vegas"}, "workload": {}}
    cross = {"name": "cross", "protocol": {"kind": "udp"}, "workload": {}}
    spec = {"protocol": {"kind": "tcp", "congestion": {"kind": "bbr1"}}, "traffic": [rival, cross]}
    assert set(controllers(spec)) == {"bbr1", "vegas"}
    assert controllers({"protocol": {"kind": "go-back-n"}}) == {}


@pytest.mark.usefixtures("emulated")
@pytest.mark.slow
def test_thresholds_of_vegas_reach_the_kernel(tmp_path: Path) -> None:
    if not (given := available("vegas", {"alpha": 20, "beta": 24}, source="bpf")).ok:
        requirements.skip("bpf", given.reason)
    file = tmp_path / "thresholds.toml"
    file.write_text(THRESHOLDS, encoding="utf-8")

    def _queues() -> list[float]:
        result = run_study(load_study(file), folder=tmp_path / "run", force=True, fresh=True)
        return [cell.metrics["queue_mean_packets"].mean for cell in result.cells]

    few, many = undisturbed(_queues, lambda queues: queues[0] + 6 < queues[1] < 30)
    # Vegas keeps 2 to 4 and 20 to 24 packets in the queue; late wake-ups of a busy machine reduce the latter.
    assert few + 6 < many < 30


@pytest.mark.usefixtures("emulated")
@pytest.mark.slow
def test_prague_controls_its_queue_over_real_packets(tmp_path: Path) -> None:
    """Accurate ECN on the wire: marks of the emulated DualPI2 keep the queue near its threshold."""
    file = tmp_path / "prague.toml"
    file.write_text(PRAGUE, encoding="utf-8")

    def _metrics() -> dict[str, float]:
        result = run_study(load_study(file), folder=tmp_path / "run", force=True, fresh=True)
        (cell,) = result.cells
        return {name: cell.metrics[name].mean for name in ("rtt_mean_s", "marks", "drops", "goodput_bps")}

    def _controls(metrics: dict[str, float]) -> bool:
        # 20 ms, up to 5 ms of queue and the time to send a packet, 1.2 ms.
        return 0.022 < metrics["rtt_mean_s"] < 0.028 and metrics["goodput_bps"] > 9e6

    metrics = undisturbed(_metrics, _controls)
    assert _controls(metrics), metrics
    assert metrics["drops"] == 0
    assert metrics["marks"] > 300


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("stack", ["linux", "longfat"])
def test_a_large_message_has_one_small_segment(stack: str) -> None:
    import polars as pl

    import longfat as lf

    # More than the buffer of one write of the program. Small segments in between would wait for ACKs (Nagle).
    work = {"kind": "request-response", "response_size": "89kB", "requests": 5, "think": "30ms"}
    path = {"rate": "100Mbit/s", "delay": "5ms", "queue": "300pkt"}
    protocol = {"kind": "tcp", "congestion": "reno"} | ({"stack": stack} if stack == "longfat" else {})
    events = lf.trace(protocol, path, workload=work, world="netns").events
    sent = events.filter(
        (pl.col("what") == "send") & (pl.col("host") == "receiver") & (pl.col("length") > 0)
    ).filter(~pl.col("retransmission"))
    full = sent["length"].max()
    assert sent.filter(pl.col("length") < full).height == 5


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize(
    ("kind", "reconnect", "least"), [("tcp", False, 0.12), ("mptcp", False, 0.12), ("mptcp", True, 0.2)]
)
def test_requests_include_the_setup_of_their_connection(kind: str, reconnect: bool, least: float) -> None:
    import longfat as lf

    # Each of the three takes an RTT of 100 ms, and a new connection takes another one.
    work = {"kind": "request-response", "requests": 3, "request_size": "2kB", "reconnect": reconnect}
    path = {"rate": "100Mbit/s", "delay": "50ms"}
    traces = [
        lf.trace({"kind": kind}, path, workload=work, world=world, samples=False)
        for world in ("sim", "netns")
    ]
    times = [metrics["fct_mean_s"] for trace in traces for metrics in trace.metrics.values()]
    assert len(times) == 2
    assert min(times) > least
