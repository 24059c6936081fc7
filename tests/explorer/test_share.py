"""Exports of the page, read by others, and study files that become scenes."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from tests.browser import Browser
from tests.explorer.driver import CLOCK, MESSAGE, STARTED, Explorer, click, drop, saved, scene

from longfat import _native
from longfat.study import builtin, load_study
from longfat.study.sweep import cells

pytestmark = pytest.mark.slow

SCENES: list[dict[str, Any]] = [
    {"worlds": ["reno", "go-back-n"], "rate": "1Mbit/s", "loss": "1%", "flows": 2, "discipline": "codel"},
    {"worlds": ["bbr", "vegas", "cubic"], "delay": "5ms", "jitter": "1ms", "seed": 7, "queue": "64KiB"},
    {"worlds": ["selective-repeat", "stop-and-wait"], "window": 8, "size": "100kB"},
    {"worlds": ["reno"], "topology": "dumbbell", "senders": "1ms, 9ms", "minRto": "300ms"},
    {"worlds": ["mptcp-ecf", "cubic"], "topology": "two-paths", "rate2": "2Mbit/s", "coupling": "olia"},
    {"worlds": ["cubic"], "topology": "parking-lot", "hops": 3, "loss": "2%", "burst": 4},
]


def exported(page: Browser) -> str:
    return saved(page, "toml")["study.toml"].decode()


@pytest.mark.parametrize("given", SCENES)
def test_a_dropped_export_is_the_same_scene(explorer: Explorer, given: dict[str, Any]) -> None:
    page = explorer.start(**given)
    study = exported(page)
    page = explorer.start()
    drop(page, "study.toml", study)
    assert scene(page) == given
    page.wait(STARTED)


def test_the_export_runs(explorer: Explorer, tmp_path: Path) -> None:
    page = explorer.start(**SCENES[2])
    file = tmp_path / "study.toml"
    file.write_text(exported(page))
    command = [sys.executable, "-P", "-m", "longfat", "run", str(file), "--set", "repeats=2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "Selective repeat" in done.stdout


def test_the_python_program_runs(explorer: Explorer, capsys: pytest.CaptureFixture[str]) -> None:
    page = explorer.start(**SCENES[0])
    exec(saved(page, "python")["scene.py"], {})
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 2
    assert float(printed[0].split()[-1]) > 1e5


def test_pictures_have_charts_legends_and_ladders(explorer: Explorer) -> None:
    change = {"at": 0.2, "do": "change", "key": "queue", "value": "40pkt"}
    later = {"at": 100, "do": "change", "key": "queue", "value": "50pkt"}
    page = explorer.start(worlds=["reno", "cubic", "bbr"], speed=1, interventions=[change, later])
    page.evaluate("document.querySelector('#play').click()")
    page.wait(f"{CLOCK} > 0.5")
    click(page, "play")
    svg = saved(page, "svg")["longfat.svg"].decode()
    root = ElementTree.fromstring(svg)
    texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"RTT (ms)", "TCP Reno cwnd", "TCP BBRv3 cwnd", "TCP BBRv3: ladder diagram", "Sender"} <= texts
    labels = [
        element for element in root.iter("{http://www.w3.org/2000/svg}text") if "TCP" in (element.text or "")
    ]
    # Windows and goodput have several lines for each configuration.
    assert len(labels) == 3 * (3 + 1 + 1 + 2) + 3
    assert all(float(one.get("x", "")) + 6 * len(one.text or "") < 1000 for one in labels)
    lines = [element.get("d", "") for element in root.iter("{http://www.w3.org/2000/svg}path")]
    assert len(lines) > 100
    marks = [
        one for one in root.iter("{http://www.w3.org/2000/svg}path") if one.get("stroke-dasharray") == "1 4"
    ]
    assert len(marks) == 4
    assert not any("NaN" in line for line in lines)
    png = saved(page, "png")["longfat.png"]
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", png[16:24]) == tuple(
        2 * int(root.get(key, "0")) for key in ("width", "height")
    )
    assert len(png) > 20_000


def test_captures_decode(explorer: Explorer, tmp_path: Path) -> None:
    page = explorer.start(worlds=["reno", "go-back-n"], queue="20pkt")
    click(page, "next-retransmission")
    page.wait(f"{CLOCK} > 0.1")
    files = saved(page, "pcapng")
    assert set(files) == {"reno.pcapng", "go-back-n.pcapng"}
    packets = [blocks(file) for file in files.values()]
    assert all(len(found) > 25 for found in packets)
    page.evaluate("document.querySelector('#side').value = 'both'")
    both = saved(page, "pcapng")
    assert all(len(blocks(both[name])) > 1.5 * len(blocks(files[name])) for name in files)
    if shutil.which("tshark") is None:
        return
    file = tmp_path / "reno.pcapng"
    file.write_bytes(files["reno.pcapng"])
    fields = [part for name in ("tcp.flags.syn", "tcp.len", "_ws.malformed") for part in ("-e", name)]
    command = ["tshark", "-r", str(file), "-T", "fields", *fields]
    rows = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
    assert rows[0].split("\t")[0] in ("1", "True")
    assert len(rows) == len(packets[0])
    assert any(row.split("\t")[1] == "1448" for row in rows)
    assert not any("Malformed" in row for row in rows)


def blocks(file: bytes) -> list[float]:
    """The times in s of the packets of a capture, in the order of the file."""
    place, times = 0, []
    while place < len(file):
        kind, length = struct.unpack_from("<II", file, place)
        assert length == struct.unpack_from("<I", file, place + length - 4)[0]
        if kind == 6:
            high, low = struct.unpack_from("<II", file, place + 12)
            times.append(((high << 32) + low) / 1e9)
        place += length
    assert times == sorted(times)
    return times


STUDY = """
title = "A study of a user"
protocols = ["cubic", { kind = "go-back-n", window = 4 }]
repeats = 5

