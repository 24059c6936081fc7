"""`longfat mptcp`: a path manager in user space for the connections of this machine."""

from __future__ import annotations

import json
import tomllib
from typing import Annotated, Any

import typer

from longfat.cli.arguments.options import Seed


def mptcp(
    policy: Annotated[
        str,
        typer.Option(
            metavar="KIND or TABLE",
            help="Which paths connections use: a kind such as fsfs, all or single, or a table such as "
            "'{ kind = \"fsfs\", paths = [1, 2, 2] }'.",
        ),
    ] = "fsfs",
    set_sysctl: Annotated[
        bool,
        typer.Option(
            "--set-sysctl",
            help="Set net.mptcp.pm_type=1 (user space decides) for as long as this runs; then put it back.",
        ),
    ] = False,
    show: Annotated[
        bool, typer.Option("--status", help="Print what the path manager that runs here knows, as JSON.")
    ] = False,
    announce: Annotated[
        bool,
        typer.Option(
            "--announce",
            help="Tell peers that connect to this machine of its other addresses (ADD_ADDR).",
        ),
    ] = False,
    seed: Seed = 1,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object a line for each event.")
    ] = False,
) -> None:
    """Decide which paths the MPTCP connections of this machine use, until Ctrl-C (Linux, as root).

    Applications that connect by longfat.mptcp.connect say how much they will send; of others the size is what
    they have sent so far. It acts on the connections that begin in its network namespace while it runs.
    Without --set-sysctl no setting of the machine is changed: net.mptcp.pm_type must be 1 already.

    \b
    Examples:
      longfat mptcp --set-sysctl
      longfat mptcp --set-sysctl --policy single
      longfat mptcp --status
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat import _native
    from longfat.cli.signals import end_like_ctrl_c

    if show:
        from longfat.mptcp import status

        typer.echo(json.dumps(status(), indent=2))
        return
    chosen: Any = policy
    if policy.lstrip().startswith("{"):
        try:
            chosen = tomllib.loads(f"policy = {policy}")["policy"]
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"--policy {policy}: {error}") from None
    _check(chosen)
    end_like_ctrl_c()

    def tell(told: str | None) -> bool:
        if told is not None:
            typer.echo(told if as_json else _line(json.loads(told)))
        return True

    try:
        _native.manage_paths(
            json.dumps(chosen), "longfat/mptcp", tell, set_sysctl=set_sysctl, announce=announce, seed=seed
        )
    except KeyboardInterrupt:
        # The way to end it: what was set is set back by now.
        return


def _check(policy: Any) -> None:
    """ValueError has a line for each mistake."""
    from longfat.study.vocabulary import check

    place = "protocol.policy"
    found = check("protocol", {"kind": "mptcp", "policy": policy})
    if found:
        told = ((key.removeprefix(place).removeprefix("."), message) for key, message in found)
        raise ValueError("\n".join(": ".join(filter(None, ("--policy", *one))) for one in told))


def _line(event: dict[str, Any]) -> str:
    """One event for a person."""
    match event:
        case {"event": "ready", "paths": paths, "set_sysctl": changed}:
            said = ", net.mptcp.pm_type set to 1 for now" if changed else ""
            return f"ready: paths {', '.join(paths)}{said}"
        case {"event": "opened", "token": token, "to": to, "size": size, "from": source}:
            known = "size unknown" if size is None else f"{size} bytes"
            return f"{token:08x} {to} {known}: begins from {source}"
        case {"event": "joined", "token": token, "from": source}:
            return f"{token:08x} joins {source}"
        case {"event": "announced", "token": token, "address": address}:
            return f"{token:08x} is told of {address}"
        case {"event": "left", "token": token, "from": source}:
            return f"{token:08x} leaves {source}"
        case {"event": "closed", "token": token, "bytes": shares}:
            told = ", ".join(f"{source} {count}" for source, count in shares) or "nothing seen"
            return f"{token:08x} closed: bytes {told}"
        case {"event": "refused", "token": token, "reason": reason}:
            return f"{token:08x} {reason}"
    return json.dumps(event)
