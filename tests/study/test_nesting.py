"""Deep and long input is one line of error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli, only_lines

from longfat.study import StudyError, load_study, read_setting

LEVELS = [33, 900, 5000]


def test_a_deep_table_in_a_file(tmp_path: Path, cli: Cli) -> None:
    for levels in LEVELS:
        file = tmp_path / "deep.toml"
        file.write_text(f'title = "x"\npath = {"{a=" * levels}1{"}" * levels}\n', encoding="utf-8")
        done = cli("run", file, ok=False)
        assert done.returncode == 2
        only_lines(done.stderr, ["nested too deeply"])


def test_a_deep_list_in_a_header(tmp_path: Path, cli: Cli) -> None:
    file = tmp_path / "deep.toml"
    file.write_text(f"title = 'x'\n[{'.'.join('a' * 2000)}]\nb = 1\n", encoding="utf-8")
    only_lines(cli("run", file, ok=False).stderr, ["nested too deeply"])


def test_a_chain_of_studies(tmp_path: Path, cli: Cli) -> None:
    for number in range(400):
        deep = ".".join(f"k{number}" for _ in range(20))
        (tmp_path / f"{number}.toml").write_text(
            f'extends = "{number + 1}.toml"\n[path]\n{deep} = 1\n', encoding="utf-8"
        )
    done = cli("run", tmp_path / "0.toml", ok=False)
    assert done.returncode == 2
    only_lines(done.stderr, ["more than 32 studies extend each other"])


@pytest.mark.parametrize("levels", LEVELS)
def test_deep_tables_of_the_python_api(data: dict[str, Any], levels: int) -> None:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    data["path"]["rate"] = value
    with pytest.raises(StudyError, match="nested too deeply: at most 32"):
        load_study(data)


def test_a_table_that_contains_itself(data: dict[str, Any]) -> None:
    data["path"]["reverse"] = data["path"]
    with pytest.raises(StudyError, match="nested too deeply"):
        load_study(data)


@pytest.mark.parametrize("text", ["[" * 5000, "[" * 900 + "]" * 900, "{a=" * 100 + "1" + "}" * 100])
def test_deep_values_of_an_option(text: str) -> None:
    with pytest.raises(ValueError, match=r"--set: path\.rate: nested too deeply"):
        read_setting(f"path.rate={text}")


def test_a_name_longer_than_any_file(tmp_path: Path, cli: Cli) -> None:
    name = "x" * 5000
    done = cli("run", name, ok=False)
    only_lines(done.stderr, ["is neither a file nor a built-in study"])
    assert len(done.stderr) < 300
    study = tmp_path / "long.toml"
    study.write_text(f'extends = "{name}"\n', encoding="utf-8")
    done = cli("run", study, ok=False)
    only_lines(done.stderr, ["nor a built-in study"])
    assert len(done.stderr) < 500
    done = cli("run", "arq/loss", "--quick", "--out", name, ok=False)
    only_lines(done.stderr, ["File name too long"])
    assert len(done.stderr) < 300
