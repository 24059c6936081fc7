"""Size of the explorer's page, and its speed in headless Chromium: its start, and real time at high speeds.

`make explorer` builds the page.
"""

from __future__ import annotations

import gzip
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.browser import Browser, browser, program  # noqa: E402 - a package of the project's folder

PAGE = ROOT / "target" / "explorer" / "index.html"
WARM_UP_S, MEASURED_S = 1, 4
"""At 100 times real time, together less than the 600 s of virtual time at which the page stops."""
STARTS, BROWSER_START_S = 7, 4
"""Browsers whose first opening of the page is measured, and the time that a browser has for its own start."""
COUNT = f"""new Promise(done => {{
    const clock = () => parseFloat(document.querySelector('#clock').textContent);
    let start, first, frames = 0, longest = 0, last, before = clock();
    const frame = now => {{
        frames += 1;
        longest = Math.max(longest, now - (last ?? now));
        last = now;
        // From one change of the clock to another, because the page writes it a few times per second.
        const present = clock();
        const seconds = (now - start) / 1e3;
        if (present !== before && start === undefined) [start, first, frames, longest] = [now, present, 0, 0];
        else if (present !== before && seconds > {MEASURED_S}) {{
            return done([frames / seconds, (present - first) / seconds, longest]);
        }}
        before = present;
        requestAnimationFrame(frame);
    }};
    requestAnimationFrame(frame);
}})"""
SCENES = {
    "one flow, 10 Mbit/s, 100 times real time": {"worlds": ["reno"], "speed": 100},
    "two worlds, ten flows each, 100 Mbit/s, real time": {
        "worlds": ["reno", "cubic"],
        "rate": "100Mbit/s",
        "queue": "350pkt",
        "flows": 10,
        "speed": 1,
    },
    "three worlds, ten flows each, 100 Mbit/s, real time": {
        "worlds": ["reno", "cubic", "bbr"],
        "rate": "100Mbit/s",
        "queue": "350pkt",
        "flows": 10,
        "speed": 1,
    },
    "one flow, 10 Mbit/s, real time, every packet drawn": {"worlds": ["reno"], "speed": 1},
}


def opened(page: Browser, scene: dict[str, object]) -> None:
    page.open("about:blank")
    page.open(f"{PAGE.as_uri()}#{quote(json.dumps(scene))}")


def start_s(page: Browser) -> float:
    """Seconds from the navigation to the first packets on a path."""
    page.open("about:blank")
    page.call("Page.navigate", url=PAGE.as_uri())
    page.wait("/: [1-9]/.test(document.querySelector('canvas.path')?.ariaLabel ?? '')")
    return float(page.evaluate("performance.now()")) / 1e3


def start_of_new_browser_s() -> float:
    """Seconds from the first navigation of a browser to the page, after its own start."""
    with tempfile.TemporaryDirectory() as profile, browser(Path(profile)) as page:
        page.resize(1280)
        page.open("data:text/html,<h1>another page</h1>")
        time.sleep(BROWSER_START_S)
        return start_s(page)


def main() -> None:
    if program() is None or not PAGE.is_file():
        print("needs Chromium and make explorer")
        return
    size = sum(len(gzip.compress(file.read_bytes(), 9)) for file in PAGE.parent.iterdir())
    print(f"{size / 1e6:.2f} MB compressed")
    starts = sorted(start_of_new_browser_s() for _ in range(STARTS))
    shown = f"median of {STARTS}: {starts[0]:.2f} to {starts[-1]:.2f} s"
    print(f"first packets after {statistics.median(starts):.2f} s ({shown})")
    with tempfile.TemporaryDirectory() as profile, browser(Path(profile)) as page:
        page.resize(1280)
        for name, scene in SCENES.items():
            opened(page, scene)
            page.wait("parseFloat(document.querySelector('#clock').textContent) > 0")
            page.evaluate(f"new Promise(done => setTimeout(done, {WARM_UP_S * 1000}))")
            frames, speed, longest = page.evaluate(COUNT)
            print(f"{name}: {frames:.0f} frames/s (longest {longest:.0f} ms), {speed:.2f} virtual s per s")


if __name__ == "__main__":
    main()
