"""Summary of `longfat shell`: measured behaviour of the links next to their settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from longfat.presentation.formatting import DASH, label, quantity
from longfat.presentation.link_titles import narrow_title, title

if TYPE_CHECKING:
    from rich.table import Table

_SIDES = ("forward", "reverse")
# Rows shown only if set or counted: counter and key.
_OPTIONAL = (
    ("mtu_dropped", "mtu"),
    ("outage_dropped", "down"),
    ("nat_dropped", "nat"),
    ("marked", None),
    ("duplicated", "duplicate"),
    ("corrupted", "corrupt"),
    ("reordered", "reorder"),
)


def show(report: Mapping[str, Any]) -> None:
    """Prints the summary on standard error."""
    from longfat.presentation import tables
    from longfat.testbed import programs

    console = tables.console(stderr=True)
    for line in programs.lines(report["kernel_controller"], report["sysctls"]):
        console.print(line)
    console.print(table(report))
    for line in cautions(report):
        console.print(line)
    if report.get("hops"):
        console.print("")
        console.print(hops(report))


def cautions(report: Mapping[str, Any]) -> Iterator[str]:
    """Returns losses outside of the links, one line each.

    >>> link = {"packets": 1000, "host_dropped": 0}
    >>> report = {"forward": {**link, "host_dropped": 350}, "reverse": link, "backlog_dropped": 0}
    >>> [line] = cautions(report)
    >>> line.partition(": ")[0]
    "The hosts' kernels dropped 350 of 2,000 packets outside of the links"
    """
    dropped, entered = (sum(report[side][key] for side in _SIDES) for key in ("host_dropped", "packets"))
    if dropped:
        yield (
            f"The hosts' kernels dropped {dropped:,} of {entered:,} packets outside of the links: "
            "programs read them too slowly"
        )
    if report["backlog_dropped"]:
        yield f"This machine's processors dropped {report['backlog_dropped']:,} packets from their backlogs"


def table(report: Mapping[str, Any]) -> Table:
    """Returns measured figures of each link next to its settings."""
    from longfat.presentation import tables

    shown = tables.table(f"in {quantity(report['seconds'], 's')}")
    for side in _SIDES:
        shown.add_column(side, justify="right")
        shown.add_column("set", style="dim")
    links = [(report[side], report["path"][side]) for side in _SIDES]

    def row(head: str, measured: list[str], *keys: str) -> None:
        settings = [_setting(path, keys) for _, path in links]
        shown.add_row(head, *(cell for pair in zip(measured, settings, strict=True) for cell in pair))

    def counts(counter: str, *keys: str) -> None:
        row(title(counter), [f"{link[counter]:,}" for link, _ in links], *keys)

    row("rate while sending", [_measured(link["rate_bps"], "bit/s") for link, _ in links], "rate", "trace")
    row("delay, median", [_measured(link["delay_p50_s"], "s") for link, _ in links], "delay", "jitter")
    row("delay, 99th percentile", [_measured(link["delay_p99_s"], "s") for link, _ in links])
    row("loss", [_percent(link["loss"]) for link, _ in links], "loss")
    counts("max_queue_packets", "queue")
    for counter in ("packets", "delivered", "lost", "queue_dropped", "host_dropped"):
        counts(counter)
    for counter, key in _OPTIONAL:
        if any(link[counter] or key in path for link, path in links):
            counts(counter, *([key] if key else ()))
    return shown


def hops(report: Mapping[str, Any]) -> Table:
    """Returns measured figures of each link of a path with several hops."""
    from longfat.presentation import tables

    shown = tables.table("link")
    counters = ("packets", "lost", "queue_dropped", "max_queue_packets")
    for head in ("rate while sending", "rate set", "delay set", *map(narrow_title, counters)):
        shown.add_column(head, justify="right", style="dim" if head.endswith("set") else None)
    for side in _SIDES:
        for number, (measured, settings) in enumerate(
            zip(report["hops"], report["path"]["hops"], strict=True), 1
        ):
            link = measured[side]
            shown.add_row(
                f"{side}/{number}",
                _measured(link["rate_bps"], "bit/s"),
                _setting(settings[side], ("rate", "trace")),
                _setting(settings[side], ("delay", "jitter")),
                *(f"{link[counter]:,}" for counter in counters),
            )
    return shown


def _measured(value: float | None, unit: str) -> str:
    return DASH if value is None else quantity(value, unit)


def _percent(part: float | None) -> str:
    return DASH if part is None else f"{part * 100:.2f} %"


def _setting(path: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    """Returns the settings of these keys, the first without its name.

    >>> _setting({"rate": "1Mbit/s", "delay": "5ms"}, ("rate", "trace")), _setting({}, ("rate", "trace"))
    ('1Mbit/s', '')
    >>> _setting({"trace": "up.txt"}, ("rate", "trace"))
    'trace up.txt'
    >>> jitter = {"distribution": "uniform", "spread": "1ms"}
    >>> _setting({"delay": "5ms", "jitter": jitter}, ("delay", "jitter"))
    '5ms, jitter uniform 1ms'
    """
    listed = (("" if key == keys[0] else f"{key} ") + _brief(path[key]) for key in keys if key in path)
    return ", ".join(listed)


def _brief(value: Any) -> str:
    """Returns a setting as text; a jitter as its distribution and spread only, to fit the table."""
    if isinstance(value, Mapping) and "spread" in value:
        return " ".join(str(value[key]) for key in ("distribution", "spread") if key in value)
    return label(value)
