"""Statements of lessons about causes and times, read from traces.

`<!-- trace: STUDY [KEY=VALUE ...] [PROTOCOL]: EXPRESSION = VALUE -->` runs a trial of a study of the same
page and evaluates an expression over the names of `Observed`. Keys select a point of the sweep, those
with `+` set keys of the study; `trial=N` selects a trial.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

import longfat as lf

TRACE = re.compile(r"<!-- trace: (?P<trial>[^:]*): (?P<expression>.*?) = (?P<value>\S+) -->")
_FILE = re.compile(r"^<!-- file: (?P<file>\S+) -->\n```toml\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_SEGMENT = 1448
_TIMES = "time"


class Observed:
    """What a trace contains, as functions of expressions. Times are in s, windows in packets."""

    def __init__(self, traces: Any) -> None:
        self.events: pl.DataFrame = traces.events
        self.all: pl.DataFrame = traces.samples
        self.samples = self.all.filter(pl.col("flow") == 0)
        self.queues: pl.DataFrame = traces.queues
        (self.metrics,) = traces.metrics.values()

    def _found(self, what: str, after: float, before: float, **where: Any) -> pl.DataFrame:
        return self.events.filter(pl.col(_TIMES).is_between(after, before, closed="left"), what=what, **where)

    def count(self, what: str, after: float = 0, before: float = math.inf, **where: Any) -> int:
        """Returns the number of events of a kind in a period."""
        return self._found(what, after, before, **where).height

    def groups(self, what: str, pause: float, after: float = 0, **where: Any) -> int:
        """Returns the number of groups of events between pauses in s, such as losses of one round trip."""
        times: list[float] = self._found(what, after, math.inf, **where)[_TIMES].to_list()
        return sum(later - time > pause for time, later in pairwise(times)) + bool(times)

    def first(self, what: str, after: float = 0, **where: Any) -> float:
        """Returns the time of the first event of a kind."""
        return float(self._found(what, after, math.inf, **where)[_TIMES][0])

    def last(self, what: str, before: float = math.inf, **where: Any) -> float:
        """Returns the time of the last event of a kind."""
        return float(self._found(what, 0, before, **where)[_TIMES][-1])

    def sequence(self, what: str, number: int = 0, **where: Any) -> int:
        """Returns the sequence number of an event of a kind."""
        return int(self._found(what, 0, math.inf, **where)["sequence"][number])

    def sequences(self, what: str, after: float, before: float, **where: Any) -> list[int]:
        """Returns the sequence numbers of the events of a kind in a period."""
        return self._found(what, after, before, **where)["sequence"].to_list()

    def repeated(self) -> int:
        """Returns the number of data packets that arrived although the receiver had accepted them."""
        arrived = self._found("receive", 0, math.inf, frame="data")["sequence"].to_list()
        accepted, again = 0, 0
        for one in arrived:  # go-back-n: the receiver accepts only the next packet
            again += one < accepted
            accepted += one == accepted
        return again

    def discarded(self) -> int:
        """Returns the number of data packets that a receiver of Go-Back-N discards."""
        arrived = self._found("receive", 0, math.inf, frame="data")["sequence"].to_list()
        accepted = 0
        for one in arrived:
            accepted += one == accepted
        return len(arrived) - accepted

    def _column(self, column: str, after: float, before: float) -> pl.Series:
        inside = self.samples.filter(pl.col(_TIMES).is_between(after, before))
        found: pl.Series = inside[column].drop_nulls()
        return found

    def window(self, at: float) -> float:
        """Returns the congestion window at a time."""
        return float(self._column("cwnd_bytes", at, math.inf)[0]) / _SEGMENT

    def largest(self, column: str, after: float = 0, before: float = math.inf) -> float:
        """Returns the maximum of a column of samples in a period."""
        return float(self._column(column, after, before).max())  # type: ignore[arg-type]

    def smallest(self, column: str, after: float = 0, before: float = math.inf) -> float:
        """Returns the minimum of a column of samples in a period."""
        return float(self._column(column, after, before).min())  # type: ignore[arg-type]

    def mean(self, column: str, after: float = 0, before: float = math.inf) -> float:
        """Returns the mean of a column of samples in a period."""
        return float(self._column(column, after, before).mean())  # type: ignore[arg-type]

    def median(self, column: str, after: float = 0, before: float = math.inf) -> float:
        """Returns the median of a column of samples in a period."""
        return float(self._column(column, after, before).median())  # type: ignore[arg-type]

    def present(self, column: str, after: float = 0) -> float:
        """Returns the share of samples in which a column has a value."""
        return float(self.samples.filter(pl.col(_TIMES) >= after)[column].is_not_null().mean())

    def below(self, column: str, limit: float, after: float = 0) -> float:
        """Returns the share of samples in which a column is below a limit."""
        return float((self._column(column, after, math.inf) < limit).mean())  # type: ignore[arg-type]

    def when_below(self, column: str, limit: float) -> float:
        """Returns the first time at which a column of samples is below a limit."""
        return float(self.samples.filter(pl.col(column) < limit)[_TIMES][0])

    def sum_of_others(self, column: str, after: float = 0) -> float:
        """Returns the sum of the means of a column of samples of all flows but the first."""
        flows = self.all["flow"].unique().to_list()
        return sum(self.others(column, flow, after) for flow in flows if flow != 0)

    def length(self, frame: str, number: int = 0) -> int:
        """Returns the payload of a sent packet of a kind in bytes."""
        return int(self._found("send", 0, math.inf, frame=frame)["length"][number])

    def others(self, column: str, flow: int, after: float = 0) -> float:
        """Returns the mean of a column of samples of another flow."""
        inside = self.all.filter(pl.col(_TIMES) >= after, flow=flow)
        return float(inside[column].drop_nulls().mean())  # type: ignore[arg-type]

    def equal(self, column: str, other: str, within: float, flow: int = 0, after: float = 0) -> float:
        """Returns the share of samples of a flow in which two columns differ by less than `within`."""
        inside = self.all.filter(pl.col(_TIMES) >= after, flow=flow).drop_nulls([column, other])
        return float(((inside[column] - inside[other]).abs() < within).mean())  # type: ignore[arg-type]

    def when(self, column: str, limit: float, after: float = 0) -> float:
        """Returns the first time after `after` at which a column of samples is at least `limit`."""
        inside = self.samples.filter(pl.col(_TIMES) >= after, pl.col(column) >= limit)
        return float(inside[_TIMES][0])

    def queued(self, after: float = 0, before: float = math.inf) -> float:
        """Returns the mean number of packets in the first queue in a period."""
        first = self.queues.filter(pl.col("link") == self.queues["link"][0])
        return float(first.filter(pl.col(_TIMES).is_between(after, before))["packets"].mean())  # type: ignore[arg-type]

    def metric(self, name: str) -> float:
        """Returns a metric of the trial."""
        return float(self.metrics[name])

    def names(self) -> dict[str, Callable[..., Any]]:
        """Returns the functions of expressions."""
        public = {name: getattr(self, name) for name in dir(self) if not name.startswith("_")}
        return {
            **{name: one for name, one in public.items() if callable(one) and name != "names"},
            "ceil": math.ceil,
            "sqrt": math.sqrt,
            "cbrt": math.cbrt,
            "len": len,
        }


def _observed(trial: str, folder: Path) -> Observed:
    study, *words = trial.split()
    pairs = dict(word.split("=", 1) for word in words if "=" in word)
    protocol = next((word for word in words if "=" not in word), None)
    number = int(pairs.pop("trial", "0"))
    settings = {key.removeprefix("+"): pairs.pop(key) for key in list(pairs) if key.startswith("+")}
    traces = lf.trace(
        protocol, study=folder / study, cell=pairs or None, settings=settings or None, trial=number
    )
    return Observed(traces)


def wrong_observations(
    text: str, others: str = "", *, shown: Callable[[str], None] = lambda line: None
) -> list[str]:
    """Returns the statements of a page whose values differ from their traces; `others` has further files."""
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for match in _FILE.finditer(others + text):
            (folder / match["file"]).write_text(match["text"], encoding="utf-8")
        made: dict[str, Observed] = {}
        for match in TRACE.finditer(text):
            trial = " ".join(match["trial"].split())
            if trial not in made:
                made[trial] = _observed(trial, folder)
            names = made[trial].names()
            value = eval(match["expression"], {"__builtins__": {}}, names)  # the project's own pages
            digits = len(match["value"].partition(".")[2])
            if shown is not None:
                shown(f"{match['expression']} = {value} ({match['value']})")
            if not abs(value - float(match["value"])) <= 0.5001 * 10**-digits:
                wrong.append(f"{match[0]}: {value}")
    return wrong


if __name__ == "__main__":
    import sys

    from tests.docs import lessons

    for page in lessons.pages():
        if len(sys.argv) < 2 or any(one in page.name for one in sys.argv[1:]):
            print(page.name)
            for line in wrong_observations(page.read_text(encoding="utf-8"), shown=print):
                print("WRONG", line)
