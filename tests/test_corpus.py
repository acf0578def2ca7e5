"""Reading, checking, selecting and writing documents."""

import io
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from document_files import FORMATS, RECORDS, lines, message_of, written
from micol import Corpus, Document, MicolError, Schema, columns, jsonl
from micol.errors import UsageError
from micol.schema import DEFAULT_SCHEMA


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("MICOL_CACHE", str(tmp_path_factory.mktemp("cache")))


# --- what a corpus is -----------------------------------------------------------------------------------


def test_a_corpus_is_a_table_without_nulls_in_one_chunk():
    corpus = Corpus.from_records(RECORDS)
    strings = pa.list_(pa.string())
    assert corpus.table.schema == pa.schema(
        [("id", pa.string()), ("title", pa.string()), ("abstract", pa.string())]
        + [(name, strings) for name in ("authors", "venue", "references", "citations", "labels")]
    )
    assert all(column.num_chunks == 1 and column.null_count == 0 for column in corpus.table.columns)
    assert corpus.schema is DEFAULT_SCHEMA
    assert corpus.source == "records"


def test_documents_come_out_as_they_went_in():
    corpus = Corpus.from_records(RECORDS)
    assert len(corpus) == 3
    assert corpus[1] == Document(
        "d2", "Two", "", {"authors": ("a2",), "venue": (), "references": ("d1", "x9")}, ("l1", "l2")
    )
    assert corpus[-1].metadata["citations"] == ("d1",)
    assert list(corpus) == [corpus[0], corpus[1], corpus[2]]
    assert corpus.ids == ["d1", "d2", "d3"]
    assert [corpus.position(id) for id in corpus.ids] == [0, 1, 2]
    assert corpus.gold == [(), ("l1", "l2"), ()]
    assert corpus.texts() == ["One\nFirst.", "Two", "Third text."] == [document.text for document in corpus]
    assert corpus.texts([2, 0]) == ["Third text.", "One\nFirst."]
    with pytest.raises(IndexError):
        corpus[3]
    with pytest.raises(MicolError, match="no document has the id 'd9'"):
        corpus.position("d9")


def test_lists_are_row_pointers_and_values():
    indptr, values = Corpus.from_records(RECORDS).lists("references")
    assert indptr.dtype == np.int64
    assert indptr.tolist() == [0, 0, 2, 3]
    assert isinstance(values, pa.StringArray)
    assert values.to_pylist() == ["d1", "x9", "d2"]
    with pytest.raises(UsageError, match="'refs' is no field"):
        Corpus.from_records(RECORDS).lists("refs")


def test_selected_documents_come_in_the_order_asked_for():
    corpus = Corpus.from_records(RECORDS).select([2, 0])
    assert corpus.ids == ["d3", "d1"]
    indptr, values = corpus.lists("references")
    assert (indptr.tolist(), values.to_pylist()) == ([0, 1, 1], ["d2"])
    assert len(corpus.select(np.array([], dtype=int))) == 0
    assert corpus.select([]).lists("authors")[0].tolist() == [0]


def test_columns_too_large_for_one_chunk_are_used_as_they_are(monkeypatch):
    whole = Corpus.from_records(RECORDS)
    parts = Corpus(pa.concat_tables([whole.table.slice(n, 1) for n in range(3)]), whole.schema, "parts")
    monkeypatch.setattr(columns, "ROWS_AT_A_TIME", 2)
    monkeypatch.setattr(columns, "LARGEST_CHUNK", 3)
    assert parts.select([2, 0, 1, 2]).table.equals(whole.select([2, 0, 1, 2]).table)
    assert parts.texts([1, 2, 0]) == whole.texts([1, 2, 0])
    assert list(parts) == list(whole)
    indptr, values = parts.lists("references")
    assert indptr.tolist() == [0, 0, 2, 3]
    assert values.type == pa.large_string()
    assert values.to_pylist() == ["d1", "x9", "d2"]


def test_an_empty_collection_of_records_is_an_empty_corpus():
    corpus = Corpus.from_records([])
    assert (len(corpus), corpus.ids, corpus.texts(), corpus.gold) == (0, [], [], [])


def test_any_schema():
    schema = Schema(nodes={"U": "user", "H": "hashtags"}, links={"R": "replies_to"}, document="R")
    records = [{"id": 1, "text": "hi", "user": "u", "hashtags": ["x", "y"]}, {"id": 2, "replies_to": 1}]
    corpus = Corpus.from_records(records, schema)
    assert corpus.lists("replies_to")[1].to_pylist() == ["1"]
    assert corpus[0].metadata == {"user": ("u",), "hashtags": ("x", "y"), "replies_to": ()}


