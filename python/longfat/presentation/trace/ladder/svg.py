"""A ladder diagram as SVG: two lifelines, time running down, a slanted arrow per packet."""

from __future__ import annotations

import bisect
import itertools
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import vl_convert

from longfat.analysis.ladder import Flight, Ladder, Mark, legend, together
from longfat.presentation.formatting import digits
from longfat.presentation.html.markup import Markup, render, tag
from longfat.presentation.trace.ladder.labels import Box, LabelPlaces

SENDER_X, RECEIVER_X, WIDTH = 215.0, 655.0, 860.0
TOP, BOTTOM = 134.0, 34.0
ROW = 15.0
"""The smallest distance in px between two events at the same host: a line of text."""
LETTER = 6.1
"""The width of a label's letter in px."""
LABEL_HEIGHT = 13.0
"""The height of a label in px."""
SHARES = (*(0.8 - 0.06 * step for step in range(12)), 0.86, 0.92)
"""Places of a label along its arrow, near the head first, where simultaneous departures have diverged."""
FALLS = (0.55, 0.44, 0.66, 0.33, 0.77)
"""Places of a loss along its arrow."""
BREAK = 64.0
"""The longest idle period in px; longer ones are shortened and marked."""

_STYLE = """
.ladder{background:#fff;--ink:#1c2128;--soft:#68727d;--rule:#c9d1d9;--data:#0072b2;--again:#d55e00;
--ack:#4d7c6a;--lost:#b42318;--good:#1a7f37;--paper:#fff}
.ladder{font-family:system-ui,'Segoe UI',Roboto,'Liberation Sans',Arial,sans-serif}
.ladder text{fill:var(--ink);font-size:12px}
.ladder .title{font-size:17px;font-weight:600}.ladder .sub{fill:var(--soft);font-size:12.5px}
.ladder .host{font-size:14px;font-weight:600;text-anchor:middle}
.ladder .life{stroke:var(--ink);stroke-width:1.6}.ladder .gap{stroke:var(--paper);stroke-width:4}
.ladder .gapmark{stroke:var(--ink);fill:none;stroke-width:1.2}
.ladder .time{fill:var(--soft);font-size:11px;text-anchor:end}
.ladder .tick{stroke:var(--rule)}
.ladder .arrow{fill:none;stroke-width:1.5}
.ladder .data{stroke:var(--data)}.ladder .again{stroke:var(--again);stroke-width:2}
.ladder .ack{stroke:var(--ack);stroke-width:1.1}.ladder .other{stroke:var(--soft);stroke-width:1.1}
.ladder .lost{stroke-dasharray:5 3}
.ladder .label{font-size:11.5px;text-anchor:middle}
.ladder .label.of-data{fill:var(--data)}.ladder .label.of-again{fill:var(--again);font-weight:600}
.ladder .label.of-ack{fill:var(--ack)}.ladder .label.of-other{fill:var(--soft)}
.ladder .cross{stroke:var(--lost);stroke-width:2.4;fill:none}
.ladder .why{fill:var(--lost);font-size:11.5px;font-weight:600}
.ladder .timeout{fill:var(--lost);font-weight:600;text-anchor:end}
.ladder .clock{fill:var(--paper);stroke:var(--lost);stroke-width:1.6}
.ladder .delivered{fill:var(--good)}.ladder .kept{fill:var(--soft)}.ladder .discarded{fill:var(--lost)}
"""
_DARK = """
@media (prefers-color-scheme:dark){.ladder{background:#12161b;--paper:#12161b;--ink:#e4e8ed;--soft:#9aa5b1;
--rule:#313a44;--data:#5fb2ee;--again:#ff9a55;--ack:#8ec7b0;--lost:#ff8f85;--good:#5fd07e}}
"""


