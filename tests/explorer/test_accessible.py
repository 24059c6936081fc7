"""The page without a mouse, without colours, and for screen readers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests import requirements
from tests.explorer.driver import CLOCK, STARTED, Explorer, click, pause, press

pytestmark = pytest.mark.slow

AXE = Path(__file__).parents[2] / "explorer" / "node_modules" / "axe-core" / "axe.min.js"
CHECK = """axe.run({ resultTypes: ['violations'] }).then(found => found.violations.map(one =>
    one.id + ': ' + one.nodes.map(node => node.html.slice(0, 120)).join(' | ')))"""


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_has_no_violations_of_accessibility_rules(explorer: Explorer, width: int, colours: str) -> None:
    if not AXE.is_file():
        requirements.skip_unbuilt("axe-core: make explorer installs it")
    explorer.browser.resize(width)
    explorer.browser.emulate("prefers-color-scheme", colours)
    try:
        page = explorer.start(worlds=["reno", "go-back-n"], queue="10pkt", lesson=3)
        click(page, "next-drop")
        page.wait("document.querySelectorAll('#events li').length > 0")
        page.evaluate(AXE.read_text() + "; 0")
        violations: list[Any] = page.evaluate(CHECK)
        assert violations == []
    finally:
        explorer.browser.emulate("prefers-color-scheme", "")


def test_arrow_keys_choose_packets(explorer: Explorer) -> None:
    page = explorer.start(worlds=["reno"], speed=1)
    page.evaluate("document.querySelector('#play').click()")
    page.wait(f"{CLOCK} > 0.4")
    pause(page)
    page.evaluate("document.querySelector('details').open = true")
    for canvas in ("path", "ladder"):
        page.evaluate(f"document.querySelector('canvas.{canvas}').focus()")
        before = page.evaluate(CLOCK)
        history = "document.querySelector('#history').textContent"
        seen = [page.evaluate(history)]
        for _ in range(3):
            press(page, "ArrowRight")
            page.wait(f"!{json.dumps(seen)}.includes({history})")
            seen.append(page.evaluate(history))
        press(page, "ArrowLeft")
        page.wait(f"{history} === {json.dumps(seen[2])}")
        assert page.evaluate(CLOCK) == before


def test_every_control_is_reached_by_tab(explorer: Explorer) -> None:
    page = explorer.start()
    expected = page.evaluate(
        "[...document.querySelectorAll('button, input, select, summary, canvas[tabindex]')]"
        ".filter(one => one.checkVisibility()).length"
    )
    page.evaluate("(document.activeElement.blur(), window.reached = new Set(), 0)")
    for _ in range(expected + 5):
        press(page, "Tab")
        page.evaluate("(window.reached.add(document.activeElement), 0)")
    reached = page.evaluate(
        "[...window.reached].filter(one => one.matches('button, input, select, summary, canvas')).length"
    )
    assert reached == expected


def test_events_are_announced(explorer: Explorer) -> None:
    page = explorer.start(worlds=["reno"], queue="10pkt")
    click(page, "next-drop")
    page.wait("document.querySelector('#announcer').textContent.includes('The queue drops a packet')")
    assert page.evaluate("document.querySelector('#announcer').textContent").startswith("TCP Reno, ")
    assert page.evaluate("document.querySelector('#announcer').getAttribute('role')") == "status"


def test_lines_differ_without_colours(explorer: Explorer) -> None:
    page = explorer.start(worlds=["reno", "cubic", "bbr"])
    page.wait(STARTED)
    borders = page.evaluate(
        "[...document.querySelectorAll('.uplot')[1].querySelectorAll('.u-marker')]"
        ".map(one => getComputedStyle(one).borderTopStyle).slice(-3)"
    )
    assert borders == ["solid", "dashed", "dotted"]


@pytest.mark.parametrize("width", [400, 1920])
def test_larger_text_fits(explorer: Explorer, width: int) -> None:
    explorer.browser.resize(width)
    page = explorer.start(worlds=["reno", "cubic", "bbr"], topology="dumbbell")
    page.evaluate(
        "(document.documentElement.style.fontSize = '150%', document.querySelector('#setup').open = true)"
    )
    assert page.evaluate("getComputedStyle(document.querySelector('#play')).fontSize") == "22.5px"
    assert page.overflow() == 0
