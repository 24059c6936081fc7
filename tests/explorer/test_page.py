"""The page in a browser, opened from disk."""

from __future__ import annotations

import json
import re
import threading
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.browser import Browser
from tests.explorer.driver import (
    CLOCK,
    LOSSES,
    MESSAGE,
    STARTED,
    Explorer,
    click,
    enter,
    measured,
    pause,
    press,
)
from tests.waiting import wait_until

from longfat import _native
from longfat.cli.explorer_server import ExplorerServer


def test_plays_from_disk_without_other_requests(explorer: Explorer) -> None:
    page = explorer.open(speed=1)
    page.wait(f"{CLOCK} > 0.3")
    assert page.complaints() == []
    assert measured(page, "cwnd") >= 10
    assert page.evaluate("document.querySelectorAll('.uplot').length") == 4


@pytest.mark.parametrize(
    "width", [400, *(pytest.param(width, marks=pytest.mark.slow) for width in (1280, 1920))]
)
def test_fits_screens_and_phones(explorer: Explorer, width: int) -> None:
    explorer.browser.resize(width)
    page = explorer.open(worlds=["reno", "cubic", "bbr"])
    page.wait(f"{CLOCK} > 0")
    assert page.overflow() == 0


def test_keys_play_and_step(explorer: Explorer) -> None:
    page = explorer.start()
    before = page.evaluate(CLOCK)
    press(page, "ArrowRight")
    page.wait(f"{CLOCK} > {before}")
    assert page.evaluate(CLOCK) == pytest.approx(before + 0.001, abs=1e-6)
    page.evaluate("document.activeElement.blur()")
    press(page, " ")
    page.wait(f"{CLOCK} > {before + 0.01}")


def test_jumps_to_a_loss_and_its_history(explorer: Explorer) -> None:
    page = explorer.start(queue="20pkt")
    click(page, "next-drop")
    page.wait(f"{LOSSES}.includes('The queue drops a packet')")
    click(page, "next-retransmission")
    page.wait(f"{LOSSES}.includes('fast retransmit')")
    event = "[...document.querySelectorAll('#events button')].find(b => /retransmits/i.test(b.textContent))"
    page.evaluate(f"{event}.click()")
    history = page.evaluate("document.querySelector('#history').textContent")
    assert "sent, " in history
    assert "lost: queue" in history
    assert "retransmitted" in history


def test_the_rate_changes_while_it_runs(explorer: Explorer) -> None:
    page = explorer.open(speed=5, worlds=["reno"])
    page.wait(f"{CLOCK} > 3")
    assert measured(page, "Goodput") > 5
    enter(page, "rate", "1Mbit/s")
    start = page.evaluate(CLOCK)
    page.wait(f"{CLOCK} > {start + 6}")
    # A busy machine fills the table later.
    wait_until(lambda: measured(page, "Goodput") < 1.5)


def test_the_controller_changes_while_it_runs(explorer: Explorer) -> None:
    page = explorer.open(speed=1, worlds=["reno"])
    page.wait(f"{CLOCK} > 0.3")
    select = "document.querySelector('#protocols select')"
    page.evaluate(f"(s => {{ s.value = 'bbr'; s.dispatchEvent(new Event('change')) }})({select})")
    page.wait("document.querySelector('.world h2').textContent.startsWith('TCP BBRv3')")
    assert page.evaluate(CLOCK) > 0.3


def test_each_queue_discipline_runs(explorer: Explorer) -> None:
    page = explorer.start()
    click(page, "step")
    page.wait(f"{CLOCK} > 0")
    for name in ("red", "codel", "fq-codel", "pie", "drop-head"):
        enter(page, "discipline", name)
        page.wait(f"{LOSSES}.includes('You change the queue discipline to {name}.')")
        before = page.evaluate(CLOCK)
        click(page, "step")
        page.wait(f"{CLOCK} > {before}")
        enter(page, "queue", "30pkt")
        enter(page, "queue", "40pkt")
    assert page.evaluate(MESSAGE) == ""
    click(page, "from-start")
    page.wait(f"{CLOCK} === 0 && location.hash.includes('drop-head')")
    click(page, "step")
    page.wait(f"{CLOCK} > 0")
    assert page.evaluate(MESSAGE) == ""