class Scale:
    """Maps time to px: busy periods are stretched to fit labels, idle periods shortened."""

    def __init__(self, *ladders: Ladder) -> None:
        moments = [
            (time, f"{number} {host}")
            for number, ladder in enumerate(ladders)
            for time, host in _moments(ladder)
        ]
        times = sorted({time for time, _ in moments})
        gaps = [b - a for a, b in itertools.pairwise(times)]
        usual = sorted(gaps)[len(gaps) // 2] if gaps else 1e-3
        pixels_per_second = ROW / max(usual, 1e-9)
        hosts: dict[float, set[str]] = {}
        for time, host in moments:
            hosts.setdefault(time, set()).add(host)
        self.times, self.places, self.breaks = times, [TOP + 14.0], []
        busy_until: dict[str, float] = {}
        for index, time in enumerate(times):
            if index:
                gap = (time - times[index - 1]) * pixels_per_second
                place = self.places[-1] + min(max(gap, 2.0), BREAK)
                place = max([place, *(busy_until.get(host, 0.0) for host in hosts[time])])
                if gap > 2 * BREAK:
                    self.breaks.append((self.places[-1], place))
                self.places.append(place)
            for host in hosts[time]:
                busy_until[host] = self.places[-1] + ROW

    def __call__(self, time: float) -> float:
        """Returns the y coordinate of a time, interpolated between events."""
        index = bisect.bisect_left(self.times, time)
        if index < len(self.times) and self.times[index] == time:
            return self.places[index]
        if index == 0:
            return self.places[0]
        if index == len(self.times):
            return self.places[-1]
        before, after = self.times[index - 1], self.times[index]
        share = (time - before) / (after - before)
        return self.places[index - 1] + share * (self.places[index] - self.places[index - 1])

    @property
    def end(self) -> float:
        """The y coordinate of the last event."""
        return self.places[-1]


def _moments(ladder: Ladder) -> list[tuple[float, str]]:
    """The times of events by host. Simultaneous departures share a position: their arrows fan out."""
    found: list[tuple[float, str]] = [(mark.time, mark.host) for mark in ladder.marks]
    for flight in ladder.drawn:
        here, there = ("sender", "receiver") if flight.forward else ("receiver", "sender")
        if flight.sent >= ladder.begin:
            found.append((flight.sent, f"{here} departures"))
        found += [(time, there) for time in flight.arrived if time >= ladder.begin]
    # Packets in flight at the edge of the diagram are drawn up to it.
    if ladder.arriving:
        found.append((ladder.begin, "edge"))
    if any(flight.later for flight in ladder.drawn):
        found.append((ladder.end, "edge"))
    return found


@dataclass(frozen=True)
class Panel:
    """A ladder with its title."""

    ladder: Ladder
    title: str
    subtitle: str


def draw(ladder: Ladder, title: str, subtitle: str) -> str:
    """Returns the diagram as an SVG document."""
    return draw_panels([Panel(ladder, title, subtitle)])


def draw_panels(panels: Sequence[Panel]) -> str:
    """Returns an SVG document with ladders side by side over a common time scale."""
    scale = Scale(*(panel.ladder for panel in panels))
    width, height = WIDTH * len(panels), scale.end + BOTTOM + 26
    parts = [
        tag("style", Markup(_STYLE + _DARK)),
        _shape("rect", x=0, y=0, width=width, height=height, fill="var(--paper)"),
        *(
            tag("g", _panel(panel, scale, height), transform=f"translate({_number(WIDTH * place)} 0)")
            for place, panel in enumerate(panels)
        ),
    ]
    attributes = f'viewBox="0 0 {width:g} {height:.0f}" width="{width:g}" height="{height:.0f}"'
    title = " and ".join(panel.title for panel in panels)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="ladder" role="img" {attributes}>'
        f"<title>{render(title)}</title>{render(parts)}</svg>\n"
    )


def _panel(panel: Panel, scale: Scale, height: float) -> list[Markup]:
    ladder, title, subtitle = panel.ladder, panel.title, panel.subtitle
    places = LabelPlaces()
    # Losses first, then short arrows: they have the fewest places for a label.
    short_first = sorted(ladder.drawn, key=lambda flight: (flight.dropped is None, _visible(ladder, flight)))
    made = {
        id(flight): _arrow(ladder, flight, scale, _usual_time(ladder, flight), places)
        for flight in short_first
    }
    arrows = [made[id(flight)] for flight in ladder.drawn]
    return [
        _text(24, 32, title, "title"),
        _text(24, 54, subtitle, "sub"),
        _legend(76, ladder),
        *_lifelines(scale),
        *_times(ladder, scale),
        *(part for drawn in arrows for part in drawn.shapes),
        *(part for drawn in arrows for part in drawn.labels),
        *_marks(ladder, scale),
        _more(ladder, height),
    ]


def _shape(name: str, **attributes: float | str) -> Markup:
    return tag(name, None, **{key: _number(value) for key, value in attributes.items()})


def _number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.1f}".rstrip("0").rstrip(".")


def _text(x: float, y: float, content: str, class_: str, **attributes: str) -> Markup:
    return tag("text", content, x=_number(x), y=_number(y), class_=class_, **attributes)