def test_what_is_legitimate_is_made_regular():
    corpus = Corpus.from_records(
        [
            {
                "id": 7,
                "title": None,
                "abstract": ["Two", "", "parts"],
                "authors": "only one",
                "venue": ["V", "W"],
            },
            {"id": "8", "authors": ["b", "a", "b", "", None, 5, "5"], "references": [7, 9], "year": {"x": 1}},
        ]
    )
    assert corpus.ids == ["7", "8"]
    assert corpus[0].text == "Two parts"
    assert corpus[0].metadata == {"authors": ("only one",), "venue": ("V", "W"), "references": ()}
    assert corpus[1].metadata == {"authors": ("b", "a", "5"), "venue": (), "references": ("7", "9")}


def test_the_original_release_is_read_as_it_is(tmp_path):
    record = {
        "paper": "2001",
        "text": "some text",
        "venue": "WWW",
        "author": ["1", "2"],
        "reference": ["2002"],
        "citation": ["2003"],
        "label": ["l1"],
    }
    corpus = Corpus.read(written(tmp_path / "MAG_test.json", [record]))
    assert corpus[0] == Document(
        "2001",
        "",
        "some text",
        {"authors": ("1", "2"), "venue": ("WWW",), "references": ("2002",), "citations": ("2003",)},
        ("l1",),
    )
    assert Corpus.from_records([record]).fingerprint == corpus.fingerprint


# --- files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
def test_a_corpus_written_and_read_is_the_same(tmp_path, name):
    corpus = Corpus.from_records(RECORDS)
    corpus.write(tmp_path / "out" / name)
    again = Corpus.read(tmp_path / "out" / name)
    assert again.table.equals(corpus.table)
    assert again.fingerprint == corpus.fingerprint
    assert [path.name for path in (tmp_path / "out").iterdir()] == [name]


def test_writing_needs_a_format_it_knows(tmp_path):
    with pytest.raises(UsageError, match="cannot tell the format; name the file"):
        Corpus.from_records(RECORDS).write(tmp_path / "docs.csv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", FORMATS[:3])
