"""Addresses as a person writes them: HOST:PORT. Which machine a host is, the native part finds out."""

from __future__ import annotations

import ipaddress

LISTEN = "127.0.0.1:9000"
"""Where to listen if nothing else is said: for this machine alone."""


def listening(text: str, option: str) -> str:
    """An address to listen at, port 0 for any free one; ValueError names the option and what is allowed."""
    return _checked(text, option, least_port=0)


def peer(text: str, option: str) -> str:
    """An address to send to; ValueError names the option and what is allowed."""
    return _checked(text, option, least_port=1)


def is_open(address: str) -> bool:
    """Whether other machines reach this numeric address.

    >>> is_open("127.0.0.1:9000"), is_open("[::1]:9000"), is_open("0.0.0.0:9000")
    (False, False, True)
    """
    host = address.rpartition(":")[0].strip("[]").partition("%")[0]
    return not ipaddress.ip_address(host).is_loopback


def looks_like_one(text: str) -> bool:
    """Whether a word has the form HOST:PORT.

    >>> looks_like_one("localhost:9000"), looks_like_one("notes.txt"), looks_like_one("a/b:1")
    (True, False, False)
    """
    host, colon, port = text.rpartition(":")
    return bool(host and colon) and port.isdecimal() and "/" not in host


def _checked(text: str, option: str, least_port: int) -> str:
    example = "write HOST:PORT, e.g. 127.0.0.1:9000 or [::1]:9000"
    host, _, port = text.rpartition(":")
    if not looks_like_one(text):
        raise ValueError(f'{option}: "{text}" is no address: {example}')
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise ValueError(f'{option}: "{text}" is no address: an IPv6 address stands in brackets; {example}')
    if not least_port <= int(port) <= 65_535:
        raise ValueError(f'{option}: "{text}": port {port} is out of range: {least_port} to 65535')
    return text
