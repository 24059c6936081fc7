"""Modules of the explorer's page in node."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests import requirements

EXPLORER = Path(__file__).parents[2] / "explorer"


def run(tmp_path: Path, module: str, code: str, *, before: str = "") -> Any:
    """Runs code with the exports of a module of explorer/src as `module`, and returns what it prints as JSON.

    `before` runs before the module.
    """
    bundler = EXPLORER / "node_modules" / ".bin" / "esbuild"
    node = shutil.which("node")
    if node is None or not bundler.exists():
        requirements.skip("programs", "node, and the npm packages of explorer/build")
    script = tmp_path / f"{Path(module).name}.mjs"
    source = EXPLORER / "src" / f"{module}.ts"
    bundle: list[str | Path] = [
        bundler,
        source,
        "--bundle",
        "--format=esm",
        "--log-level=warning",
        f"--outfile={script}",
    ]
    subprocess.run(bundle, check=True, timeout=60)
    program = f"{before}const module = await import({json.dumps(str(script))});\n{code}"
    done = subprocess.run(
        [node, "--input-type=module", "--eval", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
