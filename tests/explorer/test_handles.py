"""The queue's limit and the link's delay are lengths of the drawing, which the reader can drag."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.browser import Browser
from tests.explorer.bundled import run
from tests.explorer.driver import CLOCK, Explorer, scene

LIMITS = [1, 2, 10, 50, 170, 1000, 3000]
DELAYS = [1e-4, 1e-3, 5e-3, 0.02, 0.1, 1]


def test_lengths_and_settings_are_inverse(tmp_path: Path) -> None:
    code = (
        f"console.log(JSON.stringify([{LIMITS}.map(limit => module.limitOf(module.widthOf(limit))),"
        f"{DELAYS}.map(delay => module.delayOf(module.shareOf(delay)))]))"
    )
    limits, delays = run(tmp_path, "handles", code)
    assert limits == LIMITS
    assert delays == pytest.approx(DELAYS)


def test_lengths_have_limits(tmp_path: Path) -> None:
    code = (
        "console.log(JSON.stringify([module.limitOf(-50), module.limitOf(900), module.delayOf(-1),"
        "module.delayOf(5), module.shareOf(0), module.shareOf(10)]))"
    )
    assert run(tmp_path, "handles", code) == pytest.approx([1, 3000, 1e-4, 1, 0.4, 1])


def drag(page: Browser, start: tuple[float, float], by: float) -> None:
    """Drags from a place of the first path's drawing by a distance in pixels."""
    # The handles are those of the last frame.
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    left, top = page.evaluate(
        "(b => [b.left, b.top])(document.querySelector('canvas.path').getBoundingClientRect())"
    )
    x, y = left + start[0], top + start[1]
    for kind, at, buttons in (
        ("mousePressed", x, 1),
        ("mouseMoved", x + by / 2, 1),
        ("mouseMoved", x + by, 1),
        ("mouseReleased", x + by, 0),
    ):
        page.call(
            "Input.dispatchMouseEvent", type=kind, x=at, y=y, button="left", buttons=buttons, clickCount=1
        )


EDGE = 66 + 4
"""The left edge of the queue's box: behind the sender."""


@pytest.mark.slow
def test_dragging_the_edge_of_the_queue_changes_its_limit(explorer: Explorer) -> None:
    page = explorer.start(worlds=["reno"], queue="100pkt")
    drag(page, (EDGE + 68, 44), 22)
    page.wait(
        "location.hash.includes('1000pkt') && document.querySelector('[name=queue]').value === '1000pkt'"
    )
    assert scene(page)["queue"] == "1000pkt"
    assert page.evaluate(CLOCK) == 0


@pytest.mark.slow
def test_dragging_the_receiver_changes_the_delay(explorer: Explorer) -> None:
    page = explorer.start(worlds=["reno"], delay="1s")
    width = page.evaluate("document.querySelector('canvas.path').clientWidth")
    room = width - 66 - (66 + 101 + 20)
    # The whole way to the left leaves the shortest link.
    drag(page, (width - 66, 60), -room)
    page.wait("location.hash.includes('0.1ms')")
    assert scene(page)["delay"] == "0.1ms"


@pytest.mark.slow
def test_a_click_on_a_handle_changes_nothing(explorer: Explorer) -> None:
    page = explorer.start(worlds=["reno"])
    before = page.evaluate("location.hash")
    drag(page, (EDGE + 61, 44), 0)
    page.evaluate("new Promise(done => setTimeout(done, 300))")
    assert page.evaluate("location.hash") == before
