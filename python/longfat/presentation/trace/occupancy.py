"""The distribution of queue lengths: the share of the time in which a queue has at most a length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import accumulate

from longfat.analysis.series import Samples, Series
from longfat.presentation.charts import theme
from longfat.presentation.charts.theme import PALETTE
from longfat.presentation.charts.vega import Spec, channel, layer
from longfat.presentation.trace.scope import WIDTH

HEIGHT = 300
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
"""The shares of the time that text shows."""


def shares(queue: Samples) -> list[tuple[float, float]]:
    """Returns the lengths of a queue in packets in rising order, with the share of samples up to each.

    Samples are evenly spaced, so that this is a share of the time.

    >>> shares(Samples("q", (1.0, 2.0, 3.0, 4.0), {"packets": (2, 0, 2, 5)}))
    [(0, 0.25), (2, 0.75), (5, 1.0)]
    """
    counts = sorted(Counter(queue.known("packets")).items())
    total = sum(count for _, count in counts)
    sums = accumulate(count for _, count in counts)
    return [(length, below / total) for (length, _), below in zip(counts, sums, strict=True)]


def quantile(steps: list[tuple[float, float]], share: float) -> float:
    """Returns the smallest length that a queue does not exceed for a share of the time.

    >>> [quantile([(0, 0.25), (2, 0.75), (5, 1.0)], share) for share in (0.25, 0.5, 0.99)]
    [0, 2, 5]
    """
    return next(length for length, below in steps if below >= share)


def draw(shown: Series, title: str, subtitle: str) -> Spec:
    """Returns a line for each queue as a Vega-Lite specification. Raises ValueError without samples."""
    known = _known(shown)
    names = [f"queue of {queue.name}" for queue in known]
    # Each line rises from 0 at its shortest length.
    rows = [
        {"queue": name, "x": length, "y": share}
        for name, queue in zip(names, known, strict=True)
        for steps in [shares(queue)]
        for length, share in [(steps[0][0], 0.0), *steps]
    ]
    colours = {"domain": names, "range": list(theme.repeated(PALETTE, len(names)))}
    encoding = {
        "x": channel("x:Q", title="Queue (packets)", axis={"tickCount": 10}),
        "y": channel("y:Q", title="Share of the time", scale={"domain": [0, 1]}, axis={"tickCount": 5}),
        "order": channel("y:Q"),
        "color": channel("queue:N", title=None, scale=colours, sort=names),
        "tooltip": [
            channel("queue:N", title="Queue"),
            channel("x:Q", title="Packets"),
            channel("y:Q", title="Share of the time", format=".4~g"),
        ],
    }
    line = layer("line", encoding, rows=rows, strokeWidth=1.6, interpolate="step-after")
    heading = theme.heading(title, [subtitle, _span(shown)], offset=12)
    return theme.chart({**line, "width": WIDTH, "height": HEIGHT}, heading)


def text(shown: Series, title: str, subtitle: str) -> str:
    """Returns quantiles of the length of each queue as text. Raises ValueError without samples."""
    return "\n".join([title, subtitle, "", *_lines(shown)]) + "\n"


def _lines(shown: Series) -> Iterator[str]:
    known = _known(shown)
    width = max(len("packets, share of the time"), *(len(queue.name) + len("queue of ") for queue in known))
    yield f"{'packets, share of the time':<{width}}" + "".join(f"{share:>9.0%}" for share in QUANTILES)
    for queue in known:
        steps = shares(queue)
        figures = "".join(f"{quantile(steps, share):>9g}" for share in QUANTILES)
        yield f"{f'queue of {queue.name}':<{width}}{figures}"
    yield from ("", _span(shown))


def _known(shown: Series) -> list[Samples]:
    known = [queue for queue in shown.queues if queue.known("packets")]
    if not known:
        raise ValueError("this trial has no samples of queues")
    return known


def _span(shown: Series) -> str:
    return f"samples every {shown.interval:g} s, from {shown.begin:g} to {shown.end:g} s"
