"""`longfat demo`: one question answered by simulation, then the same protocols moving a real file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from longfat.cli.arguments.from_function import command

if TYPE_CHECKING:
    from longfat.results.run import Interval

SIZE = 2_000_000
"""Bytes that each transfer moves."""
PATH = {"rate": "10Mbit/s", "delay": "20ms", "loss": "2%"}
_KEYS = {"mss": "1400B", "acknowledge_every": 1, "min_rto": "20ms"}
"""`longfat send` has other defaults than a study, so the demo sets what both share."""
PROTOCOLS: dict[str, dict[str, Any]] = {
    "Stop-and-wait": {"kind": "stop-and-wait", **_KEYS},
    "Go-Back-N": {"kind": "go-back-n", "window": 32, **_KEYS},
    "Selective repeat": {"kind": "selective-repeat", "window": 32, **_KEYS},
}
REAL = ("Go-Back-N", "Selective repeat")
"""Protocols that also move a real file; stop-and-wait would need more than a minute."""
_BAR = 26
_BUSY_S = 1e-3
_NAME = max(map(len, PROTOCOLS))


@dataclass(frozen=True)
class Simulated:
    """What the trials of one protocol measured."""

    goodput: list[float]
    """Goodput of each trial in bit/s."""
    retransmissions: float
    """Mean number of retransmissions."""

    @property
    def interval(self) -> Interval:
        """The mean goodput in bit/s, with its 95 % confidence interval."""
        from longfat.analysis.statistics import interval

        return interval(self.goodput)


@command(trials=typer.Option(min=3, max=1000))
def demo(
    *,
    trials: int = 20,
) -> None:
    """Answer one question by simulation, then move a real file.

    \b
    Examples:
      longfat demo
      longfat demo --trials 100

    Args:
        trials: Simulated transfers of each protocol.
    """  # noqa: D301 - this backslash keeps the lines of the examples
    typer.echo("1. Question: how much does selective repeat gain when 2 % of the packets are lost?\n")
    typer.echo("   Simulated: 2 MB over 10 Mbit/s, 20 ms one-way delay. Goodput in Mbit/s,")
    typer.echo(f"   mean ± 95 % confidence half-width of {trials} transfers.\n")
    results = {name: simulate(keys, trials) for name, keys in PROTOCOLS.items()}
    for line in chart(results):
        typer.echo(f"   {line}")
    typer.echo()
    for line in answer(results):
        typer.echo(f"   {line}")
    typer.echo("\n2. The same protocol code moves a real 2 MB file: sender, lossy relay and receiver are")
    typer.echo("   UDP sockets on 127.0.0.1, in real time.\n")
    for name in REAL:
        typer.echo(f"   {name:{_NAME}}  ", nl=False)
        typer.echo(transfer(PROTOCOLS[name], results[name]))
    typer.echo("\n3. Next:\n")
    for line, purpose in NEXT:
        typer.echo(f"   {line:38}{purpose}")


NEXT = (
    ("source .venv/bin/activate", "puts longfat on your PATH"),
    ("longfat run arq/loss --quick", "stop-and-wait against Go-Back-N, with a report"),
    ("longfat run congestion/competition", "Vegas against Reno: who gets the bottleneck?"),
    ("longfat list", "everything a study file can use"),
)


def simulate(protocol: dict[str, Any], trials: int) -> Simulated:
    """Simulates `trials` transfers over the demo's path, each with its own losses."""
    import longfat

    runs = [longfat.simulate(protocol, PATH, f"{SIZE}B", seed=1, trial=number) for number in range(trials)]
    resent = sum(run.retransmissions for run in runs) / trials
    return Simulated([run.goodput_bps for run in runs], resent)


def chart(results: dict[str, Simulated]) -> list[str]:
    """A horizontal bar for each protocol, scaled to the fastest, with its goodput in Mbit/s."""
    from longfat.analysis.metric_range import range_of
    from longfat.presentation.formatting import plus_minus

    longest = max(result.interval.mean for result in results.values())
    lines = []
    for name, result in results.items():
        goodput = result.interval
        bar = "█" * max(1, round(_BAR * goodput.mean / longest))
        lines.append(f"{name:{_NAME}}  {bar:{_BAR}}  {plus_minus(goodput, 1e6, range_of('goodput_bps', {}))}")
    return lines


def answer(results: dict[str, Simulated]) -> list[str]:
    """The answer in two sentences: the ratio of the goodputs with its interval, and the cause."""
    from longfat.analysis.statistics import ratio

    go_back_n, selective = (results[name] for name in REAL)
    gain = ratio(selective.goodput, go_back_n.goodput)
    resent = go_back_n.retransmissions, selective.retransmissions
    interval = f"(95 % CI {gain.low:.2f} to {gain.high:.2f})"
    return [
        f"Answer: selective repeat is {gain.mean:.2f} times as fast as Go-Back-N {interval}.",
        f"Go-Back-N retransmits the whole window after a loss: {resent[0]:.0f} packets, not {resent[1]:.0f}.",
    ]


def transfer(protocol: dict[str, Any], simulated: Simulated) -> str:
    """Moves a real file and describes the result in one line, with the simulated range for comparison."""
    from longfat.cli.demo_transfer import move

    moved = move(SIZE, protocol, PATH)
    low, high = min(simulated.goodput) / 1e6, max(simulated.goodput) / 1e6
    line = (
        f"{moved.seconds:.1f} s, {SIZE * 8 / moved.seconds / 1e6:.2f} Mbit/s, content verified "
        f"(simulated: {low:.2f} to {high:.2f})"
    )
    if moved.late < _BUSY_S:
        return line
    busy = f"The machine is busy: the relay forwarded packets up to {moved.late * 1e3:.0f} ms late."
    return f"{line}\n   {'':{_NAME}}  {busy}"
