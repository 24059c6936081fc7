"""The worlds of trials. A new one is one file in `longfat.runner` and one line here."""

from __future__ import annotations

WORLDS: dict[str, str] = {
    "sim": "longfat.runner.sim:Simulation",
    "relay": "longfat.runner.relay:Relay",
    "netns": "longfat.runner.netns:Netns",
}
"""The executor of each world as `module:class`, imported on first use."""
