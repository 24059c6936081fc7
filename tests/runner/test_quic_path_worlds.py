"""QUIC over several paths between emulated hosts, compared with simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.runs import run_study

from longfat.study import load_study

FIRST = {"kind": "all", "first": "first"}
FAST: dict[str, Any] = {"rate": "20Mbit/s", "delay": "5ms", "queue": "100pkt"}
SLOW: dict[str, Any] = {"rate": "10Mbit/s", "delay": "20ms", "queue": "100pkt"}


def means(folder: Path, world: str, *links: dict[str, Any], size: str = "3MB", **keys: Any) -> dict[str, Any]:
    """Returns the metrics of a transfer over these paths, and the shares of the paths."""
    every = {"name": "quic", "kind": "quic", "multipath": True, "policy": FIRST, **keys}
    protocol = {key: value for key, value in every.items() if value is not None}
    study = {
        "title": "QUIC over two paths",
        "worlds": [world],
        "repeats": 1,
        "topology": {"kind": "multipath", "path": list(links)},
        "workload": {"kind": "file", "size": size},
        "protocols": [protocol],
    }
    run = run_study(load_study(study), folder=folder / world, force=True)
    (cell,) = run.cells
    assert cell.n == 1, cell.failures
    flow = run.flows_to_polars().row(0, named=True)
    metrics = {name: interval.mean for name, interval in cell.metrics.items()}
    carried = [flow[f"path_bytes_{number}"] for number in (1, 2)]
    return {**metrics, "share": carried[0] / sum(carried)}


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"scheduler": "round-robin", "congestion": "lia", "early_key_update": True},
        {"scheduler": "ecf", "policy": {"kind": "all", "first": "random"}, "zero_rtt": False},
        {"scheduler": "quic-first"},
    ],
)
def test_two_paths_add_up_as_in_simulation(keys: dict[str, Any], tmp_path: Path) -> None:
    emulated, simulated = (means(tmp_path, world, FAST, SLOW, **keys) for world in ("netns", "sim"))
    assert emulated["paths_mean"] == simulated["paths_mean"] == 2
    # One path has 20 Mbit/s at most.
    assert emulated["goodput_bps"] > 21e6
    assert emulated["goodput_bps"] == pytest.approx(simulated["goodput_bps"], rel=0.15)
    assert emulated["share"] == pytest.approx(simulated["share"], abs=0.1)


@pytest.mark.usefixtures("emulated")
def test_a_policy_limits_the_paths(tmp_path: Path) -> None:
    found = means(tmp_path, "netns", SLOW, FAST, policy={"kind": "single", "choose": "first"}, size="500kB")
    assert found["paths_mean"] == 1
    assert found["goodput_bps"] < 10e6


@pytest.mark.usefixtures("emulated")
def test_a_connection_outlives_a_path(tmp_path: Path) -> None:
    broken = {**SLOW, "down": ["400ms..1min"]}
    for number, links in enumerate(((FAST, broken), (broken, FAST))):
        found = means(tmp_path / str(number), "netns", *links, path_timeout="1s")
        assert found["flows_completed"] == 1
        assert 1 < found["fct_mean_s"] < 9


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize(("to", "links"), [("path", (FAST, SLOW)), ("port", (FAST, FAST))])
def test_a_client_moves_as_in_simulation(to: str, links: tuple[dict[str, Any], ...], tmp_path: Path) -> None:
    def completion(world: str, **keys: Any) -> float:
        found = means(tmp_path / str(len(keys)), world, *links, multipath=False, policy=None, **keys)
        assert found["flows_completed"] == 1
        return float(found["fct_mean_s"])

    keys = {"migrate": ["400ms", "800ms"], "migrate_to": to}
    stays, moves, simulated = completion("netns"), completion("netns", **keys), completion("sim", **keys)
    # A move from 20 to 10 Mbit/s and back takes longer than one to another port.
    assert moves > stays + (0.2 if to == "path" else 0.05)
    assert moves == pytest.approx(simulated, rel=0.15)
