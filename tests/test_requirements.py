"""`LONGFAT_REQUIRE` turns skips of tests with requirements into failures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import requirements

ROOT = Path(__file__).parents[1]


def test_without_the_variable_a_test_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(requirements.REQUIRED, raising=False)
    with pytest.raises(pytest.skip.Exception, match="tun: no device"):
        requirements.skip("tun", "no device")


@pytest.mark.parametrize("value", ["tun", "netns, tun", "all"])
def test_a_requirement_turns_the_skip_into_a_failure(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(requirements.REQUIRED, value)
    with pytest.raises(pytest.fail.Exception, match="LONGFAT_REQUIRE has tun, but: no device"):
        requirements.skip("tun", "no device")


def test_an_unknown_requirement_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(requirements.REQUIRED, "netns,tunn")
    with pytest.raises(pytest.UsageError, match="unknown requirement tunn; known: all, netns"):
        requirements.required()


def test_rust_has_the_same_requirements() -> None:
    source = (ROOT / "crates/testing/src/skip.rs").read_text(encoding="utf-8")
    assert set(re.findall(r'Self::\w+ => "(\w+)"', source)) == set(requirements.NAMES)


def test_continuous_integration_requires_all_of_them() -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    (value,) = re.findall(r"LONGFAT_REQUIRE=(\S+)", script)
    assert set(value.split(",")) == set(requirements.NAMES)


def test_every_skip_names_its_requirement() -> None:
    """Skip marks may depend on the operating system only."""
    for path in (ROOT / "tests").rglob("*.py"):
        if path.name in ("requirements.py", Path(__file__).name):
            continue
        text = path.read_text(encoding="utf-8")
        assert "pytest.skip(" not in text, path
        for condition in re.findall(r"skipif\(\s*(.*?)[,)]", text):
            assert condition.startswith("sys.platform "), f"{path}: {condition}"
