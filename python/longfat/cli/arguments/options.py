"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longfat.cli import standard_output
from longfat.cli.arguments import completion

OneStudy = Annotated[
    str,
    typer.Argument(
        help="Study file, or name of a built-in study such as arq/loss.", autocompletion=completion.studies
    ),
]

StudySettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Key of the study and its new value, e.g. path.loss=2% or path=@FILE; repeatable.",
    ),
]

StudySeed = Annotated[
    int | None, typer.Option(metavar="N", help="Random seed.  [default: the study's]", show_default=False)
]

Point = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE,...", help="Point of the sweep.  [default: the first]"),
]

PathSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Key of the path (longfat list path), also a nested one such as reverse.loss=0%; repeatable.",
    ),
]

Seed = Annotated[int, typer.Option(min=0, max=2**64 - 1, metavar="N", help="Random seed.")]

HostSysctls = Annotated[
    list[str] | None,
    typer.Option(
        "--sysctl",
        metavar="[HOST:]KEY=VALUE",
        help="Setting of the hosts' kernels, e.g. net.ipv4.tcp_ecn=1; repeatable.  [default: this machine's]",
    ),
]

HostCongestion = Annotated[
    str | None,
    typer.Option(
        "--congestion",
        metavar="NAME",
        help="Congestion controller of programs that select none, e.g. cubic.  [default: the kernel's]",
    ),
]

HostCapture = Annotated[
    Path | None,
    typer.Option("--pcapng", metavar="FILE", help="Capture of all packets at the hosts, for Wireshark."),
]

IPv4Only = Annotated[bool, typer.Option("-4", help="IPv4 only.")]

IPv6Only = Annotated[bool, typer.Option("-6", help="IPv6 only.")]


def _html(file: Path | None) -> Path | None:
    """Rejects a name that another program would open as something else than HTML."""
    if file is not None and file.suffix not in (".html", ".htm"):
        raise typer.BadParameter(f'"{file}": a report is an HTML file: use a name that ends with .html')
    return file


ReportFile = Annotated[
    Path | None, typer.Option(metavar="FILE", callback=_html, help="Output file for an HTML report.")
]

AsJson = Annotated[
    bool, typer.Option("--json", callback=standard_output.reserve, help="Output as one JSON document.")
]

SamplesFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Output file for all samples: .parquet or .csv.")
]
