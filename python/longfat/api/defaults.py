"""Defaults that functions and commands share; importing them is cheap."""

from __future__ import annotations

from typing import Literal

ECHO_PORT = 9007
"""The port of `longfat echo`."""
TRANSACTIONS = ("udp", "tcp", "tfo", "tcp-user", "ttcp")
"""The protocols of transactions, in the order of the table."""
DEFAULT_TRANSACTIONS = "udp,tcp,tfo"
PingProtocol = Literal["icmp", "udp", "tcp"]
"""Kinds of requests of `ping`."""
ProbeProtocol = Literal["icmp", "udp"]
"""Kinds of probes of `path`."""
PredictedProtocol = Literal["none", "ping", "udp", "tcp", "tfo", "ttcp"]
"""Protocols of predicted transfers; `none` sends bare packets."""
PredictedController = Literal["cubic", "reno"]
"""Congestion controllers whose response to loss has a closed form."""
IpVersion = Literal[4, 6]
"""Versions of IP."""
