"""The goodput of each controller on a diagnosed path, as a chart."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import altair as alt

from longfat.presentation.charts import PALETTE, Spec, configured
from longfat.results.run import Interval

_WIDTH, _STEP = 560, 28


def goodputs(found: Sequence[tuple[str, Interval]]) -> Spec:
    """Returns means and 95 % prediction intervals in Mbit/s by controller, as Vega-Lite."""
    rows = [
        {
            "controller": name,
            "mean": one.value / 1e6,
            **({"low": one.low / 1e6, "high": one.high / 1e6} if math.isfinite(one.low) else {}),
        }
        for name, one in found
    ]
    title = "Goodput (Mbit/s)"
    source: Any = alt.InlineData(values=rows)
    base = alt.Chart(source).encode(y=alt.Y("controller:N", title=None, sort=[name for name, _ in found]))
    bars = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.6, color=PALETTE[0])
    bars = bars.encode(x=alt.X("low:Q", title=title), x2=alt.X2("high:Q"))
    points = base.mark_point(filled=True, color=PALETTE[0]).encode(
        x=alt.X("mean:Q", title=title, scale=alt.Scale(zero=True)),
        tooltip=["controller:N", "mean:Q", "low:Q", "high:Q"],
    )
    drawn = configured(alt.layer(bars, points).properties(width=_WIDTH, height=alt.Step(_STEP)))
    spec: Spec = json.loads(drawn.to_json())
    return spec
