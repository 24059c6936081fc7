"""A ladder diagram in characters, for a terminal: a line for each thing that happens."""

from __future__ import annotations

from collections import defaultdict, deque

from longfat.analysis.ladder import Flight, Ladder, Mark

_WIDTH = 40


def draw(ladder: Ladder, title: str, subtitle: str) -> str:
    """The diagram as lines of text."""
    lines = [title, subtitle, "", f"{'time':>11}  {'sender':<{_WIDTH // 2 + 2}}{'receiver':>{_WIDTH // 2}}"]
    happened: list[tuple[float, int, str]] = []
    marks: dict[tuple[int | None, float], deque[Mark]] = defaultdict(deque)
    for mark in ladder.marks:
        marks[mark.packet, mark.time].append(mark)
    happened += [(flight.sent, 1, _departure(flight)) for flight in ladder.flights]
    for flight in ladder.drawn:
        for time in (time for time in flight.arrived if time >= ladder.begin):
            own = marks[flight.number, time]
            happened.append((time, 0, _arrival(flight, own.popleft() if own else None)))
    happened += [
        (mark.time, 1, f"\N{CIRCLED TIMES} {mark.text}") for mark in ladder.marks if mark.kind == "timeout"
    ]
    # At one time arrivals come first, then timeouts and departures as they stand in the trace.
    happened.sort(key=lambda entry: (entry[0], entry[1], not entry[2].startswith("\N{CIRCLED TIMES}")))
    lines += [f"{time * 1000:>8.3f} ms  {text}".rstrip() for time, _, text in happened]
    if ladder.more > 0:
        lines += ["", f"{ladder.more} more packets follow (--packets, --from and --to show others)"]
    return "\n".join(lines) + "\n"


def _departure(flight: Flight) -> str:
    label = flight.label + (" again" if flight.again else "")
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
        told = f"  {mark.text}" if mark is not None else ""
        arrow = f"{shaft * 2} {flight.label} {shaft}>\N{BOX DRAWINGS LIGHT VERTICAL AND LEFT}"
        return "\N{BOX DRAWINGS LIGHT VERTICAL}" + arrow.rjust(_WIDTH) + told
    arrow = f"\N{BOX DRAWINGS LIGHT VERTICAL AND RIGHT}<{shaft} {flight.label} {shaft * 2}"
    return arrow.ljust(_WIDTH) + "\N{BOX DRAWINGS LIGHT VERTICAL}"
