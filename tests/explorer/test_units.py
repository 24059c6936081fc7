"""The explorer accepts the units that studies accept."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests import requirements
from tests.explorer.units import TARGET, generated

from longfat.study.vocabulary import check, vocabulary

EXPLORER = TARGET.parents[1]
KEYS = {"rate": "rate", "delay": "duration", "loss": "proportion", "queue": "size", "size": "size"}


def test_the_units_of_the_explorer_are_up_to_date() -> None:
    assert TARGET.read_text(encoding="utf-8") == generated(), "run: make reference"


def test_every_unit_is_accepted_by_the_study_and_by_the_page(tmp_path: Path) -> None:
    bundler = EXPLORER / "node_modules" / ".bin" / "esbuild"
    if shutil.which("node") is None or not bundler.exists():
        requirements.skip("programs", "node, and the npm packages of explorer/build")
    script = tmp_path / "quantities.mjs"
    source = EXPLORER / "src" / "quantities.ts"
    subprocess.run(
        [bundler, source, "--bundle", "--format=esm", f"--outfile={script}"], check=True, timeout=60
    )
    units = vocabulary()["units"]
    asked = [
        (key, f"2{one['unit']}", 2 * one["scale"])
        for key, dimension in KEYS.items()
        for one in [*units[dimension], *(units["packets"] if key == "queue" else [])]
    ]
    assert len(asked) > 30
    code = "\n".join(
        [
            f"import {{ quantity }} from {json.dumps(str(script))};",
            f"const asked = {json.dumps(asked)};",
            "console.log(JSON.stringify(asked.map(([key, text]) => quantity(key, text))));",
            "try { quantity('rate', '3ms'); } catch (error) { console.log(error.message); }",
        ]
    )
    run = subprocess.run(
        ["node", "--input-type=module", "--eval", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    values, message = run.stdout.splitlines()
    assert json.loads(values) == pytest.approx([value for _, _, value in asked])
    assert message == 'rate: "3ms" is not a number with a unit (bit/s, kbit/s, Mbit/s, Gbit/s)'
    for key, text, _ in asked:
        if key in ("rate", "delay", "loss", "queue"):
            assert not check("path", {key: text}), text


def test_no_unit_is_declared_twice() -> None:
    for file in (EXPLORER / "src").glob("*.ts"):
        if file != TARGET:
            assert not re.search(r"\b(?:MiB|Gbit/s)\b.*\d", file.read_text(encoding="utf-8")), file
