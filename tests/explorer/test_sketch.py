"""Predictions that the reader draws in a chart, and their comparison with the measurement."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.browser import Browser
from tests.explorer.bundled import run
from tests.explorer.driver import CLOCK, STARTED, Explorer, click, press

STATUS = "document.querySelector('#prediction').textContent"
BOX = """(() => {
  const chart = document.querySelectorAll('#charts .u-over')[CHART]
  chart.scrollIntoView({ block: "center" })
  const box = chart.getBoundingClientRect()
  return [box.left, box.top, box.width, box.height]
})()"""
PLAN = {"chart": 0, "column": "cwnd", "what": "the window", "unit": "packets", "span": 2, "high": 100}


def sketched(tmp_path: Path, code: str) -> Any:
    setup = f"const sketch = new module.Sketch(() => {{}}); sketch.begin({json.dumps(PLAN)});\n"
    media = "globalThis.matchMedia = () => ({ addEventListener() {} });\n"
    # Imports run first, and the palette needs a page.
    return run(tmp_path, "sketch", setup + code, before=media)


def test_a_curve_is_continuous_between_points(tmp_path: Path) -> None:
    code = (
        "sketch.put(0, 10, false); sketch.put(1, 60, true);"
        "console.log(JSON.stringify([0, 0.5, 1, 1.5].map(time => sketch.at(time))))"
    )
    assert sketched(tmp_path, code) == [10, pytest.approx(35, abs=0.5), 60, None]


def test_values_outside_the_chart_are_at_its_edge(tmp_path: Path) -> None:
    code = (
        "sketch.put(-1, 500, false); sketch.put(9, -5, false);"
        "console.log(JSON.stringify([sketch.at(0), sketch.at(1.999), sketch.at(2)]))"
    )
    assert sketched(tmp_path, code) == [100, 0, 0]


def test_keys_continue_from_the_last_point(tmp_path: Path) -> None:
    key = "const key = name => sketch.key({ key: name, preventDefault() {}, stopPropagation() {} });"
    again = f"sketch.begin({json.dumps(PLAN)}); key('ArrowRight');"
    code = (
        f"{key} sketch.put(1, 60, false); key('ArrowRight');"
        "const first = [0.5, 1, 1.03].map(at => sketch.at(at));"
        f"{again} console.log(JSON.stringify([first, sketch.at(0), sketch.at(1)]))"
    )
    assert sketched(tmp_path, code) == [[None, 60, 60], 0, None]


def test_the_comparison_is_the_mean_difference(tmp_path: Path) -> None:
    # The prediction is 20 from 0 to 1 s; the window is 10, then 40.
    code = (
        "sketch.put(0, 20, false); sketch.put(0.9999, 20, true); sketch.close();"
        "const cwnd = [...Array(50).fill(10), ...Array(50).fill(40), ...Array(100).fill(70)];"
        "console.log(JSON.stringify([sketch.describe({ cwnd }, false), sketch.end]))"
    )
    text, end = sketched(tmp_path, code)
    assert text == (
        "Your prediction and the measurement of the window differ by 15 packets on average. "
        "Measured: 10 to 40 packets."
    )
    assert end == 2


def test_nothing_is_drawn_while_the_scene_plays(tmp_path: Path) -> None:
    code = (
        "sketch.put(0, 20, false); sketch.close(); sketch.put(1, 20, false);"
        "console.log(JSON.stringify([sketch.at(0), sketch.at(1), sketch.drawn]))"
    )
    assert sketched(tmp_path, code) == [20, None, True]


def draw(page: Browser, chart: int, points: list[tuple[float, float]]) -> None:
    """Draws through points, as shares of the chart's width and height."""
    left, top, width, height = page.evaluate(BOX.replace("CHART", str(chart)))
    for place, (x, y) in enumerate(points):
        at = {"x": left + x * width, "y": top + y * height, "button": "left", "buttons": 1, "clickCount": 1}
        page.call("Input.dispatchMouseEvent", type="mousePressed" if place == 0 else "mouseMoved", **at)
    page.call("Input.dispatchMouseEvent", type="mouseReleased", **{**at, "buttons": 0})


