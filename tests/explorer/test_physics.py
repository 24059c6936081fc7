"""What the page shows (times, windows, queues, losses) equals the trace of the same study, for 20 scenes.

The modules of the page play each scene with the simulator as WebAssembly, in steps of frames. The page
exports the scene as a study, and `lf.trace` runs its trial with the native simulator.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests import requirements

import longfat as lf

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("physics")]

HERE = Path(__file__).parent
EXPLORER = HERE.parents[1] / "explorer"
INTERVAL_S = 0.01

LESSONS = {f"lesson {number}": {"scene": f"#lesson={number}", "until": 1.5} for number in range(1, 13)}
OTHERS: dict[str, dict[str, Any]] = {
    "start": {"scene": {}, "until": 2.5},
    "bursts": {"scene": {"worlds": ["reno", "cubic"], "loss": "2%", "burst": 4}, "until": 3},
    "jitter": {"scene": {"worlds": ["vegas", "bbr"], "jitter": "5ms", "seed": 7}, "until": 2},
    "ECN": {"scene": {"worlds": ["cubic"], "discipline": "codel", "ecn": "on", "flows": 3}, "until": 2},
    "beside": {"scene": "#scene=bbr-cubic", "until": 3},
    "ARQ beside": {"scene": "#scene=selective-repeat-go-back-n", "until": 2},
    "marks beside": {"scene": "#scene=prague-cubic", "until": 1.5},
    "parking lot": {"scene": {"worlds": ["cubic"], "topology": "parking-lot", "loss": "1%"}, "until": 2},
}
SCENES = {**LESSONS, **OTHERS}
STEP_S = 0.0167
"""A frame does not divide the interval of samples."""


@pytest.fixture(scope="module")
def played(folder: Path, node: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the page shows of each scene."""
    bundler = EXPLORER / "node_modules" / ".bin" / "esbuild"
    if not bundler.exists():
        requirements.skip_unbuilt("the npm packages of explorer/build")
    script = tmp_path_factory.mktemp("physics") / "physics.mjs"
    options = ["--bundle", "--format=esm", "--platform=node", "--log-level=warning", f"--outfile={script}"]
    subprocess.run([bundler, HERE / "physics.mjs", *options], check=True, timeout=60)
    given = [{"step": STEP_S, **scene} for scene in SCENES.values()]
    done = subprocess.run(
        [node, script, folder / "simulator.js"],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(SCENES, json.loads(done.stdout), strict=True))


def traced(study: str, name: str, until: float, folder: Path) -> lf.Traces:
    file = folder / "study.toml"
    file.write_text(study, encoding="utf-8")
    bulk = 'kind = "bulk"' in study
    # A transfer without end lasts as long as the scene was played.
    settings = {"workload.duration": f"{until + 1}s"} if bulk else None
    return lf.trace(name, study=file, settings=settings, interval="10ms")


def column(samples: pl.DataFrame, name: str, scale: float, length: int) -> list[float | None]:
    """Returns a column by the number of the sampling interval, as the page has it."""
    found: list[float | None] = [None] * length
    for time, value in samples.select("time", name).iter_rows():
        place = round(time / INTERVAL_S)
        if place < length:
            found[place] = None if value is None else value / scale
    return found


def padded(values: list[float | None], length: int) -> list[float | None]:
    return [*values, *[None] * (length - len(values))]


@pytest.mark.parametrize("scene", SCENES)
def test_the_page_shows_the_trace_of_its_study(played: dict[str, Any], scene: str, tmp_path: Path) -> None:
    until = SCENES[scene]["until"]
    for world in played[scene]["worlds"]:
        traces = traced(played[scene]["study"], world["name"], until, tmp_path)
        end = until + 1e-9
        samples = traces.samples.filter(pl.col("time") <= end)
        events = traces.events.filter(pl.col("time") <= end)
        check_columns(world, samples.filter(flow=world["main"]))
        check_flows(world, samples)
        check_queues(world, traces.queues.filter(pl.col("time") <= end))
        check_losses(world, events)
        check_times(world, events)


def check_columns(world: dict[str, Any], samples: pl.DataFrame) -> None:
    payload, columns = world["payload"], world["columns"]
    length = len(columns["cwnd"])
    assert length > 5
    for shown, name in (
        ("cwnd", "cwnd_bytes"),
        ("ssthresh", "ssthresh_bytes"),
        ("inFlight", "in_flight_bytes"),
    ):
        assert padded(columns[shown], length) == column(samples, name, payload, length), shown
    # Multipath connections have no RTT of their own.
    sources = [pl.col(name) for name in ("rtt_s", "srtt_s") if name in samples.columns]
    rtt = samples.with_columns((pl.coalesce(sources) * 1e3).alias("shown"))
    assert padded(columns["rtt"], length) == column(rtt, "shown", 1, length)
    assert any(value is not None for value in columns["rtt"])


def check_flows(world: dict[str, Any], samples: pl.DataFrame) -> None:
    """Compares the windows of each flow, also of those beside the measured ones."""
    assert len(world["flows"]) == samples["flow"].n_unique()
    for flow, shown in enumerate(world["flows"]):
        own = samples.filter(flow=flow)
        length = len(shown["cwnd"])
        for key, name in (
            ("cwnd", "cwnd_bytes"),
            ("ssthresh", "ssthresh_bytes"),
            ("inFlight", "in_flight_bytes"),
        ):
            assert padded(shown[key], length) == column(own, name, shown["payload"], length), (flow, key)


def check_queues(world: dict[str, Any], queues: pl.DataFrame) -> None:
    names = queues["link"].unique(maintain_order=True).to_list()
    assert len(names) == len(world["queues"])
    for name, shown in zip(names, world["queues"], strict=True):
        assert shown == column(queues.filter(link=name), "packets", 1, len(shown)), name


def check_losses(world: dict[str, Any], events: pl.DataFrame) -> None:
    """Compares the numbers that the page shows, and the time and reason of each loss."""
    counts = world["counts"]
    drops = events.filter(what="drop")
    assert counts["drops"] == drops.height
    assert counts["timeouts"] == events.filter(what="timeout").height
    assert counts["retransmissions"] == events.filter(what="send", retransmission=True).height
    assert counts["drops"] == sum(counts[kind] for kind in ("random", "queue", "ack", "other"))
    shown = [event for event in world["events"] if event["what"] == "drop"]
    found = drops.tail(len(shown)).select("time", "flow", "reason").rows()
    assert [(event["time"], event["flow"], event["reason"]) for event in shown] == found


def check_times(world: dict[str, Any], events: pl.DataFrame) -> None:
    """Compares the time of every packet that the page keeps, and the end of transfers."""
    shown = [event for event in world["events"] if event["what"] in ("send", "receive")]
    assert len(shown) > 10
    found = events.filter(pl.col("what").is_in(["send", "receive"])).tail(len(shown))
    rows = found.select("time", "what", "flow", "frame", "sequence").rows()
    keys = ("time", "what", "flow", "frame", "sequence")
    assert [tuple(event.get(key) for key in keys) for event in shown] == rows
    delivered = events.filter(what="deliver")["time"]
    assert world["lastDelivery"] == (delivered[-1] if len(delivered) else None)