def test_the_native_engine_serves_the_same_page(page: Browser, folder: Path) -> None:
    with ExplorerServer(folder) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        page.resize(1280)
        page.open(server.address(f"{quote(json.dumps({'worlds': ['bbr'], 'speed': 1}))}"))
        page.wait(f"{CLOCK} > 0.2")
        assert page.evaluate("document.querySelector('#engine').textContent") == "native engine"
        assert page.evaluate("document.querySelector('.world h2').textContent") == "TCP BBRv3"
        assert page.evaluate(MESSAGE) == ""
        page.open("about:blank")
        server.shutdown()
        thread.join()


class SlowEngine:
    """The native engine behind a slow connection."""

    def __init__(self) -> None:
        self._engine = _native.Explorer()

    def reply(self, request: bytes) -> str:
        time.sleep(0.06)
        return self._engine.reply(request)


def test_a_slow_engine_does_not_stop_the_simulation(page: Browser, folder: Path) -> None:
    with ExplorerServer(folder) as server:
        server.engine = SlowEngine()  # type: ignore[assignment]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            page.open(server.address(quote(json.dumps({"worlds": ["reno"], "speed": 1}))))
            page.wait(f"{CLOCK} > 0.4")
        finally:
            page.open("about:blank")
            server.shutdown()
            thread.join()


def test_a_link_opens_the_same_scene(explorer: Explorer) -> None:
    page = explorer.start()
    click(page, "step")
    page.wait(f"{CLOCK} > 0")
    enter(page, "delay", "30ms")
    page.wait("location.hash.includes('interventions')")
    click(page, "from-start")
    page.wait("!location.hash.includes('interventions')")
    click(page, "link")
    page.wait(f"{MESSAGE}.startsWith('The link') && {MESSAGE}.includes('It opens on this machine.')")
    assert page.overflow() == 0
    hash_ = page.evaluate("location.hash")
    page = explorer.open(hash_)
    assert page.evaluate("document.querySelector('[name=delay]').value") == "30ms"


@pytest.mark.parametrize(
    ("hash_", "message"),
    [
        ("#%7Bxx", "contains no scene"),
        ("#%", "not valid"),
        ("#lesson=99", "no such lesson"),
        ('#{"rate":"10Mbpq"}', "is not a number with a unit"),
        ('#{"rate":"90Gbit/s"}', "simulates no faster links"),
        ('#{"flows":1000000}', "out of range"),
        ('#{"speeed":1}', "unknown key"),
        ('#{"worlds":["quic"]}', "unknown protocol"),
        ('#{"discipline":"fifo"}', "unknown queue discipline"),
        ('#{"discipline":"prio"}', '"prio" is not shown: the flows of the page have no priorities'),
        ('#{"worlds":"reno"}', "expected a list"),
    ],
)
def test_a_wrong_address_has_a_message(explorer: Explorer, hash_: str, message: str) -> None:
    page = explorer.open("#" + quote(hash_[1:], safe="%="))
    assert message in page.evaluate(MESSAGE)
    page.wait(STARTED)


def test_an_unknown_key_of_an_address_is_left_out(explorer: Explorer) -> None:
    page = explorer.open("#" + quote('{"speeed": 1, "worlds": ["vegas"]}'))
    page.wait(STARTED)
    assert "The page shows the scene of this address without speeed: unknown key" in page.evaluate(MESSAGE)
    assert page.evaluate("document.querySelector('.world h2').textContent") == "TCP Vegas"


def test_a_wrong_setting_has_a_message_and_changes_nothing(explorer: Explorer) -> None:
    page = explorer.start()
    enter(page, "rate", "fast")
    page.wait(f"{MESSAGE}.includes('rate')")
    assert "fast" not in page.evaluate("location.hash")
    invalid = "document.querySelector('[name=rate]').getAttribute('aria-invalid')"
    assert page.evaluate(invalid) == "true"
    enter(page, "rate", "1Mbit/s")
    page.wait(f"{invalid} !== 'true' && {MESSAGE} === ''")
    page.evaluate(
        "(s => { s.value = 1; s.dispatchEvent(new Event('input')) })(document.querySelector('#speed'))"
    )
    page.wait("document.querySelector('#speed-text').textContent === '10 times'")


