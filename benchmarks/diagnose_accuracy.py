"""Compares the predictions of `longfat diagnose` with Linux on emulated paths whose properties are known.

`python benchmarks/diagnose_accuracy.py [NAME...] [--out FILE]` measures each path from one end, as a user
would, and then runs controllers between Linux kernels on the true path, once each. It prints whether the
interval of 95 % of transfers contains what Linux achieved. Needs root or user namespaces; takes about a
minute for each path.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import longfat as lf
from longfat.analysis.diagnosis import PathFigures
from longfat.api.diagnosis_study import study
from longfat.study.path_model import PathModel, write
from longfat.study.units import number

CONTROLLERS = ("reno", "cubic", "bbr1")
PATHS: dict[str, dict[str, Any]] = {
    "20M": {"rate": "20Mbit/s", "delay": "20ms", "queue": "100pkt"},
    "20M, shallow": {"rate": "20Mbit/s", "delay": "20ms", "queue": "15pkt"},
    "20M, deep": {"rate": "20Mbit/s", "delay": "20ms", "queue": "1000pkt"},
    "5M, deep": {"rate": "5Mbit/s", "delay": "20ms", "queue": "1000pkt"},
    "5M, shallow": {"rate": "5Mbit/s", "delay": "40ms", "queue": "10pkt"},
    "50M": {"rate": "50Mbit/s", "delay": "10ms", "queue": "200pkt"},
    "100M, short": {"rate": "100Mbit/s", "delay": "2ms", "queue": "100pkt"},
    "10M, long": {"rate": "10Mbit/s", "delay": "100ms", "queue": "200pkt"},
    "20M, 0.5 % loss": {"rate": "20Mbit/s", "delay": "20ms", "queue": "100pkt", "loss": "0.5%"},
    "20M, 2 % loss": {"rate": "20Mbit/s", "delay": "20ms", "queue": "100pkt", "loss": "2%"},
    "3 hops, loss on 1": {
        "hops": [
            {"rate": "100Mbit/s", "delay": "2ms", "queue": "200pkt", "loss": "1%"},
            {"rate": "20Mbit/s", "delay": "10ms", "queue": "100pkt"},
            {"rate": "100Mbit/s", "delay": "2ms", "queue": "200pkt"},
        ]
    },
    "3 hops, loss on 2": {
        "hops": [
            {"rate": "100Mbit/s", "delay": "2ms", "queue": "200pkt"},
            {"rate": "20Mbit/s", "delay": "10ms", "queue": "100pkt", "loss": "1%"},
            {"rate": "100Mbit/s", "delay": "2ms", "queue": "200pkt"},
        ]
    },
    "3 hops, loss on 3": {
        "hops": [
            {"rate": "100Mbit/s", "delay": "2ms", "queue": "200pkt"},
            {"rate": "20Mbit/s", "delay": "10ms", "queue": "100pkt"},
            {"rate": "50Mbit/s", "delay": "5ms", "queue": "200pkt", "loss": "1%"},
        ]
    },
}


def diagnosed(path: dict[str, Any]) -> dict[str, Any]:
    """Returns the document of `longfat diagnose` over an emulated path."""
    with tempfile.TemporaryDirectory() as folder:
        model, out = Path(folder) / "model.toml", Path(folder) / "found.json"
        write(model, PathModel(path))
        line = f"{sys.executable} -m longfat diagnose $LONGFAT_PEER --time 15s --json > {out}"
        words = [sys.executable, "-m", "longfat", "shell", "--path", str(model), "--", "sh", "-c", line]
        subprocess.run(words, check=True, capture_output=True)
        found: dict[str, Any] = json.loads(out.read_text())
        return found


def emulated(path: dict[str, Any], found: dict[str, Any], controller: str) -> dict[str, float]:
    """Returns the metrics of one transfer between Linux kernels over the true path, as in the prediction."""
    figures = PathFigures(found["rate_bps"], found["round_trip_s"], window=found["window_bytes"])
    tables = study("path", path, figures)
    protocol = next(one for one in tables["protocols"] if one["name"] == controller)
    settings = {key: value for key, value in protocol.items() if key != "name"}
    return dict(lf.emulate(settings, path, workload=tables["workload"]).metrics)


def compared(name: str, path: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns a row for each controller and metric."""
    found = diagnosed(path)
    listed = {one["name"]: one for one in found["controllers"]}
    with ThreadPoolExecutor(len(CONTROLLERS)) as pool:
        measured = list(pool.map(lambda one: emulated(path, found, one), CONTROLLERS))
    lossy = [number(hop.get("loss", "0%")) for hop in found["path"]["hops"]]
    about = {"path": name, "queue": found["queue_limit"], "loss": lossy, "conclusion": found["conclusion"]}
    rows = []
    for controller, metrics in zip(CONTROLLERS, measured, strict=True):
        for metric in ("goodput_bps", "rtt_p50_s"):
            interval, value = listed[controller][metric], metrics[metric]
            is_inside = interval["low"] <= value <= interval["high"]
            off = value / interval["value"] - 1
            rows.append(
                {**about, "controller": controller, "metric": metric, **interval, "linux": value}
                | {"is_inside": is_inside, "off": off}
            )
    return rows


def main() -> None:
    """Compares the paths and prints a line for each value."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="paths; by default all")
    parser.add_argument("--out", type=Path, help="file for all rows, as JSON lines")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in given.names or PATHS:
        new = compared(name, PATHS[name])
        print(name, "|", new[0]["conclusion"], "| loss of each link:", new[0]["loss"], flush=True)
        for row in new:
            scale, unit = (1e6, "Mbit/s") if row["metric"] == "goodput_bps" else (1e-3, "ms")
            value, low, high, linux = (row[key] / scale for key in ("value", "low", "high", "linux"))
            mark = "" if row["is_inside"] else f"  outside, {row['off']:+.0%}"
            predicted = f"{value:8.2f} [{low:.2f}, {high:.2f}] {unit}"
            print(f"  {row['controller']:6} {predicted}; Linux {linux:.2f}{mark}", flush=True)
        rows += new
        if given.out is not None:
            given.out.write_text("".join(json.dumps(row) + "\n" for row in rows))
    inside, near = (
        sum(row["is_inside"] for row in rows),
        sum(row["is_inside"] or abs(row["off"]) <= 0.05 for row in rows),
    )
    print(f"{inside} of {len(rows)} values inside their interval, {near} inside or within 5 % of the mean")


if __name__ == "__main__":
    main()
