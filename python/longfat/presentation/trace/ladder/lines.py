"""A ladder diagram as text: a line per event."""

from __future__ import annotations

from collections import defaultdict, deque

from longfat.analysis.ladder import Flight, Ladder, Mark, legend

_WIDTH = 40


def draw(ladder: Ladder, title: str, subtitle: str) -> str:
    """The diagram as lines of text."""
    lines = [title, subtitle, "", f"{'time':>11}  {'sender':<{_WIDTH // 2 + 2}}{'receiver':>{_WIDTH // 2}}"]
    entries: list[tuple[float, int, str]] = []
    marks: dict[tuple[int | None, float], deque[Mark]] = defaultdict(deque)
    for mark in ladder.marks:
        marks[mark.packet, mark.time].append(mark)
    entries += [(flight.sent, 1, _departure(flight)) for flight in ladder.flights]
    for flight in ladder.drawn:
        for time in (time for time in flight.arrived if time >= ladder.begin):
            own = marks[flight.number, time]
            entries.append((time, 0, _arrival(flight, own.popleft() if own else None)))
    entries += [
        (mark.time, 1, f"\N{CIRCLED TIMES} {mark.text}") for mark in ladder.marks if mark.kind == "timeout"
    ]
    # Simultaneous events: arrivals first, then timeouts, then departures in the order of the trace.
    entries.sort(key=lambda entry: (entry[0], entry[1], not entry[2].startswith("\N{CIRCLED TIMES}")))
    lines += [f"{time * 1000:>8.3f} ms  {text}".rstrip() for time, _, text in entries]
    lines += ["", *legend(ladder)]
    if ladder.more > 0:
        lines += ["", f"{ladder.more} more packets (see --packets, --from and --to)"]
    return "\n".join(lines) + "\n"


def _departure(flight: Flight) -> str:
    label = flight.label.replace("data", "retransmit") if flight.is_retransmission else flight.label
    lost = flight.dropped is not None and not flight.arrived
    shaft = "\N{BOX DRAWINGS LIGHT HORIZONTAL}"
    if flight.forward:
        drawn = f"\N{BOX DRAWINGS LIGHT VERTICAL AND RIGHT}{shaft} {label} "
        end = f"{shaft * 3}\N{BALLOT X} {flight.reason or 'lost'}" if lost else f"{shaft * 3}>"
        return f"{drawn}{end}".ljust(_WIDTH) + ("" if lost else "\N{BOX DRAWINGS LIGHT VERTICAL}")
    end = f"{flight.reason or 'lost'} \N{BALLOT X}{shaft * 3}" if lost else f"<{shaft * 3}"
    drawn = f"{end} {label} {shaft}\N{BOX DRAWINGS LIGHT VERTICAL AND LEFT}"
    return "\N{BOX DRAWINGS LIGHT VERTICAL}" + drawn.rjust(_WIDTH)


def _arrival(flight: Flight, mark: Mark | None) -> str:
    shaft = "\N{BOX DRAWINGS LIGHT HORIZONTAL}"
    if flight.forward:
        note = f"  {mark.text}" if mark is not None else ""
        arrow = f"{shaft * 2} {flight.label} {shaft}>\N{BOX DRAWINGS LIGHT VERTICAL AND LEFT}"
        return "\N{BOX DRAWINGS LIGHT VERTICAL}" + arrow.rjust(_WIDTH) + note
    arrow = f"\N{BOX DRAWINGS LIGHT VERTICAL AND RIGHT}<{shaft} {flight.label} {shaft * 2}"
    return arrow.ljust(_WIDTH) + "\N{BOX DRAWINGS LIGHT VERTICAL}"
