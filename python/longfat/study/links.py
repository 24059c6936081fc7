"""Links with metrics of their own: those that the metrics of a study name, such as `drops@uplink/1/2`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from longfat.study.vocabulary import link_of, short_metric

if TYPE_CHECKING:
    from longfat.study.specification import Study


def named_metrics(study: Study) -> Iterator[tuple[str, str]]:
    """Yields the measured metrics that a study names, with the key that does."""
    own = study.derived_metrics
    for name, metric in own.items():
        yield from ((f"metrics.{name}", short_metric(column)) for column in metric.inputs)
    columns = {one.column for one in own.values()}
    yield from (("show", name) for name in study.show if name not in columns)
    for claim in study.claims:
        if claim.metric not in own and claim.metric not in columns:
            yield f"claims[{claim.id}].metric", claim.metric


def requested_links(study: Study) -> list[str]:
    """Returns the links that the metrics of a study name, each once. They are part of its specifications.

    A study whose own metrics are wrong, which `loading` reports, has none.
    """
    try:
        return sorted({link for _, metric in named_metrics(study) if (link := link_of(metric))})
    except ValueError:
        return []