[path]
rate = "2 Mbit/s"
delay = "10ms"

[workload]
kind = "file"
size = "20kB"

[sweep]
"path.loss" = ["1%", "2%"]
"protocols.go-back-n.window" = { from = 8, to = 16, step = 4 }

[[claims]]
id = "fast"
text = "CUBIC is fast"
metric = "goodput"
of = "cubic"
relation = "at-least"
value = "1Mbit/s"
"""


def test_a_sweep_opens_at_its_first_cell(explorer: Explorer) -> None:
    page = explorer.start()
    drop(page, "mine.toml", STUDY)
    assert "one cell of the sweep: path.loss = 1%, protocols.go-back-n.window = 8" in page.evaluate(MESSAGE)
    found = scene(page)
    assert (found["loss"], found["window"], found["size"]) == ("1%", 8, "20kB")
    assert found["worlds"] == ["cubic", "go-back-n"]


def test_an_opened_study_simulates_the_same_trials(explorer: Explorer, tmp_path: Path) -> None:
    page = explorer.start()
    drop(page, "mine.toml", STUDY)
    records = []
    for number, text in enumerate((STUDY, exported(page))):
        file = tmp_path / f"{number}.toml"
        file.write_text(text)
        study = load_study(file)
        specs = {cell.protocol: cell.spec for cell in reversed(cells(study))}
        records.append(
            [
                _native.simulate(json.dumps({**spec, "seed": study.seed, "trial": 0}))
                for spec in specs.values()
            ]
        )
    assert sorted(records[0]) == sorted(records[1])


def test_each_built_in_study_opens_or_has_a_message(explorer: Explorer) -> None:
    page = explorer.start()
    for name in sorted(builtin()):
        study = load_study(name)
        drop(page, f"{study.name.replace('/', '-')}.toml", study.to_toml())
        message = page.evaluate(MESSAGE)
        keys = tomllib.loads(study.to_toml())
        opened = "is open" in message
        key = message.split(": ")[1].split(".")[0].split("[")[0]
        assert opened or key in {*keys, "rate", "delay", "jitter", "size", "loss", "queue"}, message
        page.evaluate(f"{MESSAGE.removesuffix('.textContent')}.textContent = ''")
    assert page.complaints() == []


@pytest.mark.parametrize(
    ("text", "message", "worlds"),
    [
        (STUDY.replace("cubic", "quic"), "Left out: protocols[1].kind: ", ["go-back-n"]),
        (
            STUDY.replace("window = 4", 'window = 4, give_up = "1s"'),
            "Left out: protocols[2].give_up: ",
            ["cubic"],
        ),
        (
            STUDY.replace('size = "20kB"', 'size = "20kB"\nstart = "1s"').replace(
                "[path]", 'speed = 3\n[path]\nreorder = "1%"'
            ),
            "The page cannot show these keys and leaves them out: speed, path.reorder, workload.start.",
            ["cubic", "go-back-n"],
        ),
        (
            STUDY.replace('"path.loss"', '"faults.rate"'),
            'Left out: sweep."faults.rate": the explorer cannot show this key.',
            ["cubic", "go-back-n"],
        ),
    ],
)
def test_what_the_page_cannot_show_is_named_and_the_rest_opens(
    explorer: Explorer, text: str, message: str, worlds: list[str]
) -> None:
    page = explorer.start()
    drop(page, "mine.toml", text)
    found = page.evaluate(MESSAGE)
    assert "is open" in found
    assert message in found
    assert scene(page).get("worlds", ["reno", "cubic"]) == worlds
    assert scene(page)["size"] == "20kB"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title = ", "line 1: not TOML"),
        (STUDY.replace('rate = "2 Mbit/s"', ""), "path.rate: the key is missing"),
        ('[path]\nrate = "1Mbit/s"', "workload: the key is missing"),
        ("speed = 3", "workload: the key is missing"),
        ('extends = "arq/loss"', "extends: the page reads one file"),
        (
            'topology = { kind = "star" }\nworkload = { kind = "bulk" }\nprotocols = ["reno"]',
            "topology.kind: ",
        ),
        ("path = 3", "path: expected a table"),
        (
            STUDY.replace('"cubic", ', "").replace("window = 4", 'window = 4, give_up = "1s"'),
            "protocols[1].give_up: ",
        ),
        (
            STUDY.replace(
                '"cubic", { kind = "go-back-n", window = 4 }', '{ kind = "tcp", congestion = "own.py:Own" }'
            ),
            'protocols[1].congestion: "own.py:Own" is a class in Python: longfat explore STUDY runs it',
        ),
        (STUDY.replace('"2 Mbit/s"', '"fast"'), 'rate: "fast"'),
        (STUDY.replace('"10ms"', "10"), "path.delay: expected a text"),
        ("\0\x01binary", "not TOML"),
        ("", "workload: the key is missing"),
        ("[sweep]\n" + STUDY.replace("[sweep]", ""), ""),
        ("a = " + "[" * 5000, ""),
    ],
)
def test_a_wrong_study_has_a_message_and_changes_nothing(explorer: Explorer, text: str, message: str) -> None:
    page = explorer.start(seed=3)
    drop(page, "wrong.toml", text)
    found = page.evaluate(MESSAGE)
    assert message in found
    assert "is open" not in found
    assert "\n" not in found
    assert scene(page) == {"seed": 3}
    assert page.complaints() == []
