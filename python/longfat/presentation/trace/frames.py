"""Traced trials as data frames: samples of flows and queues, and every event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from longfat.analysis import series

if TYPE_CHECKING:
    from longfat.presentation.trace.drawing import Trace

EVENTS: dict[str, Any] = {
    "time": pl.Float64,
    "flow": pl.Int64,
    "subflow": pl.Int64,
    "host": pl.String,
    "what": pl.String,
    "direction": pl.String,
    "frame": pl.String,
    "id": pl.Int64,
    "size": pl.Int64,
    "length": pl.Int64,
    "sequence": pl.Int64,
    "acknowledgement": pl.Int64,
    "packet_number": pl.Int64,
    "window": pl.Int64,
    "sack": pl.String,
    "retransmission": pl.Boolean,
    "marked": pl.Boolean,
    "delivered": pl.Int64,
    "reason": pl.String,
}
"""The columns of events. `sack` lists the blocks as "low-high low-high", so that every format can hold it."""
_SAMPLES = ("time", *series.FLOW_COLUMNS)
_QUEUES = ("time", *series.QUEUE_COLUMNS)


def events(traces: Sequence[Trace]) -> pl.DataFrame:
    """Returns one row for each event: packets sent, lost and received, data delivered, timers expired."""
    return pl.concat([_placed(trace, _events(trace.record["events"])) for trace in traces])


def samples(traces: Sequence[Trace]) -> pl.DataFrame:
    """Returns one row for each flow and time of a sample: windows, RTT, rates, counters, controllers."""
    return _sampled(traces, "flows", _SAMPLES)


def queues(traces: Sequence[Trace]) -> pl.DataFrame:
    """Returns one row for each bottleneck and time of a sample: packets and bytes in its queue."""
    return _sampled(traces, "queues", _QUEUES)


def _events(rows: list[dict[str, Any]]) -> pl.DataFrame:
    found = pl.from_dicts(rows, schema={**EVENTS, "sack": pl.List(pl.List(pl.Int64))})
    low, high = (pl.element().list.get(place).cast(pl.String) for place in (0, 1))
    blocks = pl.col("sack").list.eval(pl.concat_str(low, high, separator="-")).list.join(" ")
    return found.with_columns(
        pl.when(blocks != "").then(blocks).alias("sack"), pl.col("retransmission", "marked").fill_null(False)
    )


def _sampled(traces: Sequence[Trace], key: str, columns: Sequence[str]) -> pl.DataFrame:
    frames = []
    for trace in traces:
        for one in (trace.record.get("series") or {}).get(key, ()):
            listed = {name: one[name] for name in columns if name in one} | series.controller_samples(one)
            data = {
                name: pl.Series(values, dtype=pl.Float64, strict=False)
                for name, values in listed.items()
                if len(values) == len(one["time"])
            }
            about = {"link": one["link"]} if key == "queues" else {"flow": one["flow"], "name": one["name"]}
            states = {"state": one["state"]} if one.get("state") else {}
            frame = pl.DataFrame({**data, **states})
            frames.append(
                _placed(trace, frame.select(*(pl.lit(v).alias(k) for k, v in about.items()), pl.all()))
            )
    return pl.concat(frames, how="diagonal") if frames else pl.DataFrame()


def _placed(trace: Trace, frame: pl.DataFrame) -> pl.DataFrame:
    """Returns a frame with the protocol and the world in front."""
    return frame.select(
        pl.lit(trace.protocol).alias("protocol"), pl.lit(trace.world).alias("world"), pl.all()
    )
