"""The prompt of a testbed: commands on its network, and at its hosts."""

from __future__ import annotations

import cmd
import contextlib
import json
import os
import signal
import sys
from typing import IO, TYPE_CHECKING, Any

from longfat.study import read_setting, units
from longfat.testbed import children, tables

if TYPE_CHECKING:
    from longfat._native import Testbed

PINGS = 10
"""Echo requests of a pair of hosts, unless said."""
MEASURED_S = 5.0
_HELP = (
    ("HOST COMMAND", "run a line for sh at a host, where other hosts have their names; Ctrl-C ends it"),
    ("shell HOST", "your shell at a host"),
    ("hosts", "names and addresses"),
    ("net", "which node leads where"),
    ("links (or dump)", "what each link was asked to do and has done, and its queue now"),
    (
        "set LINK KEY VALUE",
        "change a link while packets are on it, e.g. set forward rate 5Mbit/s; none: no such key",
    ),
    ("pingall [COUNT]", "round trips and losses between all hosts, beside what the links say"),
    ("measure A B [TIME]", "goodput of one TCP connection from A to B, for 5s by default"),
    ("quit", "end the testbed and all commands (also exit, Ctrl-D)"),
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
        """Whether a line has failed."""

    def run(self) -> None:
        """Until the end of the lines, or `quit`. Ctrl-C at the prompt takes the line back."""
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
        """A word of the prompt's own, or a host and what to run there."""
        word, _, rest = line.strip().partition(" ")
        if not word or word.startswith("#"):
            return False
        sys.stdout.flush()
        try:
            return self._do(word, rest.strip())
        except (ValueError, OSError) as error:
            self._fail(str(error))
            return False

    def _do(self, word: str, rest: str) -> bool:
        if word in self._hosts:
            return self._at(word, rest)
        known = getattr(self, f"do_{'quit' if word == 'EOF' else word}", None)
        if known is None:
            raise ValueError(f'"{word}" is no command and no host; help shows the commands, hosts the hosts')
        return bool(known(rest))

    def _fail(self, text: str) -> None:
        self.failed = True
        print(f"longfat: {text}", file=sys.stderr)

    def emptyline(self) -> bool:
        """Nothing: the base class would do the last line again."""
        return False

    def completenames(self, text: str, *_: Any) -> list[str]:
        """Words of the prompt and hosts."""
        words = [*self._hosts, *(name[3:] for name in self.get_names() if name.startswith("do_"))]
        return [word for word in words if word.startswith(text)]

    def completedefault(self, text: str, *_: Any) -> list[str]:
        """Hosts."""
        return [host for host in self._hosts if host.startswith(text)]

    def do_help(self, _rest: str) -> None:
        """What there is."""
        width = max(len(words) for words, _ in _HELP)
        for words, text in _HELP:
            print(f"{words:<{width}}  {text}")

    def do_hosts(self, _rest: str) -> None:
        """Names and addresses."""
        found = (json.loads(text) for text in (self._testbed.hosts(), self._testbed.routers()))
        tables.show(tables.hosts(*found))

    def do_links(self, _rest: str) -> None:
        """What the links do."""
        tables.show(tables.links(json.loads(self._testbed.links())))
        self._show_drops()

    do_dump = do_links

    def do_net(self, _rest: str) -> None:
        """Which node leads where."""
        found = (json.loads(text) for text in (self._testbed.hosts(), self._testbed.links()))
        tables.show(tables.net(*found))

    def do_set(self, rest: str) -> None:
        """Another link than before."""
        set_link(self._testbed, rest.split(None, 2))

    def do_pingall(self, rest: str) -> None:
        """Who reaches whom."""
        if rest and not (rest.isdecimal() and int(rest) > 0):
            raise ValueError(f'pingall: "{rest}" is no number of requests: write e.g. pingall 20')
        pings = json.loads(self._testbed.ping_all(int(rest or PINGS)))
        tables.show(tables.ping_all(pings))
        self._show_drops()
        if lost := tables.unreachable(pings):
            self._fail(f"no answer: {', '.join(lost)}")

    def do_measure(self, rest: str) -> None:
        """What a connection gets."""
        words = rest.split()
        if len(words) not in (2, 3):
            raise ValueError("measure: write two hosts and maybe a time, e.g. measure h1 h2 10s")
        seconds = MEASURED_S if len(words) == 2 else _seconds(words[2])
        print(tables.goodput(json.loads(self._testbed.goodput(words[0], words[1], seconds))))
        self._show_drops()

    def _show_drops(self) -> None:
        if line := tables.dropped(json.loads(self._testbed.dropped())):
            print(line)

    def do_shell(self, rest: str) -> bool:
        """The user's shell."""
        if rest not in self._hosts:
            raise ValueError(f'shell: "{rest}" is no host; allowed: {", ".join(self._hosts)}')
        return self._run(rest, [os.environ.get("SHELL", "/bin/sh")])

    def do_quit(self, _rest: str) -> bool:
        """The end."""
        return True

    do_exit = do_quit

    def _at(self, host: str, line: str) -> bool:
        if not line:
            raise ValueError(f"{host}: what is to be run there? E.g. {host} ip address, or shell {host}")
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
        # A script's lines are the prompt's, not the command's.
        nothing = None if lent else os.open(os.devnull, os.O_RDONLY)
        try:
            streams = (0 if nothing is None else nothing, 1, 2)
            return int(self._testbed.run(host, json.dumps(options), streams))
        except OSError as error:
            raise ValueError(children.why(error)) from None
        finally:
            if nothing is not None:
                os.close(nothing)


def set_link(testbed: Testbed, words: list[str]) -> None:
    """Changes a key of a link, given as link, key and value; ValueError says what is wrong with them."""
    if len(words) != 3:
        raise ValueError("set: write a link, a key and its value, e.g. set forward rate 5Mbit/s")
    link, key, text = words
    value = None if text == "none" else read_setting(f"{key}={text}")[1]
    try:
        testbed.set(link, key, json.dumps(value))
    except (ValueError, TypeError) as error:
        raise ValueError(f"set: {error}") from None


def _wait(pid: int, *, lent: bool) -> int:
    """Waits for a command; whatever keeps this process from that ends the command."""
    try:
        while True:
            _, status = os.waitpid(pid, os.WUNTRACED if lent else 0)
            if not os.WIFSTOPPED(status):
                if lent and os.WIFSIGNALED(status):
                    print()  # after the terminal's ^C
                return children.code_from(status)
            # There is no job control here to bring it back.
            children.signal_group(pid, signal.SIGCONT)
            print(f"ended (Ctrl-Z); write {'&'!r} after a command to leave it running")
            return children.end(pid)
    except KeyboardInterrupt:
        return children.end(pid)
    except BaseException:
        children.end(pid)
        raise


def _take_terminal_back() -> None:
    # Whoever takes it from the background is stopped but where the signal is blocked (`tcsetpgrp(3)`).
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
    try:
        with contextlib.suppress(OSError):
            os.tcsetpgrp(0, os.getpgrp())
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTTOU})


def _seconds(text: str) -> float:
    parsed = units.parse(text)
    if parsed.dimension != "duration" or parsed.value <= 0:
        raise ValueError(f'measure: "{text}" is no time to measure for: write e.g. "10s"')
    return float(parsed.value)
