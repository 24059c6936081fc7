"""QUIC over several paths: refused keys, shares, failures, and the causes that docs/quic-paths.md names."""

from __future__ import annotations

from pathlib import Path
from statistics import mean
from typing import Any

import polars as pl
import pytest
from tests.runs import run_study

import longfat as lf
from longfat.study import load_study

WIFI = {"preset": "wifi", "rate": "20Mbit/s"}
LTE = {"preset": "lte"}
FIRST: Any = {"kind": "all", "first": "first"}


def study(world: str = "sim", **keys: Any) -> lf.Study:
    return load_study(
        {
            "title": "QUIC over two paths",
            "worlds": [world],
            "repeats": 3,
            "topology": {"kind": "multipath", "path": [WIFI, LTE]},
            "workload": {"kind": "file", "size": "1MB"},
            "protocols": [{"name": "a", "kind": "quic", **keys}],
        }
    )


def quic(**keys: Any) -> lf.Quic:
    return lf.Quic(multipath=True, policy=FIRST, **keys)


def paths(*links: Any) -> lf.Topology:
    return lf.Topology("multipath", path=list(links))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"scheduler": "min-rtt"}, "scheduler: has no effect on one path: set multipath = true"),
        ({"early_key_update": True}, "early_key_update: has no effect on one path: set multipath = true"),
        (
            {"multipath": True, "scheduler": "redundant"},
            '"redundant" sends copies, which the QUIC library does',
        ),
        ({"multipath": True, "scheduler": "otias"}, '"otias" queues packets on paths without room'),
        ({"multipath": True, "scheduler": "quic-last"}, "allowed of QUIC's own: quic-first"),
        ({"multipath": True, "policy": "mmptcp"}, '"mmptcp" scatters packets over all paths'),
        ({"multipath": True, "policy": "foresight"}, "needs the load of the host's paths"),
        ({"multipath": True, "subflows": 65}, "out of range: 1 to 64"),
        ({"multipath": True, "path_timeout": "1ms"}, 'out of range: "100ms" to "1h"'),
        (
            {"multipath": True, "scheduler": "min-rtt", "congestion": "quic-reno"},
            "requires a congestion controller of this project",
        ),
        (
            {"multipath": True, "rejoin": "1s"},
            'a key of kind "mptcp"; remove it: "quic" closes a path for good',
        ),
    ],
)
def test_errors_take_one_line(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(lf.StudyError) as caught:
        study(**keys)
    (line,) = str(caught.value).splitlines()
    assert message in line


def test_a_relay_refuses_several_paths() -> None:
    path = {"rate": "10Mbit/s", "delay": "10ms"}
    with pytest.raises(lf.StudyError, match="true requires several paths: allowed in sim and netns"):
        load_study(
            {
                "title": "QUIC over two paths",
                "worlds": ["relay"],
                "path": path,
                "workload": {"kind": "file", "size": "1MB"},
                "protocols": [{"name": "a", "kind": "quic", "multipath": True}],
            }
        )


def test_records_are_the_same_bits_on_one_core_and_on_two(tmp_path: Path) -> None:
    one, two = (run_study(study(multipath=True), folder=tmp_path / str(jobs), jobs=jobs) for jobs in (1, 2))
    assert one.to_polars().equals(two.to_polars())
    flows = one.flows_to_polars()
    assert flows.equals(two.flows_to_polars())
    # Trials differ, and each uses both paths.
    assert flows["path_bytes_1"].n_unique() == 3
    assert flows.select(pl.min_horizontal("path_bytes_1", "path_bytes_2").min()).item() > 100_000


def test_both_paths_add_up_as_over_multipath_tcp() -> None:
    def goodput(protocol: Any) -> float:
        trial = lf.simulate(protocol, paths(WIFI, LTE), size="4MB")
        return trial.metrics["goodput_bps"]

    several = goodput(quic())
    assert several > 1.3 * goodput(lf.Quic())
    assert several == pytest.approx(goodput(lf.Mptcp(policy=FIRST)), rel=0.1)


def test_a_connection_outlives_a_path() -> None:
    broken = {**LTE, "down": ["500ms..1min"]}
    for links in ((WIFI, broken), (broken, WIFI)):
        trial = lf.simulate(quic(path_timeout="1s"), paths(*links), size="4MB")
        assert trial.metrics["flows_completed"] == 1
        assert 1.5 < trial.metrics["fct_mean_s"] < 8


def test_a_scheduler_in_python_equals_the_same_rule_in_rust(tmp_path: Path) -> None:
    (tmp_path / "fastest.py").write_text(
        "import longfat as lf\n"
        "from longfat.extensions.scheduler import ready\n"
        "class Fastest(lf.Scheduler):\n"
        "    def choose(self, now, data, subflows):\n"
        "        return min(ready(subflows), key=lambda subflow: subflow.srtt, default=None)\n"
        "class Copies(lf.Scheduler):\n"
        "    def choose(self, now, data, subflows):\n"
        "        return subflows\n",
        encoding="utf-8",
    )

    def run(scheduler: str) -> lf.Trial:
        return lf.simulate(quic(scheduler=scheduler), paths(LTE, WIFI), size="500kB")

    assert run(f"{tmp_path}/fastest.py:Fastest").metrics == run("min-rtt").metrics
    with pytest.raises(lf.TransferError, match="requests copies, which QUIC does not send"):
        run(f"{tmp_path}/fastest.py:Copies")


def test_acknowledgements_on_the_first_path_explain_the_time_behind_lte() -> None:
    """docs/quic-paths.md names the cause: the library acknowledges all packets on the first path."""
    events = lf.trace(quic(), topology=paths(LTE, WIFI), size="1MB", samples=False).events
    sent = events.filter((pl.col("what") == "send") & (pl.col("time") > 0.4))
    data = sent.filter((pl.col("host") == "sender") & (pl.col("length") > 0))
    answers = sent.filter(pl.col("host") == "receiver")
    assert set(data["subflow"]) == {0, 1}
    assert answers.filter(pl.col("subflow") == 0).height > 0.97 * answers.height

    def time(*links: Any) -> float:
        trials = (lf.simulate(quic(), paths(*links), size="10MB", seed=seed) for seed in (1, 2, 3))
        return mean(trial.metrics["fct_mean_s"] for trial in trials)

    quick = {**LTE, "reverse": {"rate": "6Mbit/s", "delay": "2ms", "jitter": "1ms"}}
    assert time(LTE, WIFI) > 1.06 * time(WIFI, LTE)
    assert time(quick, WIFI) < 1.05 * time(WIFI, quick)
