"""TCP Prague beside CUBIC, BBRv1 and BBRv3 in nine queues, compared with published shares.

`l4s_sharing.csv` has means and standard deviations of ten trials from the data of Sarpkaya, Srivastava,
Fund and Panwar, "To adopt or not to adopt L4S-compatible congestion control?", PAM 2025
(github.com/fatihsarpkaya/L4S-PAM2025): 100 Mbit/s, 10 ms, 60 s, buffers in BDP. As in their notebooks, a host
delays the packets of both directions before the bottleneck; its jitter is an assumption. As their kernels
do, BBR sends whole bursts, receivers compress ACKs of data above a gap, and Prague has the rules of 0.6.
Prints each cell and the number of cells within 0.05 of the published share.

Usage: python benchmarks/l4s_sharing.py [--repeats 3] [--jitter 0.05ms] [--only RIVAL/QUEUE] [--json]
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from pathlib import Path
from typing import Any

import longfat as lf

PUBLISHED = Path(__file__).with_suffix(".csv")
TOLERANCE = 0.05
BDP_BYTES = 125_000
LINUX: dict[str, Any] = {"kind": "tcp", "sack_compression": True}
PRAGUE = {**LINUX, "congestion": {"kind": "prague", "rtt_transition": 500, "initial_alpha": 1.0}}
RIVALS: dict[str, Any] = {
    "cubic-ecn": {**LINUX, "congestion": "cubic", "ecn": True},
    "cubic": {**LINUX, "congestion": "cubic", "ecn": False},
    "bbr1": {**LINUX, "congestion": {"kind": "bbr1", "whole_bursts": True}, "ecn": False},
    # Without low-latency ECN on the route, BBRv3 of google/bbr ignores marks.
    "bbr3-ecn": {
        **LINUX,
        "congestion": {"kind": "bbr", "marks": "none", "whole_bursts": True},
        "ecn": True,
    },
    "bbr3": {**LINUX, "congestion": {"kind": "bbr", "whole_bursts": True}, "ecn": False},
}
NEVER = {"target": "10s", "interval": "10s"}
"""A CoDel that never acts: only its threshold marks."""


def queue(kind: str, buffer_bdp: float) -> Any:
    """Returns a queue of the paper: its classic queues mark or drop above 5 ms."""
    size = int(BDP_BYTES * buffer_bdp)
    limit = f"{size // 1500 + 1}pkt"
    queues: dict[str, Any] = {
        "fifo": f"{size}B",
        "codel": {"kind": "codel", "limit": limit},
        "codel-ecn": {"kind": "codel", "limit": limit, "ecn": True},
        "pie": {"kind": "pie", "limit": limit, "target": "5ms"},
        "step": {"kind": "codel", "limit": limit, "ce_threshold": "5ms", **NEVER},
        "fq": {"kind": "fq-codel", "limit": limit, "ce_threshold": "5ms", "overflow": "arriving", **NEVER},
        "fq-codel": {"kind": "fq-codel", "limit": limit, "ecn": True},
        "fq-codel-l4s": {
            "kind": "fq-codel",
            "limit": limit,
            "ecn": True,
            "ce_threshold": "1ms",
            "ce_ect1_only": True,
        },
        "dualpi2": {"kind": "dualpi2", "target": "5ms"},
    }
    return queues[kind]


def network(queue: Any, jitter: str) -> dict[str, Any]:
    """Returns the paper's network: the host that delays, and the router with the queue."""
    delay = {"rate": "10Gbit/s", "delay": "5ms", "jitter": jitter, "queue": "60000pkt"}
    uncongested = {"rate": "10Gbit/s", "queue": "1000pkt"}
    router = {"rate": "100Mbit/s", "delay": "0.05ms", "queue": queue, "reverse": uncongested}
    return {"kind": "parking-lot", "hops": 2, "bottleneck": [delay, router]}


def share(rival: str, queue: Any, repeats: int, jitter: str) -> float:
    """Returns the mean share of the Prague flow."""
    across = {"kind": "bulk", "from": "s0", "to": "r0"}
    study = {
        "title": "Prague beside a classic flow",
        "repeats": repeats,
        "topology": network(queue, jitter),
        "protocols": [{"name": "prague", **PRAGUE}],
        "workload": {**across, "duration": "60s", "start_jitter": "1s"},
        "traffic": [{"name": "rival", "protocol": RIVALS[rival], "workload": across}],
        "show": ["share"],
    }
    with tempfile.TemporaryDirectory() as folder:
        shares = lf.run(study, out=Path(folder) / "run").to_polars()["share"]
    return float(shares.mean())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--jitter", default="0.05ms")
    parser.add_argument("--only", default="", help="part of RIVAL/QUEUE, e.g. cubic/fifo")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    with PUBLISHED.open(encoding="utf-8") as file:
        for cell in csv.DictReader(file):
            if options.only not in f"{cell['rival']}/{cell['queue']}":
                continue
            buffer, published = float(cell["buffer_bdp"]), float(cell["share"])
            found = share(cell["rival"], queue(cell["queue"], buffer), options.repeats, options.jitter)
            is_near = abs(found - published) <= TOLERANCE
            rows.append({**cell, "longfat": round(found, 3), "within": is_near})
            if not options.json:
                mark = "" if is_near else "  beyond 0.05"
                print(
                    f"{cell['rival']:10}{cell['queue']:14}{buffer:5g} BDP  published {published:.3f}"
                    f" ±{float(cell['deviation']):.3f}  longfat {found:.3f}{mark}",
                    flush=True,
                )
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        print(f"{sum(row['within'] for row in rows)} of {len(rows)} cells within {TOLERANCE}")


if __name__ == "__main__":
    main()
