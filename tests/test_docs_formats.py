"""Every command of docs/formats.md and docs/schemas.md runs and prints what the page shows."""

from __future__ import annotations

import doctest
import gzip
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
DATA = ROOT / "tests/data"
BLOCK = re.compile(r"(?:<!-- (.*) -->\n)?```console\n(.*?)```(?:\n<!-- (.*) -->)?", re.DOTALL)


class Example(NamedTuple):
    """A command of a page, what it shows below it, and a remark beside it."""

    command: str
    output: str
    remark: str


def examples(page: str) -> list[Example]:
    found = []
    for before, block, after in BLOCK.findall((ROOT / "docs" / page).read_text()):
        command, _, output = block.removeprefix("$ ").partition("\n")
        found.append(Example(command, output, before or after))
    return found


@pytest.fixture
def folder(tmp_path):
    """The sample files under the names that the pages use."""
    part = tmp_path / "data/works/updated_date=2026-01-01"
    part.mkdir(parents=True)
    (part / "part_000.gz").write_bytes(gzip.compress((DATA / "openalex/works.jsonl").read_bytes()))
    for name in ("pubmed26n0001.xml", "pubmed26n0002.xml"):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress((DATA / "pubmed" / name).read_bytes()))
    shutil.copy(DATA / "pubmed/desc2026.xml", tmp_path)
    with tarfile.open(tmp_path / "articles.tar.gz", "w:gz") as archive:
        archive.add(DATA / "jats", "articles")
    shutil.copy(DATA / "arxiv/arxiv-metadata-oai-snapshot.json", tmp_path)
    shutil.copytree(DATA / "debian", tmp_path / "lists")
    shutil.copy(DATA / "debian/vocabulary", tmp_path)
    shutil.copytree(DATA / "annif", tmp_path, dirs_exist_ok=True)
    shutil.copy(DATA / "skos/vocabulary.ttl", tmp_path)
    shutil.copytree(DATA / "release", tmp_path / "release")
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    return tmp_path


@pytest.mark.parametrize("page", ["formats.md", "schemas.md"])
def test_every_command_runs_and_prints_what_the_page_shows(folder, page):
    shown = examples(page)
    assert len(shown) >= 3
    for command, output, remark in shown:
        if remark == "needs a network":
            continue
        name, *arguments = shlex.split(command)
        assert name == "micol"
        program = [sys.executable, "-c", "from micol.cli import main; main()", *arguments]
        done = subprocess.run(program, cwd=folder, capture_output=True, text=True, check=False)
        expected = int(remark.removeprefix("exits with ")) if remark else 0
        assert done.returncode == expected, f"{command}\n{done.stderr}"
        if output:
            assert done.stdout == output, command


def test_python_on_the_page(folder, monkeypatch):
    monkeypatch.chdir(folder)
    failed, attempted = doctest.testfile(str(ROOT / "docs/schemas.md"), module_relative=False)
    assert attempted >= 8
    assert failed == 0


def test_the_schema_on_the_page_is_the_one_in_the_folder():
    page = (ROOT / "docs/schemas.md").read_text()
    schema = (ROOT / "docs/examples/posts/schema.toml").read_text()
    assert schema.split("\n", 1)[1] in page


def test_the_page_tells_of_every_format():
    from micol.formats import FORMATS

    page = (ROOT / "docs/formats.md").read_text()
    assert set(re.findall(r"^### (\w+)$", page, re.MULTILINE)) == set(FORMATS)
