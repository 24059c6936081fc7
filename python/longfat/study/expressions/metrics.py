"""Metrics that a study derives from others: `[metrics] unfairness = "goodput@s2 / goodput@s1"`.

Each trial has its own value, so derived metrics have intervals like measured ones. A trial in which an input
has no value, or a division by zero, has none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from longfat.study.expressions.dimension import DURATION, NUMBER, RATE, Dimension, ExpressionError
from longfat.study.expressions.evaluation import RELATIVE, ROOT, dimension, evaluate, quantity
from longfat.study.expressions.parsing import Call, Name, Node, Quantity, mapped, names, parse
from longfat.study.vocabulary import metrics, resolve_metric, short_metric, unit, whole_metric

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = {RATE: "_bps", DURATION: "_s", NUMBER: ""}
"""The ends of column names by the dimension of a metric."""
_UNITS = {"bit/s": RATE, "s": DURATION}
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_MOST_PARTS = 200
"""The largest number of parts of an expression after the metrics in it are replaced by theirs."""


@dataclass(frozen=True)
class DerivedMetric:
    """A metric of a study: its column in tables, its expression, and the columns that it is computed from."""

    column: str
    tree: Node
    inputs: tuple[str, ...]

    def added_to(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Returns a table of trials with the metric's column."""
        import polars as pl  # here, because commands that read no records load studies, too

        present = set(frame.columns)

        def leaf(one: Quantity | Name) -> pl.Expr:
            if isinstance(one, Quantity):
                return pl.lit(float(quantity(one.text, _fixed).number))
            return pl.col(one.text).cast(pl.Float64) if one.text in present else pl.lit(None, pl.Float64)

        return frame.with_columns(mapped(self.tree, leaf, _computed).alias(self.column))


def derived_metrics(texts: Mapping[str, str]) -> dict[str, DerivedMetric]:
    """Returns the metrics of a study by their names.

    Raises:
        ExpressionError: with the name and the reason.

    >>> derived_metrics({"unfairness": "goodput@s2 / goodput@s1"})["unfairness"].inputs
    ('goodput_bps@s2', 'goodput_bps@s1')
    >>> derived_metrics({"waiting": "rtt_p50 - rtt_min"})["waiting"].column
    'waiting_s'
    """
    return {name: _derived(name, texts) for name in texts}


def _derived(name: str, texts: Mapping[str, str]) -> DerivedMetric:
    try:
        return _checked(name, texts)
    except ExpressionError as error:
        raise ExpressionError(f'{name}: "{texts[name]}": {error}') from None


def _checked(name: str, texts: Mapping[str, str]) -> DerivedMetric:
    if not _NAME.fullmatch(name):
        raise ExpressionError("a name has lower-case letters, digits and _, a letter first")
    if name in metrics() or name in map(short_metric, metrics()):
        raise ExpressionError("is the name of a measured metric; choose another one")
    tree = _expanded(parse(texts[name]), texts, (name,))
    inputs = tuple(dict.fromkeys(names(tree)))
    if not inputs:
        raise ExpressionError("has no metric")
    found = mapped(tree, _dimension_of, dimension)
    _refuse_constant_mistakes(tree)
    if found not in SUFFIXES:
        raise ExpressionError(f"the result is a {found}: a metric is a rate, a duration or a number")
    return DerivedMetric(name + SUFFIXES[found], tree, inputs)


def _expanded(tree: Node, texts: Mapping[str, str], within: tuple[str, ...]) -> Node:
    """Returns a tree of columns: other metrics of the study are replaced by their expressions."""
    if isinstance(tree, Call):
        found = Call(tree.function, tuple(_expanded(one, texts, within) for one in tree.arguments))
        if _parts(found) > _MOST_PARTS:
            raise ExpressionError(
                f"has more than {_MOST_PARTS} parts, with those of the metrics that it names"
            )
        return found
    if isinstance(tree, Quantity):
        return tree
    if tree.text in within:
        raise ExpressionError(f"{' needs '.join((*within, tree.text))}: a cycle")
    if tree.text in texts:
        return _expanded(parse(texts[tree.text]), texts, (*within, tree.text))
    try:
        return Name(resolve_metric(tree.text))
    except ValueError as error:
        raise ExpressionError(str(error)) from None


def _refuse_constant_mistakes(tree: Node) -> None:
    """Raises ExpressionError for a part of numbers only without a value, and for a division by zero."""
    if not isinstance(tree, Call):
        return
    for argument in tree.arguments:
        _refuse_constant_mistakes(argument)
    constants = [one for one in tree.arguments if not any(names(one))]
    if len(constants) == len(tree.arguments):
        evaluate(tree, _fixed)
    elif (
        tree.function == "/"
        and constants == [tree.arguments[1]]
        and not evaluate(constants[0], _fixed).number
    ):
        raise ExpressionError("division by zero")


def _parts(tree: Node) -> int:
    return 1 + sum(map(_parts, tree.arguments)) if isinstance(tree, Call) else 1


def _dimension_of(one: Quantity | Name) -> Dimension:
    if isinstance(one, Quantity):
        return quantity(one.text, _fixed).dimension
    return _UNITS.get(unit(whole_metric(one.text)), NUMBER)


def _fixed(_name: str) -> NoReturn:
    """Refuses units of the path, which have another value in each cell."""
    raise ExpressionError(f"{' and '.join(RELATIVE)} are for keys, not for metrics")


def _computed(function: str, arguments: Sequence[pl.Expr]) -> pl.Expr:
    import polars as pl

    first, last = arguments[0], arguments[-1]
    operators: dict[str, Callable[[], pl.Expr]] = {
        "+": lambda: first + last,
        "-": lambda: first - last,
        "*": lambda: first * last,
        "/": lambda: pl.when(last != 0).then(first / last),
        "ceil": first.ceil,
        "floor": first.floor,
        "round": first.round,
        ROOT: lambda: pl.when(first >= 0).then(first.sqrt()),
        "min": lambda: _known(arguments, pl.min_horizontal(*arguments)),
        "max": lambda: _known(arguments, pl.max_horizontal(*arguments)),
    }
    return operators[function]()


def _known(arguments: Sequence[pl.Expr], value: pl.Expr) -> pl.Expr:
    import polars as pl

    return pl.when(pl.all_horizontal(one.is_not_null() for one in arguments)).then(value)
