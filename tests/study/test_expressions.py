"""Expressions as values of keys: values, units, errors, and texts that are none."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import effort

import longfat as lf
from longfat.study import Overrides, StudyError, cells, load_study
from longfat.study.expressions.dimension import DURATION, SIZE, ExpressionError, Value
from longfat.study.expressions.evaluation import evaluate
from longfat.study.expressions.metrics import derived_metrics
from longfat.study.expressions.parsing import parse
from longfat.study.expressions.settings import SettingError, is_expression, resolved, value_in

Data = dict[str, Any]
SPEC: Data = {
    "path": {"rate": "10Mbit/s", "delay": "20ms"},
    "protocol": {"kind": "tcp", "congestion": "reno"},
    "workload": {"kind": "file", "size": "1MB"},
}


def value(text: str, **changes: Any) -> Any:
    """The value of an expression as the path's queue."""
    spec = {**SPEC, **changes}
    return resolved({**spec, "path": {**spec["path"], "queue": text}}).spec["path"]["queue"]


def study(**changes: Any) -> Data:
    sections = {key: SPEC[key] for key in ("path", "workload")}
    return {"title": "t", "repeats": 2, **sections, "protocols": ["reno"], **changes}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2BDP", "100000B"),
        ("0.5 * BDP", "25000B"),
        ("BDP + 10kB", "60000B"),
        ("max(1BDP, 64kB)", "64000B"),
        ("(workload.size - 400kB) / 4", "150000B"),
        ("path.rate * 1RTT", "50000B"),
        ("ceil(BDP / 1500B) * 1pkt", "34pkt"),
    ],
)
def test_values(text: str, expected: object) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10Mbit/s / 2", "5Mbit/s"),
        ("40ms / 3", "13.333333ms"),
        ("1 / 40ms", "25/s"),
        ("50% * 80%", "40%"),
        ("2 / 50%", 4),
        ("50kB / 25kB", 2),
        ("1 / 4", 0.25),
    ],
)
def test_values_are_written_with_the_unit_of_their_dimension(text: str, expected: object) -> None:
    assert evaluate(parse(text), dict[str, Value]().__getitem__).setting() == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1BDP + 1s", "size plus duration has no meaning"),
        ("1BDP / (2 - 2)", "division by zero"),
        ("BDP * BDP", "the result has the dimension bit^2, which no key takes"),
        ("path.queue * 2", "path.queue needs path.queue: a cycle"),
        ("path.rat * 1s", '"path.rat" is not set in this study; did you mean "path.rate"?'),
        ("protocol.congestion * 2", '"protocol.congestion" is "reno", which is not a quantity'),
        ("1BDP +", "is not an expression"),
        ("2BDP 3", "is not an expression"),
        ("2BDP ** 9", "is not an expression"),
        ("ceil(1BDP)", "ceil() takes a number, not a size: divide by a unit"),
        ("min() + 1BDP", "min() takes at least one argument"),
        ("2parsec + 1BDP", 'unknown unit "parsec"'),
        ("2BDPBDP + 1B", 'unknown unit "BDP"'),
        ("1BDP + [1]", '"[1]" cannot be read in an expression'),
        ("1BDP" + " + 1BDP" * 100, "an expression has at most 300 characters"),
        ("9999999999GB * 99999999999999999999", "the value is too large"),
    ],
)
def test_wrong_expressions_have_one_line(text: str, message: str) -> None:
    with pytest.raises(SettingError) as error:
        value(text)
    assert error.value.key == "path.queue"
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_path_that_depends_on_itself_is_refused() -> None:
    with pytest.raises(SettingError, match="depends on itself"):
        resolved({**SPEC, "path": {"rate": "10Mbit/s", "delay": "1RTT"}})


def test_a_path_that_depends_on_itself_is_found_at_any_point_of_a_sweep() -> None:
    swept = {"path.delay, path.queue": [["20ms", "1BDP"], ["1RTT", "1BDP"]]}
    with pytest.raises(StudyError, match=r'sweep."path.delay, path.queue": "1RTT": depends on itself'):
        load_study(study(sweep=swept))


