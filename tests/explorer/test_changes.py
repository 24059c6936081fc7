"""Settings that change while a scene runs: recorded with their times, repeated, listed and removed."""

from __future__ import annotations

import pytest
from tests.browser import Browser
from tests.explorer.driver import CLOCK, LOSSES, MESSAGE, Explorer, click, enter, measured, scene
from tests.explorer.test_interventions import play_to

pytestmark = pytest.mark.slow

LIST = "[...document.querySelectorAll('#intervention-list li')].map(one => one.firstChild.textContent)"
TITLES = "[...document.querySelectorAll('.world h2')].map(one => one.textContent)"


def field(page: Browser, name: str) -> str:
    text: str = page.evaluate(f"document.querySelector('[name={name}]').value")
    return text


def choose_protocol(page: Browser, place: int, name: str) -> None:
    select = f"document.querySelectorAll('#protocols select')[{place}]"
    page.evaluate(f"(s => {{ s.value = '{name}'; s.dispatchEvent(new Event('change')) }})({select})")


def listed_events(page: Browser) -> list[str]:
    """The latest events, with their times, from the oldest."""
    lines: list[str] = page.evaluate(
        "[...document.querySelectorAll('#events li')].map(one => one.textContent)"
    )
    return lines[::-1]


def assert_same_events(one: list[str], other: list[str]) -> None:
    """Compares two lists of latest events over the time that both show."""

    def time(line: str) -> float:
        return float(line.split(" ms", maxsplit=1)[0])

    # The oldest time may be cut, and so may the last step.
    start, end = max(time(one[0]), time(other[0])), min(time(one[-1]), time(other[-1]))
    shown = [[line for line in lines if start < time(line) < end] for lines in (one, other)]
    assert len(shown[0]) > 10
    assert shown[0] == shown[1]


def test_changes_are_listed_and_a_link_repeats_them_at_their_times(explorer: Explorer) -> None:
    page = explorer.start(worlds=["reno", "cubic"], rate="2Mbit/s", queue="10pkt", speed=0.25)
    play_to(page, 0.3)
    enter(page, "loss", "5%")
    enter(page, "loss", "2%")
    choose_protocol(page, 1, "bbr")
    page.wait(f"{TITLES}.includes('TCP BBRv3')")
    page.wait(f"{LOSSES}.includes('You change the loss to 2%')")
    page.wait(f"{LOSSES}.includes('You replace TCP CUBIC by TCP BBRv3')")
    play_to(page, page.evaluate(CLOCK) + 0.1)
    enter(page, "rate", "1Mbit/s")
    page.wait(f"{LIST}.length === 4")
    interventions = scene(page)["interventions"]
    times = [one["at"] for one in interventions]
    assert 0.3 <= times[0] == times[1] == times[2] < times[3]
    listed = page.evaluate(LIST)
    texts = ["loss 5%", "loss 2%", "TCP BBRv3, configuration 2", "rate 1Mbit/s"]
    assert listed == [f"At {round(at, 3):g} s: {text}" for at, text in zip(times, texts, strict=True)]
    play_to(page, times[3] + 0.3)
    seen = listed_events(page)

    page = explorer.start(**scene(page))
    assert (field(page, "loss"), field(page, "rate")) == ("0%", "2Mbit/s")
    assert page.evaluate(TITLES) == ["TCP Reno", "TCP CUBIC"]
    assert page.evaluate(LIST) == listed
    play_to(page, times[3] + 0.3)
    assert (field(page, "loss"), field(page, "rate")) == ("2%", "1Mbit/s")
    assert page.evaluate(TITLES) == ["TCP Reno", "TCP BBRv3"]
    assert_same_events(seen, listed_events(page))
    assert page.evaluate(MESSAGE) == ""

    # A restart repeats them too.
    click(page, "restart")
    page.wait(f"{CLOCK} === 0 && document.querySelector('[name=loss]').value === '0%'")
    assert page.evaluate("document.querySelectorAll('#intervention-list .later').length") == 4

    # Removing a change that has not applied continues, and one that has applied restarts.
    click(page, "step")
    page.wait(f"{CLOCK} > 0")
    remove = "document.querySelectorAll('#intervention-list button')"
    page.evaluate(f"{remove}[3].click()")
    page.wait(f"{LIST}.length === 3")
    assert page.evaluate(CLOCK) == 0.001
    play_to(page, times[0] + 0.05)
    page.evaluate(f"({remove}[0].focus(), {remove}[0].click())")
    page.wait(f"{LIST}.length === 2 && {CLOCK} === 0")
    assert page.evaluate("document.activeElement.ariaLabel").startswith("Remove: At ")
    assert [one["do"] for one in scene(page)["interventions"]] == ["change", "change-protocol"]


def test_settings_apply_from_the_start_on_request(explorer: Explorer) -> None:
    page = explorer.start(worlds=["reno"], speed=1)
    play_to(page, 0.1)
    enter(page, "rate", "5Mbit/s")
    enter(page, "loss", "2%")
    choose_protocol(page, 0, "cubic")
    click(page, "drop-next")
    page.wait(f"{LIST}.length === 4")
    enter(page, "seed", "2")
    page.wait(f"{MESSAGE}.startsWith('The scene restarts with its first settings.')")
    click(page, "from-start")
    page.wait(f"{LIST}.length === 1 && {CLOCK} === 0")
    page.wait("!document.querySelector('#from-start').checkVisibility()")
    found = scene(page)
    assert (found["rate"], found["loss"], found["worlds"]) == ("5Mbit/s", "2%", ["cubic"])
    assert [one["do"] for one in found["interventions"]] == ["lose-next"]

    # Before the start and after the end of a run, changes apply from the start.
    enter(page, "rate", "8Mbit/s")
    page.wait("location.hash.includes('8Mbit')")
    enter(page, "size", "20kB")
    page.wait("location.hash.includes('20kB')")
    click(page, "play")
    page.wait("document.querySelector('.world h2').textContent.includes('complete')")
    enter(page, "delay", "5ms")
    page.wait(f"location.hash.includes('5ms') && {CLOCK} === 0")
    assert [one["do"] for one in scene(page)["interventions"]] == ["lose-next"]
    assert scene(page)["rate"] == "8Mbit/s"


