"""The page of logs in a browser, and sums of a log to compare it with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.browser import Browser

OPENED = "!document.querySelector('#log').hidden || !document.querySelector('#message').hidden"
Record = dict[str, Any]


class LogPage:
    """The page, and the files that it opens from `folder`."""

    def __init__(self, browser: Browser, built: Path, folder: Path) -> None:
        self.browser = browser
        self._address, self._folder = (built / "log.html").as_uri(), folder

    def open(self, file: Path | str) -> None:
        """Chooses a file, or one with this content, as a user does."""
        if isinstance(file, str):
            content, file = file, self._folder / "sample.qlog"
            file.write_text(content, encoding="utf-8")
        assert self.browser.open(self._address) == []
        root = self.browser.call("DOM.getDocument")["root"]["nodeId"]
        node = self.browser.call("DOM.querySelector", nodeId=root, selector="#log-file")["nodeId"]
        self.browser.call("DOM.setFileInputFiles", nodeId=node, files=[str(file.resolve())])
        self.browser.wait(OPENED)
        assert self.browser.complaints() == []

    def facts(self) -> dict[str, float]:
        """The numbers that the page lists, without rounding."""
        found = self.browser.evaluate(
            "Object.fromEntries([...document.querySelectorAll('[data-fact][data-value]')]"
            ".map(one => [one.dataset.fact, Number(one.dataset.value)]))"
        )
        assert isinstance(found, dict)
        return found

    def fact(self, key: str) -> str:
        """The text of a fact."""
        return str(self.browser.evaluate(f"document.querySelector('[data-fact={key}]').textContent"))

    def text(self, selector: str) -> str:
        return str(self.browser.evaluate(f"document.querySelector({json.dumps(selector)}).textContent"))

    def texts(self, selector: str) -> list[str]:
        script = f"[...document.querySelectorAll({json.dumps(selector)})].map(one => one.textContent)"
        found = self.browser.evaluate(script)
        assert isinstance(found, list)
        return found

    @property
    def status(self) -> str:
        return self.text("#log-status")

    @property
    def message(self) -> str:
        return self.text("#message")

    def shown(self, events: int, of: int) -> None:
        """Waits until the list has a number of events."""
        text = f"{events:,} of {of:,} event{'s' if of != 1 else ''}"
        self.browser.wait(f"document.querySelector('#log-shown').textContent === {json.dumps(text)}")

    def enter(self, id_: str, value: str, kind: str = "change") -> None:
        self.browser.evaluate(
            f"(one => {{ one.value = {json.dumps(value)}; one.dispatchEvent(new Event('{kind}', "
            f"{{ bubbles: true }})) }})(document.querySelector('#{id_}'))"
        )

    def choose(self, place: int) -> Record:
        """Clicks a visible row of the list, and returns the fields that the page shows."""
        self.browser.evaluate(f"document.querySelectorAll('#log-events [role=option]')[{place}].click()")
        return self.fields()

    def fields(self) -> Record:
        """The fields of the chosen event."""
        found = json.loads(self.text("#log-event"))
        assert isinstance(found, dict)
        return found

    def drop(self, name: str, content: str) -> None:
        """Drops a file on the page."""
        self.browser.evaluate(
            f"""(() => {{
                const dataTransfer = new DataTransfer()
                dataTransfer.items.add(new File([{json.dumps(content)}], {json.dumps(name)}))
                const options = {{ dataTransfer, bubbles: true, cancelable: true }}
                document.body.dispatchEvent(new DragEvent('dragover', options))
                document.body.dispatchEvent(new DragEvent('drop', options))
            }})()"""
        )
        self.browser.wait(f"document.querySelector('#log-status').textContent.startsWith('{name}: ')")

    def drag(self, chart: int, start: float, end: float) -> None:
        """Drags in a chart between two shares of its width."""
        script = (
            f"(one => {{ one.scrollIntoView({{ block: 'center' }}); const {{ x, y, width, height }} = "
            "one.getBoundingClientRect(); return [x, y + height / 2, width] })"
            f"(document.querySelectorAll('#log-charts .u-over')[{chart}])"
        )
        x, y, width = self.browser.evaluate(script)
        steps = [
            ("mousePressed", start),
            ("mouseMoved", (start + end) / 2),
            ("mouseMoved", end),
            ("mouseReleased", end),
        ]
        for kind, share in steps:
            self.browser.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=x + share * width,
                y=y,
                button="left",
                buttons=1,
                clickCount=1,
            )


def read(file: Path) -> tuple[Record, list[Record]]:
    """The header and the events of a JSON text sequence."""
    head, *events = [json.loads(record) for record in file.read_bytes().split(b"\x1e")[1:]]
    return head, events


def named(events: list[Record], name: str) -> list[Record]:
    """The data of the events with a name, and their times."""
    return [
        {**event["data"], "time": event["time"]} for event in events if event["name"].endswith(f":{name}")
    ]
