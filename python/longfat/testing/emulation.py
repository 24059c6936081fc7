"""Programs behind an emulated path, each on one side, in network namespaces (Linux)."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longfat.study.tables import Path

REQUIRED = ("netns", "tun")
"""Checks of `longfat doctor`."""


@dataclass(frozen=True)
class Emulated:
    """The result of a client behind an emulated path."""

    code: int
    """Exit code of the client."""
    stdout: str
    stderr: str
    report: dict[str, Any]
    """Counters of the links, as those of `longfat shell --json`."""


def missing() -> str | None:
    """Returns what this machine lacks for emulated paths, and the fix; None if nothing."""
    from longfat import _native

    if sys.platform != "linux":
        return "emulated paths need Linux"
    for probe in json.loads(_native.doctor(REQUIRED)):
        if not probe["ok"]:
            return ": ".join(part for part in (probe["name"], probe["detail"], probe["remedy"]) if part)
    return None


def emulate(
    path: Path | Mapping[str, Any],
    client: Sequence[str],
    server: Sequence[str] | str | None = None,
    *,
    wait_port: int | str | None = None,
    congestion: str | None = None,
    sysctl: Mapping[str, object] | None = None,
    pcapng: str | File | None = None,
    seed: int = 1,
    timeout: float = 60.0,
) -> Emulated:
    """Runs a client and a server at the ends of an emulated path.

    The client runs at the host `sender` and the server at the host `receiver`; both names resolve. The
    client also finds the server's addresses in the environment variables `LONGFAT_PEER` and `LONGFAT_PEER6`.
    The server starts before the client and is stopped after it: by SIGTERM, and by SIGKILL after 5 s.

    Args:
        path: The path between them.
        client: Command line of the client.
        server: Command line of the server: arguments, or text for `sh`.
        wait_port: Port at which the server must listen before the client starts, such as 5201 or "53/udp".
        congestion: Congestion controller of programs that select none; default the kernel's.
        sysctl: Settings of the kernel at both hosts, or at one of them: `{"receiver:net.ipv4.tcp_ecn": 1}`;
            default this machine's.
        pcapng: File of a capture of all packets at the hosts.
        seed: Random seed of losses and delays.
        timeout: Limit of the client's duration, in s.

    Raises:
        AssertionError: if the client fails or exceeds the timeout, with its output.
    """
    import tomli_w

    from longfat.study.tables import refuse, table_of
    from longfat.system.interpreter import python_command

    table = table_of(path, "path")
    refuse("path", table)
    started = server if isinstance(server, str) or server is None else shlex.join(server)
    with tempfile.TemporaryDirectory(prefix="longfat-") as folder:
        model = File(folder) / "path.toml"
        model.write_text(tomli_w.dumps({"path": table}), encoding="utf-8")
        shell = ["-m", "longfat", "shell", "--path", str(model), "--seed", str(seed), "--json"]
        with_server = ["--server", started] if started is not None else []
        given = {"--wait-port": wait_port, "--congestion": congestion, "--pcapng": pcapng}
        options = [text for name, value in given.items() if value is not None for text in (name, str(value))]
        for key, value in (sysctl or {}).items():
            options += ["--sysctl", f"{key}={value}"]
        command = [*python_command(*shell), *with_server, *options, "--", *client]
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{shlex.join(client)}: still running after {timeout:g} s") from None
    *lines, last = ended.stderr.splitlines() or [""]
    stderr = "\n".join(lines)
    if ended.returncode != 0:
        output = "\n".join(part for part in (ended.stdout, ended.stderr) if part)
        raise AssertionError(f"{shlex.join(client)}: exit code {ended.returncode}\n{output}")
    return Emulated(ended.returncode, ended.stdout, stderr, json.loads(last))
