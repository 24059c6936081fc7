"""A trial over time as text: a line of bars per quantity, and the losses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from longfat.analysis.series import Samples, Series, controller_columns, controller_label, mean
from longfat.analysis.series_events import Unit
from longfat.analysis.series_sequence import DUPLICATE, RETRANSMITTED, Loss, Piece, TimeSequence
from longfat.presentation import formatting

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 108
"""Default line width in characters."""
_BEFORE_BARS = 60
MOST_FLOWS = 8
CONTROLLER_PART = "controller"
MOST_EPISODES = 16
GOODPUT_NOTE = "received: payload on arrival; goodput: payload read in order, after each hole all at once"

_FLOW_LINES = (
    ("window", "cwnd_bytes", "congestion window", "B"),
    ("window", "ssthresh_bytes", "slow-start threshold", "B"),
    ("window", "in_flight_bytes", "in flight", "B"),
    ("rtt", "rtt_s", "RTT", "s"),
    ("rtt", "srtt_s", "smoothed RTT", "s"),
    ("goodput", "received_bps", "received", "bit/s"),
    ("goodput", "goodput_bps", "goodput", "bit/s"),
    ("goodput", "pacing_bps", "pacing rate", "bit/s"),
    ("goodput", "delivery_bps", "delivery rate", "bit/s"),
)


def draw(
    shown: Series | None,
    sequences: Sequence[TimeSequence],
    parts: Sequence[str],
    title: str,
    subtitle: str,
    width: int = WIDTH,
) -> str:
    """Returns the parts (window, rtt, queue, ...) as text, `width` characters wide."""
    width = max(20, min(width, WIDTH) - _BEFORE_BARS)
    lines = [title, subtitle, ""]
    by_name = {one.flow: one for one in sequences}
    columns = [line for line in _FLOW_LINES if line[0] in parts]
    if shown is not None and (columns or {"queue", CONTROLLER_PART} & set(parts)):
        lines += [_heading(shown)]
        for flow in shown.flows[:MOST_FLOWS]:
            own = controller_columns([flow]) if CONTROLLER_PART in parts else []
            states = [(CONTROLLER_PART, column, *controller_label(column)) for column in own]
            lines += _flow(flow, [*columns, *states], width)
        if len(shown.flows) > MOST_FLOWS:
            lines += [f"{len(shown.flows) - MOST_FLOWS} more flows (see --flow)"]
        if "queue" in parts:
            for queue in shown.queues:
                lines += [f"queue of {queue.name}", _line(queue, "packets", "packets", "", width)]
        lines += ["", "bars: mean of each interval, from 0 (RTT: from its minimum)"]
        if "goodput" in parts and any(flow.known("received_bps") for flow in shown.flows[:MOST_FLOWS]):
            lines += [GOODPUT_NOTE]
    if "sequence" in parts:
        names = [flow.name for flow in shown.flows] if shown is not None else list(by_name)
        flows = shown.flows if shown is not None else ()
        known = [(flow, "rtt_s" if flow.known("rtt_s") else "srtt_s") for flow in flows]
        round_trips = {flow.name: mean(flow, column) for flow, column in known if flow.known(column)}
        # Datagrams have no sequence.
        names = [name for name in names if by_name[name].sent]
        for name in names[:MOST_FLOWS]:
            lines += ["", *_sequence(by_name[name], round_trips.get(name, 0.0), named=len(names) > 1)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _heading(shown: Series) -> str:
    span = f"{formatting.quantity(shown.begin, 's')} to {formatting.quantity(shown.end, 's')}"
    return f"{'':22}{'min':>12}{'mean':>12}{'max':>12}  {span}"


def _flow(flow: Samples, columns: Sequence[tuple[str, str, str, str]], width: int) -> Iterator[str]:
    drawn = [(name, column, unit) for _, column, name, unit in columns if flow.known(column)]
    if drawn:
        yield flow.name
    for name, column, unit in drawn:
        yield _line(flow, column, name, unit, width)


def _line(one: Samples, column: str, name: str, unit: str, width: int) -> str:
    known = one.known(column)
    if not known:
        return f"  {name:<20}{formatting.DASH:>12}"
    figures = "".join(
        f"{formatting.quantity(value, unit):>12}" for value in (min(known), mean(one, column), max(known))
    )
    return f"  {name:<20}{figures}  {bars(one, column, width, min(known) if unit == 's' else 0.0)}"


def bars(one: Samples, column: str, width: int, bottom: float = 0.0) -> str:
    """A column over time as bars: the mean of each interval, from `bottom` to the largest mean.

    >>> bars(Samples("s", (0.0, 1.0, 2.0, 3.0), {"y": (0.0, 4.0, None, 8.0)}), "y", 4)
    '▁▄ █'
    """
    values = one.columns[column]
    begin, end = one.time[0], one.time[-1]
    # More intervals than samples would leave gaps.
    width = min(width, len(one.time))
    stretches: list[list[float]] = [[] for _ in range(width)]
    for time, value in zip(one.time, values, strict=True):
        if value is not None:
            share = (time - begin) / (end - begin) if end > begin else 0.0
            stretches[min(width - 1, int(share * width))].append(value)
    means = [math.fsum(part) / len(part) if part else None for part in stretches]
    most = max((value for value in means if value is not None), default=bottom) - bottom
    return "".join(" " if value is None else _bar((value - bottom) / (most or 1.0)) for value in means)


def _bar(share: float) -> str:
    return BARS[min(len(BARS) - 1, max(0, round(share * len(BARS)) - 1))]


def _sequence(one: TimeSequence, rtt: float, *, named: bool) -> Iterator[str]:
    sent, lost = len(one.sent), len(one.lost)
    resent = one.retransmissions
    share = f" ({100 * resent / sent:.2g} %)" if sent and resent else ""
    counts = [f"{sent} data segments", f"{resent} retransmissions{share}", f"{lost} lost"]
    counts += [f"{len(one.timeouts)} timeouts"] if one.timeouts else []
    counts += [f"{len(one.marked)} marked (ECN)"] if one.marked else []
    duplicates = sum(piece.kind == DUPLICATE for piece in one.kept)
    counts += [f"{duplicates} duplicates (D-SACK)"] if duplicates else []
    yield (f"{one.flow}: " if named and one.flow else "") + ", ".join(counts)
    again = [piece for piece in one.sent if piece.kind == RETRANSMITTED]
    episodes = _episodes(one.lost, rtt)
    for episode in episodes[:MOST_EPISODES]:
        yield _described(episode, again, one.unit)
    if len(episodes) > MOST_EPISODES:
        yield f"  and {len(episodes) - MOST_EPISODES} more (see --from and --to)"


def _episodes(lost: Sequence[Loss], rtt: float) -> list[list[Loss]]:
    """Groups losses that left within a round trip of each other."""
    episodes: list[list[Loss]] = []
    for loss in lost:
        if episodes and loss.time - episodes[-1][-1].time <= rtt:
            episodes[-1].append(loss)
        else:
            episodes.append([loss])
    return episodes


def _described(episode: Sequence[Loss], again: Sequence[Piece], unit: Unit) -> str:
    first, last = episode[0], episode[-1]
    reasons = ", ".join(dict.fromkeys(loss.reason for loss in episode))
    lost = f"{_range(first, unit)} lost"
    if len(episode) > 1:
        span = formatting.quantity(last.time - first.time, "s")
        lost = f"{len(episode)} segments lost within {span}, from position {first.low}"
    return f"  {first.time:>10.6f} s  {lost} ({reasons}){_repaired(first, again)}"


def _range(loss: Loss, unit: Unit) -> str:
    """The range of a loss with its last position.

    >>> _range(Loss(0.0, 30, 31, "queue"), "packets"), _range(Loss(0.0, 7, 8, "queue"), "B")
    ('packet 30', 'byte 7')
    """
    of, last = "packet" if unit == "packets" else "byte", loss.high - 1
    return f"{of} {loss.low}" if last == loss.low else f"{of}s {loss.low}{formatting.DASH}{last}"


def _repaired(loss: Loss, again: Sequence[Piece]) -> str:
    """The delay of the first retransmission that covers the first byte of a loss."""
    for piece in again:
        if piece.time > loss.time and piece.low <= loss.low < piece.high:
            return f", retransmitted {formatting.quantity(piece.time - loss.time, 's')} later"
    return ""
