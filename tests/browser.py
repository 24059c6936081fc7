"""Control of a headless Chromium over its debugging pipe, for tests of pages that longfat writes."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TIMEOUT_S = 120.0
NAMES = ("chromium", "chromium-browser", "google-chrome")


def program() -> str | None:
    """Returns the path of the browser, or None without one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page of a running browser."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._session = ""
        self._buffer = b""
        self._number = 0
        self._events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = str(attached["sessionId"])
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        # Another window of the browser may have the focus; pages would get no events of it.
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Sends a command of the DevTools protocol and returns its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            self._events.append(answer)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], TIMEOUT_S)
            assert ready, f"no reply from the browser for {TIMEOUT_S} s; events: {self._events[-5:]}"
            read = os.read(self._answers, 1 << 20)
            assert read, "the browser has ended"
            self._buffer += read
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def _next_event(self, method: str) -> None:
        while not any(event.get("method") == method for event in self._events):
            self._events.append(self._receive())

    def resize(self, width: int, height: int = 900) -> None:
        """Sets the size of the window in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def emulate(self, feature: str, value: str) -> None:
        """Sets a media feature, such as `prefers-color-scheme`."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": feature, "value": value}])

    def open(self, address: str) -> list[str]:
        """Opens a page, waits until it is loaded, and returns its console messages and outside requests."""
        self._events.clear()
        self.call("Page.navigate", url=address)
        self._next_event("Page.loadEventFired")
        # The layout of what scripts draw is complete after two frames.
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return self.complaints()

    def complaints(self) -> list[str]:
        """Returns warnings, errors and requests to other hosts since the page was opened."""
        found = []
        for event in self._events:
            method, about = event.get("method"), event.get("params", {})
            if method == "Runtime.consoleAPICalled" and about["type"] in ("warning", "error", "assert"):
                found.append(
                    f"console: {[one.get('value', one.get('description')) for one in about['args']]}"
                )
            elif method == "Runtime.exceptionThrown":
                details = about["exceptionDetails"]
                found.append(f"exception: {details.get('exception', {}).get('description', details['text'])}")
            elif method == "Log.entryAdded" and about["entry"]["level"] in ("warning", "error"):
                found.append(f"log: {about['entry']['text']}")
            elif method == "Network.requestWillBeSent":
                url = about["request"]["url"]
                if not url.startswith(("file:", "data:", "blob:", "about:")):
                    found.append(f"request: {url}")
        return found

    def evaluate(self, expression: str) -> Any:
        """Returns the value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait(self, condition: str, while_changing: str | None = None) -> None:
        """Waits until a JavaScript expression is true, longer for as long as another expression changes."""
        if while_changing is not None:
            before = None
            while not self.evaluate(condition) and (now := self.evaluate(while_changing)) != before:
                before = now
                time.sleep(1)
        # What a condition looks at may be missing while a page is drawn again: an error means "not yet".
        # Uncaught in a later look, it would leave the promise open for ever.
        failure = self.evaluate(
            f"""new Promise(done => {{
                const stop = performance.now() + {(TIMEOUT_S - 10) * 1000}
                const look = () => {{
                    let failure = 'is false'
                    try {{ if ({condition}) failure = null }} catch (error) {{ failure = String(error) }}
                    if (failure === null || performance.now() > stop) done(failure)
                    else setTimeout(look, 20)
                }}
                look()
            }})"""
        )
        assert failure is None, (condition, failure, self.complaints())

    def overflow(self) -> int:
        """Returns by how many pixels the page is wider than the window."""
        width = self.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert isinstance(width, int)
        return width

    def screenshot(self, file: Path, *, whole: bool = True) -> None:
        """Writes a picture of the page as PNG."""
        import base64

        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        file.write_bytes(base64.b64decode(data))


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Starts a browser with an empty profile, and ends it."""
    found = program()
    assert found is not None
    command_read, command_write = os.pipe()
    answer_read, answer_write = os.pipe()
    script = f'exec 3<&{command_read} 4>&{answer_write}; exec "$@"'
    arguments = [
        "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
        "--disable-extensions", "--disable-background-networking", "--disable-component-update",
        "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-ipc-flooding-protection",
        f"--user-data-dir={profile}",
    ]  # fmt: skip
    process = subprocess.Popen(
        ["bash", "-c", script, "bash", found, *arguments],
        pass_fds=(command_read, answer_write),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(command_read)
    os.close(answer_write)
    try:
        page = Browser(command_write, answer_read)
        yield page
    finally:
        os.close(command_write)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
        os.close(answer_read)
