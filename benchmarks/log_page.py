"""Time until the page of qlog files shows a large log in headless Chromium, and the time of a zoom.

`make explorer` builds the page.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

import longfat as lf

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.browser import browser, program  # noqa: E402 - a package of the project's folder

PAGE = ROOT / "target" / "explorer" / "log.html"
BROWSERS = 5
PATH = {"rate": "200Mbit/s", "delay": "10ms", "queue": "400pkt"}
WORKLOAD = {"kind": "bulk", "duration": "12s"}
DRAWN = """(() => {
    const input = document.querySelector('#log-file');
    const frame = then => requestAnimationFrame(() => requestAnimationFrame(then));
    input.addEventListener('change', () => {
        const start = performance.now();
        const look = () => document.querySelector('#log-events [role=option]') === null
            ? requestAnimationFrame(look)
            : frame(() => window.drawn = (performance.now() - start) / 1e3);
        look();
    }, { capture: true });
})()"""
ZOOM = """new Promise(done => {
    const start = performance.now();
    const to = document.querySelector('#log-to');
    to.value = to.valueAsNumber / 2;
    to.dispatchEvent(new Event('change'));
    requestAnimationFrame(() => requestAnimationFrame(() => done((performance.now() - start) / 1e3)));
})"""


def measured(file: Path) -> tuple[float, float]:
    """Seconds until a new browser shows the file, and of a zoom."""
    with tempfile.TemporaryDirectory() as profile, browser(Path(profile)) as page:
        page.resize(1280)
        page.open(PAGE.as_uri())
        page.evaluate(DRAWN)
        root = page.call("DOM.getDocument")["root"]["nodeId"]
        node = page.call("DOM.querySelector", nodeId=root, selector="#log-file")["nodeId"]
        page.call("DOM.setFileInputFiles", nodeId=node, files=[str(file)])
        page.wait("window.drawn > 0")
        return page.evaluate("window.drawn"), page.evaluate(ZOOM)


def main() -> None:
    if program() is None or not PAGE.is_file():
        print("needs Chromium and make explorer")
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "large.qlog"
        lf.trace("reno", PATH, workload=WORKLOAD).write(file)
        events = file.read_bytes().count(b"\x1e") - 1
        print(f"{events:,} events, {file.stat().st_size / 1e6:.0f} MB")
        found = [measured(file) for _ in range(BROWSERS)]
        for name, values in (("drawn", [drawn for drawn, _ in found]), ("zoom", [zoom for _, zoom in found])):
            print(f"{name}: {statistics.median(values):.2f} s ({min(values):.2f} to {max(values):.2f} s)")


if __name__ == "__main__":
    main()
