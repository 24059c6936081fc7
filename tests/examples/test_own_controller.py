"""The example of a Rust package outside of the workspace compiles and runs."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "examples" / "own-controller"


@pytest.mark.slow
@pytest.mark.timeout(1800)  # cargo waits for the build of Rust's test programs
def test_package_outside_of_the_workspace_compares_its_controller_with_reno() -> None:
    # Dependencies have the profile and folder of the Rust tests: they are compiled once. Cargo compiles the
    # crates of the project again for another workspace, which takes less time without optimisation.
    crates = [name for name, _ in locked(PACKAGE) if name.startswith("longfat-")]
    options = [f"--config=profile.dev.package.{name}.opt-level=0" for name in crates]
    command = ["cargo", "run", "--quiet", "--locked", "--offline", *options]
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    ran = subprocess.run(
        [*command, "--manifest-path", str(PACKAGE / "Cargo.toml")],
        env={**os.environ, "CARGO_TARGET_DIR": target},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout in (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    lines = re.findall(r"^(.*): ([\d.]+) Mbit/s$", ran.stdout, re.MULTILINE)
    rates = {name: float(rate) for name, rate in lines}
    assert rates['{"keep":0.8,"kind":"own:aimd"}'] > rates['"own:aimd"'] > 0.8 * rates['"reno"']


def test_package_has_the_profile_and_versions_of_the_workspace() -> None:
    ours, theirs = (tomllib.loads((folder / "Cargo.toml").read_text()) for folder in (PACKAGE, ROOT))
    assert ours["profile"]["dev"] == {
        key: value for key, value in theirs["profile"]["dev"].items() if not isinstance(value, dict)
    }
    assert locked(PACKAGE) - locked(ROOT) == {("own-controller", "0.1.0")}


def locked(folder: Path) -> set[tuple[str, str]]:
    """Returns names and versions of the packages in a Cargo.lock."""
    found = tomllib.loads((folder / "Cargo.lock").read_text())["package"]
    return {(package["name"], package["version"]) for package in found}
