"""`longfat mptcp`: a user-space path manager for the connections of this machine."""

from __future__ import annotations

import json
import tomllib
from typing import Annotated, Any

import typer

from longfat.cli.arguments.from_function import command
from longfat.cli.arguments.options import Seed


@command(policy=typer.Option(metavar="KIND or TABLE"), show=typer.Option("--status"))
def mptcp(
    *,
    policy: str = "fsfs",
    set_sysctl: bool = False,
    show: bool = False,
    announce: bool = False,
    seed: Seed = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Events as JSON objects, one per line.")] = False,
) -> None:
    """Manage the paths of MPTCP connections until Ctrl-C (Linux, root).

    \b
    Examples:
      longfat mptcp --set-sysctl --policy single
      longfat mptcp --status

    Args:
        policy: Path policy: a kind such as fsfs (more paths for larger transfers), all (all paths at once) or
            single, or a table such as '{ kind = "fsfs", paths = [1, 2, 2] }'.
        set_sysctl: net.mptcp.pm_type=1 (user-space path manager) while this command runs.
        show: State of the running path manager, as JSON.
        announce: Announcement of this machine's other addresses to connecting peers (ADD_ADDR).
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat import _native
    from longfat.cli.signals import interrupt_on_sigterm

    if show:
        from longfat.kernel.mptcp import status

        typer.echo(json.dumps(status(), indent=2))
        return
    chosen: Any = policy
    if policy.lstrip().startswith("{"):
        try:
            chosen = tomllib.loads(f"policy = {policy}")["policy"]
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"--policy {policy}: {error}") from None
    _check(chosen)
    interrupt_on_sigterm()

    def report(event: str | None) -> bool:
        if event is not None:
            typer.echo(event if as_json else _line(json.loads(event)))
        return True

    try:
        _native.manage_paths(
            json.dumps(chosen), "longfat/mptcp", report, set_sysctl=set_sysctl, announce=announce, seed=seed
        )
    except KeyboardInterrupt:
        # The usual end: the native part has restored the sysctl.
        return


def _check(policy: Any) -> None:
    """Raises ValueError with one line for each mistake."""
    from longfat.study.vocabulary import check

    place = "protocol.policy"
    found = check("protocol", {"kind": "mptcp", "policy": policy})
    if found:
        keyed = ((key.removeprefix(place).removeprefix("."), message) for key, message in found)
        raise ValueError("\n".join(": ".join(filter(None, ("--policy", *one))) for one in keyed))


_GROWTH = {"fsfs": " (paths by the bytes sent and received; --policy all: all paths at once)"}
"""How a policy chooses the number of paths of a connection whose size is unknown."""


def _shares(shares: list[tuple[str, int]]) -> str:
    return ", ".join(f"{address} {count}" for address, count in shares if count) or "none"


def _line(event: dict[str, Any]) -> str:
    """Returns an event as text."""
    match event:
        case {"event": "ready", "policy": policy, "paths": paths, "set_sysctl": changed}:
            sysctl = ", net.mptcp.pm_type set to 1 until this command stops" if changed else ""
            return f"ready: policy {policy}{_GROWTH.get(policy, '')}, paths {', '.join(paths)}{sysctl}"
        case {"event": "opened", "token": token, "to": to, "size": size, "from": source}:
            known = "size unknown" if size is None else f"{size} bytes"
            return f"{token:08x} {to} {known}: starts from {source}"
        case {"event": "joined", "token": token, "from": source, "to": to}:
            return f"{token:08x} joins {source} to {to}"
        case {"event": "announced", "token": token, "address": address}:
            return f"{token:08x} announces {address}"
        case {"event": "left", "token": token, "from": source}:
            return f"{token:08x} leaves {source}"
        case {"event": "closed", "token": token, "bytes": sent, "received": received}:
            return f"{token:08x} closed: bytes sent {_shares(sent)}; received {_shares(received)}"
        case {"event": "refused", "token": token, "reason": reason}:
            return f"{token:08x} {reason}"
    return json.dumps(event)
