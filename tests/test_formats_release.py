"""The original release's files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from micol.corpus import Corpus
from micol.errors import MicolError
from micol.formats import release
from micol.formats.base import Options
from micol.labels import LabelSpace

DATA = Path(__file__).parent / "data/release"


def test_documents_labels_and_candidates_are_told_apart():
    imported = release.read([DATA], Options())
    documents = list(imported.documents)
    assert documents[0] == {
        "id": "p1",
        "title": "",
        "abstract": "web graph ranking of pages",
        "authors": ["a1", "a2"],
        "venue": "WWW",
        "references": ["p2", "p9"],
        "labels": ["l1"],
        "citations": ["p3"],
    }
    # p2 is not cited by itself.
    assert documents[1]["citations"] == ["p1"]
    assert [(label.id, label.names, label.description) for label in imported.labels] == [
        ("l1", ("webgraph", "web graph"), "the graph of pages and links"),
        ("l2", ("random walk",), ""),
    ]
    assert list(imported.candidates) == [
        {
            "id": "p1",
            "labels": [
                {"id": "l2", "name": "random walk", "score": 1.0},
                {"id": "l1", "name": "webgraph", "score": 0.5},
            ],
        },
        {"id": "p2", "labels": []},
    ]


def test_what_is_converted_equals_what_is_read_directly():
    imported = release.read([DATA], Options())
    converted = Corpus.from_records(imported.documents)
    labels = LabelSpace.from_labels(imported.labels)
    assert converted.ids == ["p1", "p2"]
    assert labels.fingerprint == LabelSpace.read(DATA / "labels.json").fingerprint


def test_candidates_alone_go_by_their_ids():
    imported = release.read([DATA / "candidates.json"], Options())
    assert list(imported.documents) == list(imported.labels) == []
    assert next(iter(imported.candidates))["labels"][0] == {"id": "l2", "name": "l2", "score": 1.0}


def test_another_file_is_refused(tmp_path):
    path = tmp_path / "other.json"
    path.write_text('{"some": "thing"}\n')
    with pytest.raises(MicolError, match=r"other\.json: its first record is neither a document"):
        release.read([path], Options())


def test_bad_records_are_left_out_once(tmp_path):
    shutil.copytree(DATA, tmp_path / "release")
    with (tmp_path / "release/labels.json").open("a") as file:
        file.write('{"label": ["l3", "l4"], "name": ["two ids"]}\n')
    with (tmp_path / "release/train.json").open("a") as file:
        file.write("broken\n")
    options = Options(skip_bad=True)
    imported = release.read([tmp_path / "release"], options)
    assert len(list(imported.labels)) == len(list(imported.documents)) == 2
    assert [message.rsplit("/", 1)[1] for message in options.skipped] == [
        'labels.json:3: "label" must be one id, got 2',
        "train.json:3: not valid JSON (Expecting value at character 1)",
    ]
