"""Reads expressions: numbers with units, names, + - * /, parentheses and a few functions.

Python's parser reads them after quantities and names, whose form it does not know, have been replaced. Its
tree is reduced to the nodes here; nothing else is accepted, and nothing is executed as Python.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from longfat.study.expressions.dimension import ExpressionError
from longfat.study.vocabulary import link_metrics

LONGEST = 300
"""The largest number of characters of an expression."""
FUNCTIONS = {"min": 0, "max": 0, "ceil": 1, "floor": 1, "round": 1, "sqrt": 1}
"""The functions, and their number of arguments; 0: at least one."""
_TOKEN = re.compile(
    r"\s*(?:(?P<quantity>\d+(?:\.\d+)?\s?(?:[A-Za-z%µμ][A-Za-z%µμ]*(?:/s)?|/s)?)(?![\w.])"
    r"|(?P<name>[A-Za-z_][\w-]*(?:[.@][\w-]+)*)|(?P<sign>[-+*/(),]))"
)
_LINK = re.compile(r"\s*(?P<metric>[A-Za-z_]\w*)@\w(?:[\w./-]*\w)?")
"""A metric of a link, whose name may contain slashes."""
_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


@dataclass(frozen=True)
class Quantity:
    """A number with or without a unit, as written."""

    text: str


@dataclass(frozen=True)
class Name:
    """The name of a key or a metric."""

    text: str


@dataclass(frozen=True)
class Call:
    """An operator or a function and its arguments."""

    function: str
    arguments: tuple[Node, ...]


Node = Quantity | Name | Call
T = TypeVar("T")


@functools.lru_cache(maxsize=1024)
def parse(text: str) -> Node:
    """Returns the tree of an expression.

    Raises:
        ExpressionError: for a text that is not one.

    >>> parse("1MB / topology.leaves")
    Call(function='/', arguments=(Quantity(text='1MB'), Name(text='topology.leaves')))

    The name of a link contains slashes, so spaces separate it from a division.

    >>> parse("drops@uplink/1/2 / packets_sent").arguments
    (Name(text='drops@uplink/1/2'), Name(text='packets_sent'))
    """
    if len(text) > LONGEST:
        raise ExpressionError(f"an expression has at most {LONGEST} characters")
    leaves: list[Node] = []
    source = ""
    position = 0
    while text[position:].strip():
        link = _LINK.match(text, position)
        if link is not None and link["metric"] in link_metrics():
            position = link.end()
            leaves.append(Name(link[0].strip()))
            source += f" _{len(leaves) - 1} "
            continue
        token = _TOKEN.match(text, position)
        if token is None:
            raise ExpressionError(f'"{text[position:].strip()[:20]}" cannot be read in an expression')
        position = token.end()
        quantity, name, sign = token["quantity"], token["name"], token["sign"]
        if sign or name in FUNCTIONS:
            source += sign or name
            continue
        leaves.append(Quantity(quantity) if quantity else Name(name))
        # Spaces keep "2 3" two numbers, which is no expression.
        source += f" _{len(leaves) - 1} "
    try:
        tree = ast.parse(source.strip(), mode="eval")
        return _node(tree.body, leaves)
    except (SyntaxError, RecursionError, MemoryError):
        raise ExpressionError(
            "is not an expression: write numbers with units, names, + - * /, parentheses, "
            f"{', '.join(FUNCTIONS)}"
        ) from None


def _node(tree: ast.expr, leaves: list[Node]) -> Node:
    match tree:
        case ast.Name(id=name) if name.startswith("_"):
            return leaves[int(name[1:])]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return Call(_OPERATORS[type(op)], (_node(left, leaves), _node(right, leaves)))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return Call("*", (Quantity("-1"), _node(operand, leaves)))
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _node(operand, leaves)
        case ast.Call(func=ast.Name(id=function), args=arguments, keywords=[]) if function in FUNCTIONS:
            wanted = FUNCTIONS[function]
            if not arguments or (wanted and len(arguments) != wanted):
                raise ExpressionError(f"{function}() takes {wanted or 'at least one'} argument")
            return Call(function, tuple(_node(one, leaves) for one in arguments))
    raise SyntaxError


def names(node: Node) -> Iterator[str]:
    """Yields the names of an expression."""
    if isinstance(node, Name):
        yield node.text
    elif isinstance(node, Call):
        for argument in node.arguments:
            yield from names(argument)


def mapped(node: Node, leaf: Callable[[Quantity | Name], T], call: Callable[[str, list[T]], T]) -> T:
    """Returns the value of a tree: `leaf` gives those of quantities and names, `call` those of operators."""
    if isinstance(node, Call):
        return call(node.function, [mapped(argument, leaf, call) for argument in node.arguments])
    return leaf(node)
