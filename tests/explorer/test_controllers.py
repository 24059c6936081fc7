"""Controllers in Python in the page of `longfat explore`."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.browser import Browser
from tests.explorer.driver import CLOCK, MESSAGE, STARTED, click, measured, pause
from tests.explorer.test_confinement import post
from tests.explorer.test_engine import SPEC

import longfat as lf
from longfat.cli.explorer_server import ExplorerServer
from longfat.cli.explorer_study import served
from longfat.study import load_study

SEGMENT = 1448
"""Payload bytes of a full packet."""
CONTROLLER = """
import longfat


class Fixed(longfat.CongestionController):
    def __init__(self, packets: int = 7) -> None:
        self.window = packets * self.segment

    def on_acknowledged(self, ack): ...

    def on_lost(self, loss): ...

    def on_timeout(self, now, in_flight): ...


class Broken(Fixed):
    def on_acknowledged(self, ack):
        raise RuntimeError("no idea")
"""
STUDY = """
title = "Which window is best?"
workload = { kind = "bulk", duration = "5s" }
path = { rate = "10Mbit/s", delay = "20ms", queue = "50pkt" }
protocols = [
    { name = "seven", kind = "tcp", congestion = "fixed.py:Fixed" },
    { name = "nine", kind = "tcp", congestion = { kind = "fixed.py:Fixed", packets = 9 } },
    "reno",
]
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "fixed.py").write_text(CONTROLLER, encoding="utf-8")
    file = tmp_path / "study.toml"
    file.write_text(STUDY, encoding="utf-8")
    return file


@contextmanager
def running(page: Path, study: dict[str, Any]) -> Iterator[ExplorerServer]:
    with ExplorerServer(page, study=study) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_only_the_classes_of_the_study_run(study: Path) -> None:
    content = served(load_study(study), (), ())
    assert [one["label"] for one in content["controllers"]] == [
        "seven (fixed.py:Fixed)",
        "nine (fixed.py:Fixed)",
    ]
    nine = content["controllers"][1]["key"]
    with running(study.parent, content) as server:
        request = {"do": "open", "spec": {**SPEC, "protocol": nine}, "interval": 0.1}
        assert "ok" in post(server, "call", json.dumps(request).encode())[1]
        other = {"kind": "tcp", "congestion": f"{study.parent / 'fixed.py'}:Broken"}
        request["spec"] = {**SPEC, "protocol": other}
        assert "is not available here" in post(server, "call", json.dumps(request).encode())[1]["error"]


def test_the_page_shows_the_trial_of_a_controller(page: Browser, folder: Path, study: Path) -> None:
    with running(folder, served(load_study(study), (), ())) as server:
        page.resize(1280)
        page.emulate("prefers-reduced-motion", "reduce")
        try:
            page.open(server.address())
            page.wait(STARTED)
        finally:
            page.emulate("prefers-reduced-motion", "")
        titles = "[...document.querySelectorAll('.world h2')].map(one => one.textContent)"
        assert page.evaluate(titles) == ["seven (fixed.py:Fixed)", "nine (fixed.py:Fixed)", "TCP Reno"]
        assert "is open." in page.evaluate(MESSAGE)
        click(page, "play")
        page.wait(f"{CLOCK} > 0.3")
        pause(page)
        windows = [measured(page, "cwnd", place) for place in range(2)]
        traces = [lf.trace(name, study=study, interval="10ms") for name in ("seven", "nine")]
        assert windows == [trace.samples["cwnd_bytes"][-1] / SEGMENT for trace in traces] == [7, 9]
        # A scene of the address has the controllers of the study, too.
        page.open("about:blank")
        page.open(server.address(quote(json.dumps({"worlds": ["own-nine"]}))))
        page.wait(STARTED)
        assert page.evaluate(titles) == ["nine (fixed.py:Fixed)"]
        page.open("about:blank")


def test_the_exception_of_a_controller_is_shown(page: Browser, folder: Path, study: Path) -> None:
    study.write_text(STUDY.replace('"fixed.py:Fixed" }', '"fixed.py:Broken" }'), encoding="utf-8")
    with running(folder, served(load_study(study), ["seven"], ())) as server:
        page.resize(1280)
        page.open(server.address())
        page.wait(f"{MESSAGE}.includes('no idea')")
        message = page.evaluate(MESSAGE)
        assert "fixed.py:Broken.on_acknowledged" in message
        assert "RuntimeError: no idea" in message
        page.open("about:blank")


def test_without_the_study_a_link_names_the_command(page: Browser, folder: Path) -> None:
    page.open("about:blank")
    page.open(f"{(folder / 'index.html').as_uri()}#{quote(json.dumps({'worlds': ['own-nine']}))}")
    page.wait(f"{MESSAGE}.includes('longfat explore STUDY')")
    assert "own-nine: a controller in Python" in page.evaluate(MESSAGE)
