"""Code snippets of packetdrill scripts."""

from __future__ import annotations

import pytest

from longfat.api.snippets import Snippets

VALUES = {"tcpi_state": 1, "tcpi_snd_cwnd": 10}


@pytest.mark.parametrize(
    "code",
    [
        " assert 2 ** 3 ** 2 == 512 and -2 ** 2 == -4 and -7 // 2 == -4 and 7 / 2 == 3.5",
        "assert 1 < 2 <= 2 != 3 and not 1 > 2 and (1 if tcpi_snd_cwnd == 10 else 2) == 1",
        "assert min(3, 1, 2) == 1 and max(1, 2.5) == 2.5 and abs(-3) == 3 and int(2.9) == 2; pass",
        "a = 1\n    a += 1\n  assert (a,\n    'b') == (2, 'b')",
    ],
)
def test_evaluates_python(code: str) -> None:
    assert Snippets()(code, VALUES) == ([], None)


def test_a_failed_assertion_reports_its_names_and_message() -> None:
    code = "\nx = 3\nassert tcpi_snd_cwnd == x + 8, 'cwnd=%d of %s' % (tcpi_snd_cwnd, x)"
    expected = "assert tcpi_snd_cwnd == x + 8, 'cwnd=%d of %s' % (tcpi_snd_cwnd, x)"
    assert Snippets()(code, VALUES) == ([], (expected, "tcpi_snd_cwnd = 10, x = 3 (cwnd=10 of 3)"))


def test_variables_persist_and_output_is_returned() -> None:
    run = Snippets()
    assert run("cwnd = tcpi_snd_cwnd; cwnd += 1", VALUES) == ([], None)
    assert run("print(cwnd, 'x')  # comment\nassert cwnd == 11", VALUES) == (["11 x"], None)


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("import os", "`import` in code snippets"),
        ("().__class__", "attributes and items in code snippets"),
        ("open('x')", "the function open() in code snippets"),
        ("(lambda: 1)()", "`lambda` in code snippets"),
        ("assert nothing == 1", "the name `nothing` in code snippets"),
        ("assert tcpi_unknown == 1", "the figure tcpi_unknown"),
        ("x = ", "line 1 of the code snippet: invalid syntax"),
        ("1 // 0", "integer division or modulo by zero in code snippets"),
    ],
)
def test_unsupported_code_is_named(code: str, what: str) -> None:
    printed, failure = Snippets()(code, VALUES)
    assert (printed, failure) == ([], (None, what))


def test_figures_need_a_connection() -> None:
    assert Snippets()("tcpi_rtt", {"TCP_CLOSE": 7})[1] == (None, "tcpi_rtt without a connection")
