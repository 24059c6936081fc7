"""`longfat predict`: the time of a transfer by the model of latency and bandwidth."""

from __future__ import annotations

import json
import math
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from longfat.analysis.transfer_time import Answer, Question
    from longfat.cli.arguments.hops import Ways


class Controller(StrEnum):
    """Congestion controllers whose response to loss has a closed form."""

    CUBIC = "cubic"
    RENO = "reno"


class Protocol(StrEnum):
    """What carries the bytes."""

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
            help='A link and the node that sends over it, e.g. "rate=T1 delay=5ms loss=1% processing=1ms", '
            "also reverse.rate and so on for the way back, and count; once for each hop, from near to far.",
        ),
    ] = None,
    path: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Take the hops of a path model, such as longfat path writes."),
    ] = None,
    rate: Annotated[
        str | None, typer.Option(metavar="RATE", help="Of a single hop: 10Mbit/s, or 56k, T1, E1, E3, T3.")
    ] = None,
    delay: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Of a single hop: its propagation, one way.")
    ] = None,
    loss: Annotated[
        str | None, typer.Option(metavar="%", help="Of a single hop: packets lost, each way.")
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="What is sent: payload, or bytes on the wire where there is no protocol."
        ),
    ] = None,
    packet: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="The most that a packet is on the wire. Default: 1500B."),
    ] = None,
    packets: Annotated[
        int | None, typer.Option(min=1, max=10**9, help="So many packets of that size, in place of --size.")
    ] = None,
    protocol: Annotated[
        Protocol,
        typer.Option(help="What carries it; ping there and back, tfo and ttcp without a handshake."),
    ] = Protocol.NONE,
    reply: Annotated[
        str | None, typer.Option(metavar="SIZE", help="A transaction: what was sent is answered by so much.")
    ] = None,
    service: Annotated[
        str, typer.Option(metavar="DURATION", help="What the server needs between request and reply.")
    ] = "0s",
    receive: Annotated[
        str, typer.Option(metavar="DURATION", help="What the host at the end needs for what has arrived.")
    ] = "0s",
    processing: Annotated[
        str, typer.Option(metavar="DURATION", help="Added to the processing of every hop.")
    ] = "0s",
    congestion: Annotated[
        Controller | None,
        typer.Option(help="TCP's congestion control, for lossy paths.  [default: cubic]", show_default=False),
    ] = None,
    initial_window: Annotated[
        int, typer.Option(min=1, max=10**6, help="TCP's first window, in segments (RFC 6928).")
    ] = 10,
    window: Annotated[
        str | None, typer.Option(metavar="SIZE", help="The most that TCP may have unacknowledged.")
    ] = None,
    delayed_acks: Annotated[
        bool, typer.Option("--delayed-acks/--no-delayed-acks", help="TCP acknowledges every second segment.")
    ] = True,
    timestamps: Annotated[
        bool, typer.Option("--timestamps/--no-timestamps", help="TCP's timestamps: 12 B a segment.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Predict how long a transfer takes, and how much of it is latency and how much bandwidth.

    Each node waits until it has a packet whole, processes it and sends it on at the rate of its link; packets
    follow each other like a pipeline. TCP starts slowly. Queues are empty at first and do not overflow. Where
    packets are lost, TCP sends at its steady rate after the first loss; the output lists what is left out.

    \b
    Examples:
      longfat predict --rate T1 --delay 30ms --size 1MB
      longfat predict --hop "rate=T1 delay=5ms processing=1ms" --hop "rate=T1 delay=1ms processing=1ms" \\
        --receive 1ms --size 1428B
      longfat predict --rate 10Mbit/s --delay 20ms --protocol tcp --size 100B --reply 1kB --service 5ms
      longfat predict --rate 20Mbit/s --delay 20ms --loss 2% --protocol tcp --congestion reno --size 10MB
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.analysis.theory.slow_start import Rules
    from longfat.analysis.transfer_time import Question, answer
    from longfat.cli.arguments import hops as reader

    ways, left_out = _ways(hop, path, rate, delay, loss)
    if congestion is not None and protocol not in (Protocol.TCP, Protocol.TFO, Protocol.TTCP):
        raise ValueError(f"--congestion: {protocol.value} has no congestion control: use --protocol tcp")
    ways = reader.with_processing(ways, _option("--processing", processing, "duration"))
    most = _bytes("--packet", packet) if packet is not None else 1500
    if (size is None) == (packets is None):
        raise ValueError("give what is sent: --size, or --packets")
    if packets is not None and protocol != Protocol.NONE:
        raise ValueError("--packets: with a protocol --size says what is sent")
    sent = most * packets if packets is not None else _bytes("--size", size)
    limit = math.inf if window is None else _option("--window", window, "size")
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
        receive=_option("--receive", receive, "duration"),
        service=_option("--service", service, "duration"),
        rules=rules,
        controller=(congestion or Controller.CUBIC).value,
    )
    if congestion is not None and not question.is_lossy:
        raise ValueError("--congestion: it matters on a path that loses packets alone: give --loss")
    if question.service and reply is None:
        raise ValueError("--service: there is none without --reply")
    found = answer(question)
    left_out = [*left_out, *found.left_out]
    if as_json:
        typer.echo(json.dumps(_document(question, found, left_out), indent=2))
        return
    _print(found, left_out)


def _ways(
    hop: list[str] | None, path: Path | None, rate: str | None, delay: str | None, loss: str | None
) -> tuple[Ways, list[str]]:
    from longfat.cli.arguments import hops as reader

    single = {"rate": rate, "delay": delay, "loss": loss}
    words = [f"{key}={value}" for key, value in single.items() if value is not None]
    if (hop is not None) + (path is not None) + bool(words) != 1:
        raise ValueError("give the way once: --hop for each hop, --path, or --rate, --delay and --loss")
    if path is not None:
        return reader.of_model(path)
    try:
        return reader.read(hop if hop is not None else [" ".join(words)]), []
    except ValueError as error:
        told = str(error)
        raise ValueError(told.replace("--hop: ", "--", 1) if words else told) from None


def _option(name: str, text: str, dimension: str) -> float:
    from longfat.cli.arguments.hops import quantity

    try:
        return quantity(text, dimension)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _bytes(name: str, text: str | None) -> int:
    found = _option(name, str(text), "size")
    if found != int(found) or found < 1:
        raise ValueError(f'{name}: "{text}" is no whole number of bytes above 0')
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


def _print(found: Answer, left_out: list[str]) -> None:
    from rich.console import Console
    from rich.table import Table

    from longfat.presentation.formatting import digits, scale_for

    scale, unit = scale_for([found.seconds], "s")
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("part")
    table.add_column(unit, justify="right")
    table.add_column("share", justify="right")
    table.add_column("due to")
    for part in found.parts:
        share = part.seconds / found.seconds if found.seconds else 0.0
        table.add_row(part.name, digits(part.seconds / scale, 4), f"{share:.1%}", part.kind)
    table.add_row("in all", digits(found.seconds / scale, 4), "", "", style="bold")
    console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 140)
    console.print(table)
    for line in _told(found):
        console.print(line, soft_wrap=True)
    if left_out:
        console.print(f"Not in the model: {', '.join(left_out)}")


