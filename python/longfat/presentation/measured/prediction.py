"""A predicted transfer time as table, lines and document."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from longfat.analysis.theory.latency import serialization
from longfat.analysis.transfer_time import KINDS
from longfat.presentation.formatting import DASH, digits, quantity, scale_for
from longfat.presentation.text_table import TextTable

if TYPE_CHECKING:
    from longfat.analysis.transfer_time import Answer, Question

CONTROLLERS = {"cubic": "CUBIC", "reno": "Reno"}


def table(found: Answer) -> TextTable:
    """Returns a row for each part of the time, with the total last."""
    scale, unit = scale_for([found.seconds], "s")
    body = []
    for part in found.parts:
        share = f"{part.seconds / found.seconds:.1%}" if found.seconds else DASH
        body.append((part.name, digits(part.seconds / scale, 4), share, part.kind))
    body.append(("total", digits(found.seconds / scale, 4), "", ""))
    return TextTable(("part", unit, "share", "due to"), body, right=(1, 2))


def remarks(found: Answer, left_out: Sequence[str], controller: str | None) -> list[str]:
    """Returns the lines below the table."""
    lines = summary(found)
    if controller is not None:
        name = CONTROLLERS[controller]
        lines.append(f"Controller: {name} (--congestion); BBR and others take different times")
    if left_out:
        lines.append(f"Not in the model: {', '.join(left_out)}")
    return lines


def document(question: Question, found: Answer, left_out: Sequence[str]) -> dict[str, Any]:
    """Returns all figures as JSON values."""
    size = min(question.size, question.packet)
    return {
        "protocol": question.protocol,
        "size_bytes": question.size,
        "reply_bytes": question.reply,
        **found.document(),
        "hops": [
            {
                "rate_bps": one.rate if math.isfinite(one.rate) else None,
                "delay_s": one.delay,
                "processing_s": one.processing,
                "loss": one.loss,
                "serialization_s": serialization(size, one.rate),
            }
            for one in question.hops
        ],
        "not_in_the_model": list(left_out),
    }


def summary(found: Answer) -> list[str]:
    """Returns the causes of the time and further figures, one line each."""
    figures = found.figures
    shares = {kind: found.share(kind) for kind in KINDS}
    listed = ", ".join(f"{share:.1%} {kind}" for kind, share in shares.items() if share > 0)
    lines = [f"Mostly {found.dominant}: {listed}" if listed else "The transfer takes no time"]
    if figures.get("rate_bps"):
        rate, without = figures["rate_bps"], figures["rate_without_processing_bps"]
        besides = "" if without == rate else f" ({quantity(without, 'bit/s')} without processing)"
        lines.append(
            f"Last bit at {quantity(figures['last_bit_s'], 's')}; {quantity(rate, 'bit/s')}{besides}"
        )
    if "naive_rtt_s" in figures:
        naive, slope = quantity(figures["naive_rtt_s"], "s"), quantity(figures["slope_s_per_byte"], "s")
        lines.append(f"{naive} if routers forwarded each bit at once; each byte adds {slope}")
    if "round_trips" in figures:
        segments = f", {figures['segments']} segments" if figures["segments"] is not None else ""
        lines.append(f"{figures['round_trips']} RTT{segments}")
    if "response" in figures:
        steady, segments = quantity(figures["steady_rate_bps"], "bit/s"), figures["segments_before_loss"]
        lines.append(
            f"{figures['loss']:.2%} packet loss: on average {segments:.0f} segments before the first "
            f"loss, then {steady} ({figures['response']})"
        )
    elif "loss" in figures:
        lines.append(f"{figures['loss']:.2%} packet loss")
    if "slow_start_rounds" in figures:
        rounds = f"{figures['slow_start_rounds']} rounds of slow start on an unlimited path"
        lines.append(f"{figures['packets']} segments, {rounds}")
    return lines
