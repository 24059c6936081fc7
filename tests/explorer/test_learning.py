"""What helps first-time readers: sliders, time line, kinds of losses, tour, and scenes inside of lessons."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.browser import Browser
from tests.explorer.driver import CLOCK, Explorer, click, measured, pause, press, scene

pytestmark = pytest.mark.slow

VALUE = "Number(document.querySelector({}).value)"
STATE = "JSON.stringify([...document.querySelectorAll('.world tbody tr')].map(r => r.cells[1].textContent))"


def move(page: Browser, selector: str, value: float) -> None:
    page.evaluate(
        f"(i => {{ i.value = {value}; for (const e of ['input', 'change']) i.dispatchEvent(new Event(e)) }})"
        f"(document.querySelector({json.dumps(selector)}))"
    )


def test_sliders_set_the_path(explorer: Explorer) -> None:
    page = explorer.start(worlds=["reno"])
    for key, position, text in (
        ("rate", 6.3, "2Mbit/s"),
        ("delay", 1, "10ms"),
        ("loss", 0.1, "1%"),
        ("queue", 2, "100pkt"),
    ):
        move(page, f"[data-slider={key}]", position)
        page.wait(f'decodeURIComponent(location.hash).includes(\'"{key}":"{text}"\')')
    found = scene(page)
    assert {key: found[key] for key in ("rate", "delay", "loss", "queue")} == {
        "rate": "2Mbit/s",
        "delay": "10ms",
        "loss": "1%",
        "queue": "100pkt",
    }
    assert page.evaluate("document.querySelector('[name=rate]').value") == "2Mbit/s"


@pytest.mark.parametrize("slider", ["[data-slider=rate]", "#timeline", "#speed"])
def test_arrow_keys_move_the_slider_with_the_focus(explorer: Explorer, slider: str) -> None:
    page = explorer.start(worlds=["reno"], speed=0.1)
    value = VALUE.format(json.dumps(slider))
    page.evaluate(f"document.querySelector({json.dumps(slider)}).focus()")
    before, speed = page.evaluate(value), page.evaluate(VALUE.format("'#speed'"))
    press(page, "ArrowRight" if slider != "#speed" else "ArrowLeft")
    page.wait(f"{value} !== {before}")
    page.evaluate("new Promise(done => setTimeout(done, 300))")
    if slider != "#timeline":
        assert page.evaluate(CLOCK) == 0
    if slider != "#speed":
        press(page, "ArrowUp")
        assert page.evaluate(VALUE.format("'#speed'")) == speed


def seek(page: Browser, time: float) -> Any:
    page.evaluate("document.querySelector('#timeline').max = 10")
    move(page, "#timeline", time)
    page.wait(f"{CLOCK} === {time}")
    page.evaluate("new Promise(done => setTimeout(done, 400))")
    return page.evaluate(STATE)


def test_the_time_line_returns_to_the_same_packets(explorer: Explorer) -> None:
    options: dict[str, Any] = {"worlds": ["reno", "cubic"], "loss": "2%", "speed": 1}
    page = explorer.start(**options)
    first = seek(page, 0.5)
    later = seek(page, 1.5)
    assert first != later
    assert seek(page, 0.5) == first
    assert seek(page, 1.5) == later


def test_losses_are_counted_by_kind(explorer: Explorer) -> None:
    page = explorer.start(worlds=["reno"], loss="3%", queue="10pkt", speed=1)
    seek(page, 3)
    drops = page.evaluate(
        "[...document.querySelectorAll('.world tr')].map(r => [...r.cells].map(c => c.textContent))"
    )
    found = {cells[0]: cells[1] for cells in drops}
    random, queue = map(int, found["Random losses, queue drops"].split(", "))
    acks = int(found["Lost ACKs"])
    total = int(found["Drops, timeouts"].split(", ")[0])
    assert min(random, queue, acks) > 0
    assert random + queue + acks == total
    figures = page.evaluate("document.querySelector('.figures').textContent")
    assert figures.endswith(f"lost: {random} random, {queue} queue, {acks} ACKs")


def test_received_bytes_stay_below_the_rate(explorer: Explorer) -> None:
    page = explorer.start(worlds=["reno"], loss="2%", speed=1)
    seek(page, 3)
    labels = page.evaluate("document.querySelector('#charts').textContent")
    assert "received" in labels
    assert measured(page, "Goodput") < 10


def test_the_tour_has_five_steps(explorer: Explorer) -> None:
    page = explorer.start(worlds=["reno"])
    click(page, "start-tour")
    for step in range(1, 6):
        assert page.evaluate("document.querySelector('#tour-text').textContent").startswith(f"{step} of 5. ")
        assert page.evaluate("document.querySelectorAll('.toured').length") == 1
        click(page, "tour-next")
    assert page.evaluate("document.querySelector('#tour').hidden")
    assert page.evaluate("document.querySelectorAll('.toured').length") == 0


@pytest.mark.parametrize("lesson", [2, 8])
def test_path_and_window_chart_fit_one_screen(explorer: Explorer, lesson: int) -> None:
    page = explorer.open(f"#lesson={lesson}")
    page.resize(1280, 720)
    page.wait(f"{CLOCK} > 0.1")
    pause(page)
    bottom = page.evaluate(
        "Math.max(...[...document.querySelectorAll('.world, #quick, #charts .u-over')].slice(0, 4)"
        ".map(one => one.getBoundingClientRect().bottom))"
    )
    assert bottom <= 720
    assert page.evaluate("document.querySelector('#charts .u-over').getBoundingClientRect().bottom") <= 720


def test_a_scene_inside_of_a_lesson_waits_and_has_no_settings(explorer: Explorer) -> None:
    address = explorer._address
    assert explorer.browser.open(f"{address}?lesson=5&embed") == []
    page = explorer.browser
    page.wait("document.querySelectorAll('.world').length > 0")
    assert page.evaluate(CLOCK) == 0
    assert not page.evaluate("document.querySelector('#setup').checkVisibility()")
    assert page.evaluate("document.querySelector('#play').checkVisibility()")
    assert explorer.browser.open(f"{address}?lesson=5") == []
    page.wait("!document.querySelector('#back').hidden")
    assert page.evaluate("document.querySelector('#back').getAttribute('href')") == "../learn/5-reno.html"
