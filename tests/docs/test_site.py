"""The documentation site.

It builds without warnings, every link and anchor exists, and every page fits a screen and a phone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import requirements
from tests.browser import Browser
from tests.docs import site_pages

ROOT = Path(__file__).parents[2]
WIDTHS = (1280, 400)
CLICKS = 3
pytestmark = pytest.mark.slow
"""One process builds the site, once."""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, built with warnings as errors."""
    folder = tmp_path_factory.mktemp("site").resolve()
    configuration = str(ROOT / "website" / "mkdocs.yml")
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            "-m",
            "mkdocs",
            "build",
            "--quiet",
            "--strict",
            "-f",
            configuration,
            "-d",
            str(folder),
        ],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_links_and_anchors_exist(site: Path) -> None:
    pages = site_pages.read(site)
    broken = []
    for file, about in pages.items():
        for target in about.links + about.resources:
            if site_pages.is_outside(target):
                continue
            to, anchor = site_pages.resolved(file, target)
            if to.is_dir():
                to /= "index.html"
            if not to.exists() or (anchor and to in pages and anchor not in pages[to].anchors):
                broken.append(f"{file.relative_to(site)}: {target}")
    assert broken == []


def test_lessons_link_to_their_scene_if_the_explorer_is_built(site: Path) -> None:
    simulator = ROOT / "target" / "explorer" / "simulator.js"
    if not simulator.is_file() or b"LONGFAT_SIMULATOR" not in simulator.read_bytes()[:64]:
        requirements.skip_unbuilt("the explorer is not built: make explorer builds it")
    pages = site_pages.read(site)
    for number in range(1, 9):
        (lesson,) = (file for file in pages if file.match(f"learn/{number}-*.html"))
        assert f"../explorer/index.html?lesson={number}" in pages[lesson].links
    assert (site / "explorer" / "simulator.js").is_file()


def test_pages_load_nothing_from_other_hosts(site: Path) -> None:
    outside = {
        f"{file.relative_to(site)}: {target}"
        for file, about in site_pages.read(site).items()
        for target in about.resources
        if site_pages.is_outside(target)
    }
    assert outside == set()


def test_every_page_is_within_three_clicks(site: Path) -> None:
    pages = site_pages.read(site)
    distance = site_pages.clicks(pages, site / "index.html")
    far = [str(file.relative_to(site)) for file in pages if distance.get(file, 99) > CLICKS]
    assert far == []


def test_pages_fit_screens_and_phones_without_console_messages(site: Path, page: Browser) -> None:
    found = []
    for file in site_pages.read(site):
        page.resize(WIDTHS[0])
        found += [f"{file.name}: {complaint}" for complaint in page.open(file.as_uri())]
        for width in WIDTHS:
            page.resize(width)
            if excess := page.overflow():
                found.append(f"{file.name}: {excess} pixels wider than {width}")
    assert found == []


def test_search_works_without_a_server(site: Path, page: Browser) -> None:
    page.resize(WIDTHS[0])
    page.open((site / "index.html").as_uri())
    page.evaluate(
        """window.search = () => {
        const box = document.querySelector('[data-md-component=search-query]');
        box.blur(); box.focus(); box.value = 'stop-and-wait';
        box.dispatchEvent(new Event('input', {bubbles: true}));
        box.dispatchEvent(new Event('keyup', {bubbles: true}));
        window.asked = performance.now(); }"""
    )
    # The page ignores input until its scripts have started.
    ask = "performance.now() - (window.asked ?? -2000) > 2000 && search()"
    page.wait(f"({ask}, document.querySelectorAll('.md-search-result__item').length > 0)")
    assert page.complaints() == []


def test_dark_mode_follows_the_system(site: Path, page: Browser) -> None:
    colors = []
    for scheme in ("light", "dark"):
        page.emulate("prefers-color-scheme", scheme)
        page.open((site / "tutorial.html").as_uri())
        colors.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    page.emulate("prefers-color-scheme", "light")
    assert colors[0] == "rgb(255, 255, 255)"
    assert colors[1] != colors[0]


def test_examples_of_docstrings_are_blocks(site: Path) -> None:
    text = (site / "reference" / "python.html").read_text(encoding="utf-8")
    assert '<span class="gp">&gt;&gt;&gt; </span>' in text
    assert "<blockquote>" not in text
