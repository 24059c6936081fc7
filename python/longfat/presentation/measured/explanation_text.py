"""The explanation of a connection as text: the verdict, the causes with their evidence, and the path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from longfat.analysis.captures import confidence, explained
from longfat.analysis.captures.explained import Direction
from longfat.analysis.captures.phases import phases
from longfat.analysis.captures.replayed import FASTER, PEAK
from longfat.presentation import names
from longfat.presentation.formatting import DASH, digits, quantity
from longfat.presentation.measured.estimates import with_bounds
from longfat.presentation.measured.explanation_evidence import evidence
from longfat.presentation.text_table import TextTable

if TYPE_CHECKING:
    from longfat.analysis.captures.replayed import Replay

MOST_CAUSES = 3
"""Causes that a terminal shows."""
MOST_CONNECTIONS = 10
MOST_CHANGES = 6
_SENTENCES = {
    explained.LATENCY: "latency: the handshake and the growth of the window took most of the time",
    explained.BANDWIDTH: "bandwidth: the bottleneck was busy",
    explained.BUFFERBLOAT: "bandwidth, with bufferbloat: the bottleneck was busy, its queue never emptied",
    explained.WINDOW: "the receive window: the receiver's buffer is too small for this path",
    explained.STALL: "a receiver stall: the receiving application did not read",
    explained.LOSS: "loss: repairs, and the reduced congestion window after them",
    explained.APPLICATION: "the application: the sender had nothing to send",
    explained.BURSTS: "bursts: a short queue dropped parts of flights that fit the path",
    explained.POLICER: "a policer: a limit of the rate drops packets without a queue",
    explained.REORDERING: "reordering: unnecessary retransmissions reduced the congestion window",
    explained.PACING: "pacing: the sender sends at a constant rate below that of the path",
    explained.DELAYED_ACKS: "delayed ACKs: small segments wait for them (Nagle's algorithm)",
    explained.PATH_CHANGE: "a change of the path: its losses, and the reduced window after them",
    explained.SENDER: "the sender's buffer or a fixed window: the flight stays the same",
}
CAUSES = {
    "handshake": "handshake",
    "slow-start": "slow start",
    "window-growth": "congestion avoidance",
    "bandwidth": "bandwidth",
    "bufferbloat": "bufferbloat",
    "receive-window": "receive window",
    "receiver-stall": "receiver stall",
    "application": "application silent",
    "request": "waiting for a request",
    "random-loss": "loss without a queue",
    "queue-overflow": "loss by a full queue",
    "timeout": "timeouts",
    "burst": "loss by bursts",
    "policer": "policer",
    "reordering": "reordering",
    "path-change": "path change",
    "pacing": "pacing",
    "delayed-ack": "delayed ACKs",
    "send-buffer": "sender's buffer",
}
"""The causes as text."""
_POSITIONS = {
    "sender": "at the sender",
    "between": "between both hosts",
    "receiver": "at the receiver",
    "unknown": "at an unknown place (no handshake and no timestamps)",
}
_LOOPBACK = ("127.", "[::1]")
"""How addresses of loopback start."""
_RATE_SOURCES = {
    "queue": "while its queue was not empty",
    "trains": "from trains of packets",
    "arrivals": "from arrivals at the receiver",
    "given": "as given",
}


def verdict(one: Direction) -> str:
    """Returns what limited a direction, in one sentence."""
    if one.limit is None:
        return "No data: nothing limited it."
    share = one.limits[one.limit]
    text = f"Limited by {_SENTENCES[one.limit]} ({_percent(share)} of {quantity(one.time, 's')})"
    others = [f"{limit} {_percent(part)}" for limit, part in list(one.limits.items())[1:3] if part >= 0.1]
    return text + (f"; then {', '.join(others)}" if others else "") + "."


def heading(one: Direction) -> str:
    """Returns the addresses, the amount of data, and the mean goodput."""
    rate = 8 * one.bytes / one.document["duration_s"] if one.document["duration_s"] > 0 else None
    text = f"{one.name}: {quantity(one.bytes, 'B')} in {quantity(one.document['duration_s'], 's')}"
    return text + (f" ({quantity(rate, 'bit/s')})" if rate else "")


def causes(one: Direction, most: int | None = MOST_CAUSES) -> TextTable:
    """Returns the causes with the most time: share, time, confidence, frames of the longest, evidence."""
    rows = []
    for cause, time in list(one.times.items())[:most]:
        longest = one.longest(cause)
        rows.append(
            (
                CAUSES[cause],
                _percent(time / one.time),
                quantity(time, "s"),
                confidence.of_cause(one, cause),
                _frames(longest),
                evidence(one, cause),
            )
        )
    head = ("Cause", "Share", "Time", "Confidence", "Longest: frames", "Evidence")
    return TextTable(head, rows, right=(1, 2))


def when(one: Direction) -> list[str]:
    """Returns the phases of the transfer in one line; nothing if there is one phase."""
    found = phases(one)
    if len(found) < 2:
        return []
    parts = [f"{phase.limit} until {quantity(phase.end, 's')}" for phase in found[:-1]]
    return [f"When: {', '.join([*parts, f'then {found[-1].limit}'])}"]


def _frames(interval: Mapping[str, Any] | None) -> str:
    if interval is None or not interval["frames"][0]:
        return DASH
    first, last = interval["frames"]
    return f"{first} to {last}"


def path(one: Direction) -> str:
    """Returns the figures of the path in one line."""
    figures = one.path
    parts = []
    if figures["base_rtt_s"]:
        text = f"RTT {quantity(figures['base_rtt_s'], 's')} idle"
        if figures["rtt_p50_s"]:
            text += f", median {quantity(figures['rtt_p50_s'], 's')}"
        parts.append(text)
    if figures["rate_bps"]:
        rate = quantity(one.on_wire(figures["rate_bps"]), "bit/s")
        parts.append(f"bottleneck {rate} ({_RATE_SOURCES[figures['rate_from']]})")
    else:
        least = quantity(one.on_wire(figures["peak_bps"]), "bit/s")
        parts.append(f"bottleneck not reached (at least {least})")
    parts.append(f"{_percent(figures['repeated_share'])} retransmitted")
    parts.append(f"captured {_POSITIONS[figures['position']]}")
    return "Path: " + "; ".join(parts)


def connections(found: Mapping[str, Any]) -> TextTable:
    """Returns the connections with most data; of Multipath TCP, the largest subflow with the data of all."""
    rows = []
    for group in explained.groups(found)[:MOST_CONNECTIONS]:
        one = group[0]
        rows.append(
            (
                "+".join(str(other.connection["stream"]) for other in group),
                one.name,
                quantity(sum(other.bytes for other in group), "B"),
                quantity(one.document["duration_s"], "s"),
                one.limit or DASH,
                _percent(one.limits[one.limit]) if one.limit else DASH,
            )
        )
    return TextTable(
        ("Flow", "Sender to receiver", "Data", "Time", "Limit", "Share"), rows, right=(0, 2, 3, 5)
    )


def _percent(share: float) -> str:
    return f"{digits(100 * share, 2)} %" if share else "0 %"


def replayed(replay: Replay) -> list[str]:
    """Returns the sender's controller, whether a simulation reproduces the capture, and what would help."""
    found = []
    if replay.controllers:
        ranked = sorted(replay.controllers.items(), key=lambda one: -one[1])
        shown = ", ".join(
            f"{names.protocol(name)} {_percent(part)}" for name, part in ranked[:3] if part >= 0.01
        )
        certainty = "not certain:" if replay.problem is None else "not certain, as no simulation fits:"
        found.append(f"Sender: {'probably' if replay.is_controller_clear else certainty} {shown}")
    if replay.problem is not None:
        return [*found, f"No predictions: {replay.problem}"]
    if replay.simulated is None:
        return [*found, "No predictions: the simulated transfer failed"]
    simulated = digits(replay.simulated.value)
    basis = f"nearest of {len(replay.controllers)} controllers"
    if replay.messages > 1:
        basis += f", {replay.messages} messages with their pauses"
    if replay.rate_from == PEAK:
        basis += f", largest rate that was seen, {replay.model['rate']}"
    elif replay.rate_from == FASTER:
        basis += f", a faster link than was seen, {replay.model['rate']}"
    if replay.is_queue_assumed:
        basis += f", assumed queue of {replay.model['queue']}"
    text = f"Simulated: {simulated} s (captured {digits(replay.captured)} s; {basis})."
    found.append(text)
    if replay.changes:
        found += ["With changes ([95 % of such transfers]):", *changes(replay).lines()]
    if replay.unknown:
        text = "they depend on the rate of the link, of which the capture shows only a lower bound"
        found.append(f"No predictions for {', '.join(replay.unknown)}: {text}. State it with --rate.")
    return found


