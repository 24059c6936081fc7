"""`explorer/build` on machines that lack something, with programs that only record their calls."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "explorer" / "build"
TOOLS = ("sh", "dirname", "mkdir", "rm", "cut", "grep", "head", "touch", "cp", "realpath")


class Machine:
    """A folder with the script, and the only programs that it finds."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._bin = folder, folder / "bin"
        (folder / "explorer").mkdir()
        shutil.copy(SCRIPT, folder / "explorer" / "build")
        self._bin.mkdir()
        for name in TOOLS:
            (self._bin / name).symlink_to(shutil.which(name) or name)

    def add(self, name: str, script: str) -> None:
        file = self._bin / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    def add_rust(self, *, installed: bool) -> None:
        """A compiler whose target WebAssembly is installed or not, and a cargo that records its call."""
        library = self.folder / "library"
        if installed:
            library.mkdir()
        self.add("rustc", f'test "$2" = sysroot && echo {self.folder}/sysroot || echo {library}')
        linker = "$CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER"
        self.add("cargo", f'echo "$RUSTC_BOOTSTRAP {linker} $*" > cargo.log')

    def build(self, *options: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self._bin), "CARGO_TARGET_DIR": str(self.folder / "target")}
        script = self.folder / "explorer" / "build"
        return subprocess.run(
            [script, *options], env=environment, capture_output=True, text=True, timeout=60, check=False
        )

    @property
    def reason(self) -> str:
        return (self.folder / "target" / "explorer-missing").read_text()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_without_node_tests_are_skipped_and_a_build_fails(machine: Machine) -> None:
    assert machine.build("--test").returncode == 0
    assert "no node or npm" in machine.reason
    done = machine.build()
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "apt install nodejs npm" in done.stderr


def test_without_a_toolchain_tests_are_skipped(machine: Machine) -> None:
    for name in ("node", "npm"):
        machine.add(name, "true")
    assert machine.build("--test").returncode == 0
    assert "no Rust" in machine.reason
    machine.add_rust(installed=False)
    assert machine.build("--test").returncode == 0
    assert "rustup target add wasm32-unknown-unknown" in machine.reason
    done = machine.build()
    assert "works only with longfat explore" in done.stderr


@pytest.mark.parametrize("options", [[], ["--test"]])
def test_compile_errors_fail(machine: Machine, options: list[str]) -> None:
    for name in ("node", "npm"):
        machine.add(name, "true")
    machine.add_rust(installed=True)
    machine.add("cargo", "echo error >&2; exit 101")
    assert machine.build(*options).returncode == 101


def test_without_npm_packages_tests_are_skipped(machine: Machine) -> None:
    machine.add("node", "true")
    machine.add("npm", 'echo "npm error code ENOTFOUND"; exit 1')
    machine.add_rust(installed=True)
    module = machine.folder / "target" / "wasm32-unknown-unknown" / "release" / "explorer.wasm"
    module.parent.mkdir(parents=True)
    module.touch()
    done = machine.build("--test")
    assert done.returncode == 0, done.stderr
    assert machine.reason == "npm ci failed: code ENOTFOUND\n"
    assert machine.build().returncode == 1


def test_debians_sources_of_the_standard_library_serve(machine: Machine) -> None:
    for name in ("node", "npm", "wasm-ld"):
        machine.add(name, "true")
    machine.add_rust(installed=False)
    (machine.folder / "sysroot" / "lib" / "rustlib" / "src" / "rust" / "library").mkdir(parents=True)
    machine.build("--test")
    called = (machine.folder / "cargo.log").read_text()
    assert called.startswith("1 wasm-ld build ")
    assert called.endswith("-Z build-std=std,panic_abort\n")
    assert os.fspath(machine.folder) not in called
