"""`longfat predict`: the duration of a transfer from a model of latency and bandwidth."""

from __future__ import annotations

import json
import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longfat.cli.arguments.options import AsJson

if TYPE_CHECKING:
    from longfat.analysis.transfer_time import Answer, Question
    from longfat.cli.arguments.hops import Ways


class Controller(StrEnum):
    """Congestion controllers whose response to loss has a closed form."""

    CUBIC = "cubic"
    RENO = "reno"


class Protocol(StrEnum):
    """Protocols of a transfer; `none` sends bare packets."""

    NONE = "none"
    PING = "ping"
    UDP = "udp"
    TCP = "tcp"
    TFO = "tfo"
    TTCP = "ttcp"


def predict(
    hop: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEYS",
            help='A link with its sending node, e.g. "rate=T1 delay=5ms loss=1% processing=1ms"; also '
            "reverse.rate etc. and count; repeatable, from near to far.",
        ),
    ] = None,
    path: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Path model with the hops, e.g. from longfat path --model."),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(metavar="RATE", help="Rate of a single hop, or 56k, T1, E1, E3, T3."),
    ] = None,
    delay: Annotated[
        str | None, typer.Option(metavar="DURATION", help="One-way delay of a single hop.")
    ] = None,
    loss: Annotated[
        str | None, typer.Option(metavar="%", help="Packet loss of a single hop in each direction.")
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Bytes of payload, or without a protocol bytes on the wire."),
    ] = None,
    packet: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Largest packet on the wire.  [default: 1500B]"),
    ] = None,
    packets: Annotated[
        int | None, typer.Option(min=1, max=10**9, help="Number of packets of that size, instead of --size.")
    ] = None,
    protocol: Annotated[
        Protocol,
        typer.Option(help="Protocol; tfo and ttcp: TCP without a handshake."),
    ] = Protocol.NONE,
    reply: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Bytes of a reply, for a transaction.")
    ] = None,
    service: Annotated[
        str, typer.Option(metavar="DURATION", help="Service time between request and reply.")
    ] = "0s",
    receive: Annotated[
        str, typer.Option(metavar="DURATION", help="Processing time of the last packet at the end host.")
    ] = "0s",
    processing: Annotated[
        str, typer.Option(metavar="DURATION", help="Additional processing time of every hop.")
    ] = "0s",
    congestion: Annotated[
        Controller | None,
        typer.Option(help="TCP's controller on lossy paths.  [default: cubic]", show_default=False),
    ] = None,
    initial_window: Annotated[
        int, typer.Option(min=1, max=10**6, help="Initial window of TCP in segments (RFC 6928).")
    ] = 10,
    window: Annotated[str | None, typer.Option(metavar="SIZE", help="Largest window of TCP.")] = None,
    delayed_acks: Annotated[
        bool, typer.Option("--delayed-acks/--no-delayed-acks", help="An ACK for every second segment of TCP.")
    ] = True,
    timestamps: Annotated[
        bool, typer.Option("--timestamps/--no-timestamps", help="Timestamps of TCP, 12 B per segment.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Predict the duration of a transfer from latency and bandwidth.

    \b
    Examples:
      longfat predict --hop "rate=T1 delay=5ms processing=1ms" --hop "rate=T1 delay=1ms" --size 1428B
      longfat predict --rate 20Mbit/s --delay 20ms --loss 2% --protocol tcp --congestion reno --size 10MB
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.analysis.theory.slow_start import Rules
    from longfat.analysis.transfer_time import Question, answer
    from longfat.cli.arguments import hops as reader
    from longfat.cli.arguments.quantities import of_option

    ways, left_out = _ways(hop, path, rate, delay, loss)
    if congestion is not None and protocol not in (Protocol.TCP, Protocol.TFO, Protocol.TTCP):
        raise ValueError(f"--congestion: {protocol.value} has no congestion control: use --protocol tcp")
    ways = reader.with_processing(ways, of_option("--processing", processing, "duration"))
    most = _bytes("--packet", packet) if packet is not None else 1500
    if (size is None) == (packets is None):
        raise ValueError("set either --size or --packets")
    if packets is not None and protocol != Protocol.NONE:
        raise ValueError("--packets applies without a protocol only: use --size")
    sent = most * packets if packets is not None else _bytes("--size", size)
    limit = math.inf if window is None else of_option("--window", window, "size")
    rules = Rules(
        header=52 if timestamps else 40,
        syn=60 if timestamps else 52,
        initial_window=initial_window,
        ack_every=2 if delayed_acks else 1,
        window=limit,
    )
    question = Question(
        *ways,
        size=sent,
        packet=most,
        protocol=protocol.value,
        reply=None if reply is None else _bytes("--reply", reply),
        receive=of_option("--receive", receive, "duration"),
        service=of_option("--service", service, "duration"),
        rules=rules,
        controller=(congestion or Controller.CUBIC).value,
    )
    if congestion is not None and not question.is_lossy:
        raise ValueError("--congestion applies to lossy paths only: set --loss")
    if question.service and reply is None:
        raise ValueError("--service requires --reply")
    found = answer(question)
    left_out = [*left_out, *found.left_out]
    if as_json:
        typer.echo(json.dumps(_document(question, found, left_out), indent=2))
        return
    _print(found, left_out, _controller(question))


def _controller(question: Question) -> str:
    """Returns a line with the congestion controller that the prediction assumes; empty without TCP."""
    if question.protocol not in (Protocol.TCP, Protocol.TFO, Protocol.TTCP):
        return ""
    name = {Controller.CUBIC: "CUBIC", Controller.RENO: "Reno"}[Controller(question.controller)]
    return f"Controller: {name} (--congestion); BBR and others take different times"


def _ways(
    hop: list[str] | None, path: Path | None, rate: str | None, delay: str | None, loss: str | None
) -> tuple[Ways, list[str]]:
    from longfat.cli.arguments import hops as reader

    keys = {"rate": rate, "delay": delay, "loss": loss}
    single = [f"{key}={value}" for key, value in keys.items() if value is not None]
    if (hop is not None) + (path is not None) + bool(single) != 1:
        raise ValueError("set the path once: by --hop, by --path, or by --rate, --delay and --loss")
    if path is not None:
        return reader.of_model(path)
    try:
        return reader.read(hop if hop is not None else [" ".join(single)]), []
    except ValueError as error:
        message = str(error)
        raise ValueError(message.replace("--hop: ", "--", 1) if single else message) from None


def _bytes(name: str, text: str | None) -> int:
    from longfat.cli.arguments.quantities import of_option

    found = of_option(name, str(text), "size")
    if found != int(found) or found < 1:
        raise ValueError(f'{name}: "{text}" is not a whole number of bytes above 0')
    return int(found)


def _document(question: Question, found: Answer, left_out: list[str]) -> dict[str, Any]:
    from longfat.analysis.theory.latency import serialization

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
        "not_in_the_model": left_out,
    }


def _print(found: Answer, left_out: list[str], controller: str) -> None:
    from longfat.presentation import tables
    from longfat.presentation.formatting import digits, scale_for

    scale, unit = scale_for([found.seconds], "s")
    table = tables.table("part", unit, "share", "due to", right=(1, 2))
    for part in found.parts:
        share = part.seconds / found.seconds if found.seconds else 0.0
        table.add_row(part.name, digits(part.seconds / scale, 4), f"{share:.1%}", part.kind)
    table.add_row("total", digits(found.seconds / scale, 4), "", "", style="bold")
    tables.show(table)
    for line in _summary(found):
        tables.show(line)
    if controller:
        tables.show(controller)
    if left_out:
        tables.show(f"Not in the model: {', '.join(left_out)}")


def _summary(found: Answer) -> list[str]:
    from longfat.analysis.transfer_time import KINDS
    from longfat.presentation.formatting import quantity

    figures = found.figures
    shares = {kind: found.share(kind) for kind in KINDS}
    listed = ", ".join(f"{share:.1%} {kind}" for kind, share in shares.items() if share)
    lines = [f"Mostly {found.dominant}: {listed}"]
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
