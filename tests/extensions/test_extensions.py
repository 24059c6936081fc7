"""Schedulers, path policies and queue disciplines in Python."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Any

import pytest

import longfat as lf
from longfat.extensions.policy import Host, HostPath
from longfat.extensions.queue import Arrival, Packet
from longfat.extensions.scheduler import DataView, Subflow
from tests.extensions import classes

TOPOLOGY = {
    "kind": "multipath",
    "path": [
        {"rate": "10Mbit/s", "delay": "10ms", "queue": "50pkt", "loss": "0.5%"},
        {"rate": "5Mbit/s", "delay": "30ms", "queue": "50pkt"},
    ],
}
CLASSES = f"{Path(__file__).parent / 'classes.py'}"


def _mptcp(size: str = "500kB", **keys: Any) -> lf.Trial:
    return lf.simulate({"kind": "mptcp", **keys}, None, size, topology=TOPOLOGY)


def _queue(queue: Any, protocol: Any = "cubic", limit: str = "30pkt", **keys: Any) -> lf.Trial:
    table: Any = {"limit": limit, **(queue if isinstance(queue, dict) else {"kind": queue})}
    path = lf.Path(rate="10Mbit/s", delay="20ms", queue=table, **keys)
    return lf.simulate(protocol, path, "3MB")


@pytest.mark.parametrize(
    ("ours", "built_in"),
    [
        (classes.MinRtt, "min-rtt"),
        (classes.RoundRobin, "round-robin"),
        (classes.Redundant, "redundant"),
        (f"{CLASSES}:MinRtt", "min-rtt"),
    ],
)
def test_scheduler_in_python_equals_the_built_in_one(ours: Any, built_in: str) -> None:
    assert _mptcp(scheduler=ours).metrics == _mptcp(scheduler=built_in).metrics


@pytest.mark.parametrize("size", ["90kB", "250kB", "2MB"])
def test_policy_in_python_equals_the_built_in_one(size: str) -> None:
    assert _mptcp(size, policy=classes.Fsfs).metrics == _mptcp(size, policy="fsfs").metrics


@pytest.mark.parametrize(
    ("ours", "built_in"),
    [(classes.DropHead, "drop-head"), (classes.CoDel, "codel"), (classes.DropTail, "drop-tail")],
)
def test_queue_in_python_equals_the_built_in_one(ours: Any, built_in: str) -> None:
    assert _queue(ours).metrics == _queue(built_in).metrics
    assert _queue(ours).metrics["drops"] > 0


def test_red_like_queue_marks_and_drops() -> None:
    tail = _queue("drop-tail", limit="100pkt")
    dropping = _queue({"kind": classes.Red, "most": 0.2}, limit="100pkt")
    marking = _queue(classes.Red, {"kind": "tcp", "ecn": True}, limit="100pkt")
    assert dropping.queueing_delay_mean_s < 0.5 * tail.queueing_delay_mean_s
    assert dropping.marks == 0
    assert marking.marks > 0
    assert marking.metrics == _queue(classes.Red, {"kind": "tcp", "ecn": True}, limit="100pkt").metrics


def test_a_sweep_and_a_session_take_classes() -> None:
    base = {"path": lf.Path(rate="10Mbit/s", delay="10ms"), "duration": "1s", "protocol": "cubic"}
    over = {"path.queue": ["30pkt", f"{CLASSES}:DropTail", classes.DropTail.configured(limit="30pkt")]}
    frame = lf.sweep(base, over, seeds=2).to_polars()
    assert frame["error"].null_count() == frame.height == 6
    session = lf.Session("cubic", lf.Path(rate="10Mbit/s", delay="10ms", queue=classes.DropTail), "1MB")
    session.advance("100ms")
    assert session.finish().goodput > 0


def test_a_relay_runs_a_queue_discipline() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(5)
        path = lf.Path(rate="10Mbit/s", queue=classes.DropTail)
        with lf.relay(path, "{}:{}".format(*server.getsockname())) as relay:
            host, _, port = relay.address.rpartition(":")
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.sendto(b"hello", (host, int(port)))
                assert server.recv(100) == b"hello"
    assert not any(thread.name == "longfat relay" for thread in threading.enumerate())


class Returns(lf.Scheduler):
    """Returns a wrong value."""

    def __init__(self, value: str = "None") -> None:
        self.value = value

    def choose(self, now: float, data: DataView, subflows: list[Subflow]) -> Any:
        """Evaluates the setting."""
        return eval(self.value)


class Opens(lf.PathPolicy):
    """Opens wrong paths."""

    def __init__(self, value: str = "host.paths", later: str = "()") -> None:
        self.value, self.later = value, later

    def open(self, size: int | None, host: Host) -> Any:
        """Evaluates the setting."""
        return eval(self.value)

    def progress(self, progress: Any, host: Host) -> Any:
        """Evaluates the other setting."""
        return eval(self.later)


class Mishandles(classes.DropTail):
    """Mishandles packets."""

    def __init__(self, arrive: str = "None", leave: str = "packet") -> None:
        super().__init__()
        self.arrive, self.leave = arrive, leave

    def enqueue(self, arrival: Arrival) -> None:
        """Stores all packets, then evaluates the setting."""
        self.waiting.append(arrival.packet)
        eval(self.arrive)

    def dequeue(self, now: float) -> Any:
        """Evaluates the other setting."""
        packet = super().dequeue(now)  # noqa: F841 - the setting reads it
        return eval(self.leave)


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("-1", "choose returned -1: expected a subflow of the list"),
        ("'fast'", "expected a subflow of the list"),
        ("[]", r"choose returned \[\]: expected"),
        ("[subflows[0], 1]", "expected a subflow of the list"),
        ("Subflow(number=9)", r"choose returned Subflow\(number=9\): it is not in the list \(subflows 0"),
        ("[Subflow(number=9)]", r"returned Subflow\(number=9\): it is not in the list"),
        ("1 / 0", r"choose: ZeroDivisionError: division by zero \(line 1\)"),
    ],
)
def test_wrong_choices_of_a_scheduler_are_one_line(value: str, line: str) -> None:
    _fails(line, lambda: _mptcp(scheduler={"kind": Returns, "value": value}))


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"value": "[-1]"}, "open returned -1: expected a sequence of paths of the host and of Join"),
        ({"value": "7"}, "open returned 7: expected a sequence"),
        ({"value": "[]"}, "open returned no path: a connection starts on one"),
        ({"value": "None"}, "open returned None: expected a sequence"),
        ({"value": "[HostPath(number=2)]"}, r"HostPath\(number=2\): there is no such path \(0 to 1\)"),
        ({"value": "[lf.Join(host.paths[0], after_bytes=5)]"}, "Join with a condition as its first entry"),
        ({"value": "[lf.Join(host.paths[0], after_bytes=5, after_time=1)]"}, "set after_bytes or after_time"),
        ({"value": "host.paths[:1]", "later": "3"}, "progress returned 3: expected a sequence"),
    ],
)
def test_wrong_paths_of_a_policy_are_one_line(settings: dict[str, str], line: str) -> None:
    assert HostPath(number=1).number == 1
    _fails(line, lambda: _mptcp(policy={"kind": Opens, **settings}))


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({}, r"enqueue left 31 packets \(\d+ bytes\) in a queue with the limit 30pkt: drop a packet"),
        ({"leave": "None"}, "dequeue returned None, but 1 packets wait: drop or return them"),
        ({"leave": "7"}, "dequeue returned 7: expected a packet, or None"),
        ({"leave": "Packet(number=99)"}, r"dequeue returned Packet\(number=99\): it is not in the queue"),
        ({"arrive": "self.drop(Packet(number=99))"}, r"drop received Packet\(number=99\): it is not in"),
        (
            {"arrive": "len(self.waiting) == 2 and self.drop(self.waiting[0])"},
            r"dequeue returned Packet\(number=\d+\): it is not in the queue: it was sent or dropped already",
        ),
        ({"arrive": "self.drop(None)"}, "drop received None: expected a packet"),
        ({"arrive": "self.mark(arrival.packet)"}, r"mark received Packet\(number=0\): it is not ECN-capable"),
        ({"arrive": "1 / 0"}, "enqueue: ZeroDivisionError"),
    ],
)
def test_mishandled_packets_of_a_queue_are_one_line(settings: dict[str, str], line: str) -> None:
    assert Packet(number=1).size == 1500
    _fails(line, lambda: _queue({"kind": Mishandles, **settings}))


def _fails(line: str, run: Any) -> None:
    for _ in range(2):
        with pytest.raises(lf.TransferError, match=line) as raised:
            run()
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ({"scheduler": classes.Fsfs}, "Fsfs is not derived from longfat.Scheduler"),
        ({"policy": classes.MinRtt}, "MinRtt is not derived from longfat.PathPolicy"),
        ({"scheduler": {"kind": Returns, "valu": "1"}}, 'unknown key of scheduler .* did you mean "value"'),
        ({"scheduler": {"kind": f"{CLASSES}:MinRttt"}}, 'did you mean "MinRtt"'),
        ({"policy": {"kind": f"{CLASSES}:none.py:MinRtt"}}, "no such file"),
    ],
)
def test_unusable_classes_are_refused_before_the_trial(keys: dict[str, Any], line: str) -> None:
    with pytest.raises(ValueError, match=line):
        _mptcp(**keys)


def test_unusable_queues_are_refused_before_the_trial() -> None:
    with pytest.raises(ValueError, match=r"path\.queue.*is not derived from longfat\.QueueDiscipline"):
        _queue(classes.MinRtt)
    with pytest.raises(ValueError, match=r"limit: .*pkt"):
        _queue(classes.DropTail, limit="7m")
    with pytest.raises(ValueError, match="each link creates its own"):
        _queue(classes.DropTail())


def test_a_limit_of_other_directions_is_inherited() -> None:
    path = lf.Path(
        rate="10Mbit/s", delay="1ms", queue="7pkt", reverse={"queue": classes.DropTail.configured()}
    )
    assert lf.simulate("cubic", path, "100kB").goodput > 0