def test_a_change_in_a_repeated_scene_keeps_later_settings(explorer: Explorer) -> None:
    later = [
        {"at": 0.2, "do": "change", "key": "loss", "value": "1%"},
        {"at": 0.3, "do": "lose-next", "flow": 0},
    ]
    page = explorer.start(worlds=["reno"], interventions=later)
    play_to(page, 0.05)
    enter(page, "delay", "10ms")
    page.wait("location.hash.includes('delay')")
    # The lost packet belongs to another past.
    assert [one.get("key") for one in scene(page)["interventions"]] == ["delay", "loss"]
    enter(page, "jitter", "15ms")
    page.wait(f"{MESSAGE}.includes('jitter: 0.015 is out of range')")
    assert len(scene(page)["interventions"]) == 2
    page.wait(f"!{LOSSES}.includes('no effect')")


def test_windows_and_timers_change_at_once(explorer: Explorer) -> None:
    page = explorer.start(worlds=["go-back-n", "stop-and-wait", "reno"], window=16, speed=1)
    play_to(page, 0.3)
    enter(page, "window", "4")
    page.wait(f"{LOSSES}.includes('You change the ARQ window to 4.')")
    assert page.evaluate(LOSSES).count("ARQ window") == 1, "the others have no window"
    for name, value in [
        ("rto", "90ms"),
        ("ackEvery", "2"),
        ("ackDelay", "5ms"),
        ("minRto", "300ms"),
        ("delayedAck", "0ms"),
    ]:
        enter(page, name, value)
    page.wait(f"{LIST}.length === 6")
    assert page.evaluate(CLOCK) >= 0.3
    listed = [text.partition(": ")[2] for text in page.evaluate(LIST)]
    assert listed == [
        *("ARQ window 4", "ARQ timeout 90ms", "packets per ARQ ACK 2", "ARQ ACK delay 5ms"),
        *("minimum RTO 300ms", "delayed ACK 0ms"),
    ]
    play_to(page, page.evaluate(CLOCK) + 0.2)
    assert measured(page, "cwnd") == 4
    enter(page, "rto", "")
    page.wait(f"{LOSSES}.includes('You change the ARQ timeout to default.')")
    enter(page, "window", "0")
    page.wait(f"{MESSAGE}.includes('window: 0 is out of range')")

    last = scene(page)["interventions"][-1]["at"]
    page = explorer.start(**scene(page))
    assert field(page, "window") == "16"
    play_to(page, last + 0.1)
    assert (field(page, "window"), field(page, "rto"), measured(page, "cwnd")) == ("4", "", 4)
    assert not page.evaluate(LOSSES).count("no effect")
    click(page, "from-start")
    page.wait(f"{CLOCK} === 0 && {LIST}.length === 0")
    found = scene(page)
    assert (found["window"], found["minRto"], found["delayedAck"], found["ackEvery"]) == (
        4,
        "300ms",
        "0ms",
        2,
    )


def test_a_queue_discipline_changes_at_once(explorer: Explorer) -> None:
    page = explorer.start(worlds=["cubic"], queue="60pkt", speed=1)
    play_to(page, 1.5)
    assert measured(page, "RTT") > 75
    enter(page, "discipline", "codel")
    page.wait(f"{LOSSES}.includes('You change the queue discipline to codel.')")
    play_to(page, page.evaluate(CLOCK) + 3)
    assert measured(page, "RTT") < 65, "41 ms without queue"
    enter(page, "queue", "5pkt")
    page.wait(f"{LIST}.length === 2")
    play_to(page, page.evaluate(CLOCK) + 0.5)
    assert measured(page, "RTT") < 48
    assert [text.partition(": ")[2] for text in page.evaluate(LIST)] == [
        "queue discipline codel",
        "queue 5pkt",
    ]
    assert not page.evaluate(LOSSES).count("no effect")


def test_mptcp_changes_at_once(explorer: Explorer) -> None:
    equal = {"rate2": "10Mbit/s", "delay2": "20ms"}
    page = explorer.start(worlds=["mptcp-min-rtt"], topology="two-paths", speed=1, **equal)
    play_to(page, 0.5)
    choose_protocol(page, 0, "mptcp-redundant")
    page.wait(f"{LOSSES}.includes('You replace MPTCP minimum RTT by MPTCP redundant.')")
    enter(page, "coupling", "reno")
    page.wait(f"{LOSSES}.includes('You change the MPTCP controller to reno.')")
    assert page.evaluate(CLOCK) >= 0.5
    assert page.evaluate(TITLES) == ["MPTCP redundant"]
    assert [one["do"] for one in scene(page)["interventions"]] == ["change-protocol", "change"]
    play_to(page, page.evaluate(CLOCK) + 2.5)
    assert measured(page, "Goodput") < 12, "each packet crosses both paths"
    enter(page, "policy", "single")
    page.wait(f"{CLOCK} === 0")
    choose_protocol(page, 0, "go-back-n")
    page.wait(f"{TITLES}.includes('Go-Back-N')")
    assert page.evaluate(CLOCK) == 0
