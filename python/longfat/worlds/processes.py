"""Worlds in wall time: trials run in separate processes, in parallel as far as the machine's load allows.

The processes exit when their standard input closes, so none outlives this one.
"""

from __future__ import annotations

import abc
import contextlib
import json
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from longfat import _native
from longfat.results.trial import Record, Records, Trial
from longfat.study import units
from longfat.study.vocabulary import canonical
from longfat.system.interpreter import python_command
from longfat.worlds.environment import available_cores
from longfat.worlds.executor import CancelledTrialError, ThreadedExecutor, record_from_json

START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 2.0
# Longest duration of a trial: this multiple of the simulated one, plus this many seconds.
TIMEOUT_FACTOR = 4.0
TIMEOUT_MARGIN_S = 60.0
UNKNOWN_TIMEOUT_S = 600.0


class EndpointError(Exception):
    """A process of a trial failed; the text is the trial's error."""


class Endpoint:
    """One process of a trial. `close` stops it."""

    def __init__(self, role: str) -> None:
        self.role = role
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process, see close()
        # A separate session keeps the terminal's Ctrl-C away: this process decides when a trial stops.
        self.process = subprocess.Popen(
            python_command("-m", "longfat.worlds._endpoint", role),
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
        """Sends the process its request.

        `names` (the kernel's names of congestion controllers) and `trace` (the arguments of `emulate_traced`)
        are for the role `emulate`.
        """
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has exited: answer() reports how
            self.process.stdin.write(
                json.dumps({"spec": spec, "to": to, "names": names or {}, "trace": trace}).encode() + b"\n"
            )
            self.process.stdin.flush()

    def answer(self, timeout: float) -> dict[str, Any]:
        """Returns the answer, one line. Raises EndpointError if there is none within `timeout` s."""
        assert self.process.stdout is not None
        # Killing the process stops the wait, on every system.
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
        """Returns the address at which the process receives."""
        answer = self.answer(START_TIMEOUT_S)
        if "listening" not in answer:
            raise EndpointError(f"the {self.role} process: {answer.get('error', 'reported no address')}")
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
        """Stops the process, after 2 s by SIGKILL."""
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
    """Runs trials in processes chosen by a subclass, in parallel as far as `jobs` and the load allow."""

    def __init__(self, jobs: int, packets_per_core: int) -> None:
        super().__init__(jobs)
        self._budget = LoadBudget(packets_per_core * available_cores())
        self._expected: dict[str, tuple[float, float]] = {}
        self._cancel = _native.Cancel()
        self._running: set[Endpoint] = set()
        self._guard = threading.Lock()

    def limit_load(self, packets_per_second: float) -> None:
        """Sets the total load of parallel trials, instead of the default per core."""
        self._budget.limit = packets_per_second

    @abc.abstractmethod
    def measure(self, spec: dict[str, Any], timeout: float) -> Record:
        """Runs one trial in `endpoint`s. Raises EndpointError if one fails."""

    def forecast(self, trials: Sequence[Trial]) -> float | None:
        """Returns the duration from simulated trials: divided by the jobs, or as the load allows."""
        expected = [self._expect(trial) for trial in trials]
        packets = sum(seconds * rate for seconds, rate in expected)
        longest = max((seconds for seconds, _ in expected), default=0.0)
        shared = sum(seconds for seconds, _ in expected) / self.jobs
        return max(longest, shared, packets / self._budget.limit)

    def run_all(self, trials: Sequence[Trial]) -> Records:
        """Runs one trial."""
        (trial,) = trials
        return Records.of(trial.number, self.run(trial))

    def run(self, trial: Trial) -> Record:
        """Runs one trial in wall time. The failure of a process is the record's error."""
        seconds, packets_per_second = self._expect(trial)
        timeout = seconds * TIMEOUT_FACTOR + TIMEOUT_MARGIN_S if seconds else UNKNOWN_TIMEOUT_S
        with self._budget.share(packets_per_second):
            if self._cancelled.is_set():
                raise CancelledTrialError
            try:
                record = self.measure(trial.spec, timeout)
            except EndpointError as error:
                record = Record(None, str(error))
        if self._cancelled.is_set():
            # Its processes were killed, so the record does not describe the path.
            raise CancelledTrialError
        return record

    @contextlib.contextmanager
    def endpoint(self, role: str) -> Iterator[Endpoint]:
        """Yields a process with this role, which stops with the context, or when the run is cancelled."""
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
        """Returns duration in s and packets/s by simulation; zeros if the simulated trial fails."""
        name = canonical(trial.cell.spec)
        if name not in self._expected:
            try:
                metrics = record_from_json(_native.simulate(trial.spec_json, self._cancel)).metrics or {}
            except _native.Cancelled:
                raise CancelledTrialError from None
            except ValueError:
                # The trial has no simulated network, such as a loopback interface, or is invalid and reports
                # its error itself.
                self._expected[name] = (0.0, 0.0)
                return self._expected[name]
            workload = trial.spec["workload"]
            duration = _seconds(workload, "duration")
            seconds = duration or metrics.get("completion_s") or _requests_s(workload, metrics)
            # Packets are counted after the warm-up only.
            span = seconds - _seconds(workload, "warm_up")
            self._expected[name] = (seconds, metrics.get("packets_sent", 0.0) / span if span > 0 else 0.0)
        return self._expected[name]

    def cancel(self) -> None:
        """Kills every process, which stops the trials."""
        super().cancel()
        self._cancel.cancel()
        self._budget.open()
        with self._guard:
            for endpoint in self._running:
                endpoint.process.kill()


def _requests_s(workload: dict[str, Any], metrics: Mapping[str, float]) -> float:
    """Returns the time of requests one after the other, with the pauses between them, in s."""
    requests = workload.get("requests", 1)
    return float(requests * (metrics.get("fct_mean_s") or 0.0) + (requests - 1) * _seconds(workload, "think"))


def _seconds(workload: dict[str, Any], key: str) -> float:
    return (units.number(workload[key]) if key in workload else None) or 0.0


class LoadBudget:
    """Limits the total load of parallel trials; a single trial may exceed the limit."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._load = 0.0
        self._open = False
        self._changed = threading.Condition()
        # A waiting trial blocks later, lighter ones, which could delay it forever.
        self._turnstile = threading.Lock()

    @contextlib.contextmanager
    def share(self, load: float) -> Iterator[None]:
        """Waits until a load fits, and reserves it for the context."""
        with self._turnstile, self._changed:
            self._changed.wait_for(lambda: self._open or self._load == 0 or self._load + load <= self.limit)
            self._load += load
        try:
            yield
        finally:
            with self._changed:
                # Rounding errors must not keep the load above 0 forever.
                self._load = max(0.0, self._load - load) if self._load - load > 1e-6 else 0.0
                self._changed.notify_all()

    def open(self) -> None:
        """Admits all trials, because the run stops."""
        with self._changed:
            self._open = True
            self._changed.notify_all()
