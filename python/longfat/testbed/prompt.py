"""The prompt of a testbed: commands about its network, and at its hosts."""

from __future__ import annotations

import cmd
import contextlib
import json
import os
import signal
import sys
import time
from typing import IO, TYPE_CHECKING, Any

from longfat.study import read_setting, units
from longfat.testbed import children, programs, tables

if TYPE_CHECKING:
    from longfat._native import Testbed

PINGS = 10
"""Default number of echo requests between two hosts."""
MEASURED_S = 5.0
WAITED_S = 60.0
_HELP = (
    ("HOST COMMAND", "run a line of sh at a host, which resolves host names; Ctrl-C stops it"),
    ("shell HOST", "your shell at a host"),
    ("hosts", "names and addresses"),
    ("net", "nodes with their hosts and links"),
    ("kernel", "congestion controller of the hosts, and sysctls that differ from this machine"),
    ("links (or dump)", "settings, counters and queue of each link"),
    (
        "set LINK KEY VALUE",
        "change a link, e.g. set forward rate 5Mbit/s; the value none removes a key",
    ),
    (
        "wait HOST PORT",
        "wait until a program listens at a port of a host, e.g. wait r1 5201 or wait r1 53/udp",
    ),
    ("pingall [COUNT]", "RTTs and losses between all hosts, next to those expected from the links"),
    ("measure A B [TIME]", "goodput of one TCP connection from A to B; default time 5s"),
    ("quit", "stop the testbed and all commands (also exit, Ctrl-D)"),
)


class Prompt(cmd.Cmd):
    """Reads lines from a terminal or a script."""

    def __init__(self, testbed: Testbed, lines: IO[str], *, interactive: bool) -> None:
        super().__init__(stdin=lines)
        self._testbed = testbed
        self._hosts = [host["name"] for host in json.loads(testbed.hosts())]
        self._interactive = interactive
        self.use_rawinput = interactive
        self.prompt = "longfat> " if interactive else ""
        self.failed = False
        """Whether a line failed."""

    def run(self) -> None:
        """Runs lines until their end or `quit`. Ctrl-C at the prompt discards the line."""
        while True:
            try:
                self.cmdloop()
            except KeyboardInterrupt:
                if not self._interactive:
                    raise
                print()
            else:
                return

    def onecmd(self, line: str) -> bool:
        """Runs a command of the prompt, or a command line at a host."""
        name, _, rest = line.strip().partition(" ")
        if not name or name.startswith("#"):
            return False
        sys.stdout.flush()
        try:
            return self._do(name, rest.strip())
        except (ValueError, OSError) as error:
            self._fail(str(error))
            return False

    def _do(self, name: str, rest: str) -> bool:
        if name in self._hosts:
            return self._at(name, rest)
        known = getattr(self, f"do_{'quit' if name == 'EOF' else name}", None)
        if known is None:
            raise ValueError(f'"{name}" is neither a command (see help) nor a host (see hosts)')
        return bool(known(rest))

    def _fail(self, text: str) -> None:
        self.failed = True
        print(f"longfat: {text}", file=sys.stderr)

    def emptyline(self) -> bool:
        """Does nothing: the base class would repeat the last line."""
        return False

    def completenames(self, text: str, *_: Any) -> list[str]:
        """Returns the commands and hosts that start with a text."""
        names = [*self._hosts, *(name[3:] for name in self.get_names() if name.startswith("do_"))]
        return [name for name in names if name.startswith(text)]

    def completedefault(self, text: str, *_: Any) -> list[str]:
        """Returns the hosts that start with a text."""
        return [host for host in self._hosts if host.startswith(text)]

    def do_help(self, _rest: str) -> None:
        """Prints the commands."""
        width = max(len(usage) for usage, _ in _HELP)
        for usage, text in _HELP:
            print(f"{usage:<{width}}  {text}")

    def do_hosts(self, _rest: str) -> None:
        """Prints names and addresses."""
        found = (json.loads(text) for text in (self._testbed.hosts(), self._testbed.routers()))
        tables.show(tables.hosts(*found))

    def do_links(self, _rest: str) -> None:
        """Prints settings and counters of the links."""
        tables.show(tables.links(json.loads(self._testbed.links())))
        self._show_drops()

    do_dump = do_links

    def do_net(self, _rest: str) -> None:
        """Prints nodes with their hosts and links."""
        found = (json.loads(text) for text in (self._testbed.hosts(), self._testbed.links()))
        tables.show(tables.net(*found))

    def do_set(self, rest: str) -> None:
        """Changes a link."""
        set_link(self._testbed, rest.split(None, 2))

    def do_pingall(self, rest: str) -> None:
        """Pings between all hosts."""
        if rest and not (rest.isdecimal() and int(rest) > 0):
            raise ValueError(f'pingall: "{rest}" is not a number of requests: write e.g. pingall 20')
        pings = json.loads(self._testbed.ping_all(int(rest or PINGS)))
        tables.show(tables.ping_all(pings))
        self._show_drops()
        if lost := tables.unreachable(pings):
            self._fail(f"no answer: {', '.join(lost)}")

    def do_measure(self, rest: str) -> None:
        """Measures the goodput of one TCP connection."""
        parts = rest.split()
        if len(parts) not in (2, 3):
            raise ValueError("measure: write two hosts and optionally a time, e.g. measure h1 h2 10s")
        seconds = MEASURED_S if len(parts) == 2 else _seconds(parts[2])
        print(tables.goodput(json.loads(self._testbed.goodput(parts[0], parts[1], seconds))))
        self._show_drops()

    def _show_drops(self) -> None:
        if line := tables.dropped(json.loads(self._testbed.dropped())):
            print(line)

    def do_kernel(self, _rest: str) -> None:
        """Prints the kernel's settings at the hosts."""
        kernel = json.loads(self._testbed.kernel())
        for line in programs.lines(kernel["controller"], kernel["sysctls"]):
            print(line)

    def do_wait(self, rest: str) -> None:
        """Waits until a program listens at a port of a host."""
        parts = rest.split()
        if len(parts) != 2:
            raise ValueError("wait: write a host and a port, e.g. wait h2 5201")
        number, is_udp = programs.port(parts[1])
        end = time.monotonic() + WAITED_S
        while not self._testbed.listens(parts[0], number, is_udp):
            if time.monotonic() > end:
                raise ValueError(f"wait: nothing listens at {parts[0]} {parts[1]} after {WAITED_S:g} s")
            time.sleep(0.02)

    def do_shell(self, rest: str) -> bool:
        """Starts the user's shell at a host."""
        if rest not in self._hosts:
            raise ValueError(f'shell: "{rest}" is not a host; allowed: {", ".join(self._hosts)}')
        return self._run(rest, [os.environ.get("SHELL", "/bin/sh")])

    def do_quit(self, _rest: str) -> bool:
        """Stops the testbed."""
        return True

    do_exit = do_quit

    def _at(self, host: str, line: str) -> bool:
        if not line:
            raise ValueError(f"{host}: the command is missing: write e.g. {host} ip address, or shell {host}")
        return self._run(host, ["sh", "-c", line])

    def _run(self, host: str, command: list[str]) -> bool:
        lent = self._interactive and sys.stdin.isatty()
        try:
            code = _wait(self._start(host, command, lent=lent), lent=lent)
        finally:
            if lent:
                _take_terminal_back()
        if code:
            self.failed = True
            if not self._interactive:
                print(f"longfat: {host} {command[-1]}: exit code {code}", file=sys.stderr)
        return False

    def _start(self, host: str, command: list[str], *, lent: bool) -> int:
        options = {"command": command, "terminal": "lent" if lent else "none"}
        # Standard input has lines for the prompt, which a command must not read.
        nothing = None if lent else os.open(os.devnull, os.O_RDONLY)
        try:
            streams = (0 if nothing is None else nothing, 1, 2)
            return int(self._testbed.run(host, json.dumps(options), streams))
        except OSError as error:
            raise ValueError(children.why(error)) from None
        finally:
            if nothing is not None:
                os.close(nothing)


