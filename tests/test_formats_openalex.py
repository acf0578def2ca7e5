"""OpenAlex works."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from micol.errors import MicolError, UsageError
from micol.formats import openalex
from micol.formats.base import Options

WORKS = Path(__file__).parent / "data/openalex/works.jsonl"


def imported(*sources, **options):
    result = openalex.read(sources or [WORKS], Options(**options))
    documents = {record["id"]: record for record in result.documents}
    return documents, {label.id: label for label in result.labels}


def test_a_work_becomes_a_document():
    documents, _ = imported()
    assert documents["W11"] == {
        "id": "W11",
        "title": "Ranking pages of the web graph",
        "abstract": "We rank pages by the pages that link to them.",
        "authors": ["A1", "A2"],
        "venue": "S5",
        "references": ["W12", "W99"],
        "labels": ["T100"],
    }


def test_what_a_work_lacks_stays_empty():
    documents, _ = imported()
    assert documents["W12"]["title"] == "Random walks"
    assert documents["W12"]["abstract"] == ""
    assert "venue" not in documents["W12"]
    # A source without an id goes by its name; a reference to itself is none.
    assert documents["W13"]["venue"] == "Workshop on Links"
    assert documents["W13"]["references"] == ["W12"]


def test_topics_stand_below_subfield_field_and_domain():
    _, labels = imported()
    assert labels["T100"].names == ("Web Search Engines",)
    assert labels["T100"].parents == ("subfields/1710",)
    assert labels["subfields/1710"].parents == ("fields/17",)
    assert labels["fields/17"].parents == ("domains/3",)
    assert labels["domains/3"].parents == ()


def test_concepts_from_a_score_on():
    documents, labels = imported(labels="concepts", min_score=0.3)
    assert documents["W11"]["labels"] == ["C1"]
    assert list(labels) == ["C1"]
    documents, _ = imported(labels="concepts")
    assert documents["W11"]["labels"] == ["C1", "C2"]


def test_keywords_with_and_without_an_id():
    documents, labels = imported(labels="keywords")
    assert documents["W11"]["labels"] == ["keywords/web-graph"]
    assert labels["random walk"].names == ("random walk",)


def test_a_snapshot_folder_with_packed_parts_and_a_manifest(tmp_path):
    part = tmp_path / "updated_date=2026-01-01"
    part.mkdir()
    (part / "part_000.gz").write_bytes(gzip.compress(WORKS.read_bytes()))
    (tmp_path / "manifest").write_text('{\n"entries": []\n}')
    documents, _ = imported(tmp_path)
    assert list(documents) == ["W11", "W12", "W13"]


def test_a_page_of_the_api(tmp_path):
    page = {"meta": {"count": 3}, "results": [json.loads(line) for line in WORKS.read_text().splitlines()]}
    path = tmp_path / "page.json"
    path.write_text(json.dumps(page))
    documents, _ = imported(path)
    assert list(documents) == ["W11", "W12", "W13"]


def test_another_kind_of_labels_is_misuse():
    with pytest.raises(UsageError, match="topics, concepts, keywords for openalex, got 'mesh'"):
        imported(labels="mesh")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "W1", "topics": 3}', '"topics" must be an array, got the number 3'),
        ('{"id": "W1", "authorships": [3]}', 'an item of "authorships" must be an object'),
        ('{"id": "W1", "abstract_inverted_index": {"a": ["x"]}}', "must give positions"),
        ('{"id": "W1", "topics": [{"id": "T1", "score": "high"}]}', '"score" must be a number'),
        ('{"id": "W1", "topics": [{}]}', "neither an id nor a name"),
        ('{"id": "W1", "title": {"a": 1}}', '"title" must be a string'),
        ('{"title": "no id"}', "the document has no id"),
        ("{", "not valid JSON"),
        ("[]", "the line must be an object, got an array"),
    ],
)
def test_a_bad_work_is_named_or_left_out(tmp_path, line, message):
    path = tmp_path / "works.jsonl"
    path.write_text('{"id": "W0"}\n' + line + '\n{"id": "W2"}\n')
    with pytest.raises(MicolError, match=r"works\.jsonl:2: ") as caught:
        imported(path)
    assert message in str(caught.value)
    options = Options(skip_bad=True)
    documents = openalex.read([path], options).documents
    assert [record["id"] for record in documents] == ["W0", "W2"]
    assert len(options.skipped) == 1
    assert message in options.skipped[0]
