"""Traces of a toy sender in the simulator's format, for tests of drawings."""

from __future__ import annotations

from typing import Any

Trace = dict[str, Any]

MSS = 1460
RTT = 0.04
ISN = 4_294_960_000
"""Initial sequence number; the sequence numbers wrap soon."""
COLUMNS = (
    "time",
    "cwnd_bytes",
    "ssthresh_bytes",
    "rtt_s",
    "srtt_s",
    "in_flight_bytes",
    "goodput_bps",
    "state",
)


def trace(flows: int = 1, seconds: float = 4.0, lose_every: int = 400) -> Trace:
    """Returns the trace of flows whose windows grow by a segment per RTT and halve at each loss."""
    toys = [Toy(number, lose_every + 37 * number) for number in range(flows)]
    for toy in toys:
        toy.run(seconds)
    events = sorted((event for toy in toys for event in toy.events), key=lambda event: float(event["time"]))
    sampled = [toy.samples for toy in toys]
    times = sampled[0]["time"]
    packets = [sum(flow["in_flight_bytes"][i] for flow in sampled) // MSS // 3 for i in range(len(times))]
    for flow in sampled:
        flow["controller"] = {"w_max_bytes": [None, *flow["cwnd_bytes"][1:]]}
    queue = {"link": "bottleneck", "time": times, "packets": packets, "bytes": [p * 1500 for p in packets]}
    series = {"interval_s": RTT / 4, "flows": sampled, "queues": [queue]}
    return {"metrics": {}, "error": None, "events": events, "series": series}


class Toy:
    """A flow that sends one window per RTT."""

    def __init__(self, number: int, lose_every: int) -> None:
        self.number, self.lose_every = number, lose_every
        self.events: list[Trace] = []
        self.samples: Trace = {"flow": number, "name": f"s{number + 1}", **{name: [] for name in COLUMNS}}
        self.packet = number * 1_000_000
        self.segment = 0
        self.window = 10.0
        self.threshold: int | None = None

    def run(self, seconds: float) -> None:
        self.connect()
        time = RTT
        while time < seconds:
            missing = self.send_window(time)
            self.sample(time, "open" if missing is None else "recovery")
            if missing is None:
                self.window += 1.0
            else:
                again = self.data(missing, retransmission=True)
                self.event(time + RTT, "sender", "send", "data", again)
                self.event(time + 1.5 * RTT, "receiver", "receive", "data", again)
                self.window = max(2.0, self.window / 2)
                self.threshold = int(self.window * MSS)
            time += RTT

    def connect(self) -> None:
        syn = {"id": self.number_packet(), "sequence": ISN, "length": 0}
        self.event(0.0, "sender", "send", "syn", syn)
        self.event(RTT / 2, "receiver", "receive", "syn", syn)
        answer = {"id": self.number_packet(), "sequence": 7, "length": 0, "window": 65_535}
        answer["acknowledgement"] = ISN + 1
        self.event(RTT / 2, "receiver", "send", "syn-ack", answer)
        self.event(RTT, "sender", "receive", "syn-ack", answer)

    def send_window(self, time: float) -> int | None:
        """Sends a window; returns the lost segment, if any."""
        missing, burst = None, int(self.window)
        for i in range(burst):
            at = time + i * RTT / burst
            data = self.data(self.segment)
            self.event(at, "sender", "send", "data", data)
            if missing is None and self.segment % self.lose_every == self.lose_every - 1:
                missing = self.segment
                self.event(at + RTT / 8, "sender", "drop", "data", {**data, "reason": "queue"})
            else:
                self.event(at + RTT / 2, "receiver", "receive", "data", data)
                self.acknowledge(at + RTT / 2, missing)
            self.segment += 1
        return missing

    def acknowledge(self, time: float, missing: int | None) -> None:
        after = self.at(self.segment + 1)
        ack = {"id": self.number_packet(), "sequence": 8, "length": 0, "window": 400_000}
        ack["acknowledgement"] = after if missing is None else self.at(missing)
        blocks = {} if missing is None else {"sack": [[self.at(missing + 1), after]]}
        self.event(time, "receiver", "send", "ack", {**ack, **blocks})
        self.event(time + RTT / 2, "sender", "receive", "ack", {**ack, **blocks})

    def sample(self, time: float, state: str) -> None:
        for quarter in range(4):
            row = (
                time + quarter * RTT / 4,
                int(self.window * MSS),
                self.threshold,
                RTT + self.window * 2e-4 + quarter * 3e-4,
                RTT + self.window * 2e-4,
                int(self.window * (0.8 + 0.05 * quarter)) * MSS,
                self.window * MSS * 8 / RTT,
                state,
            )
            for name, value in zip(COLUMNS, row, strict=True):
                self.samples[name].append(value)

    def data(self, segment: int, **more: bool) -> Trace:
        sequence = self.at(segment)
        common = {"id": self.number_packet(), "sequence": sequence, "length": MSS, "acknowledgement": 8}
        return {**common, **more}

    def at(self, segment: int) -> int:
        return (ISN + 1 + segment * MSS) % 2**32

    def number_packet(self) -> int:
        self.packet += 1
        return self.packet

    def event(self, time: float, host: str, what: str, frame: str, packet: Trace) -> None:
        to_receiver = (host == "sender") == (what in ("send", "drop"))
        size = packet["length"] + 52
        self.events.append(
            {
                "time": time,
                "flow": self.number,
                "host": host,
                "what": what,
                "direction": "forward" if to_receiver else "reverse",
                "frame": frame,
                "size": size,
                **packet,
            }
        )