def set_link(testbed: Testbed, parts: list[str]) -> None:
    """Changes a key of a link, given as [link, key, value]. Raises ValueError with the mistake."""
    if len(parts) != 3:
        raise ValueError("set: write a link, a key and its value, e.g. set forward rate 5Mbit/s")
    link, key, text = parts
    value = None if text == "none" else read_setting(f"{key}={text}")[1]
    try:
        testbed.set(link, key, json.dumps(value))
    except (ValueError, TypeError) as error:
        raise ValueError(f"set: {error}") from None


def _wait(pid: int, *, lent: bool) -> int:
    """Waits for a command and returns its exit code. An exception stops the command."""
    try:
        while True:
            _, status = os.waitpid(pid, os.WUNTRACED if lent else 0)
            if not os.WIFSTOPPED(status):
                if lent and os.WIFSIGNALED(status):
                    print()  # after the terminal's ^C
                return children.code_from(status)
            # The prompt has no job control to resume it.
            children.signal_group(pid, signal.SIGCONT)
            print(f"stopped (Ctrl-Z); write {'&'!r} after a command to run it in the background")
            return children.end(pid)
    except KeyboardInterrupt:
        code = children.end(pid)
        if not lent:  # it ends a script
            raise
        return code
    except BaseException:
        children.end(pid)
        raise


def _take_terminal_back() -> None:
    # The kernel stops a background process that takes the terminal unless SIGTTOU is blocked: `tcsetpgrp(3)`.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
    try:
        with contextlib.suppress(OSError):
            os.tcsetpgrp(0, os.getpgrp())
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTTOU})


def _seconds(text: str) -> float:
    parsed = units.parse(text)
    if parsed.dimension != "duration" or parsed.value <= 0:
        raise ValueError(f'measure: "{text}" is not a duration: write e.g. "10s"')
    return float(parsed.value)
