"""`longfat trace`: what one trial sent, and what its protocol did after a loss, as a ladder diagram."""

from __future__ import annotations

import json
import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longfat.results import Cell
    from longfat.study import Study


class TraceFormat(StrEnum):
    """What a ladder diagram can be written as."""

    SVG = "svg"
    HTML = "html"
    TEXT = "text"


_SUFFIXES = {
    "svg": TraceFormat.SVG,
    "html": TraceFormat.HTML,
    "htm": TraceFormat.HTML,
    "txt": TraceFormat.TEXT,
}


def trace(
    study: Annotated[str, typer.Argument(help="A study file, or a built-in study's name such as arq/loss.")],
    cell: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE,...", help="The point of the sweep; the first one by default."),
    ] = None,
    protocol: Annotated[str | None, typer.Option(help="Name of the protocol in the study.")] = None,
    trial: Annotated[int, typer.Option(min=0, help="Number of the trial.")] = 0,
    out: Annotated[Path | None, typer.Option(help="The file; standard output by default.")] = None,
    pcapng: Annotated[
        Path | None, typer.Option(help="Write the packets to this file, for Wireshark.")
    ] = None,
    format_: Annotated[
        TraceFormat | None, typer.Option("--format", help="By default that of --out's name, else text.")
    ] = None,
    first: Annotated[
        str | None,
        typer.Option("--from", help="Show from here on, e.g. 40ms; by default around the first loss."),
    ] = None,
    last: Annotated[str | None, typer.Option("--to", help="Show up to here, e.g. 90ms.")] = None,
    packets: Annotated[int | None, typer.Option(min=1, max=5000, help="Show so many packets.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the study; may be repeated."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="What all randomness derives from.")] = None,
) -> None:
    """Draw the time-sequence diagram of one simulated trial: every packet, loss, timeout and delivery."""
    from longfat.study import Overrides, load_study, read_setting

    chosen = _format(format_, out)
    start, end = _time("--from", first), _time("--to", last)
    loaded = load_study(study, Overrides(tuple(map(read_setting, settings or ())), (), None, seed))
    place = find_cell(loaded, protocol, cell or ())
    record = _traced(place, loaded.seed, trial, pcapng)
    drawing = _draw(chosen, loaded, place, trial, record, (start, end, packets))
    if out is None:
        typer.echo(drawing, nl=False)
    else:
        from longfat.runner.files import write_whole

        write_whole(out, drawing.encode())
        typer.echo(f"Trace: {out}", err=True)
    if pcapng is not None:
        typer.echo(f"Packets: {pcapng}", err=True)


def find_cell(study: Study, protocol: str | None, conditions: Sequence[str]) -> Cell:
    """The first cell of a protocol that fits all `KEY=VALUE`; ValueError says what there is instead."""
    from longfat.analysis import formatting
    from longfat.study import Condition, cells
    from longfat.study.vocabulary import allowed

    names = [entry.name for entry in study.protocols]
    if protocol is None and len(names) > 1:
        raise ValueError(f"--protocol is needed: the study has {', '.join(names)}")
    if protocol is not None and protocol not in names:
        raise ValueError(f'--protocol: "{protocol}" is no protocol of this study; {allowed(protocol, names)}')
    found = [one for one in cells(study) if one.protocol == (protocol or names[0])]
    found = [one for one in found if one.world == found[0].world]
    for condition in _split(conditions):
        key, equals, value = (part.strip() for part in condition.partition("="))
        if not equals or not value:
            raise ValueError(f'--cell: "{condition}": write KEY=VALUE, e.g. --cell path.loss=2%')
        if key not in study.sweep:
            raise ValueError(
                f'--cell: "{key}" is not swept; {allowed(key, study.sweep)} (--set changes others)'
            )
        kept = [one for one in found if _fits(one, key, value, Condition)]
        if not kept:
            values = dict.fromkeys(formatting.label(one.value(key)) for one in found)
            raise ValueError(
                f"--cell: {key} = {value} is no point of the sweep; allowed: {', '.join(values)}"
            )
        found = kept
    if len(found) > 1 and found[0].params:
        typer.echo(f"The first of {len(found)} cells: {formatting.place(found[0].params)}", err=True)
    return found[0]


def _fits(cell: Cell, key: str, value: str, condition: Any) -> bool:
    from longfat.analysis import formatting

    return bool(condition.parse(value).matches(cell.value(key))) or formatting.label(cell.value(key)) == value


def _split(conditions: Sequence[str]) -> list[str]:
    return [part for condition in conditions for part in condition.split(",") if part.strip()]


def _format(asked: TraceFormat | None, out: Path | None) -> TraceFormat:
    named = _SUFFIXES.get(out.suffix.removeprefix(".").lower()) if out is not None else None
    if asked is not None and named is not None and asked != named:
        raise ValueError(f"--out {out}: its name says {named.value}, --format says {asked.value}")
    return asked or named or TraceFormat.TEXT


def _time(option: str, text: str | None) -> float | None:
    from longfat.study import units

    if text is None:
        return None
    try:
        parsed = units.parse(text)
    except ValueError as error:
        raise ValueError(f"{option}: {error}") from None
    if parsed.dimension != "duration":
        raise ValueError(f'{option}: "{text}" is no time: write e.g. "40ms"')
    return float(parsed.value)


def _traced(cell: Cell, seed: int, trial: int, pcapng: Path | None) -> dict[str, Any]:
    """The trial's record with its events; packets are written beside their place and renamed there."""
    from longfat import _native
    from longfat.runner.files import TEMPORARY

    spec = json.dumps({**cell.spec, "seed": seed, "trial": trial})
    if pcapng is None:
        return dict(json.loads(_native.trace(spec)))
    temporary = pcapng.with_name(f".{pcapng.name}{TEMPORARY}")
    try:
        record: dict[str, Any] = json.loads(_native.trace(spec, str(temporary)))
        temporary.replace(pcapng)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error).replace(str(temporary), str(pcapng))
        raise OSError(error.errno, reason, str(pcapng)) from None
    finally:
        temporary.unlink(missing_ok=True)
    return record


def _draw(
    chosen: TraceFormat,
    study: Study,
    cell: Cell,
    trial: int,
    record: dict[str, Any],
    part: tuple[float | None, float | None, int | None],
) -> str:
    from longfat.analysis import formatting, ladder, ladder_svg, ladder_text

    kind = str(cell.spec["protocol"].get("kind", cell.protocol))
    whole = ladder.read(record["events"])
    shown = ladder.cut(whole, *part)
    window = cell.spec["protocol"].get("window")
    title = f"{cell.protocol}: {kind}" + (f", window {window}" if window is not None else "")
    about = [formatting.place(cell.params), f"trial {trial}, seed {study.seed}"]
    if record.get("error"):
        about.append(f"failed: {record['error']}")
    subtitle = "; ".join(text for text in about if text)
    if chosen is TraceFormat.TEXT:
        return ladder_text.draw(shown, title, subtitle)
    drawing = ladder_svg.draw(shown, title, subtitle)
    return drawing if chosen is TraceFormat.SVG else ladder_svg.page([drawing], title)
