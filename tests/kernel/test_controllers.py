"""Selection of kernel controllers, and the errors without one."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import requirements

from longfat.kernel import build, controllers
from longfat.kernel.controllers import ControllerUnavailableError, available, ensure, listed

Offer = Callable[..., None]


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Offer:
    """Simulates a kernel that offers these controllers with these module parameters."""

    def _offer(names: str, **parameters: int) -> None:
        (tmp_path / "available").write_text(names + "\n")
        monkeypatch.setattr(controllers, "AVAILABLE", tmp_path / "available")
        for key, value in parameters.items():
            controller = "dctcp" if key.startswith("dctcp_") else "vegas"
            folder = tmp_path / "module" / f"tcp_{controller}" / "parameters"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / key).write_text(f"{value}\n")
        monkeypatch.setattr(controllers, "MODULES", tmp_path / "module")

    return _offer


def test_the_kernel_has_reno() -> None:
    assert "reno" in listed()
    with ensure("reno") as controller:
        assert (controller.kernel_name, controller.source, controller.holder) == ("reno", "kernel", None)
        controller.verify()


def test_prefers_the_kernels_controller(offer: Offer) -> None:
    offer("reno vegas", alpha=2, beta=4, gamma=1)
    with ensure("vegas") as controller:
        assert (controller.kernel_name, controller.source) == ("vegas", "kernel")
    assert available("vegas", {"beta": 4}).ok


def test_rejects_the_kernels_controller_with_other_parameters(offer: Offer) -> None:
    offer("reno vegas", alpha=3, beta=4, gamma=1)
    state = available("vegas", source="kernel")
    assert not state.ok
    assert state.reason == "this kernel's vegas has alpha = 3 instead of 2"
    assert available("vegas", {"alpha": 3}, source="kernel").ok


def test_compares_the_parameters_of_the_kernels_dctcp(offer: Offer) -> None:
    offer("reno dctcp", dctcp_shift_g=4, dctcp_alpha_on_init=0)
    state = available("dctcp", source="kernel")
    assert state.reason == "this kernel's dctcp has alpha_on_init = 0 instead of 1024"
    assert available("dctcp", {"alpha_on_init": 0}, source="kernel").ok


def test_never_substitutes_a_controller(offer: Offer) -> None:
    offer("reno cubic")
    with (
        pytest.raises(ControllerUnavailableError, match="illinois: this kernel has no illinois; there is no"),
        ensure("illinois"),
    ):
        pass
    with (
        pytest.raises(ControllerUnavailableError, match="vegas: this kernel has no vegas"),
        ensure("vegas", source="kernel"),
    ):
        pass


def test_names_an_unloaded_module(offer: Offer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    offer("reno")
    monkeypatch.setattr(controllers, "_has_module", lambda name: name == "illinois")
    assert available("illinois", source="kernel").remedy == "modprobe tcp_illinois"


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"delta": 1}, "vegas has no parameter delta: allowed: alpha, beta, gamma"),
        ({"alpha": -1}, "alpha = -1 is out of range: 0 to 10000 packets"),
        ({"gamma": 10_001}, "gamma = 10001 is out of range: 0 to 10000 packets"),
        ({"alpha": 5}, "beta = 4 is too small: at least alpha \\(5\\)"),
    ],
)
def test_parameters_are_checked(parameters: dict[str, int], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        available("vegas", parameters)
    with pytest.raises(ValueError, match=problem), ensure("vegas", parameters):
        pass


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"gain": 1}, "dctcp has no parameter gain: allowed: shift_g, alpha_on_init"),
        ({"shift_g": 11}, "shift_g = 11 is out of range: 0 to 10 bits"),
        ({"alpha_on_init": 1025}, "alpha_on_init = 1025 is out of range: 0 to 1024 units of 1/1024"),
    ],
)
def test_parameters_of_dctcp_are_checked(parameters: dict[str, int], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        available("dctcp", parameters)


def test_controllers_of_the_kernel_take_no_parameters() -> None:
    with pytest.raises(ValueError, match="cubic has no parameter beta: it has none"):
        available("cubic", {"beta": 1})


@pytest.mark.parametrize("release", ["6.3.9-amd64", "5.15.0", "strange"])
def test_refuses_old_kernels(monkeypatch: pytest.MonkeyPatch, release: str) -> None:
    monkeypatch.setattr(platform, "release", lambda: release)
    state = available("vegas", source="bpf")
    assert not state.ok
    assert state.reason == f"loading a controller requires Linux 6.4 or newer, this is {release}"


def test_names_missing_type_information(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(platform, "release", lambda: "6.18.0")
    monkeypatch.setattr(build, "KERNEL_TYPES", tmp_path / "vmlinux")
    state = available("vegas", source="bpf")
    assert not state.ok
    assert str(tmp_path / "vmlinux") in state.reason
    assert "CONFIG_DEBUG_INFO_BTF" in state.remedy


def test_names_missing_privileges(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    status = tmp_path / "status"
    monkeypatch.setattr(controllers, "STATUS", status)
    monkeypatch.setattr(controllers, "_kernel_obstacle", lambda: None)
    status.write_text("Name:\tpython\nCapEff:\t0000000000000000\n")
    assert "requires CAP_PERFMON and CAP_BPF" in available("vegas", source="bpf").reason
    status.write_text(f"CapEff:\t{1 << 38:016x}\n")
    assert "requires CAP_BPF" in available("vegas", source="bpf").reason
    status.write_text(f"CapEff:\t{1 << 21:016x}\n")  # CAP_SYS_ADMIN holds both
    monkeypatch.setattr(controllers, "_FIRST_USER_NAMESPACE", 1)
    assert "outside of this user namespace" in available("vegas", source="bpf").reason


@pytest.fixture
def _kernel_types() -> None:
    if not build.KERNEL_TYPES.exists():
        requirements.skip("bpf", f"this kernel does not export its types: {build.KERNEL_TYPES} is missing")


@pytest.mark.usefixtures("_kernel_types")
def test_missing_tools_are_named_with_their_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(build, "_HEADERS", {"no/such/header.h": "libbpf-dev"})
    with pytest.raises(build.BuildError, match=r"clang, cc and no/such/header\.h are missing") as caught:
        build.built()
    assert caught.value.remedy == "apt install clang gcc libbpf-dev (Debian, Ubuntu)"


@pytest.mark.usefixtures("_kernel_types")
def test_refuses_a_cache_writable_by_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "longfat" / "bpf"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    with pytest.raises(build.BuildError, match="other users may write to it"):
        build.built()


@pytest.mark.usefixtures("_bpf")
def test_a_controller_is_compiled_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = build.built()
    assert {path.name for path in folder.iterdir()} == {"holder", "dctcp.o", "reno.o", "vegas.o"}
    assert [path.name for path in folder.parent.iterdir()] == [folder.name], "nothing else is left"
    monkeypatch.setattr(build, "_compile", lambda _: pytest.fail("compiled again"))
    assert build.built() == folder
    # Another kernel has a separate cache entry.
    monkeypatch.setattr(platform, "release", lambda: "99.9")
    with pytest.raises(pytest.fail.Exception):
        build.built()


@pytest.mark.usefixtures("_bpf")
def test_reports_compiler_errors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sources = tmp_path / "bpf"
    shutil.copytree(build.SOURCES, sources)
    (sources / "reno.bpf.c").write_text("this is no C\n")
    monkeypatch.setattr(build, "SOURCES", sources)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    state = available("reno", source="bpf")
    assert not state.ok
    assert state.reason.startswith("clang fails: ")
    assert "reno.bpf.c:1" in state.reason


@pytest.mark.usefixtures("_bpf")
@pytest.mark.parametrize(
    ("source", "old", "new", "reason"),
    [
        # A controller without this operation is incomplete.
        ("reno", ".undo_cwnd = (void *)reno_undo_cwnd,", "", "does not take the program: not supported"),
        ("vegas", "tp->snd_cwnd = window;", "tp->snd_nxt = window;", "no write support to tcp_sock"),
    ],
)
def test_reports_the_verifiers_refusal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str, old: str, new: str, reason: str
) -> None:
    sources = tmp_path / "bpf"
    shutil.copytree(build.SOURCES, sources)
    program = sources / f"{source}.bpf.c"
    assert program.read_text().count(old) == 1
    program.write_text(program.read_text().replace(old, new))
    monkeypatch.setattr(build, "SOURCES", sources)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    state = available(source, source="bpf")
    assert not state.ok
    assert reason in state.reason
