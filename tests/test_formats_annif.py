"""Annif's corpora and vocabularies."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from micol.corpus import Corpus
from micol.errors import MicolError
from micol.formats import annif
from micol.formats.base import Options

DATA = Path(__file__).parent / "data/annif"
SKOS = Path(__file__).parent / "data/skos/vocabulary.ttl"
EX = "http://example.org/"


def imported(*sources, **options):
    result = annif.read(sources, Options(**options))
    documents = {record["id"]: record for record in result.documents}
    return documents, {label.id: label for label in result.labels}


def test_full_texts_with_their_subjects():
    documents, labels = imported(DATA / "fulltext")
    assert documents["doc1"]["abstract"] == "Networks of computers\nexchange packets."
    assert documents["doc1"]["labels"] == [f"{EX}net", f"{EX}ip"]
    # Without a vocabulary, a subject that is given by its label goes by it.
    assert documents["doc2"]["labels"] == ["computer science", "unheard-of subject"]
    assert labels[f"{EX}net"].names == ("networking",)


def test_json_with_metadata():
    documents, _ = imported(DATA / "fulltext")
    document = documents["json1"]
    assert (document["title"], document["abstract"]) == ("Routers", "On routing.")
    assert document["publisher"] == "Example Press"


@pytest.mark.parametrize("vocabulary", [SKOS, DATA / "vocabulary.tsv", DATA / "vocabulary.csv"])
def test_subjects_by_label_are_found_in_the_vocabulary(vocabulary):
    options = Options(labels=str(vocabulary))
    result = annif.read([DATA / "fulltext"], options)
    documents = {record["id"]: record for record in result.documents}
    assert documents["doc2"]["labels"] == [f"{EX}cs"]
    assert documents["json1"]["labels"] == [f"{EX}net", f"{EX}cs"]
    assert options.notes == ["1 subjects, such as 'unheard-of subject', are not in the vocabulary: left out"]
    assert {f"{EX}cs", f"{EX}net", f"{EX}ip"} <= {label.id for label in result.labels}


def test_the_language_of_a_vocabulary():
    _, labels = imported(DATA / "corpus.tsv", labels=str(SKOS), language="fi")
    assert labels[f"{EX}cs"].names[0] == "tietojenkäsittely"


def test_short_texts_in_tsv(tmp_path):
    documents, _ = imported(DATA / "corpus.tsv")
    assert documents["corpus.tsv:1"]["abstract"] == "A short title"
    assert documents["corpus.tsv:1"]["labels"] == [f"{EX}net", f"{EX}cs"]
    packed = tmp_path / "corpus.tsv.gz"
    packed.write_bytes(gzip.compress((DATA / "corpus.tsv").read_bytes()))
    assert imported(packed)[0] == documents


def test_short_texts_in_csv():
    documents, _ = imported(DATA / "corpus.csv")
    assert documents["c1"]["title"] == "Switches"
    assert documents["c1"]["abstract"] == "How a switch, any switch, works"
    assert documents["c1"]["labels"] == [f"{EX}net"]
    assert documents["c1"]["author"] == "Ada"
    assert documents["corpus.csv:3"]["abstract"] == 'Text "alone"'


def test_json_lines():
    documents, _ = imported(DATA / "corpus.jsonl")
    assert documents["j1"]["labels"] == [f"{EX}ip"]
    assert documents["corpus.jsonl:2"]["abstract"] == "No id here"


def test_metadata_of_our_own_names(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,authors,venue,id,labels\nhello,Ada,WWW,x,y\n")
    documents, _ = imported(path)
    assert documents == {
        "a.csv:2": {
            "id": "a.csv:2",
            "title": "",
            "abstract": "hello",
            "authors": ["Ada"],
            "references": [],
            "labels": [],
            "venue": "WWW",
        }
    }


@pytest.mark.parametrize("name", ["fulltext", "corpus.tsv", "corpus.csv"])
def test_a_corpus_reads_them_as_they_are(name):
    corpus = Corpus.read(DATA / name)
    assert corpus.ids == [record["id"] for record in annif.documents(DATA / name)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", b"no tab\n", "a.tsv:1: expected a text, a tab and subject URIs"),
        ("a.tsv", b"\xff\t<u>\n", "a.tsv:1: byte 1 of the line is not UTF-8"),
        ("a.csv", b"title,subject\n", 'a.csv: expected a header with a column "text"'),
        ("a.csv", b"", 'a.csv: expected a header with a column "text"'),
        ("a.csv", b"text\none,two\n", "a.csv:2: the row has more fields than the header"),
        ("a.csv", b'text\n"open', "a.csv:2: not valid CSV from here on"),
        ("a.csv", b'text\n"two\nlines"\n"open\nand open', "a.csv:4: not valid CSV from here on"),
        ("a.csv", b"text\n\xff\n", "a.csv:1: not UTF-8 from about here on"),
        ("a.jsonl", b'{"subjects": 3}\n', 'a.jsonl:1: "subjects" must be an array'),
        ("a.jsonl", b'{"metadata": {"title": {}}}\n', 'a.jsonl:1: "title" must be a string'),
        ("a.doc", b"", "a.doc: expected an Annif corpus"),
    ],
)
def test_a_bad_corpus_is_named(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(MicolError) as caught:
        imported(path)
    assert message in str(caught.value)


def test_an_empty_folder(tmp_path):
    with pytest.raises(MicolError, match=r"no \.txt or \.json file in this folder"):
        imported(tmp_path)


def test_a_bad_file_in_a_folder(tmp_path):
    (tmp_path / "a.json").write_text("[]")
    (tmp_path / "b.txt").write_bytes(b"\xff")
    (tmp_path / "c.txt").write_text("good")
    with pytest.raises(MicolError, match=r"a\.json:1: the document must be an object"):
        imported(tmp_path)
    options = Options(skip_bad=True)
    documents = list(annif.read([tmp_path], options).documents)
    assert [record["abstract"] for record in documents] == ["", "good"]
    assert len(options.skipped) == 2
