"""Worlds on wall time: trials run in processes of their own, as many at once as the machine's load allows.

The processes end when their standard input closes, so none outlives this one, however it dies.
"""

from __future__ import annotations

import abc
import contextlib
import json
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from longfat import _native
from longfat.interpreter import python_command
from longfat.runner.environment import available_cores
from longfat.runner.executor import CancelledTrialError, ThreadedExecutor, record_from_json
from longfat.runner.trial import Record, Trial
from longfat.study import units
from longfat.study.vocabulary import canonical

START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 2.0
# A trial may take this many times what the simulator expects, and this much more: beyond it, it hangs.
PATIENCE_FACTOR = 4.0
PATIENCE_S = 60.0
UNKNOWN_PATIENCE_S = 600.0


class EndpointError(Exception):
    """A process of the trial did not do its part; the text is the trial's error."""


class Endpoint:
    """One process of a trial. Close it in any case: that ends the process."""

    def __init__(self, role: str) -> None:
        self.role = role
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process, see close()
        # A session of its own keeps the terminal's Ctrl-C from it: what becomes of a trial is decided here.
        self.process = subprocess.Popen(
            python_command("-m", "longfat._endpoint", role),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )
        self._too_late = False

    def start(
        self,
        spec: dict[str, Any],
        to: str | None,
        names: dict[str, str] | None = None,
        trace: dict[str, Any] | None = None,
    ) -> None:
        """Tells the process its part.

        `emulate` is told what the kernel calls congestion controllers, and what to trace, as the arguments of
        `emulate_traced`.
        """
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended already: answer() says how
            self.process.stdin.write(
                json.dumps({"spec": spec, "to": to, "names": names or {}, "trace": trace}).encode() + b"\n"
            )
            self.process.stdin.flush()

    def answer(self, timeout: float) -> dict[str, Any]:
        """The one line that the process answers; EndpointError where there is none in time."""
        assert self.process.stdout is not None
        # Ending the process ends the wait, on every system.
        timer = threading.Timer(timeout, self._give_up)
        timer.start()
        try:
            line = self.process.stdout.readline()
        finally:
            timer.cancel()
        if line.endswith(b"\n"):
            with contextlib.suppress(ValueError):
                content: dict[str, Any] = json.loads(line)
                return content
        if self._too_late:
            raise EndpointError(f"the {self.role} process did not answer within {timeout:.3g} s")
        raise EndpointError(self._how_it_ended())

    def _give_up(self) -> None:
        self._too_late = True
        self.process.kill()

    def listening(self) -> str:
        """The address that the process receives at."""
        answer = self.answer(START_TIMEOUT_S)
        if "listening" not in answer:
            raise EndpointError(
                f"the {self.role} process: {answer.get('error', 'did not say where it listens')}"
            )
        return str(answer["listening"])

    def _how_it_ended(self) -> str:
        try:
            code = self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return f"the {self.role} process closed its output"
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        self._errors.seek(0)
        lines = self._errors.read()[-2000:].decode("utf-8", "replace").strip().splitlines()
        return f"the {self.role} process ended ({how})" + (f": {lines[-1]}" if lines else "")

    def close(self) -> None:
        """Ends the process, by force where it does not follow."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self._errors.close()


class ProcessExecutor(ThreadedExecutor):
    """Runs trials in processes, as many at once as `jobs` and the load allow; a subclass says in which."""

    def __init__(self, jobs: int, packets_per_core: int) -> None:
        super().__init__(jobs)
        self._budget = LoadBudget(packets_per_core * available_cores())
        self._expected: dict[str, tuple[float, float]] = {}
        self._cancel = _native.Cancel()
        self._running: set[Endpoint] = set()
        self._guard = threading.Lock()

    def limit_load(self, packets_per_second: float) -> None:
        """Lets trials at once offer so much, in the place of what was guessed."""
        self._budget.limit = packets_per_second

    @abc.abstractmethod
    def measure(self, spec: dict[str, Any], timeout: float) -> Record:
        """Runs one trial in `endpoint`s; raises EndpointError where one fails."""

    def forecast(self, trials: Sequence[Trial]) -> float | None:
        """From what the simulator expects of each: shared among the jobs, or as the load allows."""
        expected = [self._expect(trial) for trial in trials]
        packets = sum(seconds * rate for seconds, rate in expected)
        longest = max((seconds for seconds, _ in expected), default=0.0)
        shared = sum(seconds for seconds, _ in expected) / self.jobs
        return max(longest, shared, packets / self._budget.limit)

    def run(self, trial: Trial) -> Record:
        """Runs one trial in real time; a process that fails gives a failed record."""
        seconds, packets_per_second = self._expect(trial)
        timeout = seconds * PATIENCE_FACTOR + PATIENCE_S if seconds else UNKNOWN_PATIENCE_S
        with self._budget.share(packets_per_second):
            if self._cancelled.is_set():
                raise CancelledTrialError
            try:
                record = self.measure(trial.spec, timeout)
            except EndpointError as error:
                record = Record(None, str(error))
        if self._cancelled.is_set():
            # Its processes were ended under it: what it says is not the path's doing.
            raise CancelledTrialError
        return record

    @contextlib.contextmanager
    def endpoint(self, role: str) -> Iterator[Endpoint]:
        """A process that plays this role; it is ended in any case, and at once where the run is cancelled."""
        endpoint = Endpoint(role)
        with self._guard:
            self._running.add(endpoint)
            if self._cancelled.is_set():  # after `cancel` looked through the running ones
                endpoint.process.kill()
        try:
            yield endpoint
        finally:
            with self._guard:
                self._running.discard(endpoint)
            endpoint.close()

    def _expect(self, trial: Trial) -> tuple[float, float]:
        """Seconds and packets a second that the simulator expects; zeros where it expects failure."""
        name = canonical(trial.cell.spec)
        if name not in self._expected:
            try:
                metrics = record_from_json(_native.simulate(trial.spec_json, self._cancel)).metrics or {}
            except _native.Cancelled:
                raise CancelledTrialError from None
            except ValueError:
                # It has no network to simulate, as a loopback interface; what is wrong the trial itself says.
                self._expected[name] = (0.0, 0.0)
                return self._expected[name]
            workload = trial.spec["workload"]
            duration = _seconds(workload, "duration")
            seconds = duration or metrics.get("completion_s", 0.0)
            # Packets are counted after the warm-up alone.
            span = seconds - _seconds(workload, "warm_up")
            self._expected[name] = (seconds, metrics.get("packets_sent", 0.0) / span if span > 0 else 0.0)
        return self._expected[name]

    def cancel(self) -> None:
        """Ends every process, which ends the trials."""
        super().cancel()
        self._cancel.cancel()
        self._budget.open()
        with self._guard:
            for endpoint in self._running:
                endpoint.process.kill()


def _seconds(workload: dict[str, Any], key: str) -> float:
    return (units.number(workload[key]) if key in workload else None) or 0.0


class LoadBudget:
    """Lets trials run at once while their loads sum to no more than a limit; one alone may exceed it."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._load = 0.0
        self._open = False
        self._changed = threading.Condition()
        # Whoever waits for room keeps later, lighter trials from overtaking it for ever.
        self._turnstile = threading.Lock()

    @contextlib.contextmanager
    def share(self, load: float) -> Iterator[None]:
        """Waits for room, then holds it."""
        with self._turnstile, self._changed:
            self._changed.wait_for(lambda: self._open or self._load == 0 or self._load + load <= self.limit)
            self._load += load
        try:
            yield
        finally:
            with self._changed:
                # Sums of floats leave a tail that would never again be "no load".
                self._load = max(0.0, self._load - load) if self._load - load > 1e-6 else 0.0
                self._changed.notify_all()

    def open(self) -> None:
        """Lets everyone through: the run is ending."""
        with self._changed:
            self._open = True
            self._changed.notify_all()