def _told(found: Answer) -> list[str]:
    from longfat.analysis.transfer_time import KINDS
    from longfat.presentation.formatting import quantity

    figures = found.figures
    shares = {kind: found.share(kind) for kind in KINDS}
    told = ", ".join(f"{share:.1%} {kind}" for kind, share in shares.items() if share)
    lines = [f"Mostly {found.dominant}: {told}"]
    if figures.get("rate_bps"):
        rate, without = figures["rate_bps"], figures["rate_without_processing_bps"]
        besides = "" if without == rate else f" ({quantity(without, 'bit/s')} but for processing)"
        lines.append(
            f"Last bit at {quantity(figures['last_bit_s'], 's')}; {quantity(rate, 'bit/s')}{besides}"
        )
    if "naive_rtt_s" in figures:
        naive, slope = quantity(figures["naive_rtt_s"], "s"), quantity(figures["slope_s_per_byte"], "s")
        lines.append(f"{naive} if routers passed on each bit as it comes; each byte adds {slope}")
    if "round_trips" in figures:
        segments = f", {figures['segments']} segments" if figures["segments"] is not None else ""
        lines.append(f"{figures['round_trips']} RTT{segments}")
    if "response" in figures:
        steady, segments = quantity(figures["steady_rate_bps"], "bit/s"), figures["segments_before_loss"]
        lines.append(
            f"{figures['loss']:.2%} of all packets lost: on average {segments:.0f} segments before the first "
            f"loss, then {steady} ({figures['response']})"
        )
    elif "loss" in figures:
        lines.append(f"{figures['loss']:.2%} of all packets lost")
    if "slow_start_rounds" in figures:
        rounds = f"{figures['slow_start_rounds']} rounds of slow start on a path that never fills"
        lines.append(f"{figures['packets']} segments, {rounds}")
    return lines
