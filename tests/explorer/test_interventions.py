"""Packets dropped by click, and flows that start and stop."""

from __future__ import annotations

from typing import Any

import pytest
from tests.browser import Browser
from tests.explorer.driver import CLOCK, LOSSES, MESSAGE, Explorer, click, measured, pause, press, scene

pytestmark = pytest.mark.slow

CLICK_PACKETS = """(() => {
    const canvas = document.querySelector('canvas.path')
    const box = canvas.getBoundingClientRect()
    for (let x = 140; x < box.width - 80; x += 4) {
        const place = { clientX: box.left + x, clientY: box.top + 44, bubbles: true }
        canvas.dispatchEvent(new MouseEvent('click', place))
        if (!document.querySelector('#hint').checkVisibility()) return true
    }
    return false
})()"""
CLEAR = "document.querySelector('#clear')"


def play_to(page: Browser, seconds: float) -> None:
    click(page, "play")
    page.wait(f"{CLOCK} > {seconds}")
    pause(page)


def dropped(page: Browser) -> str:
    """Returns the frame that the page lists as dropped by the user."""
    text: str = page.evaluate(LOSSES)
    return text.partition("Your drop: ")[2].partition(" is lost")[0]


def test_a_click_drops_a_packet_and_the_address_repeats_it(explorer: Explorer) -> None:
    page = explorer.start(worlds=["reno"], queue="1000pkt", speed=1)
    play_to(page, 0.3)
    click(page, "click-drops")
    assert page.evaluate(CLICK_PACKETS)
    page.wait(f"{LOSSES}.includes('You drop data')")
    click(page, "next-drop")
    page.wait(f"{LOSSES}.includes('Your drop')")
    lost = dropped(page)
    click(page, "next-retransmission")
    page.wait(f"{LOSSES}.includes('etransmits {lost}')")
    interventions = scene(page)["interventions"]
    assert [one["do"] for one in interventions] == ["lose"]

    page = explorer.start(**scene(page))
    click(page, "next-drop")
    page.wait(f"{LOSSES}.includes('Your drop: {lost}')")
    page.evaluate(f"{CLEAR}.click()")
    page.wait("!location.hash.includes('interventions')")
    page.wait(f"!{CLEAR}.checkVisibility()")


def test_the_button_and_the_key_drop_the_next_packet(explorer: Explorer) -> None:
    page = explorer.start(worlds=["reno", "go-back-n"], queue="1000pkt", speed=1)
    play_to(page, 0.3)
    page.evaluate("document.activeElement.blur()")
    press(page, "d")
    page.wait(f"{LOSSES}.includes('You drop the next data packet of flow 1')")
    click(page, "next-drop")
    page.wait(f"{LOSSES}.includes('Your drop')")
    # A jump ends at the first drop of any world: the other world may have its own later.
    if page.evaluate(f"{LOSSES}.split('Your drop').length") == 2:
        click(page, "next-drop")
    page.wait(f"{LOSSES}.split('Your drop').length === 3")
    assert page.evaluate(MESSAGE) == ""
    assert [measured_drops(page, world) for world in (0, 1)] == [1, 1]


def measured_drops(page: Browser, world: int) -> int:
    row = (
        f"[...document.querySelectorAll('.world')[{world}].querySelectorAll('tr')]"
        ".find(r => r.textContent.startsWith('Drops')).cells[1].textContent"
    )
    return int(page.evaluate(row).split(",")[0])


def test_flows_start_and_stop_while_it_runs(explorer: Explorer) -> None:
    page = explorer.start(worlds=["cubic"], speed=5)
    play_to(page, 1)
    click(page, "start-flow")
    page.wait("document.querySelector('#flow').options.length === 2")
    page.evaluate("document.querySelector('#flow-size').value = '50kB'")
    click(page, "start-flow")
    page.wait("document.querySelector('#flow').options.length === 3")
    click(page, "stop-flow")
    page.wait(f"{LOSSES}.includes('You stop flow 1')")
    play_to(page, 8)
    assert measured(page, "Goodput") > 8, "flow 2 has the path alone"
    theory = "document.querySelector('.world tbody').textContent"
    assert "1 with the equal share, 4.83 Mbit/s each" in page.evaluate(theory)
    titles = page.evaluate("[...document.querySelectorAll('#flow-charts .u-title')].map(t => t.textContent)")
    assert titles == [
        "TCP CUBIC: goodput of each flow (Mbit/s)",
        "TCP CUBIC: cwnd of each flow (packets)",
    ]
    assert page.evaluate("document.querySelectorAll('#flow-charts .u-series').length") == 2 * (1 + 3)
    kinds = [one["do"] for one in scene(page)["interventions"]]
    assert kinds == ["start-flow", "start-flow", "stop-flow"]
    click(page, "stop-flow")
    page.wait(f"{LOSSES}.includes('has no effect')")


def test_wrong_interventions_in_an_address_have_a_message(explorer: Explorer) -> None:
    stop = {"do": "stop-flow", "flow": 0}
    wrong: list[tuple[Any, str]] = [
        ([{"at": 1, "do": "explode"}], "unknown kind"),
        ([{"at": 1, "do": "lose", "world": 0}], "id: expected a number"),
        (
            [{"at": 2, "do": "stop-flow", "flow": 0}, {"at": 1, "do": "stop-flow", "flow": 0}],
            "do not increase",
        ),
        ([{"at": 1, "do": "start-flow", "pair": 0, "size": "big"}], "size: "),
        ([{"at": 1, **stop}] * 201, "too many"),
        ([{"at": 1, "do": "change", "key": "seed", "value": 2}], "does not change while a scene runs"),
        ([{"at": 1, "do": "change", "key": "rate", "value": 5}], "rate: expected a string"),
        ([{"at": 1, "do": "change", "key": "rate", "value": "fast"}], 'rate: "fast"'),
        ([{"at": 1, "do": "change", "key": "jitter", "value": "30ms"}], "jitter: 0.03 is out of range"),
        ([{"at": 1, "do": "change", "key": "window", "value": "4"}], "window: expected a number"),
        ([{"at": 1, "do": "change-protocol", "world": 2, "name": "bbr"}], "there is no configuration 3"),
        ([{"at": 1, "do": "change-protocol", "world": 0, "name": "go-back-n"}], "only TCP controllers"),
        ([{"at": 1, "do": "change-protocol", "world": 0, "name": "renno"}], 'cannot change to "renno"'),
    ]
    for interventions, message in wrong:
        page = explorer.open(interventions=interventions)
        assert message in page.evaluate(MESSAGE)
