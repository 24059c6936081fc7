"""The process of one submission: reads a task from standard input, and writes the result to a file."""

from __future__ import annotations

import faulthandler
import json
import sys
from pathlib import Path
from typing import Any

_SPARE_BYTES = 512 * 10**6
"""Reserved memory beyond the limit, for the stacks of threads and the like."""
_FILE_BYTES = 256 * 10**6
"""The largest file that a submission can write."""


def _limit(memory: int) -> None:
    """Limits the private memory of this process, and the size of its files.

    The parent process limits the resident memory. The limit here refuses single large allocations,
    before the parent can see them. Libraries reserve more than they use, so it applies to the growth.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    # These reserve 1 GB. OpenBLAS of scipy waits forever for memory that it does not get.
    import polars as pl  # noqa: F401
    from scipy import special  # noqa: F401

    from longfat.api import studies  # noqa: F401

    memory += _SPARE_BYTES + _reserved()
    for kind, wanted in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_FSIZE, _FILE_BYTES)):
        _, hard = resource.getrlimit(kind)
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (most, most))


def _reserved() -> int:
    """Returns the private memory that this process has reserved, in bytes; 0 without /proc."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:"))


def tables(lab: dict[str, Any], submission: Path) -> dict[str, Any]:
    """Returns the study of a submission: the lab with its controller, or its study with the lab's claims.

    Raises:
        ValueError: for a lab without the protocol to replace, and for a file without one controller.
    """
    from longfat.api.grading import STUDY_SUFFIX
    from longfat.extensions.base import classes_in
    from longfat.study.handout import SUBMISSION
    from longfat.study.reading import read_study

    if submission.suffix == STUDY_SUFFIX:
        return {**read_study(submission).data, "claims": lab["claims"]}
    names = classes_in("CongestionController", str(submission))
    if len(names) != 1:
        count = f"{len(names)} controllers ({', '.join(names)})" if names else "no controller"
        raise ValueError(
            f"{submission.name}: {count}; allowed: one class derived from longfat.CongestionController"
        )
    protocols = []
    for entry in lab["protocols"]:
        if isinstance(entry, dict) and entry.get("name") == SUBMISSION:
            protocols.append({"kind": "tcp", **entry, "congestion": f"{submission}:{names[0]}"})
        else:
            protocols.append(entry)
    if protocols == lab["protocols"]:
        raise ValueError(f'the lab has no protocol named "{SUBMISSION}", which controllers replace')
    return {**lab, "protocols": protocols}


def main() -> None:
    """Runs the task of standard input."""
    task = json.loads(sys.stdin.read())
    with Path(task["place"]).open("w", encoding="utf-8") as place:
        # Loops of Python code cannot stop the thread that writes the stacks and exits.
        faulthandler.dump_traceback_later(task["seconds"], exit=True, file=place)
        _limit(task["memory"])
        Path(task["result"]).write_text(json.dumps(_result(task)), encoding="utf-8")
        faulthandler.cancel_dump_traceback_later()


def _result(task: dict[str, Any]) -> dict[str, Any]:
    from longfat.api.grading import NOT_RUN
    from longfat.api.studies import run
    from longfat.presentation.run import notes
    from longfat.study.problems import StudyError

    try:
        study = tables(task["lab"], Path(task["submission"]))
        found = run(study, out=task["out"], report=False, progress=False)
    except (StudyError, ValueError) as error:
        return {"verdicts": {}, "details": {}, "error": " ".join(str(error).split())}
    except MemoryError:
        return {"verdicts": {}, "details": {}, "error": "not enough memory"}
    failures = "; ".join(notes.failures(found.cells))
    verdicts: dict[str, str] = {}
    details: dict[str, str] = {}
    # With several worlds, the worst verdict counts.
    order = ("holds", "undecided", NOT_RUN, "fails")
    for claim in found.claims:
        numbers = claim.figures is not None and claim.figures["n"] > 0
        # A claim that failed trials leave without numbers has no result.
        verdict = NOT_RUN if failures and not numbers else claim.verdict
        if claim.id not in verdicts or order.index(verdict) > order.index(verdicts[claim.id]):
            verdicts[claim.id], details[claim.id] = verdict, claim.detail
    return {"verdicts": verdicts, "details": details, "error": failures}


if __name__ == "__main__":
    main()
