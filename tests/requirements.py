"""Requirements, which turn skipped tests into failures. `crates/testing` is the Rust version."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

REQUIRED = "LONGFAT_REQUIRE"
"""Names the requirements that this machine must meet, separated by commas, or `all`."""

NAMES = {
    "netns": "network namespaces: root, or user namespaces for everybody",
    "tun": "TUN devices: /dev/net/tun",
    "bpf": "congestion controllers in BPF",
    "mptcp": "MPTCP in the kernel with a path manager in user space",
    "raw": "raw sockets: CAP_NET_RAW",
    "users": "root, to start processes as an ordinary user and in mount namespaces",
    "programs": "installed programs",
}


def required() -> set[str]:
    """The names in `LONGFAT_REQUIRE`."""
    names = {name.strip() for name in os.environ.get(REQUIRED, "").split(",")} - {""}
    if unknown := names - {"all", *NAMES}:
        raise pytest.UsageError(
            f"{REQUIRED}: unknown requirement {', '.join(sorted(unknown))}; known: all, {', '.join(NAMES)}"
        )
    return set(NAMES) if "all" in names else names


def skip(requirement: str, reason: str) -> NoReturn:
    """Skips a test, or fails it if `LONGFAT_REQUIRE` names the requirement."""
    assert requirement in NAMES, requirement
    if requirement in required():
        pytest.fail(f"{REQUIRED} has {requirement}, but: {reason}", pytrace=False)
    pytest.skip(f"{requirement}: {reason}")


def skip_foreign(reason: str) -> NoReturn:
    """Skips a test that needs files of another project, such as scripts of a conformance suite."""
    pytest.skip(f"not part of this project: {reason}")


def skip_unbuilt(reason: str) -> NoReturn:
    """Skips a test of something that a separate command builds, such as `make explorer`."""
    pytest.skip(f"not built: {reason}")
