"""`longfat relay`: an emulated path between UDP programs, in wall time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longfat.api import addresses
from longfat.api.relays import SIDES, RelayRates, ends
from longfat.cli import standard_output
from longfat.cli.arguments.options import AsJson, PathSettings, Seed
from longfat.cli.arguments.sections import Given, SectionOptions
from longfat.cli.arguments.subscriber import NEAR, as_subscriber

if TYPE_CHECKING:
    from longfat.system.progress import Display

_PATH = SectionOptions("path", left_out=("reverse", "hops"), defaults={"subscriber": NEAR})


@_PATH.added_to
def relay(
    to: Annotated[str, typer.Option(metavar="HOST:PORT", help="Address of the server.", show_default=False)],
    given: Given,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Local address for clients; port 0 for any free one.")
    ] = addresses.LISTEN,
    settings: PathSettings = None,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Relay UDP datagrams over an emulated path until Ctrl-C.

    \b
    Examples:
      longfat relay --listen 127.0.0.1:9001 --to 127.0.0.1:9000 --rate 10Mbit/s --delay 20ms --loss 2%
      longfat relay --to 127.0.0.1:9000 --preset dsl --set reverse.loss=1%
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat import _native
    from longfat.cli.display.relay import late, table
    from longfat.cli.signals import interrupt_on_sigterm
    from longfat.presentation import tables
    from longfat.system.progress import display

    address, target = ends(listen, to)
    path = as_subscriber(_PATH.read(given, settings or ()))
    interrupt_on_sigterm()
    watched = Watched(display(), target)
    try:
        report: dict[str, Any] = json.loads(
            _native.relay(address, target, json.dumps(path), seed, watched.handle)
        )
    finally:
        watched.display.close()
    for side, bits_per_s in watched.rates.overall(report).items():
        report[side]["rate_bps"] = bits_per_s
    if as_json:
        standard_output.document({**watched.begun, "to": target, "seed": seed, **report})
        return
    tables.show(table(report))
    typer.echo(late(report))


class Watched:
    """Shows a relay's reports as they arrive."""

    def __init__(self, display: Display, target: str) -> None:
        self.display = display
        self.begun: dict[str, Any] = {}
        self._target = target
        self._is_refused = False
        self.rates = RelayRates()

    def handle(self, text: str) -> None:
        """Handles a report of `_native.relay`."""
        from longfat.cli.display.relay import describe, progress_line

        report = json.loads(text)
        if "listening" in report:
            self.begun = report
            self.display.note(f"Listening on {report['listening']} for {self._target} (Ctrl-C stops)")
            if addresses.is_open(report["listening"]):
                self.display.note("Every host that reaches this address may send through it.")
            for line in describe(report["path"]):
                self.display.note(line)
            return
        if report["refused_by_server"] and not self._is_refused:
            self._is_refused = True
            self.display.note(f"longfat: nothing listens at {self._target}: datagrams are lost there")
        rates = self.rates.update(report)
        if any(report[side]["entered"] for side in SIDES):
            self.display.show("", progress_line(report, rates))
