"""Code snippets of packetdrill scripts: the part of Python that scripts use.

A snippet consists of assertions, assignments, expressions and calls of a few functions. Python runs it after
its syntax tree has been checked, so that a script can neither open files nor import modules.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

_ALLOWED = (
    ast.Assert,
    ast.Assign,
    ast.AugAssign,
    ast.BinOp,
    ast.BoolOp,
    ast.Call,
    ast.Compare,
    ast.Constant,
    ast.Expr,
    ast.IfExp,
    ast.Module,
    ast.Name,
    ast.Pass,
    ast.Tuple,
    ast.UnaryOp,
    ast.boolop,
    ast.cmpop,
    ast.expr_context,
    ast.operator,
    ast.unaryop,
)
_FUNCTIONS = {function.__name__: function for function in (abs, float, int, max, min, round, str)}

Failure = tuple[str | None, str]
"""A failed assertion and the values of its names; or None and what is not supported."""


class Snippets:
    """Runs the snippets of one script, which share their variables."""

    def __init__(self) -> None:
        self._variables: dict[str, object] = {}

    def __call__(self, code: str, values: Mapping[str, int]) -> tuple[list[str], Failure | None]:
        """Runs `code` with `values` defined; they hide variables of the same names.

        Returns the printed lines, and why the snippet stopped early, if it did.
        """
        printed: list[str] = []
        # Without blocks, indentation has no meaning.
        source = "\n".join(line.lstrip() for line in code.splitlines()) + "\n\n"
        names: dict[str, object] = {**self._variables, **values}

        def output(*items: object) -> None:
            printed.append(" ".join(map(str, items)))

        environment: dict[str, object] = {"__builtins__": {**_FUNCTIONS, "print": output}}
        try:
            for statement in _checked(source, names):
                if isinstance(statement, ast.Assert):
                    failure = _failed(statement, source, environment, names)
                    if failure is not None:
                        return printed, failure
                else:
                    module = ast.Module([statement], type_ignores=[])
                    exec(compile(module, "snippet", "exec"), environment, names)  # noqa: S102 - checked
        except _UnsupportedError as error:
            return printed, (None, str(error))
        except SyntaxError as error:
            return printed, (None, f"line {error.lineno} of the code snippet: {error.msg}")
        except (ArithmeticError, MemoryError, NameError, RecursionError, TypeError, ValueError) as error:
            return printed, (None, f"{str(error) or type(error).__name__} in code snippets")
        self._variables = {name: value for name, value in names.items() if name not in values}
        return printed, None


class _UnsupportedError(Exception):
    """Something outside of the supported part of Python."""


def _checked(source: str, names: Mapping[str, object]) -> list[ast.stmt]:
    """Returns the statements of `source`.

    Raises:
        _UnsupportedError: one contains something outside of the supported part of Python.
        SyntaxError: it is no Python.
    """
    tree = ast.parse(source)
    defined = set(names)
    for node in ast.walk(tree):
        match node:
            case ast.Attribute() | ast.Subscript():
                raise _UnsupportedError("attributes and items in code snippets")
            case ast.Call(func=ast.Name(id=name), keywords=[]) if name in (*_FUNCTIONS, "print"):
                defined.add(name)
            case ast.Call(func=ast.Name(id=name)):
                raise _UnsupportedError(f"the function {name}() in code snippets")
            case ast.Name(id=name, ctx=ast.Store()):
                defined.add(name)
            case ast.Name():
                pass
            case node if not isinstance(node, _ALLOWED):
                raise _UnsupportedError(f"`{type(node).__name__.lower()}` in code snippets")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in defined:
            raise _UnsupportedError(_missing(node.id, names))
    return tree.body


def _missing(name: str, names: Mapping[str, object]) -> str:
    if not name.startswith("tcpi_"):
        return f"the name `{name}` in code snippets"
    return f"the figure {name}" if "tcpi_state" in names else f"{name} without a connection"


def _failed(
    statement: ast.Assert, source: str, environment: dict[str, object], names: Mapping[str, object]
) -> Failure | None:
    """Evaluates an assertion; returns its source and what its names are, unless it holds."""

    def value(node: ast.expr) -> object:
        return eval(compile(ast.Expression(node), "snippet", "eval"), environment, dict(names))  # noqa: S307 - checked

    if value(statement.test):
        return None
    read = dict.fromkeys(node.id for node in ast.walk(statement.test) if isinstance(node, ast.Name))
    seen = ", ".join(f"{name} = {names[name]}" for name in read if name in names)
    message = f" ({value(statement.msg)})" if statement.msg else ""
    return source.splitlines()[statement.lineno - 1].strip(), f"{seen}{message}"
