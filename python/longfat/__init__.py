"""longfat: a laboratory for transport protocols.

One study file in, one answer with error bars out:

    import longfat as lf

    result = lf.run("arq/loss", quick=True)
    result.to_polars()

    path = lf.Path(rate="10Mbit/s", delay="20ms", loss="1%")
    lf.simulate(lf.GoBackN(window=8), path, "2MB", seed=1).goodput

Names are imported when they are first used, so that the command line starts quickly.
"""

from __future__ import annotations

from importlib import import_module

# Not imported from `typing`: with `python -m longfat` the current folder is still on the import path here,
# and a `typing.py` there would be executed.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from longfat._native import version
    from longfat.api.bundles import Reproduced, bundle, reproduce
    from longfat.api.comparisons import compare
    from longfat.api.diagnoses import Diagnosis, diagnose
    from longfat.api.emulations import emulate
    from longfat.api.explanations import Explanation, explain
    from longfat.api.links import MeasuredPath, path
    from longfat.api.predictions import PredictedTime, predict
    from longfat.api.relays import Relay, relay
    from longfat.api.round_trips import RoundTrips, ping
    from longfat.api.runs import load_run
    from longfat.api.scripts import ScriptResults, packetdrill
    from longfat.api.sessions import Session, Snapshot, Step
    from longfat.api.studies import run
    from longfat.api.sweeps import sweep
    from longfat.api.tcp_relays import TcpRelay
    from longfat.api.traces import Traces, trace
    from longfat.api.transactions import MeasuredTransactions, transact
    from longfat.api.transfers import Receiver, SentFiles, receive, send
    from longfat.api.trials import TransferError, Trial, simulate
    from longfat.extensions.controller import Acknowledgement, CongestionController, Loss
    from longfat.extensions.policy import Join, PathPolicy
    from longfat.extensions.queue import QueueDiscipline
    from longfat.extensions.scheduler import Scheduler
    from longfat.kernel import mptcp
    from longfat.presentation.run.displayed import Run
    from longfat.results.run import Cell, CellResult, Interval, RunResult, Verdict
    from longfat.study import Claim, Study, StudyError, load_study
    from longfat.study.tables import (
        Arq,
        GoBackN,
        Mptcp,
        Path,
        Protocol,
        Quic,
        SelectiveRepeat,
        StopAndWait,
        Tcp,
        Topology,
        Traffic,
        Udp,
        Workload,
    )

__all__ = [
    "Acknowledgement",
    "Arq",
    "Cell",
    "CellResult",
    "Claim",
    "CongestionController",
    "Diagnosis",
    "Explanation",
    "GoBackN",
    "Interval",
    "Join",
    "Loss",
    "MeasuredPath",
    "MeasuredTransactions",
    "Mptcp",
    "Path",
    "PathPolicy",
    "PredictedTime",
    "Protocol",
    "QueueDiscipline",
    "Quic",
    "Receiver",
    "Relay",
    "Reproduced",
    "RoundTrips",
    "Run",
    "RunResult",
    "Scheduler",
    "ScriptResults",
    "SelectiveRepeat",
    "SentFiles",
    "Session",
    "Snapshot",
    "Step",
    "StopAndWait",
    "Study",
    "StudyError",
    "Tcp",
    "TcpRelay",
    "Topology",
    "Traces",
    "Traffic",
    "TransferError",
    "Trial",
    "Udp",
    "Verdict",
    "Workload",
    "bundle",
    "compare",
    "diagnose",
    "emulate",
    "explain",
    "load_run",
    "load_study",
    "mptcp",
    "packetdrill",
    "path",
    "ping",
    "predict",
    "receive",
    "relay",
    "reproduce",
    "run",
    "send",
    "simulate",
    "sweep",
    "trace",
    "transact",
    "version",
]

_MODULES = {
    "_native": "version",
    "api.comparisons": "compare",
    "api.diagnoses": "Diagnosis diagnose",
    "api.explanations": "Explanation explain",
    "api.links": "MeasuredPath path",
    "api.predictions": "PredictedTime predict",
    "api.round_trips": "RoundTrips ping",
    "api.transactions": "MeasuredTransactions transact",
    "api.emulations": "emulate",
    "api.relays": "Relay relay",
    "api.tcp_relays": "TcpRelay",
    "api.scripts": "ScriptResults packetdrill",
    "api.transfers": "Receiver SentFiles receive send",
    "api.sessions": "Session Snapshot Step",
    "api.studies": "run",
    "api.sweeps": "sweep",
    "api.traces": "Traces trace",
    "api.trials": "Trial TransferError simulate",
    "extensions.controller": "Acknowledgement CongestionController Loss",
    "extensions.policy": "Join PathPolicy",
    "extensions.queue": "QueueDiscipline",
    "extensions.scheduler": "Scheduler",
    "presentation.run.displayed": "Run",
    "results.run": "Cell CellResult Interval RunResult Verdict",
    "api.bundles": "Reproduced bundle reproduce",
    "api.runs": "load_run",
    "study": "Claim Study StudyError load_study",
    "study.tables": "Arq GoBackN Mptcp Path Protocol Quic SelectiveRepeat StopAndWait Tcp Topology Traffic "
    "Udp Workload",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "mptcp":
        return import_module(f"{__name__}.kernel.mptcp")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
