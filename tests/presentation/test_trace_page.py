"""The page of a trace in a browser: full width, tooltips, zoom, the same colours in all charts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.browser import Browser

import longfat as lf

pytestmark = pytest.mark.slow
DRAWN = "document.querySelector('.vega-embed canvas')"


@pytest.fixture(scope="module")
def traces() -> Any:
    path = lf.Path(rate="10Mbit/s", delay="10ms", queue="20pkt")
    return lf.trace(["reno", "cubic"], path, duration="3s")


@pytest.fixture
def shown(traces: Any, page: Browser, tmp_path: Path) -> Browser:
    traces.write(tmp_path / "trace.html")
    page.resize(1280)
    assert page.open((tmp_path / "trace.html").as_uri()) == []
    page.wait(DRAWN)
    return page


def test_the_page_has_a_title_and_fits_screens_and_phones(traces: Any, page: Browser, tmp_path: Path) -> None:
    traces.write(tmp_path / "trace.html")
    for width in (1280, 400):
        page.resize(width)
        page.open((tmp_path / "trace.html").as_uri())
        page.wait(DRAWN)
        assert page.complaints() == []
        assert page.overflow() == 0
        drawn = page.evaluate("document.querySelector('canvas').getBoundingClientRect().width")
        assert 0.75 * width < drawn <= width
    assert page.evaluate("document.querySelector('h1').textContent") == "TCP Reno and TCP CUBIC"


def test_lines_have_tooltips(shown: Browser) -> None:
    left, top = shown.evaluate(
        "(r => [r.left, r.top])(document.querySelector('canvas').getBoundingClientRect())"
    )
    for y in range(40, 240, 4):
        shown.call("Input.dispatchMouseEvent", type="mouseMoved", x=left + 500, y=top + y)
        text = shown.evaluate("document.querySelector('#vg-tooltip-element.visible')?.textContent ?? ''")
        if text:
            break
    assert "Time (s)" in text
    assert "TCP" in text


def test_ctrl_and_wheel_zoom_and_the_wheel_alone_does_not(shown: Browser) -> None:
    content = "document.querySelector('canvas').toDataURL()"
    left, top = shown.evaluate(
        "(r => [r.left, r.top])(document.querySelector('canvas').getBoundingClientRect())"
    )
    wheel = {"type": "mouseWheel", "x": left + 500, "y": top + 120, "deltaX": 0}
    shown.call("Input.dispatchMouseEvent", **(wheel | {"type": "mouseMoved"}))
    shown.evaluate("new Promise(done => setTimeout(done, 200))")
    before = shown.evaluate(content)
    shown.call("Input.dispatchMouseEvent", **wheel, deltaY=1)
    assert shown.evaluate(f"new Promise(done => setTimeout(() => done({content}), 300))") == before
    shown.call("Input.dispatchMouseEvent", **wheel, deltaY=-400, modifiers=2)
    shown.wait(f"{content} !== {before!r}")


def test_a_protocol_has_the_same_colour_in_all_charts(traces: Any) -> None:
    spec = traces.drawing()
    found: dict[str, set[str]] = {}

    def collect(part: Any) -> None:
        if isinstance(part, dict):
            scale = part.get("scale")
            if part.get("field") == "flow" and isinstance(scale, dict):
                for name, colour in zip(scale["domain"], scale["range"], strict=True):
                    found.setdefault(name.partition(" (")[2], set()).add(colour)
            for inner in part.values():
                collect(inner)
        elif isinstance(part, list):
            for inner in part:
                collect(inner)

    collect(spec)
    assert set(found) == {"TCP Reno)", "TCP CUBIC)"}
    assert all(len(colours) == 1 for colours in found.values())


def test_an_empty_queue_is_a_note_instead_of_a_chart() -> None:
    traces = lf.trace("reno", lf.Path(delay="10ms"), "20kB")
    spec = traces.drawing()
    assert spec is not None
    titles = str(spec["vconcat"])
    assert "Rate (Mbit/s)" in titles
    assert "Queue (packets)" not in titles
    assert "the queue is always empty" in spec["title"]["subtitle"]
