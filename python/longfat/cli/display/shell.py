"""What the links of `longfat shell` did beside what was asked of them, for people."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from longfat.presentation.formatting import DASH, label, quantity

if TYPE_CHECKING:
    from rich.table import Table

_SIDES = ("forward", "reverse")
_WIDTH_ELSEWHERE = 140
# Rows for what was asked of the link, or happened all the same: title, count, and the key that asks for it.
_SELDOM = (
    ("larger than the MTU", "mtu_dropped", "mtu"),
    ("marked (ECN)", "marked", None),
    ("duplicated", "duplicated", "duplicate"),
    ("corrupted", "corrupted", "corrupt"),
    ("reordered", "reordered", "reorder"),
)


def show(report: Mapping[str, Any]) -> None:
    """Prints it on standard error."""
    from rich.console import Console

    console = Console(
        stderr=True, highlight=False, markup=False, width=None if sys.stderr.isatty() else _WIDTH_ELSEWHERE
    )
    console.print(table(report))
    for line in cautions(report):
        console.print(line)
    if report.get("hops"):
        console.print("")
        console.print(hops(report))


def cautions(report: Mapping[str, Any]) -> Iterator[str]:
    """What the links' losses do not show.

    >>> link = {"packets": 1000, "host_dropped": 0}
    >>> report = {"forward": {**link, "host_dropped": 350}, "reverse": link, "backlog_dropped": 0}
    >>> [line] = cautions(report)
    >>> line.partition(": ")[0]
    "The hosts' kernels dropped 350 of 2,000 packets, which no link lost"
    """
    dropped, entered = (sum(report[side][key] for side in _SIDES) for key in ("host_dropped", "packets"))
    if dropped:
        yield (
            f"The hosts' kernels dropped {dropped:,} of {entered:,} packets, which no link lost: "
            "their programs were too slow for them"
        )
    if report["backlog_dropped"]:
        yield f"This machine's processors dropped {report['backlog_dropped']:,} packets in their backlogs"


def table(report: Mapping[str, Any]) -> Table:
    """What each link really did, and what was asked."""
    from rich.table import Table

    shown = Table(f"in {quantity(report['seconds'], 's')}", box=None, pad_edge=False, header_style="dim")
    for side in _SIDES:
        shown.add_column(side, justify="right")
        shown.add_column("asked", style="dim")
    links = [(report[side], report["path"][side]) for side in _SIDES]

    def row(title: str, did: list[str], *keys: str) -> None:
        asked = [_asked(path, keys) for _, path in links]
        shown.add_row(title, *(cell for pair in zip(did, asked, strict=True) for cell in pair))

    def counts(key: str) -> list[str]:
        return [f"{link[key]:,}" for link, _ in links]

    row("rate while sending", [_measured(link["rate_bps"], "bit/s") for link, _ in links], "rate", "trace")
    row("delay, median", [_measured(link["delay_p50_s"], "s") for link, _ in links], "delay", "jitter")
    row("delay, 99th percentile", [_measured(link["delay_p99_s"], "s") for link, _ in links])
    row("loss", [_percent(link["loss"]) for link, _ in links], "loss")
    row("longest queue, packets", counts("max_queue_packets"), "queue")
    row("packets entered", counts("packets"))
    row("delivered", counts("delivered"))
    row("lost", counts("lost"))
    row("dropped by queue", counts("queue_dropped"))
    row("dropped in the hosts", counts("host_dropped"))
    for title, count, key in _SELDOM:
        if any(link[count] or key in path for link, path in links):
            row(title, counts(count), *([key] if key else ()))
    return shown


def hops(report: Mapping[str, Any]) -> Table:
    """What each link of a path of several did."""
    from rich.table import Table

    shown = Table("link", box=None, pad_edge=False, header_style="dim")
    for title in (
        "rate while sending",
        "asked",
        "delay asked",
        "entered",
        "lost",
        "dropped",
        "longest queue",
    ):
        shown.add_column(title, justify="right", style="dim" if "asked" in title else None)
    for side in _SIDES:
        for number, (did, asked) in enumerate(zip(report["hops"], report["path"]["hops"], strict=True), 1):
            link = did[side]
            shown.add_row(
                f"{side}/{number}",
                _measured(link["rate_bps"], "bit/s"),
                _asked(asked[side], ("rate", "trace")),
                _asked(asked[side], ("delay", "jitter")),
                *(f"{count:,}" for count in (link["packets"], link["lost"], link["queue_dropped"])),
                f"{link['max_queue_packets']:,}",
            )
    return shown


def _measured(value: float | None, unit: str) -> str:
    return DASH if value is None else quantity(value, unit)


def _percent(part: float | None) -> str:
    return DASH if part is None else f"{part * 100:.2f} %"


def _asked(path: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    """What was asked by these keys, the first without its name.

    >>> _asked({"rate": "1Mbit/s", "delay": "5ms"}, ("rate", "trace")), _asked({}, ("rate", "trace"))
    ('1Mbit/s', '')
    >>> _asked({"trace": "up.txt"}, ("rate", "trace"))
    'trace up.txt'
    >>> _asked({"delay": "5ms", "jitter": {"distribution": "uniform", "spread": "1ms"}}, ("delay", "jitter"))
    '5ms, jitter uniform 1ms'
    """
    said = (("" if key == keys[0] else f"{key} ") + _brief(path[key]) for key in keys if key in path)
    return ", ".join(said)


def _brief(value: Any) -> str:
    """A jitter by its distribution and spread alone, since the table is narrow."""
    if isinstance(value, Mapping) and "spread" in value:
        return " ".join(str(value[key]) for key in ("distribution", "spread") if key in value)
    return label(value)
