"""`micol import` from the command line."""

from __future__ import annotations

import gzip
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from micol.corpus import Corpus
from micol.formats import FORMATS
from micol.labels import LabelSpace

DATA = Path(__file__).parent / "data"
LIBRARY = Path(__file__).parent.parent / "docs/examples/library"
SOURCES = {
    "annif": [DATA / "annif/fulltext", DATA / "annif/corpus.tsv"],
    "arxiv": [DATA / "arxiv"],
    "csv": [
        LIBRARY / "catalogue.csv", "--labels", LIBRARY / "subjects.ttl", "--column", "id=shelfmark",
        "--column", "title=headline", "--column", "abstract=summary", "--column", "authors=written_by",
        "--column", "labels=subjects",
    ],
    "debian": [DATA / "debian", "--labels", DATA / "debian/vocabulary"],
    "jats": [DATA / "jats"],
    "micol": [DATA / "release"],
    "openalex": [DATA / "openalex"],
    "pubmed": [DATA / "pubmed/pubmed26n0001.xml", "--labels", DATA / "pubmed/desc2026.xml"],
}  # fmt: skip


def micol(*arguments, **options):
    command = [sys.executable, "-c", "from micol.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_imported_can_be_read(tmp_path, name):
    done = micol("import", name, *SOURCES[name], "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    corpus = Corpus.read(tmp_path / "out/docs.jsonl")
    labels = LabelSpace.read(tmp_path / "out/labels.jsonl")
    counts = dict(line.rsplit(maxsplit=1) for line in done.stdout.splitlines())
    assert (int(counts["documents"]), int(counts["labels"])) == (len(corpus), len(labels))
    # Whatever a document is tagged with is described.
    assert {label for gold in corpus.gold for label in gold} <= set(labels.ids)


def test_candidates_come_in_the_form_of_predictions(tmp_path):
    micol("import", "micol", DATA / "release", "-o", tmp_path)
    first = json.loads((tmp_path / "candidates.jsonl").read_text().splitlines()[0])
    assert first["labels"][0] == {"id": "l2", "name": "random walk", "score": 1.0}


def test_gzip(tmp_path):
    micol("import", "arxiv", DATA / "arxiv", "-o", tmp_path, "--gzip")
    with gzip.open(tmp_path / "docs.jsonl.gz", "rt") as file:
        assert len(file.readlines()) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["docs.jsonl.gz", "labels.jsonl"]


@pytest.mark.parametrize(
    ("name", "sample"), [("openalex", "openalex/works.jsonl"), ("pubmed", "pubmed/pubmed26n0001.xml")]
)
def test_standard_input(tmp_path, name, sample):
    done = micol("import", name, "-", "-o", tmp_path, input=(DATA / sample).read_text())
    assert done.stdout.splitlines()[0].split() == ["documents", "3"]


def test_files_appear_whole_or_not_at_all(tmp_path):
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_text('{"id": "W1", "referenced_works": ["W9"]}\n')
    bad.write_text('{"id": "W2"}\n{"id": "W3", "title": 7}\n')
    done = micol("import", "openalex", good, bad, "-o", tmp_path / "out")
    assert done.returncode == 1
    assert done.stderr == (
        f'micol: {bad}:2: "title" must be a string, got the number 7; write it as a string, '
        "or leave bad records out with --skip-bad\n"
    )
    assert list((tmp_path / "out").iterdir()) == []
    done = micol("import", "openalex", good, bad, "-o", tmp_path / "out", "--skip-bad")
    assert done.returncode == 0
    assert done.stderr == f'left out by --skip-bad: {bad}:2: "title" must be a string, got the number 7\n'
    assert done.stdout.split() == ["documents", "2", "references", "1", "left", "out", "1"]
    mode = stat.S_IMODE((tmp_path / "out/docs.jsonl").stat().st_mode)
    umask = os.umask(0)
    os.umask(umask)
    assert mode == 0o666 & ~umask


def test_a_repeated_id(tmp_path):
    path = tmp_path / "works.jsonl"
    path.write_text('{"id": "W1"}\n{"id": "W2"}\n{"id": "W1"}\n')
    done = micol("import", "openalex", path, "-o", tmp_path / "out")
    assert done.returncode == 1
    assert "document 3: the id 'W1' is given twice" in done.stderr
    done = micol("import", "openalex", path, "-o", tmp_path / "out", "--skip-bad")
    assert Corpus.read(tmp_path / "out/docs.jsonl").ids == ["W1", "W2"]


def test_documents_that_have_nothing_but_text_are_told(tmp_path):
    path = tmp_path / "works.jsonl"
    path.write_text('{"id": "d1", "title": "A document of another kind", "authors": ["a1"]}\n')
    done = micol("import", "openalex", path, "-o", tmp_path / "out")
    assert done.returncode == 0
    assert "note: no document has anything but text, no authors" in done.stderr


def test_many_bad_records_are_listed_in_short(tmp_path):
    path = tmp_path / "works.jsonl"
    path.write_text('{"id": "W1", "referenced_works": ["W2"]}\n' + "bad\n" * 50)
    done = micol("import", "openalex", path, "-o", tmp_path / "out", "--skip-bad")
    assert len(done.stderr.splitlines()) == 21
    assert done.stderr.splitlines()[-1] == "left out by --skip-bad: 30 more"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["openalex"], 2, "needs at least one SOURCE"),
        (["word", "x"], 2, "'word' is not one of"),
        (["openalex", "none.jsonl"], 1, "none.jsonl: no such file; check the path"),
        (["openalex", "empty.jsonl"], 1, "the sources hold neither documents nor labels"),
        (["openalex", "empty.jsonl", "--labels", "mesh"], 2, "--labels must be one of topics"),
        (["jats", "folder"], 1, "no file in this folder ends in"),
    ],
)
def test_misuse(tmp_path, arguments, code, message):
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "folder").mkdir()
    done = micol("import", *arguments, "-o", "out", cwd=tmp_path)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_help_names_every_format():
    done = micol("import", "--help")
    assert all(name in done.stdout for name in FORMATS)
