"""Changes of a TCP relay's path at set times."""

from __future__ import annotations

import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longfat.api.quantities import duration
from longfat.api.relay_path import changed_path

if TYPE_CHECKING:
    from longfat.api.tcp_relays import Direction, TcpRelay

_KEYS = ("at", "set", "outage", "drop", "reset", "direction")
_ACTIONS = ("set", "outage", "drop", "reset")


@dataclass(frozen=True)
class Change:
    """A change `at_s` seconds after the start of the relay; `number` is its place in the file, from 1."""

    number: int
    at_s: float
    action: str
    value: Any
    direction: Direction = "both"

    def apply(self, relay: TcpRelay) -> None:
        """Applies the change. Raises ValueError."""
        match self.action:
            case "set":
                relay.set(self.value)
            case "outage":
                relay.start_outage(self.value, self.direction)
            case "drop":
                relay.drop_next(self.value, self.direction)
            case _:
                relay.reset_connections()


class Schedule:
    """Changes in the order of their times, which a thread applies."""

    def __init__(self, changes: Sequence[Change]) -> None:
        self.changes = sorted(changes, key=lambda change: change.at_s)
        self._stopped = threading.Event()

    def start(self, relay: TcpRelay, note: Callable[[str], None]) -> None:
        """Starts the thread; times count from now. `note` prints why a change failed."""
        started = time.monotonic()
        threading.Thread(target=self._run, args=(relay, started, note), daemon=True).start()

    def _run(self, relay: TcpRelay, started: float, note: Callable[[str], None]) -> None:
        for change in self.changes:
            if self._stopped.wait(max(0.0, started + change.at_s - time.monotonic())):
                return
            try:
                change.apply(relay)
            except OSError:
                return
            except ValueError as error:
                note(f"longfat: schedule at {change.at_s:g} s: {error}")

    def stop(self) -> None:
        """Leaves the remaining changes out."""
        self._stopped.set()


def read_schedule(file: str | Path, path: Mapping[str, Any]) -> Schedule:
    """Returns the schedule of a TOML file for a relay with this path.

    Its list `[[schedule]]` has tables with `at` and one of `set`, `outage`, `drop` and `reset`.

    Raises:
        ValueError: with the file, the entry and what is allowed.
        OSError: if the file cannot be read.
    """
    try:
        document = tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{file}: {error}") from None
    entries = document.get("schedule")
    if not isinstance(entries, list) or set(document) != {"schedule"}:
        raise ValueError(f"{file}: a schedule has entries [[schedule]] and nothing else")
    changes = []
    for number, entry in enumerate(entries, 1):
        with _located(file, number):
            changes.append(_change(entry, number))
    schedule = Schedule(changes)
    for change in schedule.changes:
        if change.action == "set":
            with _located(file, change.number):
                path = changed_path(path, change.value)
    return schedule


@contextmanager
def _located(file: str | Path, number: int) -> Iterator[None]:
    """Adds the file and the number of an entry to its errors."""
    try:
        yield
    except ValueError as error:
        message = "; ".join(str(error).splitlines())
        raise ValueError(f"{file}: schedule.{number}: {message}") from None


def _change(entry: Mapping[str, Any], number: int) -> Change:
    if unknown := [key for key in entry if key not in _KEYS]:
        raise ValueError(f"{unknown[0]}: unknown key; allowed: {', '.join(_KEYS)}")
    actions = [key for key in _ACTIONS if key in entry]
    if "at" not in entry or len(actions) != 1:
        raise ValueError(f"write at and one of {', '.join(_ACTIONS)}")
    at = duration("at", str(entry["at"]))
    action = actions[0]
    value = entry[action]
    direction = entry.get("direction", "both")
    if direction not in ("both", "forward", "reverse") or (
        "direction" in entry and action in ("set", "reset")
    ):
        raise ValueError(f"direction: {direction}: both, forward or reverse, with outage or drop")
    match action:
        case "set":
            if not isinstance(value, dict):
                raise ValueError('set: write a table of keys of the path, e.g. { loss = "2%" }')
        case "outage":
            duration("outage", str(value), 0.001, 86_400.0)
        case "drop":
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"drop: {value!r} is out of range: 1 or more")
        case _:
            if value is not True:
                raise ValueError("reset: write true")
    return Change(number, at, action, value, direction)
