"""CPU time per ACK that a congestion controller in Python adds to the same algorithm in Rust."""

from __future__ import annotations

import statistics
import time

import longfat as lf


class Reno(lf.CongestionController):
    """Reno with byte counting (RFC 5681), like the built-in `reno`."""

    def __init__(self) -> None:
        self.limit = float("inf")
        self.reduced_at = -1.0

    def on_acknowledged(self, ack: lf.Acknowledgement) -> None:
        if not ack.window_limited or ack.in_recovery:
            return
        if self.window < self.limit:
            self.window += ack.bytes
        else:
            self.window += self.segment * ack.bytes / self.window

    def on_lost(self, loss: lf.Loss) -> None:
        if loss.newest_sent_at > self.reduced_at:
            self.reduced_at = loss.now
            self.limit = self.window = max(self.window / 2, 2 * self.segment)

    def on_timeout(self, now: float, in_flight: int) -> None:
        self.limit = max(in_flight / 2, 2 * self.segment)
        self.window = self.segment


def cost(controller: object) -> tuple[float, float]:
    """Returns CPU time in seconds of one trial and its data packets."""
    start = time.process_time()
    trial = lf.simulate(
        path={"rate": "100Mbit/s", "delay": "10ms", "queue": "100pkt"},
        protocol={"kind": "tcp", "congestion": controller},
        workload={"kind": "bulk", "duration": "60s"},
    )
    return time.process_time() - start, trial.metrics["packets_sent"]


def main() -> None:
    """Prints the medians of five alternating rounds."""
    rounds = [(cost("reno"), cost(Reno)) for _ in range(5)]
    rust = statistics.median(seconds / packets for (seconds, packets), _ in rounds)
    python = statistics.median(seconds / packets for _, (seconds, packets) in rounds)
    print(f"reno in Rust    {rust * 1e9:6.0f} ns of CPU time per data packet (one ACK for two)")
    print(f"Reno in Python  {python * 1e9:6.0f} ns, {(python - rust) * 2e9:.0f} ns more per ACK")


if __name__ == "__main__":
    main()