def test_a_path_without_a_rate_has_no_bdp() -> None:
    with pytest.raises(SettingError, match="has no rate"):
        value("1BDP", path={"delay": "20ms"})


def test_rtt_and_bdp_are_those_of_the_measured_flow() -> None:
    link = {"rate": "100Mbit/s", "delay": "1ms"}
    topology = {
        "kind": "dumbbell",
        "bottleneck": {"rate": "10Mbit/s", "delay": "8ms", "queue": "1BDP"},
        "access": [link, link],
    }
    found = resolved({"topology": topology, "protocol": SPEC["protocol"], "workload": SPEC["workload"]})
    # Twice 1 + 8 ms at 10 Mbit/s.
    assert found.spec["topology"]["bottleneck"]["queue"] == "22500B"


def test_expressions_follow_sweeps_and_set() -> None:
    swept = load_study(
        study(path={**SPEC["path"], "queue": "1BDP"}, sweep={"path.rate": ["10Mbit/s", "20Mbit/s"]})
    )
    assert [cell.spec["path"]["queue"] for cell in cells(swept)] == ["50000B", "100000B"]
    several = load_study(study(sweep={"path.queue": ["1BDP", "2BDP"]}))
    assert [cell.params for cell in cells(several)] == [{"path.queue": "1BDP"}, {"path.queue": "2BDP"}]
    assert cells(several)[1].computed == {"path.queue": ("2BDP", "100000B")}
    slower = load_study(study(path={**SPEC["path"], "queue": "1BDP"}), Overrides((("path.delay", "40ms"),)))
    assert cells(slower)[0].spec["path"]["queue"] == "100000B"


def test_a_protocols_own_key_can_be_named() -> None:
    protocols = [{"name": "sr", "kind": "selective-repeat", "window": "ceil(BDP / 1400B)"}]
    found = load_study(
        study(protocols=protocols, path={**SPEC["path"], "queue": "protocols.sr.window * 2pkt"})
    )
    assert cells(found)[0].spec["protocol"]["window"] == 36
    assert cells(found)[0].spec["path"]["queue"] == "72pkt"


def test_errors_of_studies_name_file_line_and_key(tmp_path: Any) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(
        'title = "t"\nprotocols = ["reno"]\nworkload = { kind = "file", size = "1MB" }\n\n'
        '[path]\nrate = "10Mbit/s"\ndelay = "20ms"\nqueue = "1BDP + 1s"\n'
    )
    with pytest.raises(StudyError) as error:
        load_study(file)
    assert str(error.value) == f'{file}:8: path.queue: "1BDP + 1s": size plus duration has no meaning'


def test_values_out_of_range_name_their_expression() -> None:
    with pytest.raises(StudyError, match=r'path.queue: "0 \* BDP": "0B" is out of range'):
        load_study(study(path={**SPEC["path"], "queue": "0 * BDP"}))
    with pytest.raises(StudyError, match=r'path.queue: "0B" is out .* \(the value of "0 \* 1kB"\)'):
        load_study(study(path={**SPEC["path"], "queue": "0 * 1kB"}))


def test_keys_that_move_together() -> None:
    found = load_study(study(sweep={"path.rate, path.delay": [["10Mbit/s", "40ms"], ["1Gbit/s", "1ms"]]}))
    assert [cell.spec["path"] for cell in cells(found)] == [
        {"rate": "10Mbit/s", "delay": "40ms"},
        {"rate": "1Gbit/s", "delay": "1ms"},
    ]
    assert cells(found)[0].params == {"path.rate, path.delay": "10Mbit/s, 40ms"}
    assert cells(found)[1].value("path.delay") == "1ms"


