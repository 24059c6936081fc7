"""The compiled part of longfat (crates/python). Documents travel as JSON text.

ValueError carries one clear line about bad input, OSError one about the system.
"""

from typing import Literal

def version() -> str:
    """The version of longfat, e.g. "0.1.0"."""

def vocabulary() -> str:
    """What a study file may say, as JSON.

    Keys: "path", "protocol", "workload" (JSON Schemas), "presets" (name to its keys `forward` and
    those that differ in `reverse`) and "metrics" (name to `unit`, `help`, `better`).
    """

def check(section: Literal["path", "protocol", "workload"], json: str) -> str:
    """The problems of one section, as a JSON list of `{"key", "message"}`; empty where it is fine.

    Keys are dotted and start inside the section ("reverse.rate"); empty for the section as a whole.
    """

class Cancel:
    """A flag by which another thread ends a simulation."""

    def __init__(self) -> None: ...
    def cancel(self) -> None:
        """Every `simulate` that holds this flag soon raises `Cancelled`."""

class Cancelled(Exception):  # noqa: N818 - the native part names it
    """The trial was cancelled; it has no record."""

def simulate(spec_json: str, cancel: Cancel | None = None) -> str:
    """Runs one trial in virtual time (the GIL is released) and gives its record as JSON."""

def trace(spec_json: str, pcapng: str | None = None) -> str:
    """As `simulate`, with the list "events" in the record; writes a pcapng file where a path is given."""

def endpoint(role: str, spec_json: str, addr: str | None) -> str:
    """One process (`receive`, `relay`, `send`) of a trial in the world `relay`; releases the GIL and blocks.

    `receive` and `relay` first print `{"listening": "127.0.0.1:port"}` on standard output and are ended from
    outside; `send` returns the record. `addr` is where `relay` forwards to and `send` sends to.
    """
