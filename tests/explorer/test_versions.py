"""A page whose simulator has another version."""

from __future__ import annotations

import json
import threading
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from tests.browser import Browser
from tests.explorer.driver import CLOCK, MESSAGE, Explorer
from tests.explorer.test_engine import SPEC, Engine

from longfat.cli.explorer_server import ExplorerServer

INTERFACE = Path(__file__).parents[2] / "crates" / "explorer" / "src" / "interface.txt"
OLD = {"error": "unknown variant `version`, expected one of `open`, `advance`"}
OTHER = {"ok": {"longfat": "9.9.9", "interface": 99}}
SHOWN = f"document.querySelector('#message').hidden ? '' : {MESSAGE}"

KEYS = {
    "open": """
        bottlenecks ends groups groups.name groups.pairs links nodes pairs pairs.name pairs.node session
    """,
    "advance": """
        crossings crossings.entered crossings.requeued crossings.sent decisions decisions.cwnd_bytes
        decisions.detection decisions.flow decisions.late decisions.phase decisions.probes
        decisions.rto_s decisions.sacked decisions.ssthresh_bytes decisions.state decisions.time
        decisions.timeouts decisions.undone events events.acknowledgement events.delivered
        events.direction events.flow events.frame events.host events.id events.length events.reason
        events.retransmission events.sack events.sequence events.size events.time events.what
        events.window now_s over series
        series.details series.details.early_bytes series.details.flow series.details.queueing_s
        series.details.subflows
        series.details.time series.flows series.flows.controller
        series.flows.controller.reductions series.flows.controller.ssthresh_bytes
        series.flows.controller.timeouts series.flows.controller.window_bytes
        series.flows.cwnd_bytes series.flows.flow
        series.flows.goodput_bps series.flows.in_flight_bytes series.flows.name
        series.flows.retransmissions series.flows.rtt_s series.flows.rttvar_s
        series.flows.rwnd_limited_s series.flows.sndbuf_limited_s series.flows.srtt_s
        series.flows.ssthresh_bytes series.flows.state series.flows.time series.interval_s
        series.queues series.queues.bytes series.queues.link series.queues.packets series.queues.time
        started started.flow started.group started.pair
    """,
}
"""The keys of the replies in the present interface, with those of the tables in them."""


def keys(value: Any, prefix: str = "") -> set[str]:
    if isinstance(value, list):
        return set().union(*(keys(one, prefix) for one in value)) if value else set()
    if not isinstance(value, dict):
        return set()
    found = {f"{prefix}{key}" for key in value}
    return found.union(*(keys(one, f"{prefix}{key}.") for key, one in value.items()))


def test_the_interface_has_a_number() -> None:
    engine = Engine()
    assert engine.ask(do="version") == {
        "longfat": metadata.version("longfat"),
        "interface": int(INTERFACE.read_text()),
    }


def test_other_replies_need_another_number() -> None:
    engine = Engine()
    opened = engine.ask(do="open", spec=SPEC, interval=0.01)
    step = engine.ask(do="advance", session=opened["session"], step=2, links=True)
    for name, reply in (("open", opened), ("advance", step)):
        changed = sorted(keys(reply) ^ set(KEYS[name].split()))
        assert changed == [], f"increase the number in {INTERFACE}, then update KEYS"


class OtherEngine:
    """An engine of another version."""

    def __init__(self, reply: dict[str, Any]) -> None:
        self._reply = json.dumps(reply)

    def reply(self, request: bytes) -> str:
        assert json.loads(request) == {"do": "version"}
        return self._reply


@pytest.mark.parametrize(
    ("reply", "found"), [(OLD, "is older"), (OTHER, "is that of longfat 9.9.9, with interface 99")]
)
def test_an_old_native_engine_has_a_message(
    page: Browser, folder: Path, reply: dict[str, Any], found: str
) -> None:
    with ExplorerServer(folder) as server:
        server.engine = OtherEngine(reply)  # type: ignore[assignment]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            page.resize(1280)
            page.open(server.address())
            page.wait(f"({SHOWN}).includes('simulator {found}')")
            assert "Install longfat again" in page.evaluate(MESSAGE)
            assert not any("exception" in one for one in page.complaints())
        finally:
            page.open("about:blank")
            server.shutdown()
            thread.join()


def test_an_old_simulator_in_the_cache_has_a_message(explorer: Explorer) -> None:
    script = f"""(() => {{
        const post = Worker.prototype.postMessage
        Worker.prototype.postMessage = function (message, ...rest) {{
            if (message.request?.do !== 'version') return post.call(this, message, ...rest)
            const data = {{ number: message.number, reply: {json.dumps(OLD)} }}
            this.onmessage({{ data }})
        }}
    }})()"""
    browser = explorer.browser
    number = browser.call("Page.addScriptToEvaluateOnNewDocument", source=script)["identifier"]
    try:
        page = explorer.open()
        page.wait(f"({SHOWN}).includes('simulator is older. Reload the page')")
        assert page.evaluate(CLOCK) == 0
        assert page.complaints() == []
    finally:
        browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=number)
