"""The process of one submission: reads a task from standard input, and writes the result to a file."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

_LOOK_S = 0.1
"""Seconds between two looks at the memory."""


def _watch_memory(size: int, result: Path) -> None:
    """Ends the process when it uses more memory than allowed.

    Limits of the address space would not do: threads and libraries reserve more than they use.
    """
    try:
        import resource
    except ImportError:  # Windows does not report it
        return
    unit = 1 if sys.platform == "darwin" else 1024
    while resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit <= size:
        time.sleep(_LOOK_S)
    error = f"more memory than {size / 1e6:.0f} MB"
    result.write_text(json.dumps({"verdicts": {}, "details": {}, "error": error}), encoding="utf-8")
    os._exit(1)


def tables(lab: dict[str, Any], submission: Path) -> dict[str, Any]:
    """Returns the study of a submission: the lab with its controller, or its study with the lab's claims.

    Raises:
        ValueError: for a lab without the protocol to replace, and for a file without one controller.
    """
    from longfat.api.grading import STUDY_SUFFIX, SUBMISSION
    from longfat.extensions.base import classes_in
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
            kept = {key: value for key, value in entry.items() if key in ("name", "kind")}
            protocols.append({"kind": "tcp", **kept, "congestion": f"{submission}:{names[0]}"})
        else:
            protocols.append(entry)
    if protocols == lab["protocols"]:
        raise ValueError(f'the lab has no protocol named "{SUBMISSION}", which controllers replace')
    return {**lab, "protocols": protocols}


def main() -> None:
    """Runs the task of standard input."""
    task = json.loads(sys.stdin.read())
    with Path(task["place"]).open("w", encoding="utf-8") as place:
        # Loops of Python code cannot stop the thread that writes the stacks and ends the process.
        faulthandler.dump_traceback_later(task["seconds"], exit=True, file=place)
        result = Path(task["result"])
        threading.Thread(target=_watch_memory, args=(task["memory"], result), daemon=True).start()
        result.write_text(json.dumps(_result(task)), encoding="utf-8")
        faulthandler.cancel_dump_traceback_later()


def _result(task: dict[str, Any]) -> dict[str, Any]:
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
    # With several worlds, the worst verdict counts.
    for claim in found.claims:
        order = ("holds", "undecided", "fails")
        verdicts[claim.id] = max(verdicts.get(claim.id, "holds"), claim.verdict, key=order.index)
    details = {claim.id: claim.detail for claim in found.claims}
    return {"verdicts": verdicts, "details": details, "error": failures}


if __name__ == "__main__":
    main()
