"""`predict`: the duration of a transfer from latency, bandwidth and loss, by closed forms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

from longfat.analysis.theory.slow_start import Rules
from longfat.analysis.transfer_time import PROTOCOLS, Answer, Question, answer
from longfat.api import hops as reader
from longfat.api.defaults import PredictedController, PredictedProtocol
from longfat.api.quantities import Duration, Size, of_parameter, whole_bytes
from longfat.presentation.displayed import Displayed, TextTable
from longfat.presentation.measured import prediction
from longfat.study.tables import refuse, table_of
from longfat.system.parameters import ParameterError

if TYPE_CHECKING:
    import polars

    from longfat.api.hops import Ways
    from longfat.api.links import MeasuredPath
    from longfat.study.tables import Path

_TCP = ("tcp", "tfo", "ttcp")
_DEFAULT_PACKET = 1500
NO_FORM = (
    'no closed form; simulate it: longfat diagnose --from model.toml, or a study with extends = "model.toml"'
)
"""Why `predict` refuses other protocols and controllers, and what predicts them."""


@dataclass(frozen=True, repr=False)
class PredictedTime(Displayed):
    """A predicted duration: `seconds`, by parts with their causes, and further `figures`."""

    question: Question
    answer: Answer
    left_out: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """The whole duration in s."""
        return self.answer.seconds

    @property
    def figures(self) -> dict[str, Any]:
        """Further figures of the model, in SI units; they depend on the protocol."""
        return self.answer.figures

    @property
    def title(self) -> str:
        """Protocol, size and duration."""
        from longfat.presentation.formatting import quantity

        size = quantity(self.question.size, "B")
        return f"{size}, protocol {self.question.protocol}: {quantity(self.seconds, 's')}"

    def table(self) -> TextTable:
        """Returns a row for each part of the time, the total last."""
        return prediction.table(self.answer)

    def remarks(self) -> list[str]:
        """Returns causes, rates and limits of the model."""
        controller = self.question.controller if self.question.protocol in _TCP else None
        return prediction.remarks(self.answer, self.left_out, controller)

    def to_polars(self) -> polars.DataFrame:
        """Returns one row for each part: `name`, `seconds` and `kind` (its cause)."""
        import polars as pl

        parts = self.answer.parts
        return pl.DataFrame(
            {
                "name": [part.name for part in parts],
                "seconds": [part.seconds for part in parts],
                "kind": [part.kind for part in parts],
            }
        )

    def document(self) -> dict[str, Any]:
        """Returns all figures as JSON values."""
        return prediction.document(self.question, self.answer, self.left_out)


def predict(
    path: Path | Mapping[str, Any] | MeasuredPath | str | File | Sequence[str],
    size: Size | None = None,
    *,
    protocol: PredictedProtocol = "none",
    packets: int | None = None,
    packet: Size | None = None,
    reply: Size | None = None,
    service: Duration = "0s",
    receive: Duration = "0s",
    processing: Duration = "0s",
    congestion: PredictedController | None = None,
    initial_window: int = 10,
    window: Size | None = None,
    delayed_acks: bool = True,
    timestamps: bool = True,
) -> PredictedTime:
    """Predicts the duration of a transfer, without a simulation.

    Args:
        path: A path, a measured path, the file of a path model, or hops as text from near to far:
            `["rate=T1 delay=5ms processing=1ms", "rate=10Mbit/s delay=1ms"]`.
        size: Bytes of payload, or without a protocol bytes on the wire, e.g. "1MB".
        protocol: Protocol; none: bare packets, tfo and ttcp: TCP without a handshake.
        packets: Number of packets, instead of `size`; without a protocol only.
        packet: Largest packet on the wire; by default 1500B.
        reply: Bytes of a reply, for a transaction.
        service: Service time between request and reply.
        receive: Processing time of the last packet at the end host.
        processing: Additional processing time of every hop.
        congestion: TCP's controller on lossy paths; by default cubic.
        initial_window: Initial window of TCP in segments (RFC 6928).
        window: Largest window of TCP, e.g. "64kB".
        delayed_acks: An ACK for every second segment of TCP.
        timestamps: Timestamps of TCP, 12 B per segment.

    Returns:
        The duration in s by parts, with their causes.

    Raises:
        ValueError: with the parameter and what is allowed; also for a path without a closed form.

    >>> predict({"rate": "10Mbit/s", "delay": "20ms"}, "1MB", protocol="tcp").seconds
    0.937...
    """
    ways, left_out = _ways(path)
    if protocol not in PROTOCOLS:
        known = ", ".join(PROTOCOLS)
        raise ParameterError("protocol", f'"{protocol}" is not one of {known}: {NO_FORM}')
    if congestion is not None and protocol not in _TCP:
        raise ParameterError("congestion", f"{protocol} has no congestion control: use {{protocol}} tcp")
    if congestion is not None and congestion not in prediction.CONTROLLERS:
        known = ", ".join(prediction.CONTROLLERS)
        raise ParameterError("congestion", f'"{congestion}" is not one of {known}: {NO_FORM}')
    ways = reader.with_processing(ways, of_parameter("processing", processing, "duration"))
    most = whole_bytes("packet", packet) if packet is not None else _DEFAULT_PACKET
    if (size is None) == (packets is None):
        raise ParameterError("", "set either {size} or {packets}")
    if packets is not None and protocol != "none":
        raise ParameterError("packets", "applies without a protocol only: set {size}")
    rules = Rules(
        header=52 if timestamps else 40,
        syn=60 if timestamps else 52,
        initial_window=initial_window,
        ack_every=2 if delayed_acks else 1,
        window=math.inf if window is None else of_parameter("window", window, "size"),
    )
    if rules.window < rules.segment:
        raise ParameterError("window", f"{window} is less than a segment of {rules.segment} B")
    question = Question(
        *ways,
        size=most * packets if packets is not None else whole_bytes("size", str(size)),
        packet=most,
        protocol=protocol,
        reply=None if reply is None else whole_bytes("reply", reply),
        receive=of_parameter("receive", receive, "duration"),
        service=of_parameter("service", service, "duration"),
        rules=rules,
        controller=congestion or "cubic",
    )
    if congestion is not None and not question.is_lossy:
        raise ParameterError("congestion", "applies to lossy paths only: set {loss}")
    if question.service and reply is None:
        raise ParameterError("", "{service} requires {reply}")
    found = answer(question)
    return PredictedTime(question, found, (*left_out, *found.left_out))


def _ways(path: Any) -> tuple[Ways, list[str]]:
    if isinstance(path, str | File):
        return reader.of_model(File(path))
    if hasattr(path, "to_path"):
        path = path.to_path()
    if isinstance(path, Mapping) or hasattr(path, "to_study"):
        table = table_of(path, "path")
        refuse("path", table)
        return reader.of_path(table)
    return reader.read(list(path)), []
