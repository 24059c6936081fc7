"""Addresses in the form HOST:PORT. The native part resolves host names."""

from __future__ import annotations

import ipaddress
import socket

from longfat.system.parameters import ParameterError

LISTEN = "127.0.0.1:9000"
"""The default address to listen at, which other machines cannot reach."""
ANY = "127.0.0.1:0"
"""The default of the Python API: any free port, which other machines cannot reach."""
_EXAMPLE = "write HOST:PORT, e.g. 127.0.0.1:9000 or [::1]:9000"


def listening(text: str, parameter: str) -> str:
    """Returns a checked address to listen at; port 0 is any free one. Raises ParameterError."""
    return _checked(text, parameter, least_port=0)


def peer(text: str, parameter: str) -> str:
    """Returns a checked address to send to. Raises ParameterError."""
    return _checked(text, parameter, least_port=1)


def is_open(address: str) -> bool:
    """Returns whether other machines reach this numeric address.

    >>> is_open("127.0.0.1:9000"), is_open("[::1]:9000"), is_open("0.0.0.0:9000")
    (False, False, True)
    """
    host = address.rpartition(":")[0].strip("[]").partition("%")[0]
    return not ipaddress.ip_address(host).is_loopback


def is_wildcard(address: str) -> bool:
    """Returns whether an address, or one of its host name, stands for all addresses of this machine.

    >>> is_wildcard("0.0.0.0:9000"), is_wildcard("[::]:9000"), is_wildcard("127.0.0.1:9000")
    (True, True, False)
    """
    host = address.rpartition(":")[0].strip("[]")
    try:
        found = socket.getaddrinfo(host, None)
    except OSError:
        # The native part reports names without an address.
        return False
    hosts = (ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found)
    return any((getattr(host, "ipv4_mapped", None) or host).is_unspecified for host in hosts)


def is_address(text: str) -> bool:
    """Returns whether a text has the form HOST:PORT.

    >>> is_address("localhost:9000"), is_address("notes.txt"), is_address("a/b:1")
    (True, False, False)
    """
    host, colon, port = text.rpartition(":")
    return bool(host and colon) and port.isdecimal() and "/" not in host


def _checked(text: str, parameter: str, least_port: int) -> str:
    host, _, port = text.rpartition(":")
    if not is_address(text):
        raise ParameterError(parameter, f'"{text}" is not an address: {_EXAMPLE}')
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise ParameterError(
            parameter, f'"{text}" is not an address: put IPv6 addresses in brackets; {_EXAMPLE}'
        )
    if not least_port <= int(port) <= 65_535:
        raise ParameterError(parameter, f'"{text}": port {port} is out of range: {least_port} to 65535')
    return text