@pytest.mark.slow
def test_a_run_stops_at_its_limit(explorer: Explorer) -> None:
    page = explorer.open(speed=100, rate="100kbit/s", worlds=["stop-and-wait"])
    # A busy machine draws few frames per second, and each plays at most 10 s of virtual time.
    page.wait(f"{MESSAGE}.includes('limit of 600 s')", while_changing=CLOCK)


@pytest.mark.slow
@pytest.mark.parametrize("lesson", range(1, 9))
def test_each_lesson_has_its_question(explorer: Explorer, lesson: int) -> None:
    page = explorer.open(f"#lesson={lesson}")
    page.wait(f"{CLOCK} > 0")
    assert page.evaluate("document.querySelector('#question').textContent").endswith("?")
    assert page.complaints() == []


def test_lesson_5_shows_the_time_of_its_transfer(explorer: Explorer) -> None:
    page = explorer.open("#lesson=5")
    page.wait(STARTED)
    title = "document.querySelector('.world h2').textContent"
    page.wait(f"{title}.includes('complete at')")
    # The lesson has 130 ms from the first data, after a handshake of 40 ms, to the last ACK (20 ms).
    assert float(page.evaluate(title).split()[-2]) == pytest.approx(130 + 40 - 20, abs=1)


def test_starts_paused_with_reduced_motion(explorer: Explorer) -> None:
    explorer.browser.emulate("prefers-reduced-motion", "reduce")
    try:
        page = explorer.open()
        page.wait(STARTED)
        assert page.evaluate("document.querySelector('#play').textContent") == "Play"
    finally:
        explorer.browser.emulate("prefers-reduced-motion", "")


def test_controls_have_names(explorer: Explorer) -> None:
    page = explorer.start()
    nameless = page.evaluate(
        "[...document.querySelectorAll('input, select')]"
        ".filter(i => !i.closest('label') && !i.ariaLabel).length"
        " + [...document.querySelectorAll('canvas[role=img]')].filter(c => !c.ariaLabel).length"
    )
    assert nameless == 0


def test_the_native_page_compares_with_closed_forms(page: Browser, folder: Path) -> None:
    with ExplorerServer(folder) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            page.resize(1280)
            scene = {"worlds": ["reno", "stop-and-wait"], "loss": "1%", "rto": "500ms", "speed": 1}
            page.open(server.address(quote(json.dumps(scene))))
            sentences = "[...document.querySelectorAll('.theory')].map(one => one.textContent)"
            page.wait(f"{sentences}.filter(one => one.includes('Mbit/s')).length === 2")
            sentences = page.evaluate(sentences)
            # At first there is no measurement to compare with.
            assert sentences[0].startswith("Theory: 3.25 Mbit/s (Mathis")
            assert "stop-and-wait: R + T q" in sentences[1]
            # The sentence has the ratio of the numbers that the page shows.
            page.wait(f"{CLOCK} > 2.5")
            pause(page)
            text = page.evaluate("document.querySelectorAll('.theory')[1].textContent")
            predicted = float(text.split(" Mbit/s")[0].split()[-1])
            assert text.startswith("Goodput ")
            ratio = measured(page, "Goodput", 1) / predicted - 1
            found = re.search(r"(\d+) % (below|above)", text)
            percent = (int(found[1]) if found[2] == "above" else -int(found[1])) if found else 0
            assert percent == pytest.approx(100 * ratio, abs=8), text
            # What was measured with other settings is not compared.
            enter(page, "loss", "2%")
            page.wait("document.querySelectorAll('.theory')[1].textContent.startsWith('Theory: ')")
            assert page.evaluate(MESSAGE) == ""
        finally:
            page.open("about:blank")
            server.shutdown()
            thread.join()
