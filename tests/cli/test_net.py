"""`longfat net`: the prompt of a testbed, scripts, and `net exec`; skipped without namespaces."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Refused
from tests.cli.terminal import Sleep, Terminal
from tests.conftest import Cli, Data, command, only_lines
from tests.waiting import PATIENCE_S, undisturbed, wait_until

pytestmark = pytest.mark.usefixtures("emulated")


@pytest.fixture
def cli(cli_process: Cli) -> Cli:
    """Runs commands in a separate process, because networks outlive the command that started them."""
    return cli_process


@pytest.fixture
def study(data: Data, write: Callable[[Data], Path]) -> Path:
    """A study with a path of 5 ms each way and no loss in its first cell."""
    return write(data)


@pytest.fixture
def name() -> str:
    """A unique name of a testbed."""
    return f"test-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def prompt(study: Path, name: str) -> Iterator[Terminal]:
    """A testbed at its prompt in a terminal."""
    with contextlib.closing(Terminal("net", study, "--name", name)) as made:
        made.read_until("longfat> ")
        yield made


def running(name: str) -> bool:
    line = command("net", "list", "--json")
    reported = json.loads(subprocess.run(line, capture_output=True, check=True).stdout)
    return name in [one["name"] for one in reported]


def test_ping_all_matches_the_delays_of_the_links(cli: Cli, study: Path) -> None:
    # Twice 5 ms and the transmission of 84 bytes at 10 Mbit/s.
    expected = 0.01 + 2 * 84 * 8 / 1e7
    pings = undisturbed(
        lambda: json.loads(cli("net", study, "--pingall", "--json").stdout),
        lambda pings: all(ping["min_s"] < expected + 0.005 for ping in pings),
    )
    assert [(ping["from"], ping["to"]) for ping in pings] == [("sender", "receiver"), ("receiver", "sender")]
    for ping in pings:
        assert (ping["sent"], ping["answered"]) == (10, 10)
        assert ping["expected"]["rtt_s"] == pytest.approx(expected)
        assert ping["expected"]["rtt_s"] <= ping["min_s"] <= ping["median_s"]
        assert ping["min_s"] < ping["expected"]["rtt_s"] + 0.005


def test_a_host_that_cannot_be_reached_is_a_failure(cli: Cli, study: Path) -> None:
    done = cli("net", study, "--pingall", "--set", "path.loss=100%", ok=False)
    assert done.returncode == 1
    assert done.stdout.count("unreachable") == 2
    assert done.stderr.splitlines()[-1] == "longfat: no answer: sender to receiver, receiver to sender"


def test_a_script_runs_commands_at_hosts_by_name(cli: Cli, study: Path, tmp_path: Path) -> None:
    script = tmp_path / "lines"
    script.write_text("# a comment\n\nhosts\nreceiver hostname; getent ahostsv4 sender\nlinks\nnet\n")
    done = cli("net", study, "--run", script)
    lines = done.stdout.splitlines()
    assert ["sender", "10.77.0.1", "sender"] in [line.split() for line in lines]
    assert "receiver" in lines
    assert ["10.77.0.1", "STREAM", "sender"] in [line.split() for line in lines]
    link = next(line.split() for line in lines if line.startswith("forward "))
    assert link[:9] == ["forward", "sender", "receiver", "10.0", "Mbit/s", "5.00", "ms", "0", "%"]
    assert ["sender", "sender", "forward", "to", "receiver"] in [line.split() for line in lines]


def test_links_change_and_routers_have_names_in_a_script(cli: Cli, study: Path, tmp_path: Path) -> None:
    script = tmp_path / "lines"
    script.write_text(
        "hosts\nset forward/2 delay 30ms\nset forward/1 rate none\n"
        "set reverse/1 loss { model = 'every', every = 9 }\nlinks\nsender ping -c 1 r1\n"
    )
    hops = 'path={ hops = [{ rate = "1Mbit/s", delay = "2ms" }, { delay = "3ms" }] }'
    done = cli("net", study, "--set", hops, "--run", script)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["r1", "10.77.252.1", "(router)"] in lines
    links = {line[0]: line for line in lines if line}
    assert links["forward/2"][:6] == ["forward/2", "r1", "receiver", "unlimited", "30.0", "ms"]
    assert links["forward/1"][3] == "unlimited"
    assert links["reverse/1"][3:9] == ["1.00", "Mbit/s", "2.00", "ms", "11.1", "%"]
    assert "1 packets transmitted, 1 received" in done.stdout


def test_reports_lines_that_fail_and_runs_the_others(study: Path) -> None:
    failing = (
        ("sender exit 3", "sender exit 3: exit code 3"),
        ("nosuch ls", '"nosuch" is neither a command (see help) nor a host'),
        ("measure sender sender", "it is the sender itself"),
        ("measure sender receiver 5", "5"),
        ("pingall x", '"x" is not a number'),
        ("set forward rate", "set: write a link, a key and its value"),
        ("set forwrd rate 1Mbit/s", 'set: link: there is no link "forwrd": did you mean "forward"?'),
        ("set forward rate 5", "set: rate: "),
        ("shell x", 'shell: "x" is not a host; allowed: sender, receiver'),
    )
    done = subprocess.run(
        command("net", study),
        input="".join(f"{line}\n" for line, _ in failing) + "sender echo after\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    only_lines(done.stderr, ["The first of 3 cells", *(message for _, message in failing)])
    assert "after" in done.stdout.splitlines()


def test_measure_finds_the_rate_of_the_link(study: Path) -> None:
    def _measure() -> str:
        script = "measure sender receiver 2s\n"
        return subprocess.run(
            command("net", study), input=script, capture_output=True, text=True, check=True
        ).stdout

    shown = undisturbed(_measure, lambda shown: float(shown.split()[3]) > 8.0)
    words = shown.split()
    assert words[:3] == ["sender", "to", "receiver:"]
    assert words[4] == "Mbit/s"
    # 1448 bytes of 1500 are payload.
    assert 8.0 < float(words[3]) <= 10 * 1448 / 1500 * 1.02
    assert "(slowest link 10.0 Mbit/s)" in shown


def test_ctrl_c_ends_the_command_and_not_the_testbed(prompt: Terminal) -> None:
    long = Sleep()
    prompt.type(f"sender exec {long}\n")
    prompt.read_until("\n")
    long.wait()
    prompt.type("\x03")
    prompt.read_until("longfat> ")
    prompt.type("shell receiver\n")
    prompt.type("echo $(hostname)-$((6*7)); exit\n")
    prompt.read_until("receiver-42")
    prompt.read_until("longfat> ")
    prompt.type("\x04")
    assert prompt.end() == 0


@pytest.mark.slow
def test_net_exec_runs_commands_from_another_terminal(
    cli: Cli, prompt: Terminal, name: str, tmp_path: Path
) -> None:
    assert running(name)
    done = cli("net", "exec", f"{name}:receiver", "--", "sh", "-c", "hostname; pwd; exit 9", ok=False)
    assert (done.returncode, done.stdout.split()) == (9, ["receiver", str(tmp_path)])
    done = cli("net", "exec", f"{name}:sender", "nosuch", ok=False)
    assert (done.returncode, done.stderr) == (127, "longfat: nosuch: no such command\n")
    done = cli("net", "exec", f"{name}:sender", "/etc/passwd", ok=False)
    assert (done.returncode, done.stderr) == (126, "longfat: /etc/passwd: permission denied\n")
    done = cli("net", "exec", f"{name}:x", "ls", ok=False)
    assert done.returncode == 2
    assert 'no host "x": allowed: sender, receiver' in done.stderr
    cli("net", "stop", name)
    assert prompt.end() == 128 + signal.SIGTERM
    assert not running(name)


def test_a_command_has_its_own_terminal(prompt: Terminal, name: str) -> None:
    assert prompt.pid
    with contextlib.closing(Terminal("net", "exec", f"{name}:sender", "--", "sh")) as there:
        long = Sleep()
        there.type(f"echo at-$(hostname); tty; {long}\n")
        there.read_until("at-sender")
        there.read_until("/dev/pts/")
        long.wait()
        there.type("\x03")
        there.type("exit 5\n")
        assert there.end() == 5


def test_nothing_outlives_a_killed_testbed(prompt: Terminal, name: str) -> None:
    long = Sleep()
    client = subprocess.Popen(
        command("net", "exec", f"{name}:sender", "--", "sh", "-c", f"{long}; true"),
        stderr=subprocess.PIPE,
        text=True,
    )
    long.wait()
    os.kill(prompt.pid, signal.SIGKILL)
    _, err = client.communicate(timeout=PATIENCE_S)
    assert (client.returncode, err) == (1, "longfat: the testbed stopped, and the command with it\n")
    wait_until(lambda: not long.runs())
    assert not running(name)


def test_exec_forwards_signals_to_its_command(prompt: Terminal, name: str) -> None:
    assert prompt.pid
    # Short sleeps, because a sleep that starts as the signal arrives may miss it and keep the output open.
    waiting = "trap 'exit 7' TERM; echo up; while :; do sleep 0.1; done"
    line = command("net", "exec", f"{name}:sender", "--", "sh", "-c", waiting)
    client = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    assert client.stdout.readline() == "up\n"
    client.terminate()
    client.communicate(timeout=PATIENCE_S)
    assert client.returncode == 7


def test_bad_input_is_refused_before_anything_is_built(
    refused: Refused, study: Path, prompt: Terminal, name: str
) -> None:
    assert prompt.pid
    for words, message in (
        (("--name", name), f'a testbed "{name}" is running already'),
        (("--name", "a/b"), 'use letters, digits, ".", "_" and "-"'),
        (("--json",), "--json requires --pingall"),
    ):
        refused(["net", str(study), "--cell", "path.loss=0%", *words], 2, [message])
    refused(["net", str(study), "--cell", "path.loss=3%"], 2, ["path.loss = 3% is not swept"])
    for command_words in (["exec", "nosuch:h1", "ls"], ["stop", "nosuch"]):
        refused(["net", *command_words], 2, ['no testbed "nosuch"'])
