"""Losses in bursts, topologies, multipath TCP, and timers."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.browser import Browser
from tests.explorer.driver import CLOCK, LOSSES, MESSAGE, Explorer, click, drop, enter, measured, saved, scene

from longfat.study import load_study

pytestmark = pytest.mark.slow

REQUESTS = """(() => {
    window.requests = []
    const post = Worker.prototype.postMessage
    Worker.prototype.postMessage = function (message, ...rest) {
        if (message.request) window.requests.push(message.request)
        return post.call(this, message, ...rest)
    }
})()"""


def changes(page: Browser) -> list[tuple[str, str, Any]]:
    """Returns the changes of links that the page requested."""
    found = page.evaluate("window.requests.filter(r => r.do === 'link').map(r => [r.link, r.key, r.value])")
    return [tuple(one) for one in found]


def test_the_burst_length_changes_while_it_runs(explorer: Explorer, tmp_path: Path) -> None:
    page = explorer.open(worlds=["cubic"], speed=5, loss="2%")
    page.wait(f"{CLOCK} > 1")
    page.evaluate(REQUESTS)
    enter(page, "burst", "4")
    page.wait("location.hash.includes('burst')")
    page.wait("window.requests.filter(r => r.do === 'link').length === 2")
    loss = {"kind": "gilbert-elliott", "enter_bad": "0.510204082%", "leave_bad": "25%"}
    assert changes(page) == [("forward", "loss", loss), ("reverse", "loss", loss)]
    start = page.evaluate(CLOCK)
    page.wait(f"{CLOCK} > {start + 5}")
    assert page.evaluate(MESSAGE) == ""
    click(page, "from-start")
    page.wait("!location.hash.includes('interventions')")
    study = saved(page, "toml")["study.toml"].decode()
    assert tomllib.loads(study)["path"]["loss"] == loss
    drop(page, "study.toml", study)
    assert scene(page)["burst"] == 4
    assert scene(page)["loss"] == "2%"


SCENES: list[dict[str, Any]] = [
    {"topology": "two-paths", "worlds": ["mptcp-min-rtt", "mptcp-redundant", "cubic"], "policy": "fsfs"},
    {"topology": "dumbbell", "senders": "1ms, 20ms, 50ms", "worlds": ["reno"], "flows": 2},
    {"topology": "parking-lot", "hops": 3, "worlds": ["cubic", "bbr"]},
    {"worlds": ["selective-repeat", "vegas"], "rto": "300ms", "minRto": "50ms", "initialWindow": 3,
     "delayedAck": "10ms", "ackDelay": "2ms", "burst": 3, "loss": "1%", "discipline": "codel", "ecn": "on"},
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(SCENES)))
def test_topologies_and_timers_run_and_become_study_files(
    explorer: Explorer, tmp_path: Path, number: int
) -> None:
    given = SCENES[number]
    page = explorer.open(**given, speed=1)
    page.wait(f"{CLOCK} > 0.2")
    assert page.complaints() == []
    assert page.evaluate(MESSAGE) == ""
    assert page.overflow() == 0
    study = saved(page, "toml")["study.toml"].decode()
    (tmp_path / "study.toml").write_text(study)
    load_study(tmp_path / "study.toml")
    drop(page, "study.toml", study)
    assert "is open" in page.evaluate(MESSAGE)
    assert scene(page) == {**given, "speed": 1}


def test_multipath_uses_both_paths(explorer: Explorer) -> None:
    page = explorer.open(topology="two-paths", rate2="10Mbit/s", worlds=["mptcp-min-rtt", "cubic"], speed=10)
    page.wait(f"{CLOCK} > 8")
    assert measured(page, "Goodput") > 14
    assert measured(page, "Goodput", world=1) < 10
    page.evaluate(REQUESTS)
    enter(page, "rate2", "1Mbit/s")
    page.wait("window.requests.filter(r => r.do === 'link').length === 2")
    # TCP uses the first path only.
    assert {link for link, _, _ in changes(page)} == {"path/2/forward", "path/2/reverse"}


def test_every_scheduler_and_policy_runs(explorer: Explorer) -> None:
    page = explorer.start(topology="two-paths", worlds=["mptcp-min-rtt"], speed=1)
    options = "[...document.querySelector('{}').options].map(o => o.value)"
    schedulers = page.evaluate(options.format("#protocols select"))
    names = [name for name in schedulers if name.startswith("mptcp-")]
    assert len(names) == 7
    policies = page.evaluate(options.format("[name=policy]"))
    for name, policy in zip(names + names[:1], policies, strict=True):
        page = explorer.open(topology="two-paths", worlds=[name], policy=policy, speed=10)
        page.wait(f"{CLOCK} > 0.5 && document.querySelector('.world h2').textContent.startsWith('MPTCP')")
        assert page.evaluate(MESSAGE) == ""


def test_settings_that_do_not_apply_are_hidden(explorer: Explorer) -> None:
    page = explorer.start(worlds=["go-back-n"])
    page.evaluate("document.querySelector('#setup').open = true")
    visible = "document.querySelector('[name={}]').checkVisibility()"
    for name, expected in {"window": True, "initialWindow": False, "policy": False, "rate2": False}.items():
        assert page.evaluate(visible.format(name)) is expected, name
    enter(page, "topology", "two-paths")
    page.wait(visible.format("rate2"))


def test_default_timers_and_windows_are_empty(explorer: Explorer) -> None:
    page = explorer.start(worlds=["cubic"])
    for name in ("minRto", "initialWindow", "delayedAck"):
        assert page.evaluate(f"document.querySelector('[name={name}]').value") == ""
        assert page.evaluate(f"document.querySelector('[name={name}]').placeholder") == "default"


def test_timers_and_windows_apply(explorer: Explorer) -> None:
    page = explorer.start(worlds=["cubic"], initialWindow=2, minRto="700ms")
    click(page, "restart")
    page.wait(f"{CLOCK} === 0")
    for _ in range(60):
        click(page, "step")
        page.evaluate("new Promise(done => setTimeout(done, 5))")
    assert measured(page, "cwnd") == 2
    enter(page, "loss", "100%")
    click(page, "next-timeout")
    page.wait(f"{LOSSES}.includes('expires')")
    assert page.evaluate(CLOCK) > 0.7


def test_a_long_parking_lot_scrolls_on_a_phone(explorer: Explorer) -> None:
    explorer.browser.resize(400)
    page = explorer.start(topology="parking-lot", hops=5, worlds=["reno"])
    # Each of the 5 links has its queue, and room for packets.
    assert page.evaluate("document.querySelector('canvas.path').clientWidth") == 44 + 5 * (44 + 56 + 40)
    assert page.overflow() == 0


def test_settings_charts_and_ladders_are_those_of_the_protocols_and_flows(explorer: Explorer) -> None:
    page = explorer.start(worlds=["stop-and-wait"])
    page.evaluate("document.querySelector('#setup').open = true")
    assert not page.evaluate("document.querySelector('[name=window]').checkVisibility()")
    assert "ssthresh" not in page.evaluate("document.querySelector('#charts').textContent")
    select = "document.querySelector('#protocols select')"
    page.evaluate(f"(s => {{ s.value = 'go-back-n'; s.dispatchEvent(new Event('change')) }})({select})")
    page.wait("document.querySelector('[name=window]').checkVisibility()")
    page.evaluate("document.querySelector('.world details').open = true")
    # The diagram remains open after a restart.
    enter(page, "flows", "2")
    page.wait("document.querySelector('.world summary').textContent === 'Ladder diagram of flow 1'")
    enter(page, "flows", "1")
    page.wait("document.querySelector('.world summary').textContent === 'Ladder diagram'")
    # The originals after a timeout of Go-Back-N share a line.
    enter(page, "loss", "2%")
    for _ in range(3):
        click(page, "next-timeout")
        page.evaluate("new Promise(done => setTimeout(done, 100))")
    page.wait(f"/the original arrived. And \\d+ more/.test({LOSSES})")
