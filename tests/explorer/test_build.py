"""`explorer/build` on machines that lack something, with programs that only record their calls."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.requirements import skip_unbuilt

SCRIPT = Path(__file__).parents[2] / "explorer" / "build"
TOOLS = ("sh", "dirname", "mkdir", "rm", "cut", "grep", "head", "touch", "cp", "realpath")


class Machine:
    """A folder with the script, and the only programs that it finds."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._bin = folder, folder / "bin"
        (folder / "explorer").mkdir()
        (folder / "Cargo.toml").write_text('[workspace.package]\nrust-version = "1.90"\n')
        shutil.copy(SCRIPT, folder / "explorer" / "build")
        self._bin.mkdir()
        for name in TOOLS:
            (self._bin / name).symlink_to(shutil.which(name) or name)

    def add(self, name: str, script: str, folder: str = "bin") -> None:
        (self.folder / folder).mkdir(exist_ok=True)
        file = self.folder / folder / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    def add_rust(
        self, *, installed: bool = False, sources: bool = False, version: str = "1.90.0", folder: str = "bin"
    ) -> None:
        """A compiler with the target WebAssembly, with the sources of its library, or without both.

        Its cargo records its call.
        """
        library, sysroot = self.folder / folder / "library", self.folder / folder / "sysroot"
        script = f'case "$*" in --version) echo "rustc {version} (a b)";; *sysroot) echo {sysroot};;'
        self.add("rustc", f"{script} *) echo {library};; esac", folder)
        linker = "$CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER"
        self.add("cargo", f'echo "{folder} $RUSTC_BOOTSTRAP {linker} $RUSTC $*" > cargo.log', folder)
        if installed:
            library.mkdir()
        if sources:
            (sysroot / "lib" / "rustlib" / "src" / "rust" / "library").mkdir(parents=True)

    def build(self, *options: str, first: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        """Runs the script with these folders first in PATH."""
        path = os.pathsep.join([*(str(self.folder / one) for one in first), str(self._bin)])
        environment = {"PATH": path, "CARGO_TARGET_DIR": str(self.folder / "target")}
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
    module = machine.folder / "target" / "wasm32-unknown-unknown"
    for profile in ("wasm-test", "web"):
        (module / profile).mkdir(parents=True)
        (module / profile / "explorer.wasm").touch()
    done = machine.build("--test")
    assert done.returncode == 0, done.stderr
    assert machine.reason == "npm ci failed: code ENOTFOUND\n"
    assert machine.build().returncode == 1


def test_debians_sources_of_the_standard_library_serve(machine: Machine) -> None:
    for name in ("node", "npm", "wasm-ld"):
        machine.add(name, "true")
    machine.add_rust(sources=True)
    machine.build("--test")
    called = (machine.folder / "cargo.log").read_text()
    assert called.startswith(f"bin 1 wasm-ld {machine.folder}/bin/rustc build ")
    assert called.endswith("-Z build-std=std,panic_abort\n")


@pytest.mark.parametrize(
    ("options", "profile"), [("--test", "wasm-test"), ("--test --release", "web"), ("", "web")]
)
def test_the_profile_depends_on_the_purpose(machine: Machine, options: str, profile: str) -> None:
    for name in ("node", "npm"):
        machine.add(name, "true")
    machine.add_rust(installed=True)
    machine.build(*options.split())
    assert f" --profile {profile} " in (machine.folder / "cargo.log").read_text()


@pytest.mark.parametrize(("options", "text"), [("--test", "committed"), ("", "built")])
def test_a_build_for_tests_keeps_the_committed_page(machine: Machine, options: str, text: str) -> None:
    machine.add("node", 'mkdir -p "$2" && echo built >"$2/index.html"')
    machine.add("npm", "true")
    machine.add_rust(installed=True)
    for profile in ("wasm-test", "web"):
        module = machine.folder / "target" / "wasm32-unknown-unknown" / profile / "explorer.wasm"
        module.parent.mkdir(parents=True)
        module.touch()
    page = machine.folder / "python" / "longfat" / "explorer" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text("committed\n")
    done = machine.build(*options.split())
    assert done.returncode == 0, done.stderr
    assert page.read_text() == f"{text}\n"


@pytest.mark.parametrize("order", [("rustup", "debian"), ("debian", "rustup")])
@pytest.mark.parametrize("able", ["rustup", "debian"])
def test_the_toolchain_with_the_target_serves_in_any_order(
    machine: Machine, order: tuple[str, str], able: str
) -> None:
    for name in ("node", "npm", "wasm-ld"):
        machine.add(name, "true")
    machine.add_rust(installed=able == "rustup", folder="rustup")
    machine.add_rust(sources=able == "debian", folder="debian")
    machine.build("--test", first=order)
    called = (machine.folder / "cargo.log").read_text()
    bootstrap, linker = ("1", "wasm-ld") if able == "debian" else ("", "")
    assert called.startswith(f"{able} {bootstrap} {linker} {machine.folder}/{able}/rustc build ")
    assert called.endswith("panic_abort\n") == (able == "debian")


def test_a_toolchain_that_is_too_old_is_passed_over(machine: Machine) -> None:
    for name in ("node", "npm"):
        machine.add(name, "true")
    machine.add_rust(installed=True, version="1.85.1", folder="debian")
    machine.add_rust(installed=True, folder="rustup")
    machine.build("--test", first=("debian", "rustup"))
    assert (machine.folder / "cargo.log").read_text().startswith("rustup ")


def test_the_page_of_the_package_is_current(node: str, tmp_path: Path) -> None:
    root = SCRIPT.parents[1]
    if not (root / "explorer" / "node_modules" / "esbuild").is_dir():
        skip_unbuilt("the packages of the page: make explorer installs them")
    command = [node, "build.mjs", str(tmp_path)]
    subprocess.run(command, cwd=root / "explorer", check=True, timeout=120)
    for name in ("index.html", "explorer.css", "explorer.js", "log.html", "log.js"):
        shipped = root / "python" / "longfat" / "explorer" / name
        assert shipped.read_bytes() == (tmp_path / name).read_bytes(), (
            "make explorer builds it; commit the result"
        )
