"""The page of logs without a mouse, on phones, with large text, and for screen readers."""

from __future__ import annotations

import pytest
from tests import requirements
from tests.explorer import log_samples as samples
from tests.explorer.driver import press
from tests.explorer.log_driver import LogPage
from tests.explorer.test_accessible import AXE, CHECK

WIDTHS = [360, 1280]


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("opened", [True, False])
def test_has_no_violations_of_accessibility_rules(
    log_page: LogPage, width: int, colours: str, opened: bool
) -> None:
    if not AXE.is_file():
        requirements.skip_unbuilt("axe-core: make explorer installs it")
    page = log_page.browser
    page.resize(width)
    page.emulate("prefers-color-scheme", colours)
    try:
        # A message follows from a file that is not a log.
        log_page.open(samples.go() if opened else "hello")
        page.evaluate("(document.querySelector('details').open = true, 0)")
        if opened:
            log_page.choose(1)
        page.evaluate(AXE.read_text() + "; 0")
        assert page.evaluate(CHECK) == []
    finally:
        page.emulate("prefers-color-scheme", "")


@pytest.mark.parametrize("width", WIDTHS)
def test_fits_screens_and_phones(log_page: LogPage, width: int) -> None:
    log_page.browser.resize(width)
    log_page.open(samples.go())
    log_page.choose(5)
    log_page.browser.evaluate("(document.querySelector('details').open = true, 0)")
    assert log_page.browser.overflow() == 0
    log_page.browser.evaluate("(document.documentElement.style.fontSize = '150%', 0)")
    assert log_page.browser.overflow() == 0


@pytest.mark.slow
def test_every_control_is_reached_by_tab(log_page: LogPage) -> None:
    page = log_page.browser
    log_page.open(samples.go())
    log_page.enter("log-from", "0.01")
    page.wait("!document.querySelector('#log-all').disabled")
    controls = "button, input, select, summary, a, [tabindex]"
    expected = page.evaluate(
        f"[...document.querySelectorAll('{controls}')].filter(one => one.checkVisibility()).length"
    )
    assert expected >= 11
    page.evaluate("(document.activeElement.blur(), window.reached = new Set(), 0)")
    for _ in range(expected + 5):
        press(page, "Tab")
        page.evaluate("(window.reached.add(document.activeElement), 0)")
    reached = page.evaluate(f"[...window.reached].filter(one => one.matches('{controls}')).length")
    assert reached == expected


def test_controls_and_charts_have_names(log_page: LogPage) -> None:
    log_page.open(samples.go())
    unnamed = log_page.browser.evaluate(
        "[...document.querySelectorAll('figure, section, [role=listbox], [role=region]')]"
        ".filter(one => !one.ariaLabel && !one.getAttribute('aria-labelledby')).length"
    )
    assert unnamed == 0


def test_lines_and_points_differ_without_colours(log_page: LogPage) -> None:
    log_page.open(samples.go())
    borders = log_page.browser.evaluate(
        "[...[...document.querySelectorAll('figure')].find(one => one.ariaLabel.startsWith('Windows'))"
        ".querySelectorAll('.u-marker')].map(one => getComputedStyle(one).borderTopStyle).slice(1)"
    )
    assert borders == ["solid", "dotted"]
    # Sent and acknowledged packets differ in shape.
    shapes = log_page.browser.evaluate(
        "[...document.querySelector('figure .log-legend').children].map(one => one.className)"
    )
    assert len(set(shapes)) == len(shapes) == 3


def test_nothing_moves(log_page: LogPage) -> None:
    log_page.open(samples.go())
    moving = log_page.browser.evaluate(
        "[...document.querySelectorAll('*')].filter(one => { const style = getComputedStyle(one); "
        "return style.transitionDuration !== '0s' || style.animationName !== 'none' }).length"
    )
    assert moving == 0
