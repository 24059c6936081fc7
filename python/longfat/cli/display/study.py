"""The cells of a study for `longfat list FILE`: its size, swept keys, and values of expressions."""

from __future__ import annotations

from collections.abc import Iterator

from longfat.presentation.formatting import label
from longfat.study import Study, cells, sweep

Part = tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...]]
"""Title, columns and rows."""


_MOST_VALUES = 20


def parts(study: Study) -> Iterator[Part]:
    """Yields the tables of a study; those without rows are left out."""
    every = cells(study)
    # Every world has the same cells.
    trials = len(every) // len(study.worlds) * sum(map(study.trials_in, study.worlds))
    counts = {"protocol": len(study.protocols), "cell": len(every), "trial": trials}
    about = [f"{count} {name if count == 1 else f'{name}s'}" for name, count in counts.items()]
    yield f"{study.title} ({', '.join(about)}; worlds: {', '.join(study.worlds)})", (), ()
    swept = tuple(
        (key, _listed([label(value) for value in sweep.values(listed)]))
        for key, listed in study.sweep.items()
    )
    if swept:
        yield "Swept keys", ("key", "values"), swept
    found: dict[tuple[str, str], dict[str, None]] = {}
    for cell in every if every.computes else ():
        for key, (text, value) in cell.computed.items():
            found.setdefault((key, text), {})[str(value)] = None
    if found:
        rows = tuple((key, text, _listed(list(values))) for (key, text), values in found.items())
        yield "Expressions", ("key", "expression", "values"), rows
    if study.metrics:
        yield "Metrics", ("name", "expression"), tuple(study.metrics.items())


def _listed(values: list[str]) -> str:
    """Returns values as text; of many, the first ones, the last one, and their number.

    >>> _listed([str(n) for n in range(1000)])[-25:]
    ' 18, …, 999 (1000 values)'
    """
    if len(values) <= _MOST_VALUES:
        return ", ".join(values)
    return f"{', '.join(values[: _MOST_VALUES - 1])}, …, {values[-1]} ({len(values)} values)"
