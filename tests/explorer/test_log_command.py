"""`longfat explore FILE.qlog`."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from tests.browser import Browser
from tests.conftest import Cli
from tests.explorer import log_samples as samples
from tests.explorer.log_driver import OPENED
from tests.waiting import PATIENCE_S


@pytest.mark.parametrize("name", ["a log.qlog", "log.sqlog", "log.JSON"])
def test_serves_the_file_and_its_page(page: Browser, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text(samples.go())
    command = [sys.executable, "-P", "-m", "longfat", "explore", str(file), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert re.fullmatch(
                r"http://127\.0\.0\.1:\d+/[\w-]{20,}/log\.html\?engine=native&log=[\w.%]+", address
            )
            page.open(address)
            page.wait(OPENED)
            assert page.evaluate("document.querySelector('#log-status').textContent").startswith(
                f"{name}: 17 events;"
            )
            assert page.evaluate("document.title") == f"longfat log: {name}"
            # The explorer has the same engine, and a link back.
            assert page.evaluate("document.querySelector('#to-explorer').href").endswith(
                "/index.html?engine=native"
            )
            other = address.replace("log.html", "other.qlog")
            with pytest.raises(urllib.error.HTTPError):
                urllib.request.urlopen(other, timeout=PATIENCE_S)
            file.unlink()
            page.open(address)
            page.wait(OPENED)
            message = page.evaluate("document.querySelector('#message').textContent")
            assert message == f"{name}: the file is not there any more"
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()


def test_the_explorer_links_to_the_page_of_logs(page: Browser, log_folder: Path) -> None:
    page.open((log_folder / "index.html").as_uri())
    assert page.evaluate("document.querySelector('#to-log').getAttribute('href')") == "log.html"


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("nothing.qlog", None, "cannot read {}: No such file or directory"),
        ("empty.qlog", "", "{}: not a qlog file: it is empty"),
        ("text.sqlog", "hello", "{}: not a qlog file: its header has neither qlog_version nor file_schema"),
        ("other.json", '{"a": 1}', "{}:1: is not TOML"),
    ],
)
def test_other_files_are_refused(
    cli: Cli, tmp_path: Path, name: str, content: str | None, error: str
) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_text(content)
    is_refused(cli, [str(file)], error.format(file))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--protocol", "reno"], "--protocol: "),
        (["--cell", "path.loss=2%", "--set", "path.loss=2%"], "--cell, --set: "),
        (["--native"], "--native: "),
        (["--wasm"], "--wasm: "),
    ],
)
def test_options_of_scenes_are_refused(cli: Cli, tmp_path: Path, options: list[str], named: str) -> None:
    file = tmp_path / "log.qlog"
    file.write_text(samples.go())
    is_refused(cli, [str(file), *options], f"{named}{file} is a qlog file; the options")


def is_refused(cli: Cli, arguments: list[str], error: str) -> None:
    done = cli("explore", *arguments, "--no-browser", ok=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"longfat: {error}")
    assert done.stderr.count("\n") == 1
