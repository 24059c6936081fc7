"""Checks that claims and reported figures refer to protocols, metrics, worlds and keys of their study."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from longfat import _native
from longfat.study import selection, sweep, units
from longfat.study.claims import AGREES, Claim, more_is_better, value_of
from longfat.study.conditions import Condition, dimension
from longfat.study.expressions.dimension import ExpressionError
from longfat.study.expressions.settings import NetworkError, is_expression
from longfat.study.labels import is_class_of_flows
from longfat.study.links import named_metrics
from longfat.study.problems import Problem, show
from longfat.study.specification import Study
from longfat.study.vocabulary import (
    AT_HOST,
    allowed,
    canonical,
    link_of,
    resolve_metric,
    short_metric,
    unit,
)
from longfat.study.worlds import WORLDS

_LISTED_LINKS = 12
"""The largest number of links in a message."""


def claim_problems(study: Study) -> list[Problem]:
    """Returns the problems of claims and reported figures."""
    names = [entry.name for entry in study.protocols]
    found: list[Problem] = []
    ids = [claim.id for claim in study.claims]
    swept = sweep.selectable(study.sweep)
    for claim in study.claims:
        where = f"claims[{claim.id}]"
        if ids.count(claim.id) > 1:
            found.append(
                Problem(
                    f"{where}.id",
                    f'{ids.count(claim.id)} claims have the id "{claim.id}"; ids must be unique',
                )
            )
        for key in ("of", "against"):
            name = getattr(claim, key)
            if key == "against" and (claim.against_theory or claim.relation == AGREES):
                continue
            if name is not None and name not in names:
                hint = _ratio_of(study, claim) if key == "against" else ""
                message = hint or f'"{name}" is not a protocol of this study; {allowed(name, names)}'
                found.append(Problem(f"{where}.{key}", message))
        try:
            column = study.column(claim.metric)
        except ValueError as error:
            found.append(Problem(f"{where}.metric", str(error)))
        else:
            constants = [end for end in claim.ends if not is_expression(end)]
            found += _value_problems(where, claim.metric, column, constants)
        if claim.world is not None and claim.world not in WORLDS:
            found.append(
                Problem(f"{where}.world", f'"{claim.world}" is not a world; {allowed(claim.world, WORLDS)}')
            )
        if claim.along is not None and claim.along not in swept:
            found.append(
                Problem(f"{where}.along", f'"{claim.along}" is not swept; {allowed(claim.along, swept)}')
            )
        found += _best_problems(where, claim, names, swept)
        for name in ("where", "against_where"):
            found += _where_problems(study, f"{where}.{name}", getattr(claim, name))
    for i, reported in enumerate(study.reported, 1):
        if reported.protocol not in names:
            wrong = (
                f'"{reported.protocol}" is not a protocol of this study; {allowed(reported.protocol, names)}'
            )
            found.append(Problem(f"reported[{i}].protocol", wrong))
        found += _where_problems(study, f"reported[{i}].where", reported.where)
    found += _class_problems(study)
    found += _link_problems(study)
    return found or _host_problems(study) or selection.check(study) or _computed_value_problems(study)


_LEVELS = {"higher": "at-least", "not-lower": "at-least", "lower": "at-most", "not-higher": "at-most"}
"""The relation to 1 of the ratio of two metrics, by that of these metrics; `near` for the others."""


def _ratio_of(study: Study, claim: Claim) -> str:
    """Returns how to compare two metrics, such as those of two hosts; empty if `against` is no metric."""
    try:
        study.column(str(claim.against))
    except ValueError:
        return ""
    ratio = f"{claim.metric} / {claim.against}"
    relation = _LEVELS.get(claim.relation, "near")
    by = ', by = "5%"' if relation == "near" else ""
    return (
        f'"{claim.against}" is a metric, not a protocol; to compare two metrics, set '
        f'[metrics] ratio = "{ratio}", and claim metric = "ratio", relation = "{relation}", value = 1{by}'
    )


def _class_problems(study: Study) -> list[Problem]:
    """Returns metrics of size classes (`fct_mean@G0`) that no flow of this study is in."""
    if "workload.classes" in study.sweep:
        return []
    bounds = study.workload.get("classes")
    count = len(bounds) + 1 if isinstance(bounds, list) else 0
    found = []
    for key, metric in named_metrics(study):
        name = metric.partition(AT_HOST)[2]
        if link_of(metric) or not is_class_of_flows(name) or int(name[1:]) < count:
            continue
        known = f"allowed: @G0 to @G{count - 1}" if count else 'set workload.classes, e.g. ["100kB"]'
        found.append(Problem(key, f'"{metric}" is of a size class that this study does not have; {known}'))
    return found


def _host_problems(study: Study) -> list[Problem]:
    """Returns metrics of hosts (`goodput@s9`) that no cell of this study has."""
    wanted = [
        (key, name, resolve_metric(name))
        for key, name in named_metrics(study)
        if AT_HOST in name and not link_of(name) and not is_class_of_flows(name.partition(AT_HOST)[2])
    ]
    if not wanted:
        return []
    columns: dict[str, None] = {}
    for text in dict.fromkeys(canonical({**cell.spec, "seed": study.seed}) for cell in sweep.cells(study)):
        try:
            columns |= dict.fromkeys(json.loads(_native.host_metrics(text)))
        except ValueError:
            # The check of the sections, or of each trial, reports its mistakes.
            return []
    known = list(map(short_metric, columns))
    return [
        Problem(
            key,
            f'"{name}" is of a host or traffic that this study does not have; '
            + (allowed(name, known) if known else "2 to 16 hosts must send"),
        )
        for key, name, column in wanted
        if column not in columns
    ]


def _link_problems(study: Study) -> list[Problem]:
    """Returns metrics of links (`drops@uplink/1/9`) that a cell of this study does not have."""
    wanted = [(key, metric, link) for key, metric in named_metrics(study) if (link := link_of(metric))]
    found: list[Problem] = []
    networks: set[str] = set()
    for cell in sweep.cells(study) if wanted else ():
        network = canonical({**cell.spec, "seed": study.seed, "links": []})
        if network in networks:
            continue
        networks.add(network)
        try:
            known: list[str] = json.loads(_native.links(network))
        except ValueError:
            # The check of the sections, or of each trial, reports its mistakes.
            return []
        for key, metric, link in wanted:
            if link not in known and not any(problem.key == key for problem in found):
                found.append(Problem(key, _unknown_link(metric, link, known)))
    return found


def _unknown_link(metric: str, link: str, known: list[str]) -> str:
    if not known:
        return f'"{metric}" is of a link, and this network has none'
    listed = allowed(link, known)
    if len(known) > _LISTED_LINKS:
        hint = listed.partition("allowed: ")[0]
        listed = f"{hint}allowed: {', '.join(known[:_LISTED_LINKS])}, …"
    return f'"{metric}" is of a link that this study does not have; {listed}'


def _best_problems(
    where: str, claim: Claim, names: Sequence[str], swept: Mapping[str, Any]
) -> Iterator[Problem]:
    """Yields the problems of a claim about the best of a group: rivals, and a metric without a direction."""
    if isinstance(claim.among, str) and claim.among not in swept:
        hint = f'; for protocols, write among = ["{claim.among}"]' if claim.among in names else ""
        message = f'"{claim.among}" is not swept; {allowed(claim.among, swept)}{hint}'
        yield Problem(f"{where}.among", message)
    elif isinstance(claim.among, list):
        for name in claim.among:
            if name not in names:
                message = f'"{name}" is not a protocol of this study; {allowed(name, names)}'
                yield Problem(f"{where}.among", message)
    if claim.relation == "best" and more_is_better(claim.metric) is None:
        message = f'"{claim.metric}" is computed, and has no better direction; use "highest" or "lowest"'
        yield Problem(f"{where}.relation", message)


_DIMENSIONS = {"bit/s": ("rate",), "s": ("duration",), "B": ("size",)}
"""The dimensions of values by the metric's unit. Metrics without a unit take dimensionless values."""


