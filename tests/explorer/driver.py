"""The explorer's page in a browser, for tests."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.browser import Browser

STARTED = "document.querySelectorAll('.world').length > 0"
CLOCK = "parseFloat(document.querySelector('#clock').textContent)"
MESSAGE = "document.querySelector('#message').textContent"
MOST_LOOKS = 100
"""Limit of the looks at a clock that should stop: 20 s."""
LOSSES = "document.querySelector('#events').textContent"


class Explorer:
    def __init__(self, browser: Browser, folder: Path) -> None:
        self.browser, self._address = browser, (folder / "index.html").as_uri()

    def open(self, hash_: str = "", **scene: Any) -> Browser:
        self.browser.open("about:blank")
        fragment = f"#{quote(json.dumps(scene))}" if scene else hash_
        assert self.browser.open(self._address + fragment) == []
        return self.browser

    def start(self, **scene: Any) -> Browser:
        """Opens a scene that stands at its start, as for a user who prefers reduced motion."""
        self.browser.emulate("prefers-reduced-motion", "reduce")
        try:
            page = self.open(**scene)
            page.wait(STARTED)
        finally:
            self.browser.emulate("prefers-reduced-motion", "")
        assert page.evaluate(CLOCK) == 0
        return page


def click(page: Browser, id_: str) -> None:
    page.evaluate(f"document.querySelector('#{id_}').click()")


def pause(page: Browser) -> None:
    """Stops a scene that plays, and waits for the end of its last step."""
    click(page, "play")
    before = -1.0
    for _ in range(MOST_LOOKS):
        if (now := page.evaluate(CLOCK)) == before:
            return
        before = now
        page.evaluate("new Promise(done => setTimeout(done, 200))")
    raise AssertionError(f"the clock runs on after a pause: {before} s")


def press(page: Browser, key: str) -> None:
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key=key, text=key if len(key) == 1 else "")


def enter(page: Browser, name: str, value: str) -> None:
    page.evaluate(
        f"(i => {{ i.value = {json.dumps(value)}; i.dispatchEvent(new Event('change', {{bubbles: true}})) }})"
        f"(document.querySelector('[name={name}]'))"
    )


def measured(page: Browser, row: str, world: int = 0) -> float:
    found = page.evaluate(
        f"[...document.querySelectorAll('.world')[{world}].querySelectorAll('tr')]"
        f".find(r => r.textContent.startsWith({json.dumps(row)})).cells[1].textContent"
    )
    return float(found)


def saved(page: Browser, id_: str) -> dict[str, bytes]:
    """Clicks a button, and returns the files that it saves by name."""
    page.evaluate(
        """(() => {
            window.saved = {}
            let blob
            URL.createObjectURL = found => ((blob = found), 'about:blank')
            HTMLAnchorElement.prototype.click = function () {
                const { download } = this
                const reader = new FileReader()
                reader.onload = () => (window.saved[download] = reader.result.split(',')[1])
                reader.readAsDataURL(blob)
            }
        })()"""
    )
    click(page, id_)
    page.wait(f"Object.keys(window.saved).length > 0 || {MESSAGE} !== ''")
    page.evaluate("new Promise(done => setTimeout(done, 50))")
    return {name: base64.b64decode(text) for name, text in page.evaluate("window.saved").items()}


def drop(page: Browser, name: str, text: str) -> None:
    """Drops a file on the page."""
    page.evaluate(
        f"""(() => {{
            const dataTransfer = new DataTransfer()
            dataTransfer.items.add(new File([{json.dumps(text)}], {json.dumps(name)}))
            const options = {{ dataTransfer, bubbles: true, cancelable: true }}
            document.body.dispatchEvent(new DragEvent('dragover', options))
            document.body.dispatchEvent(new DragEvent('drop', options))
        }})()"""
    )
    page.wait(f"{MESSAGE}.startsWith({json.dumps(name)})")


def scene(page: Browser) -> dict[str, Any]:
    """The scene in the page's address."""
    found: dict[str, Any] = json.loads(page.evaluate("decodeURIComponent(location.hash.slice(1)) || '{}'"))
    return found
