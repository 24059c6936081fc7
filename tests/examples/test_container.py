"""The container image: it builds, runs as an ordinary user, and relays."""

from __future__ import annotations

import http.server
import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests import requirements

ROOT = Path(__file__).parents[2]
FILE = ROOT / "packaging/container/Dockerfile"
OPTIONS = "LONGFAT_IMAGE_OPTIONS"
"""Names an environment variable with further options of the build, such as `--build-arg PYTHON_IMAGE=...`."""


def call(*command: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def output(*command: str, timeout: float = 60.0) -> str:
    done = call(*command, timeout=timeout)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout.strip()


def builder() -> str:
    """Returns a program that can build images, or skips the test."""
    for name in ("docker", "podman", "buildah"):
        found = shutil.which(name)
        if found and call(found, "info").returncode == 0:
            return found
    return requirements.skip_unbuilt("the image: there is no Docker with a running daemon, Podman or Buildah")


def base_images() -> list[str]:
    return re.findall(r"^ARG \w+_IMAGE=(\S+)$", FILE.read_text(encoding="utf-8"), re.MULTILINE)


def test_the_base_images_are_arguments() -> None:
    assert len(base_images()) == 2
    assert re.findall(r"^FROM (\S+)", FILE.read_text(encoding="utf-8"), re.MULTILINE) == [
        "${RUST_IMAGE}",
        "${PYTHON_IMAGE}",
    ]


@pytest.fixture
def image_command() -> Iterator[list[str]]:
    """The command that runs a program in a container of the image, to be followed by the program."""
    tool = builder()
    options = shlex.split(os.environ.get(OPTIONS, ""))
    if not options:
        for image in base_images():
            pulled = call(tool, "pull", image, timeout=600)
            if pulled.returncode != 0:
                requirements.skip_unbuilt(f"the image: {pulled.stderr.strip().splitlines()[-1]}")
    is_buildah = Path(tool).name == "buildah"
    # Docker and Podman find this file by its name.
    options += ["--ignorefile", f"{FILE}.dockerignore"] if is_buildah else []
    image = output(tool, "build", "-q", *options, "-f", str(FILE), str(ROOT), timeout=7000).split()[-1]
    if not is_buildah:
        yield [tool, "run", "--rm", "--network", "host", "--entrypoint", "", image]
        return
    container = output(tool, "from", image)
    yield [tool, "run", container, "--"]
    output(tool, "rm", container)


def relayed(command: Sequence[str], target: str) -> bytes:
    """Returns an answer of the target that a relay in a container carried."""
    with subprocess.Popen(
        [*command, "longfat", "relay", "--tcp", f"127.0.0.1:0={target}", "--loss", "1%"],
        stderr=subprocess.PIPE,
        text=True,
    ) as relay:
        assert relay.stderr is not None
        found = None
        for line in relay.stderr:
            if found := re.search(r"Listening on (\S+) for", line):
                break
        try:
            assert found
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(f"http://{found[1]}/", timeout=60) as answer:
                data: bytes = answer.read()
        finally:
            relay.send_signal(signal.SIGINT)
    return data


@pytest.mark.minutes
@pytest.mark.timeout(7200)
def test_the_image_builds_and_relays(image_command: list[str]) -> None:
    assert "LISTEN=TARGET" in output(*image_command, "longfat", "relay", "--help")
    assert output(*image_command, "id", "-u") != "0"
    content = b"content" * 10_000

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert relayed(image_command, f"127.0.0.1:{server.server_address[1]}") == content
        server.shutdown()