def _value_problems(
    where: str, metric: str, column: str, values: Sequence[str | float], written: str = ""
) -> list[Problem]:
    """Returns a problem if a claim's value has another dimension than its metric, or a range descends."""
    of_metric = unit(column)
    allowed_kinds = _DIMENSIONS.get(of_metric, ("number", "proportion", "packets"))
    for value in values:
        found = units.parse(value).dimension
        if found not in allowed_kinds:
            given = f"{metric} is given {f'in {of_metric}' if of_metric else 'as a number'}"
            return [Problem(f"{where}.value", f"{written or show(value)} is a {found}: {given}")]
    if len(values) > 1 and units.parse(values[0]).value > units.parse(values[1]).value:
        ends = f"{values[0]} is above {values[1]}"
        return [Problem(f"{where}.value", f"{f'{written}: ' if written else ''}{ends}: a range ascends")]
    return []


def _computed_value_problems(study: Study) -> list[Problem]:
    """Returns the problems of claims whose value is an expression, in the cells that they are about."""
    found = []
    for claim in study.claims:
        if not any(map(is_expression, claim.ends)):
            continue
        where = f"claims[{claim.id}]"
        worlds = selection.claim_worlds(claim, study.worlds)
        for pair in selection.pairings(claim, worlds[0], sweep.cells(study)):
            try:
                values = [value_of(end, pair.of) for end in claim.ends]
            except NetworkError:
                break  # The check of the sections reports its mistakes.
            except ExpressionError as error:
                wrong = [Problem(f"{where}.value", f"{show(claim.value)}: {error}")]
            else:
                column = study.column(claim.metric)
                wrong = _value_problems(where, claim.metric, column, values, show(claim.value))
            if wrong:
                found += wrong
                break
    return found


def _where_problems(study: Study, where: str, conditions: Mapping[str, str | int]) -> list[Problem]:
    found = []
    swept = sweep.selectable(study.sweep)
    for key, condition in conditions.items():
        values = swept[key] if key in swept else _values_in_cells(study, key)
        if not values:
            known = allowed(key, swept) if swept else "this study sweeps nothing"
            found.append(Problem(where, f'"{key}" is neither swept nor set; {known}'))
        elif wrong := _incomparable(values, key, condition):
            found.append(Problem(where, wrong))
    return found


def _values_in_cells(study: Study, key: str) -> list[Any]:
    """Returns the values of a key that is not swept: set once, following from others, or inside a table."""
    found = (cell.value(key) for cell in sweep.cells(study))
    return list({canonical(value): value for value in found if value is not None}.values())


def _incomparable(values: Sequence[Any], key: str, condition: str | int) -> str:
    """Returns why a condition cannot be compared with the values of a key; empty if it can."""
    try:
        found = Condition.parse(condition).incomparable(values)
    except ValueError as error:
        return f"{key}: {error}"
    if found is None:
        return ""
    operand, value = found
    kinds = [dimension(one) for one in found]
    return f"{show(operand)} is a {kinds[0]}, but {key} has {show(value)}, a {kinds[1]}: use the same unit"
