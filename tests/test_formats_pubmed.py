"""PubMed records and MeSH descriptors."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from micol.errors import MicolError
from micol.formats import mesh, pubmed
from micol.formats.base import Options
from micol.labels import LabelSpace

DATA = Path(__file__).parent / "data/pubmed"
BASELINE, UPDATE, MESH = DATA / "pubmed26n0001.xml", DATA / "pubmed26n0002.xml", DATA / "desc2026.xml"


def imported(*sources, **options):
    result = pubmed.read(sources, Options(**options))
    documents = {record["id"]: record for record in result.documents}
    return documents, {label.id: label for label in result.labels}


def test_an_article_becomes_a_document():
    documents, _ = imported(BASELINE)
    assert documents["101"] == {
        "id": "101",
        "title": "Effect of E. coli on H2O.",
        "abstract": "BACKGROUND: Water is wet. RESULTS: It stays so.",
        "authors": ["van Dellen, A F", "Huang, S", "Water Study Group"],
        "venue": "J Ex",
        "references": ["102"],
        "labels": ["D000818", "D014867"],
    }
    assert documents["102"]["abstract"] == "Plain abstract."
    assert "venue" not in documents["102"]


def test_headings_serve_as_labels():
    _, labels = imported(BASELINE)
    assert {label.id: label.names for label in labels.values()} == {
        "D000818": ("Animals",),
        "D014867": ("Water",),
    }


def test_the_latest_file_counts():
    documents, _ = imported(BASELINE, UPDATE)
    assert documents["102"]["title"] == "Second version."
    assert "103" not in documents
    documents, _ = imported(UPDATE, BASELINE)
    assert documents["102"]["title"] == "First version."
    assert "103" in documents


def test_a_folder_of_packed_files(tmp_path):
    for path in (BASELINE, UPDATE):
        (tmp_path / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    documents, _ = imported(tmp_path)
    assert list(documents) == ["102", "101"]


def test_descriptors_describe_the_headings_and_unknown_headings_stay():
    _, labels = imported(BASELINE, UPDATE, labels=str(MESH))
    assert list(labels) == ["D014867", "D000900", "D000818", "D999999"]
    assert labels["D999999"].names == ("A Heading of Another Year",)


def test_mesh_descriptors():
    water, liquids, animals = mesh.labels(MESH)
    assert water.id == "D014867"
    assert water.names == ("Water", "Hydrogen Oxide", "Ice Melt")
    assert water.description == "A clear, odorless liquid that is essential for life."
    # D01.045.250.875 stands below D01.045.250; of the other branch nothing is in the file.
    assert water.parents == ("D000900",)
    assert liquids.parents == animals.parents == ()
    assert animals.names == ("Animals",)


def test_mesh_through_the_label_space():
    labels = LabelSpace.read(MESH)
    assert labels.ids == ["D014867", "D000900", "D000818"]
    assert labels.branch("D000900") == {0, 1}


def test_another_xml_file_is_refused():
    with pytest.raises(MicolError, match=r"expected <PubmedArticleSet> or .*, got <DescriptorRecordSet>"):
        imported(MESH)
    with pytest.raises(MicolError, match=r"expected <DescriptorRecordSet>, got <PubmedArticleSet>"):
        list(mesh.labels(BASELINE))


def test_xml_that_breaks_off(tmp_path):
    path = tmp_path / "broken.xml"
    text = BASELINE.read_text()
    path.write_text(text[: text.index('<PMID Version="1">103')])
    with pytest.raises(MicolError, match=r"broken\.xml:\d+: not well-formed XML from here on"):
        imported(path)
    options = Options(skip_bad=True)
    documents = list(pubmed.read([path], options).documents)
    assert [record["id"] for record in documents] == ["101", "102"]
    assert len(options.skipped) == 1


def test_a_record_without_its_number(tmp_path):
    path = tmp_path / "pubmed.xml"
    path.write_text(
        "<PubmedArticleSet>\n<PubmedArticle/>\n<PubmedArticle><MedlineCitation/></PubmedArticle>"
        "<PubmedArticle><MedlineCitation><PMID>7</PMID></MedlineCitation></PubmedArticle></PubmedArticleSet>"
    )
    with pytest.raises(MicolError, match=r"pubmed\.xml:2: the PubmedArticle has no MedlineCitation"):
        imported(path)
    options = Options(skip_bad=True)
    assert [record["id"] for record in pubmed.read([path], options).documents] == ["7"]
    assert len(options.skipped) == 2


def test_a_truncated_gz(tmp_path):
    path = tmp_path / "cut.xml.gz"
    packed = gzip.compress(BASELINE.read_bytes())
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(MicolError, match=r"cut\.xml\.gz: cut short or damaged"):
        imported(path)
