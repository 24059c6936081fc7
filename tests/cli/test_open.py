"""`longfat open`: an index of runs, and reports."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli, Data


@pytest.fixture
def _runs(cli: Cli, write: Callable[..., Path], data: Data) -> None:
    for name in ("one", "two"):
        study = write(data | {"title": f"Study <{name}>", "repeats": 2}, f"{name}.toml")
        cli("run", study)


@pytest.mark.slow
@pytest.mark.usefixtures("_runs")
def test_the_index_links_all_reports(cli: Cli, tmp_path: Path) -> None:
    done = cli("open", "--no-browser")
    assert done.stdout == "runs/index.html\n"
    text = (tmp_path / "runs" / "index.html").read_text(encoding="utf-8")
    for name in ("one", "two"):
        assert f'href="{name}/report.html"' in text
        assert f"Study &lt;{name}&gt;" in text
    cli("run", "one.toml", "--out", "runs/three")
    assert text.count("<td>12</td>") == 2, "trials"
    assert 'class="holds"' in text or 'class="undecided"' in text


@pytest.mark.usefixtures("_runs")
def test_a_report_opens_by_the_name_of_its_study(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def remember(address: str, *_: Any) -> bool:
        opened.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", remember)
    assert cli("open", "one").stdout == "runs/one/report.html\n"
    assert opened[0].endswith("/runs/one/report.html")
    assert opened[0].startswith("file:///")


def test_mistakes_name_the_folder(cli: Cli) -> None:
    done = cli("open", "--no-browser", ok=False)
    assert done.returncode == 2
    assert "runs: no runs with a report" in done.stderr
    done = cli("open", "nothing", "--no-browser", ok=False)
    assert "nothing: no run here or in runs" in done.stderr
