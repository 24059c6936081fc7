"""`sweep`: trials of every combination of protocols and keys."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from longfat.api.specification import workload_of
from longfat.api.studies import run
from longfat.study import Study, StudyError, load_study
from longfat.study.plain import plain
from longfat.study.problems import Problem

if TYPE_CHECKING:
    from longfat.presentation.run.displayed import Run

PROTOCOL = "protocol"
"""The key of `over` with the protocols to compare."""


def sweep(
    base: str | Path | Mapping[str, Any] | Study,
    over: Mapping[str, Any] | None = None,
    *,
    seeds: SupportsIndex = 20,
    seed: SupportsIndex = 1,
    worlds: Sequence[str] | str = (),
    jobs: int | None = None,
    out: str | Path | None = None,
    progress: bool | None = None,
    executor: str | None = None,
    scheduler: str | None = None,
) -> Run:
    """Runs all combinations of protocols and keys, with several trials each, on all cores.

    Args:
        base: What stays the same: a dict with `path` or `topology`, `protocol` (or `protocols`), `traffic`
            and one of `size` ("2MB"), `duration` ("20s") and `workload`. Or a study (file, name, dict or
            `Study`), whose sweep stays.
        over: Keys with their values, as in a study's sweep: `{"path.loss": ["0.1%", "1%"]}`. The key
            "protocol" has the protocols: names, objects (`Tcp("vegas")`), dicts or controller classes.
        seeds: Trials of each combination. Trial n has the same losses in every combination, so differences
            may be paired.
        seed: Random seed from which the trials derive theirs.
        worlds: "sim" (default), "netns" or "relay".
        jobs: Number of parallel trials; by default one per core.
        out: Folder that keeps the records: another call resumes. By default they are in a temporary folder
            that lasts as long as the result.
        progress: Whether to show the progress; by default in a notebook or at a prompt.
        executor: "local", or "dask" for a cluster (`longfat[cluster]`).
        scheduler: Address of a Dask scheduler; by default a cluster on this machine.

    Returns:
        A run, which displays itself. `to_polars()` is the tidy frame: a row for each trial with its protocol,
        a column for each key (`path_loss`) in SI units, and all metrics. `chart("goodput")` draws means with
        95 % confidence intervals. After Ctrl-C at a prompt, the finished trials are there.

    Raises:
        ValueError: with the key, the value and what is allowed.
        KeyboardInterrupt: on Ctrl-C outside of prompts and notebooks.

    >>> path = {"rate": "10Mbit/s", "delay": "5ms"}
    >>> over = {"protocol": ["reno", "cubic"], "path.loss": ["0%", "1%"]}
    >>> done = sweep({"path": path, "size": "20kB"}, over, seeds=2)
    >>> done.to_polars().select("protocol", "path_loss", "trial").height
    8
    """
    tables = _tables(base, over or {})
    options: dict[str, Any] = {
        "worlds": worlds,
        "repeats": seeds,
        "seed": seed,
        "jobs": jobs,
        "progress": progress,
        "executor": executor,
        "scheduler": scheduler,
        "report": False,
    }
    if out is not None:
        return run(tables, out=out, **options)
    kept = tempfile.mkdtemp(prefix="longfat-sweep-")
    try:
        result = run(tables, out=Path(kept) / "run", **options)
    except BaseException:
        shutil.rmtree(kept, ignore_errors=True)
        raise
    weakref.finalize(result, shutil.rmtree, kept, ignore_errors=True)
    return result


def _tables(base: str | Path | Mapping[str, Any] | Study, over: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the tables of the study that a sweep runs."""
    if isinstance(base, Mapping):
        tables = {key: plain(value, key) for key, value in base.items()}
        if not {"title", "extends"} & set(tables):
            size, duration = (tables.pop(key, None) for key in ("size", "duration"))
            tables["workload"] = workload_of(size, duration, tables.get("workload"))
            tables["title"] = "A sweep"
        if PROTOCOL in tables:
            tables["protocols"] = [tables.pop(PROTOCOL)]
    else:
        study = load_study(base)
        tables = study.model_dump(mode="python", exclude_unset=True, by_alias=True)
    keys = {key: plain(value, key) for key, value in over.items()}
    if PROTOCOL in keys:
        protocols = keys.pop(PROTOCOL)
        tables["protocols"] = protocols if isinstance(protocols, list) else [protocols]
        tables.pop("claims", None)
    for key, values in keys.items():
        if not isinstance(values, list | dict) or not values:
            raise StudyError("", [Problem(f'over."{key}"', "must be a list of values")])
    if keys:
        tables["sweep"] = {**tables.get("sweep", {}), **keys}
    if "protocols" not in tables:
        raise ValueError('set the protocols: over={"protocol": ["cubic", "bbr"]}, or protocol in base')
    return tables
