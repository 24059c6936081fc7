"""`explain`: what limited the connections of a capture, when, and what would help."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import TYPE_CHECKING, Any, SupportsIndex

from longfat import _native
from longfat.analysis.captures import explained, phases
from longfat.analysis.captures.confidence import confidence, word_of
from longfat.analysis.captures.explained import Direction
from longfat.analysis.captures.phases import Phase
from longfat.analysis.captures.replayed import Replay
from longfat.api import explanation_replay
from longfat.api.quantities import Rate, of_parameter
from longfat.presentation import names
from longfat.presentation.displayed import Displayed, TextTable
from longfat.presentation.formatting import quantity
from longfat.presentation.measured import explanation_others, explanation_text
from longfat.system.parameters import ParameterError
from longfat.system.progress import watching

if TYPE_CHECKING:
    import polars

MOST_TRIALS = 1000
MOST_MARKS = 20_000
"""Marks of the graph of sequence numbers in a report."""


@dataclass(frozen=True, repr=False)
class Explanation(Displayed):
    """What limited the transfers of a capture.

    `document` has every figure of every connection. `one` is the direction that is explained, that with most
    data of the chosen connection; None for a capture without TCP. `replay` is its simulation.
    """

    document: Mapping[str, Any]
    one: Direction | None
    replay: Replay | None = None
    capture: File | None = None
    """The file; None for standard input."""

    @property
    def limit(self) -> str | None:
        """The limit with the largest share of the time, such as "loss" or "receive window"."""
        return None if self.one is None else self.one.limit

    @property
    def limits(self) -> dict[str, float]:
        """Share of the time of each limit, largest first."""
        return {} if self.one is None else self.one.limits

    @property
    def phases(self) -> list[Phase]:
        """Up to four phases in order, each with `start` and `end` in s and the main limit."""
        return [] if self.one is None else phases.phases(self.one)

    @property
    def verdict(self) -> str:
        """What limited the transfer, in one sentence."""
        return "No TCP connection." if self.one is None else explanation_text.verdict(self.one)

    @property
    def title(self) -> str:
        """The connection, its data and its goodput."""
        if self.one is None:
            return f"{self.document['frames']} frames, no TCP connection"
        return explanation_text.heading(self.one)

    def table(self) -> TextTable:
        """Returns the causes with the most time, their frames and evidence."""
        return (
            explanation_text.connections(self.document)
            if self.one is None
            else explanation_text.causes(self.one)
        )

    def connections(self) -> TextTable:
        """Returns the connections with most data, each with its limit."""
        return explanation_text.connections(self.document)

    def remarks(self) -> list[str]:
        """Returns the phases, the path, the sender, what would help, and what the capture does not show."""
        found = []
        if self.one is not None:
            found = [*explanation_text.when(self.one), explanation_text.path(self.one)]
            found += explanation_others.multipath(self.document, self.one)
        found += explanation_others.quic(self.document)
        if self.replay is not None:
            found += explanation_text.replayed(self.replay)
        return found + explanation_text.notes(self.document, self.one)

    def to_polars(self) -> polars.DataFrame:
        """Returns one row for each interval: start and end in s, cause, first and last frame."""
        import polars as pl

        rows = [] if self.one is None else self.one.document["intervals"]
        return pl.DataFrame(
            [
                {
                    "start_s": row["start_s"],
                    "end_s": row["end_s"],
                    "cause": row["cause"],
                    "first_frame": row["frames"][0],
                    "last_frame": row["frames"][1],
                }
                for row in rows
            ],
            schema={
                "start_s": pl.Float64,
                "end_s": pl.Float64,
                "cause": pl.String,
                "first_frame": pl.Int64,
                "last_frame": pl.Int64,
            },
        )

    def drawing(self) -> dict[str, Any] | None:
        """Returns flight, windows, RTT and rate over time with the causes as a band, as Vega-Lite."""
        from longfat.presentation.measured import explanation_charts

        return None if self.one is None else explanation_charts.over_time(self.one)

    def to_json(self) -> dict[str, Any]:
        """Returns every figure as JSON values."""
        found = dict(self.document)
        found["explained"] = None if self.one is None else self._explained(self.one)
        return found

    def _explained(self, one: Direction) -> dict[str, Any]:
        return {
            "stream": one.connection["stream"],
            "from": "client" if one.is_client else "server",
            "verdict": self.verdict,
            "limit": one.limit,
            "limits": one.limits,
            "confidence": {
                limit: {
                    "word": word_of(one, limit),
                    "right": found.right,
                    "named": found.named,
                    "least": found.least,
                }
                for limit in one.limits
                for found in [confidence(one, limit)]
            },
            "phases": [
                {"start_s": phase.start, "end_s": phase.end, "limit": phase.limit} for phase in self.phases
            ],
            "replay": None if self.replay is None else self.replay.document(),
        }

    def write(self, file: str | File) -> None:
        """Writes the report as HTML. Raises OSError, and ValueError without a connection."""
        from longfat.presentation.measured import explanation_page
        from longfat.system.files import write_whole

        if self.one is None:
            raise ValueError(f"{file}: the capture has no TCP connection to draw")
        drawn = replace(self, one=self._with_packets(self.one))
        write_whole(File(file), explanation_page.page(drawn).encode())

    def _with_packets(self, one: Direction) -> Direction:
        """Returns a direction with its packets for the graph of sequence numbers, which need the file."""
        if self.capture is None:
            return one
        sender, receiver = one.ends
        frames, interface = tuple(one.connection["frames"]), one.connection["interface"]
        text = _native.capture_sequence(str(self.capture), sender, receiver, frames, interface, MOST_MARKS)
        return replace(one, document={**one.document, "packets": json.loads(text)})

    def write_model(self, file: str | File) -> None:
        """Writes the path as TOML, for `run` and `shell`. Raises OSError, and ValueError if it is unknown."""
        import tomli_w

        from longfat.system.files import write_whole

        if self.one is None:
            raise ValueError(f"{file}: the capture has no TCP connection")
        one, path = self.one, explanation_replay.path_model(self.one)
        lines = [f"# {self.title}"]
        if not one.path["rate_bps"]:
            least = path.pop("rate")
            lines.append(
                f"# The rate of the link is unknown, at least {least}. Without a rate it is unlimited."
            )
        if memory := explanation_replay.protocol_model(one, "").get("receive_buffer"):
            window = quantity(one.path["window"], "B")
            lines.append(f'# The window is at most {window}: receive_buffer = "{memory}" of a protocol.')
        if explanation_replay.is_queue_assumed(one):
            lines.append("# The queue is assumed: no loss by a full queue shows its size.")
        if self.replay is not None and self.replay.is_controller_clear:
            sender = names.protocol(str(self.replay.controller))
            lines.append(
                f"# The sender is probably {sender}. diagnose decides by CUBIC, and lists the others."
            )
        write_whole(File(file), "\n".join([*lines, tomli_w.dumps({"path": path})]).encode())


def explain(
    capture: File | str,
    *,
    flow: SupportsIndex | None = None,
    rate: Rate | None = None,
    replay: bool = True,
    trials: SupportsIndex = 10,
    progress: bool | None = None,
) -> Explanation:
    """Explains a capture: what limited its largest connection, when, and what would help.

    Args:
        capture: Capture file: pcap or pcapng, also compressed with gzip or zstd; "-" is standard input, which
            Ctrl-C ends: what was read until then is explained.
        flow: Number of the connection in the order of first packets, from 0, as `tcp.stream` in Wireshark; by
            default that with most data.
        rate: Rate of the bottleneck, such as "20Mbit/s", if you know it: captures without a queue show only a
            lower bound. Predictions and the path model use it.
        replay: Whether to simulate the transfer over the path that the capture shows, and with changes.
        trials: Simulated trials of each controller and change.
        progress: Whether to show the progress; by default in a notebook or at a prompt.

    Returns:
        The limit, the time of each cause with its frames, the path, and the durations with changes.

    Raises:
        ValueError: if the file is no capture, or has no such connection.
        OSError: if it cannot be read.
    """
    number = None if flow is None else int(flow)
    count = int(trials)
    if not 2 <= count <= MOST_TRIALS:
        raise ParameterError("trials", f"is out of range: 2 to {MOST_TRIALS}")
    known = None if rate is None else of_parameter("rate", rate, "rate")
    if known == 0:
        raise ParameterError("rate", f'"{rate}" is not above 0')
    display = watching(progress)

    def show(text: str) -> None:
        display.show("capture", text)

    try:
        document = _read(capture, lambda frames: show(f"{frames:,} frames"))
        one = _chosen(document, number)
        if one is not None and known is not None:
            one = one.with_rate(known)
        replayed = None
        if replay and one is not None and one.limit is not None:
            replayed = explanation_replay.replay(one, count, show)
    finally:
        display.close()
    return Explanation(document, one, replayed, None if str(capture) == "-" else File(capture))


def _read(capture: File | str, on_frames: Any) -> dict[str, Any]:
    source = None if str(capture) == "-" else str(capture)
    try:
        text = _native.explain_capture(source, on_frames)
    except ValueError as error:
        raise ValueError(f"{_name(capture)}: {error}") from None
    except OSError as error:
        raise OSError(f"cannot read {_name(capture)}: {error}") from None
    found: dict[str, Any] = json.loads(text)
    return found


def _name(capture: File | str) -> str:
    return "standard input" if str(capture) == "-" else str(capture)


def _chosen(document: Mapping[str, Any], number: int | None) -> Direction | None:
    """Returns the direction with most data of a connection, by default of the largest one."""
    found = document["connections"]
    if number is None:
        return explained.groups(document)[0][0] if found else None
    for connection in found:
        if connection["stream"] == number:
            return explained.directions(connection)[0]
    allowed = f"0 to {len(found) - 1}" if found else "none: the capture has no TCP connection"
    raise ParameterError("flow", f"{number} is not a connection; allowed: {allowed}")
