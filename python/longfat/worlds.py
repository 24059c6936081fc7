"""The worlds that a study may run in. A new one is one file in `longfat.runner` and one line here."""

from __future__ import annotations

WORLDS: dict[str, str] = {
    "sim": "longfat.runner.sim:Simulation",
    "relay": "longfat.runner.relay:Relay",
    "netns": "longfat.runner.netns:Netns",
}
"""Each world's name and its executor, as `module:class`, imported when it is used."""