def _line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    return _shape("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def _legend(y: float, ladder: Ladder) -> Markup:
    entries = (
        ("data", "data"),
        ("again", "retransmission"),
        ("ack", "ACK"),
        ("data lost", "lost"),
    )
    x, parts = 24.0, []
    for style, name in entries:
        parts += [_line(x, y, x + 26, y, f"arrow {style}"), _text(x + 32, y + 4, name, "sub")]
        x += 48 + 7.0 * len(name)
    first, *others = legend(ladder)
    lower = (_text(24, y + 4 + 18 * line, note, "sub") for line, note in enumerate(others, 1))
    return render([*parts, _text(x + 8, y + 4, first, "sub"), *lower])


def _lifelines(scale: Scale) -> Iterable[Markup]:
    for x, name in ((SENDER_X, "sender"), (RECEIVER_X, "receiver")):
        yield _text(x, TOP - 10, name, "host")
        yield _line(x, TOP - 2, x, scale.end + 18, "life")
        for start, end in scale.breaks:
            middle = (start + end) / 2
            yield _line(x, middle - 5, x, middle + 5, "gap")
            for offset in (-5, 5):
                y = middle + offset
                yield _shape("path", d=f"M{x - 7:.1f} {y + 3:.1f}L{x + 7:.1f} {y - 3:.1f}", class_="gapmark")


def _times(ladder: Ladder, scale: Scale) -> Iterable[Markup]:
    """Time labels of departures and timeouts, as dense as legible."""
    wanted = sorted(
        {flight.sent for flight in ladder.flights if flight.forward}
        | {mark.time for mark in ladder.marks if mark.host == "sender"}
        | {time for flight in ladder.drawn if not flight.forward for time in flight.arrived}
    )
    free = -math.inf
    for time in wanted:
        y = scale(time)
        if y >= free and time >= ladder.begin:
            yield _text(66, y + 4, f"{digits(time * 1000, 5)} ms", "time")
            yield _line(72, y, 80, y, "tick")
            free = y + ROW


def _kind(flight: Flight) -> str:
    if flight.data is not None:
        return "again" if flight.is_retransmission else "data"
    return "ack" if flight.frame in ("ack", "update") else "other"


@dataclass
class _Drawn:
    """The lines and labels of an arrow; labels are drawn above all lines."""

    shapes: list[Markup] = field(default_factory=list)
    labels: list[Markup] = field(default_factory=list)


def _arrow(ladder: Ladder, flight: Flight, scale: Scale, usual: float, places: LabelPlaces) -> _Drawn:
    start, end = (SENDER_X, RECEIVER_X) if flight.forward else (RECEIVER_X, SENDER_X)
    y = scale(flight.sent)
    kind = _kind(flight)
    drawn = _Drawn()

    def on_the_way(at: float, arrival: float) -> tuple[float, float]:
        """The position of the packet at the edge of the diagram."""
        return start + (at - flight.sent) / (arrival - flight.sent) * (end - start), scale(at)

    for time in flight.arrived:
        begun = flight.sent >= ladder.begin
        if begun or time > ladder.begin:
            tail = (start, y) if begun else on_the_way(ladder.begin, time)
            drawn.shapes += _flown(tail, (end, scale(time)), kind)
            drawn.labels += _label(flight, kind, tail, (end, scale(time)), places)
    for time in flight.later:
        tail = (start, y) if flight.sent >= ladder.begin else on_the_way(ladder.begin, time)
        head = on_the_way(ladder.end, time)
        drawn.shapes.append(_line(*tail, *head, f"arrow {kind}"))
        drawn.labels += _label(flight, kind, tail, head, places)
    if flight.dropped is not None and not flight.arrived:
        # The place of the loss is not visible: the arrow has the usual slope and stops about half-way.
        why = "lost" if flight.reason in ("", "loss") else f"lost: {flight.reason}"
        slope = max(scale(flight.sent + usual) - y, ROW)
        ends = [(start + share * (end - start), y + share * slope) for share in FALLS]
        width, offset = LETTER * len(why) + 18, 11 if flight.forward else -11
        shift = math.copysign(width / 2 - 7, offset)
        x, fallen = ends[places.take(Box(x + shift, at, width, LABEL_HEIGHT) for x, at in ends) or 0]
        drawn.shapes.append(_line(start, y, x, fallen, f"arrow {kind} lost"))
        drawn.labels += _label(flight, kind, (start, y), (x, fallen), places)
        cross = f"M{x - 6:.1f} {fallen - 6:.1f}l12 12m0 -12l-12 12"
        drawn.labels.append(_shape("path", d=cross, class_="cross"))
        anchor = "start" if flight.forward else "end"
        drawn.labels.append(_text(x + offset, fallen + 4, why, "why", text_anchor=anchor))
    return drawn


def _visible(ladder: Ladder, flight: Flight) -> float:
    """The part of the packet's way that the diagram shows."""
    arrivals = (*flight.arrived, *flight.later)
    if not arrivals:
        return FALLS[0]
    shown = min(arrivals[0], ladder.end) - max(flight.sent, ladder.begin)
    return shown / (arrivals[0] - flight.sent) if arrivals[0] > flight.sent else 1.0


def _usual_time(ladder: Ladder, flight: Flight) -> float:
    """The median transit time of packets of this kind and direction."""
    times = sorted(
        other.arrived[0] - other.sent
        for other in ladder.flights
        if other.arrived and (other.forward, other.frame) == (flight.forward, flight.frame)
    )
    return times[len(times) // 2] if times else 0.0


def _flown(start: tuple[float, float], end: tuple[float, float], kind: str) -> Iterable[Markup]:
    yield _line(*start, *end, f"arrow {kind}")
    angle = math.atan2(end[1] - start[1], end[0] - start[0])
    barbs = (
        (end[0] + 9 * math.cos(angle + turn), end[1] + 9 * math.sin(angle + turn)) for turn in (2.75, -2.75)
    )
    points = [end, *barbs]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) + "Z"
    colour = {"data": "data", "again": "again", "ack": "ack"}.get(kind, "soft")
    yield _shape("path", d=path, fill=f"var(--{colour})")


def _label(
    flight: Flight, kind: str, start: tuple[float, float], end: tuple[float, float], places: LabelPlaces
) -> list[Markup]:
    """The label on an arrow; none without a free place, and on a short arrow that is cut off at the edge."""
    if abs(end[0] - start[0]) < LETTER * len(flight.label) + 2 * ROW:
        return []
    angle = math.atan((end[1] - start[1]) / (end[0] - start[0]))
    width = LETTER * len(flight.label) + 6
    # The label stays between the ends of its arrow.
    inside = width / 2 / abs(end[0] - start[0])
    shares = [share for share in SHARES if inside < share < 1 - inside] or [0.5]
    points = [tuple(a + share * (b - a) for a, b in zip(start, end, strict=True)) for share in shares]
    place = places.take(Box(x, y, width, LABEL_HEIGHT, angle) for x, y in points)
    if place is None:
        return []
    x, y = points[place]
    slope = math.degrees(angle)
    behind = _shape(
        "rect", x=-width / 2, y=-LABEL_HEIGHT / 2, width=width, height=LABEL_HEIGHT, fill="var(--paper)"
    )
    text = _text(0, 4, flight.label, f"label of-{kind}")
    return [tag("g", [behind, text], transform=f"translate({x:.1f} {y:.1f}) rotate({slope:.1f})")]


def _marks(ladder: Ladder, scale: Scale) -> Iterable[Markup]:
    """The marks; simultaneous marks of several packets share a line."""
    used: dict[float, float] = {}
    for mark in together(ladder.marks):
        shift = used.get(mark.time, 0.0) if mark.host == "receiver" else 0.0
        yield from _mark(mark, scale, shift)
        if mark.host == "receiver":
            used[mark.time] = shift + 6.4 * len(mark.text) + 8


def _mark(mark: Mark, scale: Scale, shift: float) -> Iterable[Markup]:
    y = scale(mark.time)
    if mark.kind == "timeout":
        x = SENDER_X if mark.host == "sender" else RECEIVER_X
        yield _shape("circle", cx=x, cy=y, r=6.5, class_="clock")
        yield _shape("path", d=f"M{x:.1f} {y - 4:.1f}V{y:.1f}H{x + 3.4:.1f}", class_="clock")
        if mark.host == "sender":
            yield from _stacked(x - 12, y, mark.text)
        else:
            yield _text(x + 12, y + 4, mark.text, "discarded")
        return
    yield _text(RECEIVER_X + 10 + shift, y + 4, mark.text, mark.kind)


def _stacked(x: float, y: float, text: str) -> Iterable[Markup]:
    head, _, rest = text.partition(": ")
    yield _text(x, y + (0 if rest else 4), head, "timeout")
    if rest:
        yield _text(x, y + 14, rest, "timeout")


def _more(ladder: Ladder, height: float) -> Markup:
    if ladder.more <= 0:
        return Markup("")
    note = f"{ladder.more} more packets (see --packets, --from and --to)"
    return _text(24, height - 14, note, "sub")


def picture(drawing: str, fmt: Literal["png", "pdf"]) -> bytes:
    """Converts an SVG of `draw` to PNG (two pixels per px) or PDF, in light colours."""
    plain = static(drawing)
    return bytes(vl_convert.svg_to_png(plain, scale=2) if fmt == "png" else vl_convert.svg_to_pdf(plain))


def static(drawing: str) -> str:
    """Removes CSS variables and dark colours from an SVG, for converters without support for these."""
    colours = dict(re.findall(r"--(\w+):(#\w+)", _STYLE))
    return re.sub(r"var\(--(\w+)\)", lambda match: colours[match[1]], drawing.replace(_DARK, ""))


def page(drawings: Sequence[str], title: str) -> str:
    """Returns the diagrams as an HTML page."""
    head = f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{render(title)}</title>'
    style = ":root{color-scheme:light dark}body{margin:0}svg{display:block;margin:auto;max-width:100%}"
    return f"{head}<style>{style}</style></head><body>{''.join(drawings)}</body></html>\n"
