"""The goodput of each controller on a diagnosed path, as a chart."""

from __future__ import annotations

from collections.abc import Sequence

from longfat.presentation.charts import theme
from longfat.presentation.charts.theme import PALETTE
from longfat.presentation.charts.vega import Spec, channel, layer
from longfat.presentation.formatting import ends
from longfat.results.run import Interval

_WIDTH, _STEP = 560, 28


def goodputs(found: Sequence[tuple[str, Interval]]) -> Spec:
    """Returns means and 95 % prediction intervals in Mbit/s by controller, as Vega-Lite."""
    rows = [{"controller": name, "mean": one.value / 1e6, **ends(one, 1e6)} for name, one in found]
    title = "Goodput (Mbit/s)"
    y = channel("controller:N", title=None, sort=[name for name, _ in found])
    bars = {"y": y, "x": channel("low:Q", title=title), "x2": {"field": "high"}}
    points = {
        "y": y,
        "x": channel("mean:Q", title=title, scale={"zero": True}),
        "tooltip": [channel("controller:N"), *map(channel, ("mean:Q", "low:Q", "high:Q"))],
    }
    layers = [
        layer("rule", bars, where=["isValid(datum.low)"], strokeWidth=1.6, color=PALETTE[0]),
        layer("point", points, filled=True, color=PALETTE[0]),
    ]
    plot = {"data": {"values": rows}, "layer": layers, "width": _WIDTH, "height": {"step": _STEP}}
    return theme.chart(plot)
