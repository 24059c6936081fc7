"""Options of emulated hosts that run programs: the kernel's settings, and a capture."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any


def options(
    sysctl: Iterable[str] = (), congestion: str | None = None, pcapng: str | Path | None = None
) -> str:
    """Returns the options as JSON for the native module.

    Args:
        sysctl: Settings of the kernel, `[HOST:]KEY=VALUE` each.
        congestion: Congestion controller of programs that select none.
        pcapng: File of a capture of all packets at the hosts.

    Raises:
        ValueError: for a setting without a value.

    >>> options(["receiver:net.ipv4.tcp_ecn=1"])
    '{"sysctls": [{"key": "net.ipv4.tcp_ecn", "value": "1", "host": "receiver"}]}'
    """
    given: dict[str, Any] = {"sysctls": [_setting(text) for text in sysctl]}
    if congestion is not None:
        given["congestion"] = congestion
    if pcapng is not None:
        given["pcapng"] = str(pcapng)
    return json.dumps(given)


def _setting(text: str) -> dict[str, str]:
    name, equals, value = text.partition("=")
    host, colon, key = name.rpartition(":")
    if not (equals and key.strip() and value.strip()):
        raise ValueError(f'--sysctl: "{text}": write [HOST:]KEY=VALUE, e.g. net.ipv4.tcp_ecn=1')
    setting = {"key": key.strip(), "value": value.strip()}
    return {**setting, "host": host.strip()} if colon else setting


def port(text: str) -> tuple[int, bool]:
    """Returns the number of a port, and whether it is one of UDP. Raises ValueError for any other text.

    >>> port("5201"), port("53/udp")
    ((5201, False), (53, True))
    """
    number, _, kind = text.partition("/")
    if not (number.isascii() and number.isdigit() and 1 <= int(number) <= 65_535) or kind not in {
        "",
        "tcp",
        "udp",
    }:
        raise ValueError(f'"{text}" is not a port: write e.g. 5201 or 53/udp (1 to 65535)')
    return int(number), kind == "udp"


def lines(controller: str | None, sysctls: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Returns lines with the congestion controller and the settings that differ from this machine's.

    >>> list(lines("bbr (version 1)", []))
    ['Default congestion controller of the kernel: bbr (version 1)']
    >>> [*lines(None, [{"host": None, "key": "net.ipv4.tcp_ecn", "value": "1", "machine": "2"}])]
    ['Sysctls that differ from this machine: net.ipv4.tcp_ecn = 1 (2)']
    """
    if controller:
        yield f"Default congestion controller of the kernel: {controller}"
    differing = ", ".join(map(_difference, sysctls))
    if differing:
        yield f"Sysctls that differ from this machine: {differing}"


def _difference(one: Mapping[str, Any]) -> str:
    host = f"{one['host']}: " if one["host"] else ""
    machine = "unset" if one["machine"] is None else one["machine"]
    return f"{host}{one['key']} = {one['value']} ({machine})"


def capture_line(file: str | Path, report: Mapping[str, int] | None) -> str | None:
    """Returns a line about packets that are missing in a capture; None if it is complete.

    >>> capture_line("a.pcapng", {"packets": 10, "missing": 2})
    'a.pcapng: 2 of 12 packets are missing: the file was written too slowly'
    """
    if not report or not report["missing"]:
        return None
    total = report["packets"] + report["missing"]
    return f"{file}: {report['missing']:,} of {total:,} packets are missing: the file was written too slowly"
