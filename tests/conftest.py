"""Shared fixtures: a small study, and the command line."""

from __future__ import annotations

import copy
import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import tomli_w

from longfat import _native
from longfat.system.interpreter import python_command
from tests import browser, effort, in_process, requirements

Data = dict[str, Any]
Cli = Callable[..., subprocess.CompletedProcess[str]]

STUDY: Data = {
    "title": "A small study",
    "worlds": ["sim"],
    "repeats": 4,
    "seed": 7,
    "path": {"rate": "10Mbit/s", "delay": "5ms", "queue": "100pkt"},
    "workload": {"kind": "file", "size": "30kB"},
    "protocols": [
        {"name": "gbn", "kind": "go-back-n", "window": 4},
        {"name": "sr", "kind": "selective-repeat", "window": 4},
    ],
    "sweep": {"path.loss": ["0%", "5%", "10%"]},
    "claims": [
        {
            "id": "sr-not-behind",
            "text": "Selective repeat is never behind",
            "metric": "goodput",
            "of": "sr",
            "against": "gbn",
            "relation": "not-lower",
        }
    ],
}


EMULATED = {"emulated", "allowed", "_bpf", "_namespaces", "_tun", "_built"}
"""Fixtures of tests that create networks in the kernel."""
LANES = 3
"""The number of groups of such tests. They wait for their networks most of the time."""
WALL_TIME = EMULATED | {"cli", "cli_process", "start", "page", "scheduler", "endpoint", "pytester"}
"""Fixtures of tests whose packets, processes or pages other load can delay. Failed ones are repeated."""
WALL_TIME_MODULES = {"subprocess", "multiprocessing", "machines", "socket", "threading", "time"}
"""What files import whose tests start processes, wait or use sockets. Failed ones are repeated, too."""
REPETITIONS = 2


def pytest_configure() -> None:
    """Refuses unknown requirements, and sets the number of random cases."""
    requirements.required()
    hypothesis.settings.register_profile("effort", max_examples=effort.cases(800), deadline=None)
    hypothesis.settings.load_profile("effort")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Forms groups that run in one process each: files with kernel networks or a browser, users of a cluster.

    Repeats failed tests that take wall time.
    """
    for item in items:
        fixtures, names = getattr(item, "fixturenames", ()), dir(getattr(item, "module", None))
        if WALL_TIME.intersection(fixtures) or WALL_TIME_MODULES.intersection(names):
            item.add_marker(pytest.mark.flaky(reruns=REPETITIONS, reruns_delay=2))
    free = [item for item in items if not item.get_closest_marker("xdist_group")]
    for item in free:
        if "page" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group(f"browser-{item.path.stem}"))
        if "scheduler" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("cluster"))
    emulated = [item for item in free if EMULATED & set(getattr(item, "fixturenames", ()))]
    sizes = dict.fromkeys((f"emulated-{number + 1}" for number in range(LANES)), 0)
    lanes = {}
    for file, count in Counter(item.path for item in emulated).most_common():
        lanes[file] = min(sizes, key=sizes.__getitem__)
        sizes[lanes[file]] += count
    for item in emulated:
        item.add_marker(pytest.mark.xdist_group(lanes[item.path]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Lists reasons of skipped tests."""
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        reported = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[reported.removeprefix("Skipped: ")] += 1
    if not reasons:
        return
    terminalreporter.section(f"{reasons.total()} skipped", sep="-")
    for reason, count in reasons.most_common():
        terminalreporter.line(f"{count:4d}  {reason}")


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c() -> None:
    """Restores Ctrl-C, which background processes and their children ignore."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def emulated() -> None:
    """Skips tests with the reason if networks cannot be emulated."""
    if sys.platform != "linux":
        requirements.skip("netns", "emulated networks need Linux")
    refuse_without(json.loads(_native.doctor()), "network namespaces", "TUN devices")


def refuse_without(probes: list[Data], *names: str) -> None:
    """Skips a test if one of these probes of `longfat doctor` failed."""
    by_name = {probe["name"]: probe for probe in probes}
    for name in names:
        if not by_name[name]["ok"]:
            detail, remedy = by_name[name]["detail"], by_name[name]["remedy"]
            reason = f"{name}: {detail}" if remedy in detail else f"{name}: {detail}: {remedy}"
            requirements.skip("tun" if name == "TUN devices" else "netns", reason)


@pytest.fixture(scope="session")
def _browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[browser.Browser]:
    if browser.program() is None:
        requirements.skip("programs", "no Chromium")
    with browser.browser(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@pytest.fixture
def page(_browser: browser.Browser) -> Iterator[browser.Browser]:
    """A page of a headless browser, which the tests of a process share."""
    yield _browser
    _browser.open("about:blank")  # a scene that plays keeps a processor busy


@pytest.fixture
def data() -> Data:
    """The tables of a small study, which tests may change."""
    return copy.deepcopy(STUDY)


@pytest.fixture
def between_kernels() -> Callable[..., Data]:
    """Creates studies that run Reno and another protocol once between real kernels."""

    def _make(size: str, other: Data) -> Data:
        return {
            "title": "Two kernels and a path",
            "worlds": ["netns"],
            "repeats": 1,
            "path": {"rate": "20Mbit/s", "delay": "10ms", "queue": "50pkt"},
            "workload": {"kind": "file", "size": size},
            "protocols": [{"name": "reno", "kind": "tcp", "congestion": "reno"}, other],
        }

    return _make


@pytest.fixture
def write(tmp_path: Path) -> Callable[[Data], Path]:
    """Writes study files."""

    def _write(content: Data, name: str = "small.toml") -> Path:
        path = tmp_path / name
        path.write_text(tomli_w.dumps(content), encoding="utf-8")
        return path

    return _write


def command(*arguments: object) -> list[str]:
    """Returns the command line that runs `longfat` in this interpreter."""
    return python_command("-m", "longfat", *map(str, arguments))


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """Runs `longfat` in this process, in an empty folder; with `ok=True` a failure fails the test."""

    def _run(*arguments: object, ok: bool = True) -> subprocess.CompletedProcess[str]:
        return _checked(in_process.run(tmp_path, arguments), ok=ok)

    return _run


@pytest.fixture
def cli_process(tmp_path: Path) -> Cli:
    """Like `cli`, in a separate process: for tests of signals, terminals, limits and process state."""

    def _run(*arguments: object, ok: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command(*arguments), cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
        )
        return _checked(done, ok=ok)

    return _run


def _checked(done: subprocess.CompletedProcess[str], *, ok: bool) -> subprocess.CompletedProcess[str]:
    if ok:
        assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done


def document(done: subprocess.CompletedProcess[str]) -> Data:
    """Returns the only JSON document on standard output."""
    content = json.loads(done.stdout)
    assert isinstance(content, dict)
    return content


def by_cell(content: Data) -> dict[tuple[str, str, str], Data]:
    """Returns the cells of a JSON document by world, protocol and point."""
    return {(c["world"], c["protocol"], json.dumps(c["params"])): c for c in content["cells"]}


def only_lines(text: str, expected: Sequence[str]) -> None:
    """Checks that the text has one line per expected entry, and that each line contains its entry."""
    lines = text.splitlines()
    assert len(lines) == len(expected), text
    for line, words in zip(lines, expected, strict=True):
        assert words in line, text
