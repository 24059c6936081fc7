"""The notebooks of docs/notebooks run, and are stored without outputs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient
from tests import requirements
from tests.offline import fetched

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
NEEDS_LINUX = ("measured-path",)
TIMEOUT_S = 300


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KernelManager]:
    """A kernel that is registered for the tests only; all notebooks share its imports."""
    folder = tmp_path_factory.mktemp("jupyter")
    specification = folder / "data" / "kernels" / "python3"
    specification.mkdir(parents=True)
    command = [sys.executable, "-P", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (specification / "kernel.json").write_text(
        json.dumps({"argv": command, "display_name": "Python 3", "language": "python"}), encoding="utf-8"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_DATA_DIR", str(folder / "data"))
        patch.setenv("IPYTHONDIR", str(folder / "ipython"))
        manager = KernelManager(kernel_name="python3")
        manager.start_kernel()
        yield manager
        manager.shutdown_kernel(now=True)


@pytest.mark.slow
@pytest.mark.xdist_group("notebooks")
@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_notebook_runs(file: Path, tmp_path: Path, kernel: KernelManager) -> None:
    if file.stem in NEEDS_LINUX and sys.platform != "linux":
        requirements.skip("programs", "measurements need Linux")
    notebook: Any = nbformat.reads(file.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]
    begin = f"%reset -f\nimport os\nos.chdir({str(tmp_path)!r})\ndel os"
    notebook.cells.insert(0, nbformat.v4.new_code_cell(begin))  # type: ignore[no-untyped-call]
    client = NotebookClient(notebook, km=kernel, timeout=TIMEOUT_S)
    try:
        done = client.execute()
    finally:
        if client.kc is not None:
            client.kc.stop_channels()
    shown = [output for cell in done.cells for output in cell.get("outputs", ())]
    assert any("text/html" in output.get("data", {}) for output in shown)
    assert not [output for output in shown if output["output_type"] == "error"]
    data = [text for output in shown for text in output.get("data", {}).values()]
    assert [found for text in data for found in fetched(str(text))] == []


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_the_notebook_is_stored_without_outputs(file: Path) -> None:
    notebook: Any = nbformat.reads(file.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)


@pytest.mark.parametrize(
    ("checker", "options"),
    [
        pytest.param("mypy", ["--strict", "--no-error-summary"], marks=pytest.mark.minutes),
        pytest.param("pyright", [f"--pythonpath={sys.executable}"], marks=pytest.mark.slow),
    ],
)
def test_the_code_passes_type_checks(checker: str, options: list[str], tmp_path: Path) -> None:
    for file in NOTEBOOKS:
        notebook: Any = nbformat.reads(file.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]
        code = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
        (tmp_path / f"{file.stem.replace('-', '_')}.py").write_text(code + "\n", encoding="utf-8")
    command = [sys.executable, "-m", checker, *options, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout
