"""`Session`: a simulated trial that advances in steps, with changes between them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex

from longfat import _native
from longfat.api.quantities import duration as seconds_of
from longfat.api.quantities import whole_bytes
from longfat.api.specification import specification
from longfat.api.trials import Trial, trial_of
from longfat.presentation.trace import frames as trace_frames
from longfat.presentation.trace.drawing import traced
from longfat.study.plain import plain
from longfat.study.problems import show
from longfat.study.vocabulary import allowed, canonical

if TYPE_CHECKING:
    import polars

    from longfat.study.tables import Path, Topology


@dataclass(frozen=True)
class Step:
    """What happened in one step: frames with the columns of `Traces`, of the step alone.

    `now` is the virtual time in s at its end, `over` whether the trial has ended.
    """

    now: float
    over: bool
    events: polars.DataFrame
    samples: polars.DataFrame
    queues: polars.DataFrame

    def __repr__(self) -> str:
        return f"Step(now={self.now:g} s, over={self.over}, {self.events.height} events)"


class Snapshot:
    """The state of a session, as the record of its steps and changes."""

    def __init__(self, spec: dict[str, Any], interval: float, log: tuple[tuple[str, Any], ...]) -> None:
        self._spec, self._interval, self._log = spec, interval, log

    def restore(self) -> Session:
        """Returns a session in this state, by simulating it again from the start.

        The result is exactly the same; it takes as long as the simulation up to this time took.
        """
        session = Session._of(self._spec, self._interval)
        for action, arguments in self._log:
            getattr(session, action)(*arguments)
        return session


class Session:
    """A simulated trial in steps. Links, protocols and flows can change between steps, and packets drop.

    The sizes of the steps do not affect the results: the trial advances through the same events.

    Args:
        protocol: As in `simulate`.
        path: As in `simulate`.
        size: As in `simulate`.
        topology: As in `simulate`.
        traffic: As in `simulate`.
        workload: As in `simulate`.
        duration: As in `simulate`.
        interval: Time between samples.
        seed: As in `simulate`.
        trial: As in `simulate`.

    Raises:
        ValueError: with the key, the value and what is allowed.

    >>> session = Session("cubic", {"rate": "10Mbit/s", "delay": "10ms"}, duration="10s")
    >>> session.advance("1s").samples["cwnd_bytes"].max() > 14480
    True
    >>> session.set_link("forward", rate="2Mbit/s")
    >>> session.advance("2s").now
    3.0
    """

    def __init__(
        self,
        protocol: Any,
        path: Path | Topology | Mapping[str, Any] | None = None,
        size: str | None = None,
        *,
        topology: Topology | Mapping[str, Any] | None = None,
        traffic: Any = (),
        workload: Any = None,
        duration: str | None = None,
        interval: str = "10ms",
        seed: SupportsIndex = 1,
        trial: SupportsIndex = 0,
    ) -> None:
        spec = specification(
            protocol,
            path,
            size,
            topology=topology,
            traffic=traffic,
            workload=workload,
            duration=duration,
            seed=seed,
            trial=trial,
        )
        self._start(spec, seconds_of("interval", interval, 1e-6))

    @classmethod
    def _of(cls, spec: dict[str, Any], interval: float) -> Session:
        session = cls.__new__(cls)
        session._start(spec, interval)
        return session

    def _start(self, spec: dict[str, Any], interval: float) -> None:
        self._spec, self._interval = spec, interval
        self._native = _native.Session(canonical(spec), interval)
        self._log: list[tuple[str, Any]] = []
        self._now, self._over = 0.0, False

    @property
    def now(self) -> float:
        """The virtual time in s."""
        return self._now

    @property
    def over(self) -> bool:
        """Whether the trial has ended: the transfer is complete, or its duration is over."""
        return self._over

    @property
    def links(self) -> list[str]:
        """The names of the links; those of a path are "forward" and "reverse"."""
        return self._native.links()

    def advance(self, step: str = "10ms") -> Step:
        """Runs a part of the trial.

        Args:
            step: Virtual time to run ("10ms"). The trial may end before.

        Returns:
            Events and samples of the step.

        Raises:
            ValueError: for a step that is no duration, after `finish`, and for an exception in a controller.
        """
        found = json.loads(self._native.advance(seconds_of("step", step)))
        self._log.append(("advance", (step,)))
        self._now, self._over = found["now_s"], found["over"]
        kind = str(self._spec["protocol"].get("congestion") or self._spec["protocol"]["kind"])
        trace = traced(kind, "sim", self._spec, {}, {"events": found["events"], "series": found["series"]})
        frames = (make([trace]) for make in (trace_frames.events, trace_frames.samples, trace_frames.queues))
        return Step(self._now, self._over, *frames)

    def set_link(self, link: str = "forward", **keys: Any) -> None:
        """Changes keys of a link, from now on.

        With another `queue`, waiting packets move to it in their order, and it drops what exceeds its limit.

        Args:
            link: Name of the link.
            **keys: Keys of `Path` with their values (`rate="2Mbit/s"`, `loss="1%"`); None removes a key.

        Raises:
            ValueError: for an unknown link or key, and for an invalid value.
        """
        for key, value in keys.items():
            self._native.set_link(link, key, json.dumps(plain(value, key)))
            self._log.append(("_set_link", (link, key, value)))

    def _set_link(self, link: str, key: str, value: Any) -> None:
        self.set_link(link, **{key: value})

    def set_protocol(self, *, traffic: str | None = None, **keys: Any) -> None:
        """Changes keys of a protocol, for its flows that run and for later ones.

        Running flows take over, for ARQ, `window` (in packets), `rto`, `min_rto`, `acknowledge_every` and
        `acknowledge_delay`; for TCP and MPTCP `congestion`, `min_rto`, `delayed_ack` and `ack_every`; for
        MPTCP also `scheduler`. A smaller window sends no new data until the data in flight fits.

        Args:
            traffic: Name of the traffic whose protocol changes; None for the measured flows.
            **keys: Keys of `Arq`, `Tcp` or `Mptcp` with their values (`window=4`); None restores a default.

        Raises:
            ValueError: for an unknown name or key, an invalid value, and a key that cannot change while flows
                run.
        """
        for key, value in keys.items():
            self._native.set_protocol(self._group(traffic), key, json.dumps(plain(value, key)))
            self._log.append(("_set_protocol", (traffic, key, value)))

    def _set_protocol(self, traffic: str | None, key: str, value: Any) -> None:
        self.set_protocol(traffic=traffic, **{key: value})

    def _group(self, traffic: str | None) -> int:
        """Returns the number of a group of flows: 0 for the measured ones, then the traffic in its order."""
        if traffic is None:
            return 0
        names = [one["name"] for one in self._spec.get("traffic", ())]
        if traffic not in names:
            known = allowed(traffic, names) if names else "it has none"
            raise ValueError(f"traffic: {show(traffic)} is not traffic of this session; {known}")
        return 1 + names.index(traffic)

    def set_controller(self, congestion: Any, flow: int | None = 0) -> None:
        """Replaces the congestion controller of an established TCP flow by one that starts now.

        Args:
            congestion: Name, class or table of a controller, as in `Tcp(congestion)`.
            flow: Number of the flow; None for the flows that start later.

        Raises:
            ValueError: for an unknown controller, and for a flow without an established connection.
        """
        self._native.set_controller(flow, json.dumps(plain(congestion, "congestion")))
        self._log.append(("set_controller", (congestion, flow)))

    def start_flow(self, size: str | None = None, pair: int = 0, traffic: str | None = None) -> int:
        """Starts a further flow of the workload, or of traffic, now, and returns its number.

        Args:
            size: Size of its data ("50kB"); None for that of the workload.
            pair: Number of the pair of hosts.
            traffic: Name of the traffic that it belongs to; None for the measured flows.

        Raises:
            ValueError: for an unknown name, a pair out of range, too many flows, and a trial that is over.
        """
        given = None if size is None else whole_bytes("size", size)
        number = self._native.start_flow(self._group(traffic), pair, given)
        self._log.append(("start_flow", (size, pair, traffic)))
        return number

    def stop_flow(self, flow: int = 0) -> None:
        """Stops a flow: it sends the data in its send buffer and closes.

        Raises:
            ValueError: for a flow that is complete or has not started.
        """
        self._native.stop_flow(flow)
        self._log.append(("stop_flow", (flow,)))

    def drop(self, packet: int) -> None:
        """Drops a packet at the end of its link, like a packet that the medium corrupts.

        Args:
            packet: Number of the packet, the column `id` of the events.

        Raises:
            ValueError: for a packet that is not on the path.
        """
        self._native.drop_packet(packet)
        self._log.append(("drop", (packet,)))

    def drop_next(self, flow: int = 0) -> None:
        """Drops the next data packet of a flow.

        Raises:
            ValueError: for a flow that is complete or has not started.
        """
        self._native.drop_next(flow)
        self._log.append(("drop_next", (flow,)))

    def snapshot(self) -> Snapshot:
        """Returns the current state, to which `Snapshot.restore` returns."""
        return Snapshot(self._spec, self._interval, tuple(self._log))

    def finish(self) -> Trial:
        """Ends the trial, and returns its metrics so far.

        Raises:
            TransferError: for a failed transfer.
        """
        return trial_of(json.loads(self._native.finish()), self._spec)

    def __repr__(self) -> str:
        from longfat.presentation import names

        state = "over" if self._over else "running"
        return f"Session({names.protocol_of(self._spec['protocol'])}, {self._now:g} s, {state})"
