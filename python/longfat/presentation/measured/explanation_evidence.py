"""The evidence of a cause: figures of its longest interval, whose frames the table lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from longfat.presentation.formatting import DASH, quantity

if TYPE_CHECKING:
    from longfat.analysis.captures.explained import Direction

_Interval = Mapping[str, Any]


def evidence(one: Direction, cause: str) -> str:
    """Returns the figures that show a cause, from the frames of its longest interval."""
    interval = one.longest(cause)
    if interval is None:
        return "shorter than other causes of the same round trips"
    return _EVIDENCE.get(cause, _silence)(one, interval)


def _losses(_: Direction, interval: _Interval) -> str:
    found = interval["evidence"]
    return f"{found['repeated']} of {found['packets']:,} packets retransmitted"


def _unqueued(one: Direction, interval: _Interval) -> str:
    """Returns the losses, and how long a queue can be that the RTTs do not show."""
    text, least = _losses(one, interval), one.path["least_loss_queue_s"]
    if one.path["position"] != "sender" or not least:
        return text
    return f"{text}; a queue below {quantity(least, 's')} would look the same"


def _timeouts(_: Direction, interval: _Interval) -> str:
    return _counted(interval["evidence"]["timeouts"], "timeout")


def _policer(one: Direction, interval: _Interval) -> str:
    rate = quantity(one.on_wire(one.document["policer_bps"]), "bit/s")
    return f"{_counted(interval['evidence']['repeated'], 'retransmission')}; {rate} between losses"


def _reordering(_: Direction, interval: _Interval) -> str:
    return f"{_counted(interval['evidence']['spurious'], 'unnecessary retransmission')} (DSACK)"


def _growth(_: Direction, interval: _Interval) -> str:
    found = interval["evidence"]
    first, last = quantity(found["first_flight"], "B"), quantity(found["flight"], "B")
    return f"flight grew from {first} to {last}" if first != last else f"flight of {last}"


def _pacing(one: Direction, interval: _Interval) -> str:
    return f"full segments at regular intervals, {_flight(one, interval)}"


def _flight(_: Direction, interval: _Interval) -> str:
    return f"flight of {quantity(interval['evidence']['flight'], 'B')}"


def _delayed_ack(_one: Direction, _interval: _Interval) -> str:
    return "small segments sent on late ACKs"


def _busy(_: Direction, interval: _Interval) -> str:
    found = interval["evidence"]
    rate, queue = found["rate_bps"], found["queue_s"]
    parts = [f"payload at {quantity(rate, 'bit/s')}"] if rate else []
    parts += [f"mean queue of {quantity(queue, 's')}"] if queue else []
    return ", ".join(parts) or DASH


def _window(one: Direction, interval: _Interval) -> str:
    """Returns the window with its RTT, and the window that the path needs: its rate times its idle RTT."""
    found, rate, base = interval["evidence"], one.path["rate_bps"], one.path["base_rtt_s"]
    rtt = found["rtt_s"]
    text = f"window of {quantity(found['window'], 'B')}" + (f" per {quantity(rtt, 's')}" if rtt else "")
    if rate and base:
        text += f"; the path needs {quantity(rate * base / 8, 'B')}"
    return text


def _stall(one: Direction, _: _Interval) -> str:
    return f"{_counted(one.zero_windows, 'zero window')} in the connection"


def _step(one: Direction, interval: _Interval) -> str:
    """Returns the change of the path nearest to the start of an interval."""
    changes = one.path["changes"]
    nearest = min(changes, key=lambda change: abs(change["time_s"] - interval["start_s"]))
    before, after = quantity(nearest["before_s"], "s"), quantity(nearest["after_s"], "s")
    return f"RTT from {before} to {after} at {quantity(nearest['time_s'], 's')}"


def _handshake(one: Direction, _: _Interval) -> str:
    syns = one.connection["repeated_syns"]
    return f"{_counted(syns, 'SYN')} retransmitted" if syns else "one RTT"


def _silence(one: Direction, interval: _Interval) -> str:
    longest = quantity(interval["end_s"] - interval["start_s"], "s")
    if packets := interval["evidence"]["packets"]:
        return f"small or late writes: {_counted(packets, 'packet')} in {longest}"
    silences = sum(1 for other in one.document["intervals"] if other["cause"] == interval["cause"])
    return f"pause of {longest}" if silences == 1 else f"{silences} pauses, the longest {longest}"


_EVIDENCE: Mapping[str, Callable[[Direction, _Interval], str]] = {
    "handshake": _handshake,
    "slow-start": _growth,
    "window-growth": _growth,
    "bandwidth": _busy,
    "bufferbloat": _busy,
    "receive-window": _window,
    "receiver-stall": _stall,
    "random-loss": _unqueued,
    "queue-overflow": _losses,
    "burst": _losses,
    "policer": _policer,
    "reordering": _reordering,
    "path-change": _step,
    "pacing": _pacing,
    "delayed-ack": _delayed_ack,
    "timeout": _timeouts,
    "send-buffer": _flight,
}
"""Functions that return the evidence of causes; the others are silences of an application."""


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
