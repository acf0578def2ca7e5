"""JATS articles."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from micol.errors import MicolError
from micol.formats import jats
from micol.formats.base import Options

DATA = Path(__file__).parent / "data/jats"


def imported(*sources, **options):
    result = jats.read(sources, Options(**options))
    return list(result.documents), {label.id: label for label in result.labels}


def test_an_article_becomes_a_document():
    (document,), _ = imported(DATA / "one.xml")
    assert document == {
        "id": "10.1234/examples.0001",
        "title": "On the Drosophila α-clock",
        "abstract": "Background: Flies keep time. Results: So do we. Both do.",
        "authors": ["Müller, Anna B", "The Clock Consortium"],
        "venue": "Examples in Biology",
        "references": ["10.1234/examples.0002", "34"],
        "labels": ["circadian clock", "sleep", "d. melanogaster"],
    }


def test_an_article_without_a_doi():
    (document,), _ = imported(DATA / "two.nxml")
    assert document["id"] == "pmc4242"
    assert document["authors"] == ["Li, Wei"]
    assert document["abstract"] == "No paragraph here."


def test_keywords_are_labels_whatever_their_case():
    documents, labels = imported(DATA)
    assert len(documents) == 2
    assert labels["circadian clock"].names == ("Circadian clock",)
    assert documents[1]["labels"] == ["sleep"]
    assert sorted(labels) == ["circadian clock", "d. melanogaster", "sleep"]


@pytest.mark.parametrize("name", ["all.tar", "all.tar.gz", "all.tgz"])
def test_an_archive_is_read_without_unpacking(tmp_path, name):
    path = tmp_path / name
    with tarfile.open(path, "w:gz" if "gz" in name else "w") as archive:
        archive.add(DATA, "articles")
        text = b"not an article"
        member = tarfile.TarInfo("articles/README.txt")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
    assert imported(path) == imported(DATA)


def test_a_damaged_archive(tmp_path):
    path = tmp_path / "all.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(DATA, "articles")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(MicolError, match=r"all\.tar\.gz: cut short or damaged"):
        imported(path)
    path.write_bytes(b"no archive")
    with pytest.raises(MicolError, match=r"all\.tar\.gz: cut short or damaged"):
        imported(path)
    with pytest.raises(MicolError, match=r"none\.tar: "):
        imported(tmp_path / "none.tar")


def test_articles_in_a_namespace_and_in_a_set(tmp_path):
    path = tmp_path / "set.xml"
    article = (DATA / "two.nxml").read_text()
    path.write_text(f'<set xmlns="urn:jats">{article}{article.replace("4242", "4343")}</set>')
    documents, _ = imported(path)
    assert [document["id"] for document in documents] == ["pmc4242", "pmc4343"]
    assert documents[0]["title"] == "Sleep in worms"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<html/>", "no <article> in the file"),
        ("<article/>", "the article has no <article-meta>"),
        ("<article><front><article-meta/></front></article>", "neither a DOI nor a PMC number"),
        ("<article>", "not well-formed XML"),
        ("", "not well-formed XML"),
    ],
)
def test_a_bad_file_is_named_or_left_out(tmp_path, content, message):
    (tmp_path / "bad.xml").write_text(content)
    with pytest.raises(MicolError, match=r"bad\.xml:1: ") as caught:
        imported(tmp_path)
    assert message in str(caught.value)
    options = Options(skip_bad=True)
    sources = [tmp_path, DATA / "one.xml"]
    assert len(list(jats.read(sources, options).documents)) == 1
    assert len(options.skipped) == 1


def test_a_folder_without_articles(tmp_path):
    with pytest.raises(MicolError, match=r"no file in this folder ends in \.nxml or \.xml"):
        imported(tmp_path)
