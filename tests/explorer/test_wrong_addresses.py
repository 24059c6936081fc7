"""Addresses that no page wrote: each has a message, and the page works."""

from __future__ import annotations

import json
import random
from urllib.parse import quote

import pytest
from tests.explorer.driver import MESSAGE, STARTED, Explorer

pytestmark = pytest.mark.slow

VALID = {
    "rate": "20Mbit/s",
    "delay": "5ms",
    "loss": "1%",
    "queue": "100pkt",
    "discipline": "codel",
    "jitter": "1ms",
    "flows": 2,
    "window": 8,
    "seed": 7,
    "speed": 1,
    "size": "100kB",
    "worlds": ["reno", "go-back-n"],
}
STRANGE: tuple[object, ...] = (
    None, True, -1, 0.5, 1e300, "", "x", "-1ms", "1e999Mbit/s", "NaN", "∞", "1Mbit/s\n", [], ["reno"] * 99,
    [[]], {}, {"a": 1}, "constructor", ["toString"], "__proto__", "<img src=x onerror=alert(1)>",
)  # fmt: skip


def addresses() -> list[str]:
    """Every key with every strange value, and valid scenes that were cut or changed."""
    found = [json.dumps({**VALID, key: value}) for key in VALID for value in STRANGE]
    found += [json.dumps({key: 1}) for key in ("constructor", "__proto__", "toString", "", "é")]
    found += [json.dumps(value) for value in STRANGE]
    found += ["lesson=0", "lesson=-1", "lesson=1e9", "lesson=", "lesson=5&x", "null", "[[[[", "{" * 10_000]
    generator = random.Random(1)
    text = json.dumps(VALID)
    for _ in range(60):
        place = generator.randrange(len(text))
        found += [text[:place], text[:place] + generator.choice('"{}[]:,%\\é0') + text[place + 1 :]]
    return [quote(one) for one in found] + ["%", "%E0%A4", "%00", "%7B%22rate%22%3A"]


def test_each_has_a_message_or_is_a_scene(explorer: Explorer) -> None:
    page = explorer.start()
    wrong = page.evaluate(
        f"""(async () => {{
            const wrong = []
            const message = document.querySelector('#message')
            for (const address of {json.dumps(addresses())}) {{
                message.textContent = ''
                history.replaceState(null, '', '#' + address)
                window.dispatchEvent(new HashChangeEvent('hashchange'))
                for (let turn = 0; turn < 100; turn += 1) {{
                    await new Promise(done => setTimeout(done, 5))
                    if (message.textContent || location.hash !== '#' + address || turn > 20) break
                }}
                const text = message.textContent
                const shown = document.querySelectorAll('.world').length > 0
                const internal = /undefined|NaN(?!")|\\[object|is not a function|JSON|token|Cannot/
                if (!shown || internal.test(text)) wrong.push([address, text])
            }}
            return wrong
        }})()"""
    )
    assert wrong == []
    assert page.complaints() == []


@pytest.mark.parametrize("address", ["#%E0%A4", "#{", '#{"worlds":["toString"]}', "#null"])
def test_a_page_that_opens_with_one_starts(explorer: Explorer, address: str) -> None:
    page = explorer.open(address)
    page.wait(STARTED)
    assert "not valid" in page.evaluate(MESSAGE)
