"""The pytest plugin, used by tests in a new folder."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from longfat import Path as LinkPath
from longfat.testing import assert_at_least, assert_at_most, assert_claim, emulation
from tests import requirements
from tests.docs.test_commands import blocks
from tests.waiting import undisturbed

pytest_plugins = ["pytester"]
PAGE = "docs/testing.md"


def _example(name: str = "test_transport.py") -> str:
    return next(text for mark, _, text in blocks(PAGE) if mark == f"file: {name}")


def test_pytest_finds_the_plugin() -> None:
    found = importlib.metadata.entry_points(group="pytest11", name="longfat")
    assert [entry.value for entry in found] == ["longfat.testing.plugin"]


@pytest.mark.slow
def test_the_page_s_example_passes_in_a_fresh_folder(pytester: pytest.Pytester) -> None:
    Path("test_transport.py").write_text(_example(), encoding="utf-8")

    def run() -> dict[str, int]:
        return pytester.runpytest_subprocess("-ra", "-p", "no:cacheprovider").parseoutcomes()

    # Other load lengthens delays, which the example limits.
    outcome = undisturbed(run, lambda outcome: "failed" not in outcome)
    assert outcome.get("failed", 0) == outcome.get("errors", 0) == 0
    assert outcome["passed"] >= 4
    lacking = emulation.missing()
    assert outcome["passed"] + outcome.get("skipped", 0) == 5
    assert outcome.get("skipped", 0) == (lacking is not None)


@pytest.mark.slow
def test_the_page_s_comparison_of_versions_passes(pytester: pytest.Pytester) -> None:
    Path("test_versions.py").write_text(_example("test_versions.py"), encoding="utf-8")

    def run() -> dict[str, int]:
        return pytester.runpytest_subprocess("-p", "no:cacheprovider").parseoutcomes()

    # Other load makes measurements too uncertain.
    assert undisturbed(run, lambda outcome: "failed" not in outcome) == {"passed": 1}


def test_a_machine_without_namespaces_skips_with_the_reason(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        "from longfat.testing import emulation\nemulation.missing = lambda: 'TUN devices: missing: do this'\n"
    )
    pytester.makepyfile("def test_it(longfat_emulation):\n    raise SystemExit(1)\n")
    result = pytester.runpytest_subprocess("-ra")
    assert result.parseoutcomes() == {"skipped": 1}
    result.stdout.fnmatch_lines(["*TUN devices: missing: do this*"])


def test_skips_become_failures_on_request(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        "from longfat.testing import emulation\nemulation.missing = lambda: 'tun: missing: do this'\n"
    )
    pytester.makepyfile("def test_it(longfat_emulation):\n    raise SystemExit(1)\n")
    result = pytester.runpytest_subprocess("--longfat-no-skips")
    assert result.parseoutcomes() == {"errors": 1}
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*tun: missing: do this*"])


def test_a_failing_client_fails_with_its_output(pytester: pytest.Pytester) -> None:
    if (lacking := emulation.missing()) is not None:
        requirements.skip("netns", lacking)
    pytester.makepyfile(
        "def test_it(longfat_emulation):\n"
        "    longfat_emulation({'delay': '1ms'}, ['sh', '-c', 'echo went wrong; exit 3'])\n"
    )
    result = pytester.runpytest_subprocess()
    assert result.parseoutcomes() == {"failed": 1}
    result.stdout.fnmatch_lines(["*exit code 3*", "*went wrong*"])


PAIR = """
import sys
SERVER = "import socket, time; s = socket.create_server(('', 80)); time.sleep(60)"
CLIENT = (
    "import os, socket\\n"
    "client = socket.create_connection(('receiver', 80))\\n"
    "print(client.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).strip(bytes(1)).decode())\\n"
    "print(open('/proc/sys/net/ipv4/tcp_rmem').read().split()[2], os.environ['LONGFAT_PEER6'])\\n"
)
def test_it(longfat_emulation):
    client, server = [sys.executable, "-c", CLIENT], [sys.executable, "-c", SERVER]
    done = longfat_emulation(
        {"delay": "1ms"}, client, server, wait_port=80, congestion="reno", pcapng="x.pcapng",
        sysctl={"sender:net.ipv4.tcp_rmem": "4096 131072 999424"},
    )
    assert done.stdout.split() == ["reno", "999424", "fd77::a4d:2"]
    assert done.report["capture"]["packets"] > 5
"""


def test_an_emulation_has_the_options_of_shell(pytester: pytest.Pytester) -> None:
    if (lacking := emulation.missing()) is not None:
        requirements.skip("netns", lacking)
    pytester.makepyfile(PAIR)
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_assertions_decide_with_intervals() -> None:
    assert_at_most([1.0, 1.1, 0.9], 1.5)
    assert_at_least([1.0, 1.1, 0.9], 0.5)
    with pytest.raises(AssertionError, match=r"is not at most 0\.5"):
        assert_at_most([1.0, 1.1, 0.9], 0.5)
    with pytest.raises(AssertionError, match=r"too uncertain for at least 0\.95; add repeats"):
        assert_at_least([1.0, 1.1, 0.9], 0.95)
    for samples in ([1.0], [], [1.0, float("nan")]):
        with pytest.raises(ValueError, match="at least 2 numbers"):
            assert_at_most(samples, 2.0)


def test_a_claim_that_fails_reports_verdict_and_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = LinkPath(rate="10Mbit/s", delay="5ms")
    run = assert_claim("goodput", "at-least", "5Mbit/s", of="cubic", path=path, size="500kB", repeats=3)
    assert run.claims[0].verdict == "holds"
    with pytest.raises(AssertionError, match=r"goodput at-least fails: .*Mbit/s"):
        assert_claim("goodput", "at-least", "20Mbit/s", of="cubic", path=path, size="500kB", repeats=3)
    with pytest.raises(ValueError, match="relation"):
        assert_claim("goodput", "bigger", "20Mbit/s", of="cubic", path=path, size="500kB")
    assert list(tmp_path.iterdir()) == []


FAILING = """import longfat


class Failing(longfat.CongestionController):
    def on_acknowledged(self, ack):
        raise RuntimeError("no such state")

    def on_lost(self, loss):
        pass

    def on_timeout(self, now, in_flight):
        pass
"""


def test_a_claim_about_a_failing_class_reports_its_exception(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("failing.py").write_text(FAILING, encoding="utf-8")
    with pytest.raises(AssertionError, match=r"on_acknowledged: RuntimeError: no such state \(line 6\)"):
        assert_claim(
            "goodput",
            "at-least",
            "5Mbit/s",
            of=f"{tmp_path}/failing.py:Failing",
            path=LinkPath(rate="10Mbit/s", delay="5ms"),
            size="500kB",
            repeats=3,
        )


def test_claims_hold_with_traffic() -> None:
    path = {"rate": "10Mbit/s", "delay": "10ms", "queue": "50pkt"}
    alone = assert_claim("goodput", "at-least", "9Mbit/s", of="reno", path=path, duration="5s", repeats=3)
    rival = {"name": "rival", "protocol": "reno", "workload": {"kind": "bulk"}}
    shared = assert_claim(
        "goodput", "at-most", "8Mbit/s", of="reno", path=path, duration="5s", traffic=rival, repeats=3
    )
    assert alone.cells[0].n == shared.cells[0].n == 3
