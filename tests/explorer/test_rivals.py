"""Different protocols on one bottleneck: the page, its exports, and studies with traffic."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.browser import Browser
from tests.explorer.driver import CLOCK, LOSSES, MESSAGE, STARTED, Explorer, click, drop, enter, saved, scene
from tests.explorer.test_engine import Engine

from longfat import _native
from longfat.cli.explorer_server import ExplorerServer
from longfat.cli.explorer_study import served
from longfat.study import load_study
from longfat.study.sweep import cells

pytestmark = pytest.mark.slow

PRAGUE: dict[str, Any] = {
    "worlds": ["prague"], "rivals": [{"protocol": "cubic", "pair": 1}], "pair": 0, "ecn": "on",
    "topology": "dumbbell", "senders": "1ms, 1ms", "rate": "20Mbit/s", "delay": "4ms",
    "discipline": "dualpi2", "queue": "1000pkt",
}  # fmt: skip
SCENES: list[dict[str, Any]] = [
    PRAGUE,
    {
        "worlds": ["vegas", "bbr"],
        "rivals": [{"protocol": "reno", "flows": 2}, {"protocol": "cubic", "start": "1s"}],
    },
    {
        "worlds": ["selective-repeat"],
        "rivals": [{"protocol": "go-back-n", "name": "rival", "size": "90kB"}],
        "window": 8, "discipline": "codel", "target": "3ms", "startJitter": "500ms", "rto": "300ms",
    },
    {
        "worlds": ["dctcp"], "rivals": [{"protocol": "dctcp"}], "discipline": "step",
        "topology": "parking-lot",
        "interventions": [{"at": 0.5, "do": "start-flow", "pair": 1, "size": "20kB"}],
    },
]  # fmt: skip


def texts(page: Browser, selector: str) -> list[str]:
    found: list[str] = page.evaluate(
        f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)"
    )
    return found


def test_the_page_shows_the_protocol_of_each_flow(explorer: Explorer) -> None:
    page = explorer.start(**PRAGUE, speed=1)
    assert texts(page, ".world h2") == ["TCP Prague beside TCP CUBIC"]
    flows = ["flow 1: TCP Prague (s1)", "flow 2: TCP CUBIC (s2)"]
    assert texts(page, ".legend li") == flows
    assert texts(page, "#flow option") == flows
    click(page, "play")
    page.wait(f"{CLOCK} > 2.2 && {LOSSES}.includes('TCP CUBIC')")
    click(page, "play")
    charts = {
        "goodput of each flow (Mbit/s)",
        "cwnd of each flow (packets)",
        "queueing delay of each flow (ms)",
        "RTT of each flow (ms)",
        "marks of each flow (packets per 100 ms)",
    }
    assert {
        text.removeprefix("TCP Prague beside TCP CUBIC: ") for text in texts(page, "#flow-charts .u-title")
    } == charts
    for chart in range(len(charts)):
        labels = texts(page, f"#flow-charts .uplot:nth-child({chart + 1}) .u-series .u-label")
        assert labels == ["time", *flows]
    events = page.evaluate(LOSSES)
    assert "Flow 1 (TCP Prague): The queue marks" in events
    assert "(L4S, RFC 9331)" in events
    assert "the window falls by half of the average share of marked packets" in events
    rows = texts(page, ".world tbody tr")
    assert any(row.startswith("of TCP Prague (Mbit/s)") and row.endswith("% of all") for row in rows)
    assert page.overflow() == 0
    assert page.complaints() == []
    assert page.evaluate(MESSAGE) == ""


RECORD = """(() => {
    window.replies = []
    const Before = Worker
    window.Worker = class extends Before {
        set onmessage(handle) {
            super.onmessage = event => { window.replies.push(event.data); handle(event) }
        }
        postMessage(message, ...rest) {
            if (message.request) (window.requests ??= []).push(message)
            return super.postMessage(message, ...rest)
        }
    }
})()"""


def test_what_the_page_shows_is_the_simulation(explorer: Explorer, tmp_path: Path) -> None:
    """The page has the events of the native engine, and its exported study has the record of its trial."""
    browser = explorer.browser
    number = browser.call("Page.addScriptToEvaluateOnNewDocument", source=RECORD)["identifier"]
    try:
        page = explorer.start(**PRAGUE)
        for _ in range(120):
            click(page, "step")
            page.evaluate("new Promise(done => setTimeout(done, 3))")
        page.wait(f"{CLOCK} > 0.1")
        sent = page.evaluate("window.requests.map(({ request }) => request)")
        events = page.evaluate("window.replies.flatMap(({ reply }) => reply.ok?.events ?? [])")
        shown = page.evaluate(
            "[...document.querySelectorAll('.world tbody tr')].map(r => r.cells[1].textContent)"
        )
        now = page.evaluate(CLOCK)
    finally:
        browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=number)
    spec = next(one["spec"] for one in sent if one["do"] == "open")
    engine = Engine()
    engine.ask(do="open", spec=spec, interval=0.01)
    native = engine.ask(do="advance", session=0, step=now)
    assert len(events) > 200
    assert json.loads(json.dumps(events)) == [
        one for one in native["events"] if one["time"] <= events[-1]["time"]
    ]
    prague = native["series"]["flows"][0]
    assert shown[3] == f"{prague['cwnd_bytes'][-1] / 1448:.0f}"
    (tmp_path / "study.toml").write_bytes(saved(page, "toml")["study.toml"])
    (cell,) = cells(load_study(tmp_path / "study.toml"))
    assert all(cell.spec[key] == spec[key] for key in ("topology", "protocol", "traffic"))
    assert records(spec) == records({**cell.spec, "seed": spec["seed"], "trial": 0})


def records(spec: dict[str, Any], duration: str = "3s") -> Any:
    workload = {**spec["workload"], **({"duration": duration} if spec["workload"]["kind"] == "bulk" else {})}
    return json.loads(_native.simulate(json.dumps({**spec, "workload": workload})))


@pytest.mark.parametrize("number", range(len(SCENES)))
def test_an_export_opens_as_the_same_scene_and_the_program_runs(
    explorer: Explorer, tmp_path: Path, number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    given = SCENES[number]
    page = explorer.start(**given)
    study = saved(page, "toml")["study.toml"].decode()
    (tmp_path / "study.toml").write_text(study)
    load_study(tmp_path / "study.toml")
    program = saved(page, "python")["scene.py"].decode()
    exec(program.replace('"10s"', '"1s"'), {})
    assert len(capsys.readouterr().out.splitlines()) == len(given["worlds"])
    page = explorer.start()
    drop(page, "study.toml", study)
    assert "is open" in page.evaluate(MESSAGE)
    assert scene(page) == given
    page.wait(STARTED)


def test_flows_beside_are_chosen_in_the_settings(explorer: Explorer) -> None:
    page = explorer.start(worlds=["cubic"], topology="dumbbell")
    select = "document.querySelector('#rivals select[aria-label=\"{}\"]')"
    choose = "(s => {{ s.value = '{}'; s.dispatchEvent(new Event('change')) }})(" + select + ")"
    page.evaluate(choose.format("bbr", "Protocol beside, 1"))
    page.wait("document.querySelector('.world h2').textContent === 'TCP CUBIC beside TCP BBRv3'")
    page.evaluate(choose.format("1", "Sender beside, 1"))
    page.wait("location.hash.includes('pair')")
    page.evaluate(choose.format("0", "Sender of the protocols above"))
    page.wait("document.querySelectorAll('.legend li').length === 2")
    assert scene(page) == {
        "worlds": ["cubic"],
        "topology": "dumbbell",
        "pair": 0,
        "rivals": [{"protocol": "bbr", "pair": 1}],
    }
    # A path has one pair of hosts.
    enter(page, "topology", "path")
    page.wait("document.querySelector('.legend li').textContent === 'flow 1: TCP CUBIC'")
    assert scene(page) == {"worlds": ["cubic"], "rivals": [{"protocol": "bbr"}]}
    page.evaluate(choose.format("", "Protocol beside, 1"))
    page.wait("document.querySelector('.world h2').textContent === 'TCP CUBIC'")
    assert page.evaluate(MESSAGE) == ""


def test_changes_concern_the_flows_beside(explorer: Explorer) -> None:
    page = explorer.start(worlds=["go-back-n"], rivals=[{"protocol": "reno"}], speed=1)
    click(page, "play")
    page.wait(f"{CLOCK} > 0.2")
    enter(page, "minRto", "300ms")
    page.wait(f"{LOSSES}.includes('You change the minimum RTO to 300ms.')")
    page.evaluate("document.querySelector('#flow').value = '1'")
    click(page, "start-flow")
    page.wait(f"{LOSSES}.includes('You start flow 3 of TCP Reno.')")
    page.wait("document.querySelectorAll('.legend li').length === 3")
    assert scene(page)["interventions"][-1]["group"] == 1
    program = saved(page, "python")["scene.py"].decode()
    assert 'session.set_protocol(min_rto="300ms", traffic="reno")' in program
    assert 'session.start_flow(pair=0, traffic="reno")' in program
    exec(program.replace('"10s"', '"1s"'), {})


@contextmanager
def opened(page: Browser, folder: Path, name: str, *cell: str) -> Iterator[list[dict[str, Any]]]:
    """Serves a study as `longfat explore` does, and yields the requests to the engine."""
    requests: list[dict[str, Any]] = []

    class Recorded:
        def __init__(self) -> None:
            self._engine = _native.Explorer()

        def reply(self, request: bytes) -> str:
            requests.append(json.loads(request))
            return self._engine.reply(request)

    with ExplorerServer(folder, study=served(load_study(name), (), cell)) as server:
        server.engine = Recorded()  # type: ignore[assignment]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            page.resize(1280)
            page.open(server.address())
            page.wait(f"{MESSAGE} !== ''")
            yield requests
        finally:
            page.open("about:blank")
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("queue", ["DualPI2", "FIFO", "PIE", "FQ-CoDel"])
def test_a_study_opens_with_its_trial(page: Browser, folder: Path, queue: str) -> None:
    study = load_study("l4s/sharing")
    chosen = next(cell for cell in cells(study) if cell.params["path.queue"] == queue)
    with opened(page, folder, "l4s/sharing", f"path.queue={queue}") as requests:
        message = page.evaluate(MESSAGE)
        assert message.startswith("l4s/sharing is open. The page shows one cell of ")
        page.wait(f"{CLOCK} > 0.05")
        assert texts(page, ".world h2") == ["TCP Prague beside TCP CUBIC"]
        spec = next(one["spec"] for one in requests if one["do"] == "open")
    same = {**chosen.spec, "seed": study.seed, "trial": 0}
    assert spec["traffic"] == chosen.spec["traffic"]
    assert spec["protocol"] == chosen.spec["protocol"]
    assert records(spec) == records(same)


def test_a_study_that_the_page_cannot_show_has_a_message(page: Browser, folder: Path) -> None:
    with opened(page, folder, "datacenter/figure-17") as _:
        assert page.evaluate(MESSAGE).startswith("datacenter/figure-17: topology.kind: the explorer shows ")
        page.wait(STARTED)


def test_each_scene_has_its_question_and_runs(explorer: Explorer) -> None:
    page = explorer.start()
    values = page.evaluate("[...document.querySelector('#lesson').options].map(o => o.value)")
    names = [value for value in values if value.startswith("scene=")]
    assert len(names) == 4
    for name in names:
        page = explorer.open(f"#{name}")
        page.wait(f"{CLOCK} > 0.1 && document.querySelector('.world h2').textContent.includes(' beside ')")
        assert page.evaluate("document.querySelector('#lesson').value") == name
        assert page.evaluate("document.querySelector('#question').checkVisibility()")
        assert not page.evaluate("document.querySelector('#setup').open")
        assert page.evaluate(MESSAGE) == ""
    page = explorer.open("#scene=none")
    page.wait(f"{MESSAGE}.includes('scene=none: no such scene (prague-cubic, vegas-reno')")
