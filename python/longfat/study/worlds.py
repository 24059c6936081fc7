"""The worlds of trials. A new one is one file in `longfat.worlds` and one line here."""

from __future__ import annotations

VIRTUAL = "sim"
"""The world on virtual time, whose records are bit-identical on every machine."""

WORLDS: dict[str, str] = {
    VIRTUAL: "longfat.worlds.sim:Simulation",
    "relay": "longfat.worlds.relay:Relay",
    "netns": "longfat.worlds.netns:Netns",
}
"""The executor of each world as `module:class`, imported on first use."""
