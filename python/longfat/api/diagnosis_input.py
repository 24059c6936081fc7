"""What a diagnosis starts from instead of a measurement: a path model, a saved diagnosis, or a path."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

from longfat.study.path_model import read as read_model

if TYPE_CHECKING:
    from longfat.analysis.diagnosis import QueueLimit


@dataclass(frozen=True)
class KnownPath:
    """A path with its name, the measured links with their intervals, and its queue.

    `queueing` is the delay that load adds in s, None without a load. `queue_limit` is how the limit of the
    bottleneck's queue is known.
    """

    name: str
    path: dict[str, Any]
    hops: Sequence[Mapping[str, Any]] = ()
    queueing: float | None = None
    queue_limit: QueueLimit = "given"


def saved(model: Any) -> KnownPath:
    """Returns the path of a model file, of a document of `longfat diagnose --json`, or a path itself.

    Raises ValueError with the file or the key, and what is allowed.
    """
    if isinstance(model, str | File):
        file = File(model)
        if file.suffix == ".json":
            return _of_document(file)
        found = read_model(file)
        hops = found.measured.get("hops", ())
        return KnownPath(
            str(found.measured.get("host", file.stem)),
            found.path,
            hops,
            queue_limit="assumed" if hops else "given",
        )
    from longfat.study.tables import refuse, table_of

    table = table_of(model, "path")
    refuse("path", table)
    return KnownPath("path", table)


def _of_document(file: File) -> KnownPath:
    from longfat.measurement.path_document import measured
    from longfat.study.tables import refuse

    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        host, path, queueing = document["host"], document["path"], document["queueing_s"]
        limit = document["queue_limit"]
        hops = measured(document["measured"])["hops"] if document["measured"] else ()
    except OSError as error:
        raise ValueError(f"{file}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{file}: is not the document of longfat diagnose --json") from None
    from longfat.measurement.path_draws import FACTORS

    if limit not in FACTORS:
        raise ValueError(f"{file}: queue_limit: {limit}: allowed: {', '.join(FACTORS)}")
    refuse("path", path)
    return KnownPath(str(host), dict(path), hops, None if queueing is None else float(queueing), limit)