def changes(replay: Replay) -> TextTable:
    """Returns the duration without and with each change, with the interval of 95 % of transfers.

    The first row is the transfer without a change; the others follow by duration.
    """
    ranked = sorted(replay.changes, key=lambda one: one.duration.value)
    baseline = [] if replay.baseline is None else [replay.baseline]
    rows = [
        (one.name, with_bounds(one.duration, 1.0), DASH if one.rtt is None else digits(one.rtt * 1e3))
        for one in [*baseline, *ranked[:MOST_CHANGES]]
    ]
    return TextTable(("Change", "Duration (s)", "RTT, median (ms)"), rows, right=(1, 2))


def notes(found: Mapping[str, Any], one: Direction | None) -> list[str]:
    """Returns what the capture does not show, and the other connections."""
    lines = []
    if found["ended_early"]:
        lines.append(f"The capture ends early: {found['ended_early']}")
    others = found["others"]
    if others["unreadable"]:
        lines.append(f"{others['unreadable']} of {found['frames']} frames could not be read")
    if others["other_interfaces"]:
        lines.append(
            f"{others['other_interfaces']} packets of further interfaces are left out: a connection counts "
            "where its sender was captured"
        )
    if one is not None:
        if one.document["unseen_bytes"]:
            lines.append(f"{quantity(one.document['unseen_bytes'], 'B')} were acknowledged but not captured")
        if not one.connection["has_handshake"]:
            lines.append("The start of the connection is missing: windows may be scaled by an unknown factor")
        if one.connection["client"].startswith(_LOOPBACK):
            lines.append(
                "Both ends are on this machine. A connection to a relay shows the relay as the other end: "
                "its path carries other packets, which longfat relay --tcp --pcapng captures"
            )
        more = len(explained.groups(found)) + found["omitted"]["connections"] - 1
        if more:
            noun = "connection" if more == 1 else "connections"
            lines.append(f"{more} more {noun} (--connections lists them, --flow N explains one)")
    return lines
