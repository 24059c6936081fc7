"""`longfat predict`: the duration of a transfer from a model of latency and bandwidth."""

from __future__ import annotations

from functools import partial
from pathlib import Path as File
from typing import Any, Literal, get_args

import typer

from longfat.api import predictions
from longfat.api.defaults import PredictedController, PredictedProtocol
from longfat.api.quantities import Duration, Rate
from longfat.cli import standard_output
from longfat.cli.arguments import completion
from longfat.cli.arguments.from_function import command_of
from longfat.cli.arguments.options import AsJson
from longfat.system.parameters import ParameterError

Subscriber = Literal["far", "near"]
"""Ends of a path with a preset."""


def _modelled(allowed: tuple[str, ...]) -> Any:
    """Returns an option for choices with a closed form; its error names the commands that simulate others."""

    def parse(value: str) -> str:
        if value in allowed:
            return value
        listed = ", ".join(f"'{one}'" for one in allowed)
        raise typer.BadParameter(f"'{value}' is not one of {listed}: {predictions.NO_FORM}")

    def completed(incomplete: str) -> list[str]:
        return completion.matching(allowed, incomplete)

    return typer.Option(parser=parse, metavar=f"<{'|'.join(allowed)}>", autocompletion=completed)


@command_of(
    predictions.predict,
    without=["path"],
    protocol=_modelled(get_args(PredictedProtocol)),
    congestion=_modelled(get_args(PredictedController)),
    hop=typer.Option(metavar="KEYS"),
    preset=typer.Option(metavar="NAME", autocompletion=completion.presets),
    loss=typer.Option(metavar="%"),
    size=typer.Option(),
    packets=typer.Option(min=1, max=10**9),
    initial_window=typer.Option(min=1, max=10**6),
)
def predict(
    *,
    hop: list[str] | None = None,
    path: File | None = None,
    preset: str | None = None,
    subscriber: Subscriber | None = None,
    rate: Rate | None = None,
    delay: Duration | None = None,
    loss: str | None = None,
    call: partial[predictions.PredictedTime],
    as_json: AsJson = False,
) -> None:
    """Predict the duration of a transfer from latency and bandwidth.

    \b
    Examples:
      longfat predict --hop "rate=T1 delay=5ms processing=1ms" --hop "rate=T1 delay=1ms" --size 1428B
      longfat predict --preset lte --loss 2% --protocol tcp --congestion reno --size 10MB

    Args:
        hop: A link with its sending node, e.g. "rate=T1 delay=5ms loss=1% processing=1ms", from near to far;
            also reverse.rate etc. and count.
        path: Path model with the hops, e.g. from longfat path --model.
        preset: Preset of the path (longfat list presets), which `rate`, `delay` and `loss` change.
        subscriber: End of the subscriber of `preset`: far predicts the download, near the upload; by default
            far.
        rate: Rate of a single hop, or 56k, T1, E1, E3, T3.
        delay: One-way delay of a single hop.
        loss: Packet loss of a single hop in each direction.
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.presentation import tables

    keys = {"rate": rate, "delay": delay, "loss": loss}
    single = {key: value for key, value in keys.items() if value is not None}
    ways = (hop is not None) + (path is not None) + bool(single or preset is not None)
    if ways == 0:
        raise ValueError("no path: give --rate and --delay, --hop, --path or --preset")
    if ways > 1:
        raise ValueError(
            "set the path once: by --hop, by --path, by --preset, or by --rate, --delay and --loss"
        )
    if subscriber is not None and preset is None:
        raise ValueError("--subscriber requires --preset")
    try:
        found = call(_path(hop, path, preset, subscriber, single))
    except ParameterError as error:
        if single and preset is None and error.parameter == "hop":
            raise ValueError(f"--{error.message}") from None
        raise
    except ValueError as error:
        if preset is not None and str(error).startswith("path."):
            raise ValueError(f"--{str(error).removeprefix('path.')}") from None
        raise
    if as_json:
        standard_output.document(found.document())
        return
    shown = found.table()
    *parts, total = shown.rows
    table = tables.table(*shown.head, right=shown.right, rows=parts)
    table.add_row(*total, style="bold")
    tables.show(table)
    for line in found.remarks():
        tables.show(line)


def _path(
    hop: list[str] | None,
    path: File | None,
    preset: str | None,
    subscriber: Subscriber | None,
    single: dict[str, str],
) -> File | list[str] | dict[str, str]:
    """Returns the path in the form that `predict` takes."""
    if path is not None:
        return path
    if hop is not None:
        return hop
    if preset is None:
        return [" ".join(f"{key}={value}" for key, value in single.items())]
    from longfat.api.hops import NAMED_RATES

    if single.get("rate") in NAMED_RATES:
        single = {**single, "rate": f"{NAMED_RATES[single['rate']]:.0f}bit/s"}
    end = {} if subscriber is None else {"subscriber": subscriber}
    return {"preset": preset, **end, **single}
