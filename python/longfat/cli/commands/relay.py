"""`longfat relay`: a network between real endpoints, on wall time."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longfat.cli.arguments import addresses
from longfat.cli.arguments.options import PathSettings, Seed
from longfat.cli.arguments.sections import Given, SectionOptions
from longfat.cli.arguments.subscriber import as_subscriber

if TYPE_CHECKING:
    from longfat.cli.display.relay import Display

_PATH = SectionOptions("path", left_out=("reverse", "hops"))


@_PATH.added_to
def relay(
    to: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where datagrams go on to.", show_default=False)
    ],
    given: Given,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where clients send to; port 0 takes any free one.")
    ] = addresses.LISTEN,
    settings: PathSettings = None,
    seed: Seed = 1,
    as_json: Annotated[
        bool, typer.Option("--json", help="At the end print one JSON document on standard output.")
    ] = False,
) -> None:
    """Relay UDP datagrams over a path that delays, limits and loses them, until Ctrl-C.

    The path is the one of a study's [path], on wall time, between real programs. Forward is from the
    clients to the server; clients are at the subscriber's end of a preset (--subscriber far exchanges the
    ends). At the end a table says what each link did and how late the relay was.

    \b
    Examples:
      longfat relay --listen 127.0.0.1:9001 --to 127.0.0.1:9000 --rate 10Mbit/s --delay 20ms --loss 2%
      longfat relay --to 127.0.0.1:9000 --preset dsl --set reverse.loss=1%
      longfat relay --to 127.0.0.1:9000 --loss '{ model = "every", every = 50 }'
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat import _native
    from longfat.cli.display.relay import display, late, table
    from longfat.cli.signals import end_like_ctrl_c

    address, target = addresses.listening(listen, "--listen"), addresses.peer(to, "--to")
    path = as_subscriber(_PATH.read(given, settings or ()))
    end_like_ctrl_c()
    watched = Watched(display(), target)
    try:
        report: dict[str, Any] = json.loads(
            _native.relay(address, target, json.dumps(path), seed, watched.handle)
        )
    finally:
        watched.display.close()
    for side, bits_per_s in watched.rates(report).items():
        report[side]["rate_bps"] = bits_per_s
    if as_json:
        typer.echo(json.dumps({**watched.begun, "to": target, "seed": seed, **report}, indent=2))
        return
    from rich.console import Console

    Console(highlight=False).print(table(report))
    typer.echo(late(report))


class Watched:
    """A relay's reports, shown as they come."""

    def __init__(self, shown: Display, target: str) -> None:
        self.display = shown
        self.begun: dict[str, Any] = {}
        self._target = target
        self._is_refused = False
        # When each link first and last delivered something, and how much by then.
        self._first: dict[str, tuple[float, int]] = {}
        self._last: dict[str, tuple[float, int]] = {}

    def handle(self, text: str) -> None:
        """Takes in a report of `_native.relay`."""
        from longfat.cli.display.relay import in_words

        report = json.loads(text)
        if "listening" in report:
            self.begun = report
            self.display.note(f"Listening at {report['listening']} for {self._target} (Ctrl-C ends)")
            if addresses.is_open(report["listening"]):
                self.display.note("Whoever reaches this address may send through it.")
            for line in in_words(report["path"]):
                self.display.note(line)
            return
        if report["refused_by_server"] and not self._is_refused:
            self._is_refused = True
            self.display.note(f"longfat: nothing listens at {self._target}: what clients send is lost there")
        now = time.monotonic()
        for side in ("forward", "reverse"):
            count = report[side]["delivered_bytes"]
            if count != self._last.get(side, (0.0, 0))[1]:
                self._first.setdefault(side, (now, count))
                self._last[side] = (now, count)
        self.display.show(now, report)

    def rates(self, report: dict[str, Any]) -> dict[str, float | None]:
        """Bit/s from the first to the last delivery of each link; None where there was no such span."""
        found: dict[str, float | None] = {}
        for side in ("forward", "reverse"):
            (begin, before), (end, _) = self._first.get(side, (0.0, 0)), self._last.get(side, (0.0, 0))
            count = report[side]["delivered_bytes"] - before
            found[side] = count * 8 / (end - begin) if end > begin else None
        return found
