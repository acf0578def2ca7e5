"""The metadata snapshot of arXiv."""

from __future__ import annotations

from pathlib import Path

import pytest

from micol.errors import MicolError
from micol.formats import arxiv
from micol.formats.base import Options

SNAPSHOT = Path(__file__).parent / "data/arxiv/arxiv-metadata-oai-snapshot.json"


def imported(*sources, **options):
    result = arxiv.read(sources or [SNAPSHOT], Options(**options))
    documents = {record["id"]: record for record in result.documents}
    return documents, {label.id: label for label in result.labels}


def test_a_paper_becomes_a_document():
    documents, _ = imported()
    assert documents["0704.0001"] == {
        "id": "0704.0001",
        "title": "Calculation of prompt diphoton production",
        "abstract": "A fully differential calculation is presented.",
        "authors": ["Person, Ada", "Other, B."],
        "venue": "Phys.Rev.D",
        "references": [],
        "labels": ["hep-ph"],
    }
    assert "venue" not in documents["2101.00001"]
    assert documents["2101.00001"]["authors"] == ["Person, Ada"]


def test_categories_by_name_below_their_archives():
    _, labels = imported()
    assert labels["cs.LG"].names == ("Machine Learning", "cs.LG")
    assert labels["cs.LG"].parents == ("cs",)
    assert labels["cs"].names == ("Computer Science", "cs")
    assert labels["hep-ph"].names == ("High Energy Physics - Phenomenology", "hep-ph")
    # One that the taxonomy does not have goes by its id.
    assert labels["new-archive.XY"].names == ("new-archive.XY",)
    assert labels["new-archive.XY"].parents == ("new-archive",)


@pytest.mark.parametrize(
    ("reference", "journal"),
    [
        ("Phys.Rev.D76:013009,2007", "Phys.Rev.D"),
        ("Nucl. Phys. B, vol. 12 (1999)", "Nucl. Phys. B"),
        ("Annals of Mathematics, 170 (2009)", "Annals of Mathematics"),
        ("2008 IEEE Symposium", ""),
        ("To appear", "To appear"),
        ("", ""),
    ],
)
def test_the_journal_in_a_reference(reference, journal):
    assert arxiv.journal(reference) == journal


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "1", "authors_parsed": "Ada"}', '"authors_parsed" must be an array'),
        ('{"id": "1", "authors_parsed": ["Ada"]}', "an author must be an array"),
        ('{"id": "1", "categories": {"a": 1}}', '"categories" must be a string'),
        ('{"title": "no id"}', "the document has no id"),
    ],
)
def test_a_bad_paper_is_named(tmp_path, line, message):
    path = tmp_path / "snapshot.json"
    path.write_text(line + "\n")
    with pytest.raises(MicolError, match=r"snapshot\.json:1: ") as caught:
        imported(path)
    assert message in str(caught.value)