@pytest.mark.slow
def test_a_drawn_window_and_the_measured_one_are_compared(explorer: Explorer) -> None:
    page = explorer.start(worlds=["reno"], speed=2)
    click(page, "predict")
    page.wait(f"{STATUS}.startsWith('Prediction: draw the window')")
    draw(page, 0, [(0.05, 0.9), (0.5, 0.5), (0.95, 0.5)])
    page.wait(f"{STATUS}.includes('press Play')")
    # A drag draws, and does not select a range of the chart.
    assert page.evaluate("document.querySelector('#charts .u-select').offsetWidth") == 0
    assert page.evaluate(CLOCK) == 0
    click(page, "play")
    page.wait(f"{STATUS}.startsWith('Your prediction and the measurement of the window differ by ')")
    # The scene pauses at the end of the prediction, where both curves are complete.
    assert 2 <= page.evaluate(CLOCK) < 3
    assert page.evaluate("document.querySelector('#play').textContent") == "Play"


@pytest.mark.slow
def test_keys_draw_a_prediction(explorer: Explorer) -> None:
    page = explorer.start(worlds=["reno"])
    click(page, "predict")
    page.wait("document.querySelector('#charts .u-over').tabIndex === 0")
    page.evaluate("document.querySelector('#charts .u-over').focus()")
    for key in ("ArrowUp", "ArrowUp", "ArrowRight", "ArrowRight"):
        press(page, key)
    page.wait(f"{STATUS}.includes('press Play')")
    assert page.evaluate(CLOCK) == 0


@pytest.mark.slow
@pytest.mark.parametrize("lesson", range(1, 13))
def test_the_scene_inside_of_a_lesson_waits_for_a_prediction(explorer: Explorer, lesson: int) -> None:
    page = explorer.browser
    assert page.open(f"{explorer._address}?lesson={lesson}&embed") == []
    page.resize(700, 620)
    page.wait(STARTED)
    page.wait(f"{STATUS}.startsWith('Prediction: draw ')")
    # With several configurations, the prediction is of the first one.
    several = page.evaluate("document.querySelectorAll('.world').length > 1")
    title = page.evaluate("document.querySelector('.world h2').textContent")
    assert (f" of {title} in its chart" in page.evaluate(STATUS)) == several
    assert page.evaluate("document.querySelectorAll('#charts .predicted').length") == 1
    assert page.evaluate("document.querySelector('#charts .predicted').checkVisibility()")
    place = page.evaluate(
        "[...document.querySelectorAll('#charts .uplot')].findIndex(one => one.matches('.predicted'))"
    )
    draw(page, place, [(0.1, 0.5), (0.9, 0.5)])
    click(page, "play")
    page.wait(f"{CLOCK} > 0")
    click(page, "play")
    page.wait(f"{STATUS} !== ''")


@pytest.mark.slow
@pytest.mark.parametrize("lesson", [1, 2, 3, 4, 5, 10, 11])
def test_the_axis_of_a_lesson_has_room_for_the_measurement(explorer: Explorer, lesson: int) -> None:
    page = explorer.browser
    page.emulate("prefers-reduced-motion", "reduce")
    try:
        page.open("about:blank")
        assert page.open(f"{explorer._address}?lesson={lesson}&embed") == []
        page.wait(f"{STATUS}.startsWith('Prediction: draw ')")
    finally:
        page.emulate("prefers-reduced-motion", "")
    hint = page.evaluate(STATUS)
    span, high = map(float, re.findall(r"for ([\d.]+) s and up to ([\d.]+)", hint)[0])
    chart = page.evaluate(
        "[...document.querySelectorAll('#charts .uplot')].findIndex(one => one.matches('.predicted'))"
    )
    draw(page, chart, [(0.01, 0.5), (0.99, 0.5)])
    page.evaluate(
        "(i => { i.value = 0.5; i.dispatchEvent(new Event('input')) })(document.querySelector('#speed'))"
    )
    click(page, "play")
    page.wait(f"{STATUS}.startsWith('Your prediction')")
    least, most = map(float, re.findall(r"Measured: ([\d.]+) to ([\d.]+) ", page.evaluate(STATUS))[0])
    # A transfer can end before the prediction does.
    assert page.evaluate(CLOCK) >= 0.7 * span
    assert least >= 0
    # Stop-and-wait uses 2 % of the axis, which ends at the rate of the link.
    assert 0.01 * high < most <= 1.1 * high