def test_files_on_both_sides_of_the_scanner_give_the_same(tmp_path, monkeypatch, name):
    records = [{**record, "id": f"{record['id']}-{n}"} for n in range(300) for record in RECORDS]
    records[40]["authors"] = ["x", ["y"]]
    records[50]["title"] = 5
    records[60]["id"] = records[10]["id"]
    records[70]["references"] = [records[70]["id"], "other"]
    path = written(tmp_path / name, records)
    exact = Corpus.read(path, skip_bad=True)
    monkeypatch.setattr(jsonl, "SCANNED_FROM", 0)
    monkeypatch.setattr(jsonl, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(jsonl, "PIECE_BYTES", 300)
    quick = Corpus.read(path, skip_bad=True)
    assert quick.table.equals(exact.table)
    assert quick.skipped == exact.skipped
    assert len(quick.skipped) == 4
    assert len(quick) == 897
    assert quick[quick.position(records[70]["id"])].metadata["references"] == ("other",)
    assert message_of(path) == message_of(path, text=False)


def test_texts_can_be_left_unread(tmp_path):
    path = written(tmp_path / "docs.jsonl", [*RECORDS, {"id": "d4", "title": 12}])
    corpus = Corpus.read(path, text=False)
    assert corpus.texts() == [""] * 4
    assert corpus.table.schema == Corpus.from_records(RECORDS).table.schema
    assert corpus.gold[1] == ("l1", "l2")
    Corpus.from_records(RECORDS).write(tmp_path / "docs.parquet")
    assert Corpus.read(tmp_path / "docs.parquet", text=False).table.equals(corpus.select([0, 1, 2]).table)


def test_several_files_are_one_corpus(tmp_path):
    first = written(tmp_path / "a.jsonl", RECORDS[:1])
    second = written(tmp_path / "b.jsonl.gz", RECORDS[1:])
    corpus = Corpus.read([first, str(second)])
    assert corpus.table.equals(Corpus.from_records(RECORDS).table)
    assert corpus.source == f"{first}, {second}"


def test_an_id_repeated_across_files_names_both_places(tmp_path):
    first = written(tmp_path / "a.jsonl", [*RECORDS, {"id": "d4"}])
    second = tmp_path / "b.parquet"
    pq.write_table(pa.table({"id": ["e1", "d3"]}), second)
    with pytest.raises(MicolError) as caught:
        Corpus.read([first, second])
    message = str(caught.value).replace(f"{tmp_path}/", "")
    assert message.startswith("b.parquet, record 2: the id 'd3' was already given at a.jsonl:3; give every")
    corpus = Corpus.read([first, second], skip_bad=True)
    assert corpus.ids == ["d1", "d2", "d3", "d4", "e1"]
    assert len(corpus.skipped) == 1


def test_no_file_at_all():
    with pytest.raises(UsageError, match="give at least one file"):
        Corpus.read([])


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines(RECORDS))))
    corpus = Corpus.read("-")
    assert corpus.ids == ["d1", "d2", "d3"]
    assert not sys.stdin.buffer.closed
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{")))
    with pytest.raises(MicolError, match=r"^standard input:1: not valid JSON"):
        Corpus.read("-")


def test_blank_lines_and_a_byte_order_mark_are_fine(tmp_path):
    content = b"\xef\xbb\xbf" + lines(RECORDS[:1]) + b"\n  \r\n" + lines(RECORDS[1:]).replace(b"\n", b"\r\n")
    assert Corpus.read(written(tmp_path / "docs.jsonl", content)).ids == ["d1", "d2", "d3"]


def test_annif_corpora_are_read_as_they_are(tmp_path):
    path = written(
        tmp_path / "corpus.tsv",
        b"A text\t<http://e.org/1> <http://e.org/2>\nno tab\nOther\t<http://e.org/1>\n",
    )
    assert message_of(path).startswith("corpus.tsv:2: expected a text, a tab and subject URIs")
    corpus = Corpus.read(path, skip_bad=True)
    assert corpus.texts() == ["A text", "Other"]
    assert corpus.gold[0] == ("http://e.org/1", "http://e.org/2")
    assert len(corpus.skipped) == 1
    folder = tmp_path / "folder"
    folder.mkdir()
    written(folder / "one.txt", b"The text.")
    written(folder / "one.tsv", b"<http://e.org/1>\tname\n")
    corpus = Corpus.read(folder)
    assert (corpus.ids, corpus.texts(), corpus.gold) == (["one"], ["The text."], [("http://e.org/1",)])


# --- Parquet --------------------------------------------------------------------------------------------


def test_parquet_columns_of_other_types(tmp_path):
    table = pa.table(
        {
            "id": pa.array([1, 2], pa.int32()),
            "title": pa.array(["x", None], pa.large_string()),
            "text": pa.array([["p", "", "q"], None], pa.list_(pa.string())),
            "authors": pa.array([[5, 6, 5], None], pa.large_list(pa.int64())),
            "venue": pa.array(["V", "V"]).dictionary_encode(),
            "references": pa.array([["r", None, ""], []], pa.list_(pa.large_string())),
            "year": pa.array([1.5, 2.5]),
        }
    )
    path = tmp_path / "docs.parquet"
    pq.write_table(table, path)
    corpus = Corpus.read(path)
    assert corpus[0] == Document(
        "1", "x", "p q", {"authors": ("5", "6"), "venue": ("V",), "references": ("r",)}
    )
    assert corpus[1] == Document("2", "", "", {"authors": (), "venue": ("V",), "references": ()})
    release = tmp_path / "release.parquet"
    pq.write_table(
        table.rename_columns({"id": "paper", "authors": "author", "references": "reference"}), release
    )
    assert Corpus.read(release).table.equals(corpus.table)


def test_parquet_with_wrong_columns(tmp_path):
    path = tmp_path / "docs.parquet"
    pq.write_table(pa.table({"id": ["a"], "authors": [{"name": "x"}]}), path)
    assert message_of(path) == (
        'docs.parquet: column "authors" must hold strings or lists of strings, got struct<name: string>; '
        "write its values as strings"
    )
    pq.write_table(pa.table({"id": ["a"], "title": [3]}), path)
    assert 'column "title" must hold strings, got int64' in message_of(path)
    pq.write_table(pa.table({"id": [["a"]]}), path)
    assert 'column "id" must hold strings' in message_of(path)
    pq.write_table(pa.table({"name": ["a", "b"]}), path)
    assert message_of(path).startswith('docs.parquet, record 1: the document has no "id"')
    pq.write_table(pa.table({"id": ["a", None, ""]}), path)
    assert message_of(path).startswith('docs.parquet, record 2: the document has no "id"')
    assert Corpus.read(path, skip_bad=True).ids == ["a"]
    pq.write_table(pa.table({"id": pa.array([b"\xff"])}), path)
    assert "cut short or damaged" in message_of(path)
    pq.write_table(pa.table({"id": pa.array([], pa.string())}), path)
    assert "no documents in it" in message_of(path)


# --- fingerprints ---------------------------------------------------------------------------------------


def test_the_fingerprint_is_of_the_content():
    corpus = Corpus.from_records(RECORDS)
    parts = pa.concat_tables([corpus.table.slice(n, 1) for n in range(3)])
    assert Corpus(parts, corpus.schema, "parts").fingerprint == corpus.fingerprint
    unlabelled = [{key: value for key, value in record.items() if key != "labels"} for record in RECORDS]
    assert Corpus.from_records(unlabelled).fingerprint == corpus.fingerprint
    reordered = Schema(nodes={"V": "venue", "A": "authors"})
    assert Corpus.from_records(RECORDS, reordered).fingerprint == corpus.fingerprint


CHANGES = [
    {"id": "d0"},
    {"title": "one"},
    {"title": "OneF", "abstract": "irst."},
    {"authors": ["a2", "a1"]},
    {"authors": ["a1a", "2"]},
    {"venue": ["W", "WW"]},
    {"citations": ["d7"]},
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_any_change_changes_the_fingerprint(change):
    before = Corpus.from_records(RECORDS)
    assert Corpus.from_records([RECORDS[0] | change, *RECORDS[1:]]).fingerprint != before.fingerprint
    assert before.select([1, 0, 2]).fingerprint != before.fingerprint
