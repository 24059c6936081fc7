"""The clients of the relay's control interface, and the compose example."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

import longfat
from tests import requirements

ROOT = Path(__file__).parents[2]
CLIENTS = ROOT / "examples" / "relay-clients"
JAVASCRIPT = """
const { Relay } = await import(process.argv[1]);
const relay = new Relay(process.argv[2]);
await relay.drop(2, 'forward');
await relay.outage('1ms');
await relay.endOutage();
await relay.reset();
const wrong = await relay.set({ loss: '200%' }).catch((error) => error.message);
const { settings } = await relay.set({ loss: '2%', 'reverse.delay': '80ms' });
const { accepted } = await relay.report();
console.log(JSON.stringify({ wrong, settings, accepted, read: (await relay.path()).settings }));
"""
GO = """
package relay

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

func TestAll(t *testing.T) {
	relay := Relay{os.Getenv("RELAY"), os.Getenv("LONGFAT_RELAY_TOKEN")}
	for _, err := range []error{
		relay.Drop(2, "forward"), relay.Outage("1ms", "both"), relay.EndOutage(), relay.Reset(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	_, wrong := relay.Set(map[string]any{"loss": "200%"})
	set, err := relay.Set(map[string]any{"loss": "2%", "reverse.delay": "80ms"})
	if err != nil {
		t.Fatal(err)
	}
	report, _ := relay.Report()
	path, _ := relay.Path()
	text, _ := json.Marshal(map[string]any{
		"wrong": wrong.Error(), "settings": set["settings"], "accepted": report["accepted"],
		"read": path["settings"],
	})
	fmt.Println(string(text))
}
"""


@pytest.fixture
def relay() -> Iterator[longfat.TcpRelay]:
    with longfat.relay({}, "127.0.0.1:9", tcp=True, control="127.0.0.1:0", token="a-token") as relay:
        yield relay


def program(name: str, *folders: str) -> str:
    found = shutil.which(name, path=os.pathsep.join([os.environ["PATH"], *folders]))
    return found or requirements.skip("programs", f"{name} is not installed")


def check(done: subprocess.CompletedProcess[str], relay: longfat.TcpRelay) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    settings = {"loss": "2%", "reverse": {"delay": "80ms"}}
    assert (found["settings"], found["read"], found["accepted"]) == (settings, settings, 0)
    assert found["wrong"].startswith('longfat: path.loss: "200%" is out of range')
    assert relay.settings == settings


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "LONGFAT_RELAY_TOKEN": "a-token", **more}


def test_the_javascript_client(relay: longfat.TcpRelay) -> None:
    assert relay.control is not None
    command = [
        program("node"),
        "--input-type=module",
        "-e",
        JAVASCRIPT,
        str(CLIENTS / "relay.mjs"),
        relay.control.url,
    ]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    check(done, relay)


@pytest.mark.slow
def test_the_go_client(relay: longfat.TcpRelay, tmp_path: Path) -> None:
    go = shutil.which("go", path=f"{os.environ['PATH']}:/usr/local/go/bin")
    if go is None:
        requirements.skip_unbuilt("the client in Go: go is not installed")
    assert relay.control is not None
    shutil.copy(CLIENTS / "relay.go", tmp_path)
    (tmp_path / "all_test.go").write_text(GO)
    (tmp_path / "go.mod").write_text("module relay\n\ngo 1.18\n")
    given = environment(RELAY=relay.control.url, GOFLAGS="-mod=mod", GOPROXY="off", GOTOOLCHAIN="local")
    command = [go, "test", "-v", "./..."]
    done = subprocess.run(
        command, cwd=tmp_path, env=given, capture_output=True, text=True, timeout=600, check=False
    )
    check(done, relay)


def test_the_compose_example_runs_a_valid_relay() -> None:
    compose = yaml.safe_load((ROOT / "examples/relay-compose/compose.yml").read_text())
    services = compose["services"]
    assert set(services) == {"server", "relay", "client"}
    dockerfile = ROOT / "examples/relay-compose" / services["relay"]["build"]["context"]
    assert (dockerfile / services["relay"]["build"]["dockerfile"]).is_file()
    _, *options = services["relay"]["command"].split()
    path = {key.removeprefix("--"): value for key, value in zip(options[2::2], options[3::2], strict=True)}
    with longfat.relay(path, tcp=[options[1].replace("0.0.0.0:8080", "127.0.0.1:0")]) as relay:
        assert relay.path["forward"]["loss"] == "1%"
