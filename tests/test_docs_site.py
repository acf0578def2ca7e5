"""The documentation as a site: it builds without a warning, is whole, and needs nothing from elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

import micol
from micol.cli import VERBS
from pages import ROOT

# Attributes whose addresses a browser fetches by itself; links that a reader follows may lead anywhere.
FETCHED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("link", "href"), ("source", "src")}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Fetched(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if (tag, name) in FETCHED]


def html(site: Path) -> Iterator[Path]:
    return (path for path in site.rglob("*.html"))


@pytest.mark.slow
def test_nothing_comes_from_elsewhere(site: Path) -> None:
    for path in html(site):
        parser = Fetched()
        parser.feed(path.read_text(encoding="utf-8"))
        assert parser.addresses
        for address in parser.addresses:
            assert not re.match(r"(https?:)?//", address), f"{path}: {address}"
            target = (path.parent / address.partition("?")[0].partition("#")[0]).resolve()
            assert path.name == "404.html" or target.exists(), f"{path}: {address}"
    for path in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?https?:|@import", path.read_text(encoding="utf-8")), path


def test_every_page_is_in_the_navigation(site: Path) -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").as_posix()
        assert name in navigation, f"{name} is missing from nav in mkdocs.yml"
        assert (site / name).with_suffix(".html").exists()


def test_tables_are_tables(site: Path) -> None:
    """Without an empty line above, a table is read as a paragraph."""
    for path in html(site):
        assert not re.search(r"<p>\s*\|", path.read_text(encoding="utf-8")), path


def test_the_reference_is_whole(site: Path) -> None:
    commands = (site / "reference/commands.html").read_text(encoding="utf-8")
    for verb in VERBS:
        assert f"micol {verb}" in commands
    for option in ("--threshold", "--learning-rate", "--also", "--min-score", "--search"):
        assert option in commands
    python = (site / "reference/python.html").read_text(encoding="utf-8")
    for name in micol.__all__:
        assert f"micol.{name}" in python
    assert "add_labels" in python


def test_formulas_need_no_script(site: Path) -> None:
    for name in ("method", "retrieval"):
        page = (site / f"{name}.html").read_text(encoding="utf-8")
        assert "<math" in page
        assert "arithmatex" not in page


@pytest.mark.slow
def test_pages_open_from_a_disk_and_can_be_searched(site: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "examples/posts.html").as_uri())
        expect(page.get_by_role("heading", name="Posts with users and hashtags")).to_be_visible()
        page.locator("input[data-md-component=search-query]").press_sequentially("thermometers")
        expect(page.locator("[data-md-component=search-result] a").first).to_contain_text("calibrated")
        assert all(url.startswith(("file:", "data:", "about:")) for url in asked), asked
        browser.close()
