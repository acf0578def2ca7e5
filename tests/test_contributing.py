"""A baseline, a file format or a retriever takes one new file and one line, as docs/contributing.md shows.

Each is added to a copy of the package, whose other files are the repository's, and used by its command.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import world
from conftest import write_lines
from pages import ROOT

PAGE = (ROOT / "docs/contributing.md").read_text(encoding="utf-8")
ADDITION = re.compile(
    r'```python title="src/(?P<file>\S+)"\n(?P<code>.*?)```\n'
    r"And a line in `(?P<table>\w+)` of `src/(?P<registry>\S+)`:\n```text\n(?P<line>.*?)\n```",
    re.DOTALL,
)


class Addition(NamedTuple):
    file: str
    code: str
    table: str
    registry: str
    line: str


ADDITIONS = {found["table"]: Addition(**found.groupdict()) for found in ADDITION.finditer(PAGE)}


def package_with(addition: Addition, folder: Path) -> Path:
    """The package with one more file, and one more line."""
    copied(ROOT / "src/micol", folder / "micol", {Path(addition.file).parent, Path(addition.registry).parent})
    new = folder / addition.file
    assert not new.exists(), "the page shows a file that is there already"
    new.write_text(addition.code, encoding="utf-8")
    registry = folder / addition.registry
    before = registry.read_text(encoding="utf-8")
    registry.unlink()
    table = re.compile(rf"^{addition.table}.* = {{\n", re.MULTILINE)
    after = table.sub(lambda found: f"{found[0]}{addition.line}\n", before)
    assert len(after.splitlines()) == len(before.splitlines()) + 1
    registry.write_text(after, encoding="utf-8")
    return folder


def copied(source: Path, target: Path, changed: set[Path]) -> None:
    """Links to all files; folders in which something changes are made anew."""
    target.mkdir()
    for path in source.iterdir():
        name = path.relative_to(ROOT / "src")
        if path.is_dir() and any(folder.is_relative_to(name) for folder in changed):
            copied(path, target / path.name, changed)
        else:
            (target / path.name).symlink_to(path)


def micol(package: Path, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "micol.cli", *map(str, arguments)],
        cwd=package, env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_the_page_shows_one_of_each() -> None:
    assert set(ADDITIONS) == {"SYSTEMS", "FORMATS", "RETRIEVERS"}


def test_a_format(tmp_path: Path) -> None:
    package = package_with(ADDITIONS["FORMATS"], tmp_path)
    (package / "papers.txt").write_text("d1\tA title\tAnn and Bob\nd2\tOther\tBob\n", encoding="utf-8")
    assert "bibtex-lines" in micol(package, "import", "--help")
    assert "documents             2" in micol(package, "import", "bibtex-lines", "papers.txt", "-o", "out")
    first = json.loads((package / "out/docs.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert first["authors"] == ["Ann", "Bob"]


@pytest.fixture
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_lines(folder / "docs.jsonl", world.documents(60))
    write_lines(folder / "labels.jsonl", world.label_records())
    (folder / "test_ids.txt").write_text("".join(f"d{number}\n" for number in range(24)), encoding="utf-8")
    return folder


def test_a_retriever(tmp_path: Path, data: Path) -> None:
    package = package_with(ADDITIONS["RETRIEVERS"], tmp_path)
    alone = ["--no-exact", "--no-bm25", "--also", "first-words", "-o", "found.jsonl"]
    said = micol(package, "candidates", data / "labels.jsonl", data / "docs.jsonl", *alone)
    assert "recall" in said
    found = [json.loads(line) for line in (package / "found.jsonl").open(encoding="utf-8")]
    assert len(found) == 60
    assert any(record["labels"] for record in found)


@pytest.mark.slow
def test_a_baseline(tmp_path: Path, data: Path) -> None:
    package = package_with(ADDITIONS["SYSTEMS"], tmp_path)
    conditions = (
        f'seeds = [0, 1]\n[data]\nfolder = "{data}"\ndocs = "docs.jsonl"\nlabels = "labels.jsonl"\n'
        'test_ids = "test_ids.txt"\n[[systems]]\nsystem = "chance"\n[[systems]]\nsystem = "bm25"\n'
    )
    (package / "conditions.toml").write_text(conditions, encoding="utf-8")
    report = micol(package, "benchmark", "conditions.toml", "-o", "results")
    assert re.search(r"\| Chance +\|", report)
    assert len(list((package / "results/results").rglob("seed-*.json"))) == 3