@pytest.mark.parametrize(
    ("swept", "message"),
    [
        ({"path.rate, path.delay": ["10Mbit/s"]}, "2 keys need a list of as many values at each point"),
        ({"path.rate, path.dely": [["1Mbit/s", "1ms"]]}, "path.dely: unknown key"),
        ({"path.rate, path.rate": [["1Mbit/s", "1Mbit/s"]]}, '"path.rate" is swept twice'),
        ({"path.rate, path.delay": [["1Mbit/s", "1ms"]], "path.rate": ["2Mbit/s"]}, "is swept twice"),
        ({"path.rate, protocols.reno.mss": [["1Mbit/s", 500]]}, "is of one protocol"),
    ],
)
def test_wrong_keys_that_move_together_are_refused(swept: Data, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        load_study(study(sweep=swept))


def test_texts_for_python_classes_stay_what_they_are() -> None:
    spec = {**SPEC, "path": {**SPEC["path"], "queue": {"kind": "own.py:Own", "text": "1 / 0"}}}
    assert resolved(spec).spec == spec


def test_a_single_trial_takes_expressions() -> None:
    path = lf.Path(rate="10Mbit/s", delay="20ms", queue="1BDP")
    assert (
        lf.simulate("reno", path, "1MB").metrics
        == lf.simulate("reno", lf.Path(rate="10Mbit/s", delay="20ms", queue="50kB"), "1MB").metrics
    )


@pytest.mark.parametrize(
    "text", ["10Mbits/s", "1000/s", "5 pkt", "cubic", "a/b.csv", "x.py:Foo", "path.csv", ""]
)
def test_other_texts_stay_what_they_are(text: str) -> None:
    assert not is_expression(text)


PIECES = [
    "1",
    "2.5",
    "10kB",
    "20ms",
    "3BDP",
    "RTT",
    "path.rate",
    "workload.size",
    "min(",
    "ceil(",
    "80%",
    "8Mbit/s",
]
SIGNS = [
    " + ",
    " - ",
    " * ",
    " / ",
    "*",
    "/",
    ")",
    "(",
    ", ",
    "**",
    "//",
    "%",
    "@",
    ".",
    "\x00",
    "é",
    "lambda:",
    "[",
    " ",
]


def test_mutated_expressions_have_a_value_or_one_line() -> None:
    draw = random.Random(7)
    for _ in range(effort.cases(10_000)):
        text = "".join(
            draw.choice(PIECES if draw.random() < 0.5 else SIGNS) for _ in range(draw.randint(1, 12))
        )
        try:
            found = value(text)
        except SettingError as error:
            lines = str(error).splitlines()
        else:
            lines = [""]
            assert isinstance(found, str | int | float), text
        assert len(lines) == 1, text
        # The same texts as values of claims and as metrics.
        assert "\n" not in refusal(lambda text: value_in(SPEC, text), text)
        assert "\n" not in refusal(lambda text: derived_metrics({"x": text}), text)


def refusal(read: Callable[[str], Any], text: str) -> str:
    """Returns why a text is refused; empty if it is accepted."""
    try:
        read(text)
    except ExpressionError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("text", ["1BDP +\n 1s", "\t1BDP + \u20281s"])
def test_line_breaks_in_expressions_are_escaped(text: str) -> None:
    for changes in ({"path": {**SPEC["path"], "queue": text}}, {"metrics": {"u": f"goodput +\n {text}"}}):
        with pytest.raises(StudyError) as error:
            load_study(study(**changes))
        assert len(str(error.value).splitlines()) == 1


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with contextlib.suppress(ExpressionError):
        parse(text)


NUMBERS = st.fractions(min_value=-1000, max_value=1000, max_denominator=1000)


@given(NUMBERS, NUMBERS, st.sampled_from([SIZE, DURATION]))
def test_arithmetic_is_exact(a: Fraction, b: Fraction, dimension: Any) -> None:
    known = {"workload.a": Value(a, dimension), "workload.b": Value(b, dimension)}

    def of(text: str) -> Fraction:
        return evaluate(parse(text), known.__getitem__).number

    assert of("workload.a + workload.b") == a + b
    assert of("workload.a - workload.b * 2") == a - 2 * b
    assert of("-workload.a") == -a
    assert of("max(workload.a, workload.b) + min(workload.a, workload.b)") == a + b
    if b:
        assert of("workload.a / workload.b") == a / b


def test_square_roots_are_exact_or_have_twelve_decimals() -> None:
    assert value("100kB / sqrt(16)") == "25000B"
    assert value("10kB * sqrt(2)") == "14142B"
    for text, message in (("sqrt(1s)", "takes a number"), ("sqrt(1 - 2) * 1kB", "takes no negative number")):
        with pytest.raises(SettingError, match=message):
            value(text)
