"""Every study of docs/cookbook is shown on its page, loads and runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import in_process

from longfat.study import load_study

FOLDER = Path(__file__).parents[2] / "docs" / "cookbook"
STUDIES = sorted(FOLDER.glob("*.toml"))
SHORTER = {"bulk": ("workload.duration=12s", "workload.warm_up=4s"), "file": ("workload.size=50kB",)}


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_the_page_shows_the_study(file: Path) -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"]({file.name})" in page
    assert f"$ longfat run docs/cookbook/{file.name}\n" in page


@pytest.mark.slow
@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_the_study_runs(file: Path, tmp_path: Path) -> None:
    study = load_study(file)
    assert study.claims
    kind = study.workload["kind"]
    swept = {key.partition("=")[0] for key in study.sweep}
    changes = [change for change in SHORTER.get(kind, ()) if change.partition("=")[0] not in swept]
    options = [word for change in changes for word in ("--set", change)]
    done = in_process.run(tmp_path, ["run", str(file), "--quick", "--repeats", "2", *options])
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "Report: " in done.stdout
