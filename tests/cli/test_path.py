"""`longfat path` on emulated paths with known links, and its refusals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from tests import requirements
from tests.cli.conftest import Refused, Start
from tests.conftest import command
from tests.waiting import wait_until

from longfat import _native
from longfat.analysis.transfer_time import ICMP_HEADER
from longfat.cli import INTERRUPTED
from longfat.study.path_model import read

RATES = (20, 5, 50)
DELAYS = (4, 2, 6)
ATTEMPTS = 4
"""Number of attempts on a busy machine. Later attempts take more time; one success is enough."""


def _chain() -> dict[str, Any]:
    nodes = ["a", "r1", "r2", "b"]
    links = [
        {"from": here, "to": there, "rate": f"{rate}Mbit/s", "delay": f"{delay}ms", "queue": "100pkt"}
        for here, there, rate, delay in zip(nodes, nodes[1:], RATES, DELAYS, strict=False)
    ]
    return {
        "title": "A chain",
        "topology": {"kind": "free", "hosts": ["a", "b"], "routers": ["r1", "r2"], "links": links},
        "workload": {"kind": "bulk", "duration": "1s"},
        "protocols": [{"name": "reno", "kind": "tcp", "congestion": "reno"}],
    }


def _at(host: str, folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Runs a longfat command at a host of the chain."""
    study = folder / "chain.toml"
    study.write_text(tomli_w.dumps(_chain()), encoding="utf-8")
    line = " ".join(map(str, [host, *command(*words), f"> {folder / 'reported'}"]))
    done = subprocess.run(
        command("net", study),
        input=line + "\n",
        cwd=folder,
        env=os.environ | {"COLUMNS": "160"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def _near(reported: dict[str, Any]) -> bool:
    links = [hop["link"] for hop in reported["hops"]]
    return len(links) == len(RATES) and all(
        link is not None
        and link["rate_bps"] is not None
        and link["rate_bps"]["value"] == pytest.approx(rate * 1e6, rel=0.2)
        and link["latency_s"]["value"] == pytest.approx(delay * 1e-3, abs=0.3e-3)
        for link, rate, delay in zip(links, RATES, DELAYS, strict=True)
    )


def _reproduces(path: dict[str, Any], kept: Path) -> None:
    """Checks that simulated round trips over the model match the measured ones within 5 %."""
    minima: dict[int, float] = {}
    for line in kept.read_text(encoding="utf-8").splitlines()[1:]:
        probe = json.loads(line)
        if probe["ttl"] == len(RATES) and probe["answer"] is not None and probe["kernel_s"] is not None:
            size = probe["size"]
            minima[size] = min(probe["kernel_s"], minima.get(size, 1.0))
    assert len(minima) > 10
    for size, seconds in minima.items():
        workload = {"kind": "request-response", "size": f"{size - ICMP_HEADER}B"}
        spec = {"seed": 1, "trial": 0, "path": path, "protocol": {"kind": "icmp"}, "workload": workload}
        record = json.loads(_native.simulate(json.dumps(spec)))
        assert record["metrics"]["fct_min_s"] == pytest.approx(seconds, rel=0.05)


@pytest.mark.usefixtures("emulated")
@pytest.mark.slow
def test_the_links_of_a_path_are_found(tmp_path: Path) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        model, report, kept = (tmp_path / f"{attempt}.{kind}" for kind in ("toml", "html", "samples"))
        words = ["--rounds", 12 * attempt, "--time", f"{60 * attempt}s", "--window", 2]
        files = ["--model", model, "--out", report, "--samples", kept]
        done = _at("a", tmp_path, "path", "b", "--json", *words, *files)
        assert done.returncode == 0, done.stderr
        reported = json.loads((tmp_path / "reported").read_text(encoding="utf-8"))
        assert reported["reached"]
        assert [hop["ttl"] for hop in reported["hops"]] == [1, 2, 3]
        assert len({hop["address"] for hop in reported["hops"]}) == 3
        assert len(kept.read_text(encoding="utf-8").splitlines()) == reported["probes"] + 1
        if _near(reported):
            break
    else:
        pytest.fail(f"not near: {reported}")
    written = read(model)
    assert len(written.path["hops"]) == 3
    assert written.measured["address"] == reported["address"]
    _reproduces(written.path, kept)
    assert 'id="chart-size"' in report.read_text(encoding="utf-8")


@pytest.mark.usefixtures("emulated")
@pytest.mark.slow
def test_stored_samples_are_reused(tmp_path: Path) -> None:
    """A second call with the same file includes the first call's samples; another path's file is refused."""
    kept = tmp_path / "samples"
    words = ["--rounds", 2, "--sizes", "100,700..1400:350", "--samples", kept]
    counts = []
    for _ in range(2):
        assert _at("a", tmp_path, "path", "b", "--json", *words).returncode == 0
        counts.append(json.loads((tmp_path / "reported").read_text(encoding="utf-8"))["probes"])
    assert counts[1] >= counts[0] + 2 * 3 * 4
    other = _at("b", tmp_path, "path", "a", *words)
    assert other.returncode != 0
    assert "expected" in other.stderr


@pytest.mark.usefixtures("emulated")
@pytest.mark.slow
def test_udp_finds_the_same_routers(tmp_path: Path) -> None:
    addresses = []
    for protocol in ("icmp", "udp"):
        words = ["--protocol", protocol, "--rounds", 1, "--sizes", "100,700..1400:350", "--timeout", "300ms"]
        _at("a", tmp_path, "path", "b", "--json", *words)
        reported = json.loads((tmp_path / "reported").read_text(encoding="utf-8"))
        assert reported["protocol"] == protocol
        assert reported["reached"]
        addresses.append([hop["address"] for hop in reported["hops"]])
    assert addresses[0] == addresses[1]


_WITHOUT_RIGHTS = """
import os
from longfat import _native
os.setgroups([]); os.setgid(65534); os.setuid(65534)
print(_native.HopProber("127.0.0.1", "udp").run([(1, 100)], lambda _ended: None))
_native.HopProber("127.0.0.1", "icmp")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="probing routers needs Linux")
def test_udp_needs_no_privilege_and_icmp_names_what_it_needs() -> None:
    if os.geteuid() != 0:
        requirements.skip("users", "only root gives up rights")
    done = subprocess.run(
        [sys.executable, "-P", "-c", _WITHOUT_RIGHTS], capture_output=True, text=True, timeout=60, check=False
    )
    (reported,) = json.loads(done.stdout)
    assert reported["answer"]["kind"] == "reached"
    lowest, highest = map(int, Path("/proc/sys/net/ipv4/ping_group_range").read_text("ascii").split())
    if lowest <= 65534 <= highest:
        assert done.returncode == 0
    else:
        error = done.stderr.splitlines()[-1]
        assert "may not send ICMP" in error
        assert "ping_group_range" in error
        assert "CAP_NET_RAW" in error


@pytest.mark.skipif(sys.platform != "linux", reason="probing routers needs Linux")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_prints_the_results_so_far(number: int, start: Start, tmp_path: Path) -> None:
    kept = tmp_path / "samples"
    running = start(
        *("path", "127.0.0.1", "--protocol", "udp", "--rounds", 10_000, "--interval", "1ms"),
        *("--precision", "0.001%", "--json", "--samples", kept),
    )
    wait_until(lambda: kept.exists() and len(kept.read_bytes().splitlines()) > 300)
    assert running.finish(number) == INTERRUPTED
    reported = running.document()
    assert reported["ended_by"] == "interrupt"
    assert reported["probes"] >= 300
    assert [hop["ttl"] for hop in reported["hops"]] == [1]
    assert reported["hops"][0]["link"] is not None


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (["127.0.0.1", "--sizes", "100..1400"], "write sizes like"),
        (["127.0.0.1", "--sizes", "100,200,300"], "4 to 40 sizes"),
        (["127.0.0.1", "--sizes", "100..1400:10"], "4 to 40 sizes"),
        (["127.0.0.1", "--sizes", "10,200,300,400"], "from 36"),
        (["127.0.0.1", "--interval", "10"], '--interval: "10" is not a duration'),
        (["127.0.0.1", "--time", "5"], '--time: "5" is not a duration: write e.g. "5ms"'),
        (["127.0.0.1", "--interval", "1us"], "out of range: 1.00 ms to 60.0 s"),
        (["127.0.0.1", "--precision", "5"], "is not a percentage"),
        (["no-such-host.invalid"], "cannot be resolved"),
    ],
)
def test_invalid_arguments_are_refused(words: list[str], reported: str, refused: Refused) -> None:
    refused(["path", *words], 2, [reported])
