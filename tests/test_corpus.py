"""Reading, checking, selecting and writing documents."""

import gzip
import io
import json
import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from micol import Corpus, Document, MicolError, Schema, cache, columns, jsonl
from micol.errors import UsageError
from micol.schema import DEFAULT_SCHEMA

RECORDS = [
    {"id": "d1", "title": "One", "abstract": "First.", "authors": ["a1", "a2"], "venue": "WWW"},
    {"id": "d2", "title": "Two", "authors": ["a2"], "references": ["d1", "x9"], "labels": ["l1", "l2"]},
    {"id": "d3", "text": "Third text.", "venue": "KDD", "references": ["d2"], "citations": ["d1"]},
]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("MICOL_CACHE", str(tmp_path_factory.mktemp("cache")))


def lines(records):
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def written(path, content):
    path = Path(path)
    data = content if isinstance(content, bytes) else lines(content)
    if path.suffix == ".gz":
        data = gzip.compress(data)
    if path.suffix == ".zst":
        data = zstd(data)
    path.write_bytes(data)
    return path


def zstd(data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def message_of(path, **options):
    """The one sentence with which reading stops, without the folder's name."""
    with pytest.raises(MicolError) as caught:
        Corpus.read(path, **options)
    assert_one_line(caught.value)
    return str(caught.value).replace(f"{Path(path).parent}/", "")


def assert_one_line(error):
    assert "\n" not in str(error)


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

FORMATS = ["docs.jsonl", "docs.jsonl.gz", "docs.jsonl.zst", "docs.parquet"]


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


# --- bad input ------------------------------------------------------------------------------------------

REMEDY = ", or leave bad records out with --skip-bad"
AN_OBJECT = 'expected an object such as {"id": …}, got %s; write each document as one JSON object on a line'
AN_ID = "give every document an id of its own"
PLAIN_NAMES = "must be a string or a list of strings, got %s; write its names or ids as plain strings"
BAD_LINES = [
    (
        b'{"id": "x", "title": "y"',
        "not valid JSON (Expecting ',' delimiter at character 25); correct the line",
    ),
    (b"[", "not valid JSON (Expecting value at character 2); write each record as one object on one line"),
    (b'["x"]', AN_OBJECT % "an array"),
    (b"null", AN_OBJECT % "null"),
    (b'{"title": "y"}', f'the document has no "id"; {AN_ID}'),
    (b'{"id": ""}', f'the document has no "id"; {AN_ID}'),
    (b'{"id": 1.5}', '"id" must be a string or a whole number, got the number 1.5; write the id as a string'),
    (b'{"id": true}', '"id" must be a string or a whole number, got true; write the id as a string'),
    (b'{"id": "d1"}', f"the id 'd1' was already given at docs.jsonl:1; {AN_ID}"),
    (b'{"id": "x", "title": 3}', '"title" must be a string, got the number 3; write it as a string'),
    (b'{"id": "x", "abstract": ["a", 3]}', '"abstract" must be a string, got an array; write it as a string'),
    (b'{"id": "x", "authors": {"n": 1}}', f'"authors" {PLAIN_NAMES % "an object"}'),
    (b'{"id": "x", "authors": ["a", false]}', f'"authors" {PLAIN_NAMES % "false in its list"}'),
    (b'{"id": "x", "labels": [["l"]]}', f'"labels" {PLAIN_NAMES % "an array in its list"}'),
    (b'{"id": "x", "title": "caf\xe9"}', "byte 26 of the line is not UTF-8; convert it to UTF-8"),
    (b'{"id": "x", "title": "\\ud800"}', "a string holds half a character (a lone \\ud800 to \\udfff); take"),
    (
        b'{"id": "x", "n": ' + b"[" * 99_999 + b"}",
        "not JSON that can be read (maximum recursion depth exceeded",
    ),
    (b'{"id": ' + b"1" * 5000 + b"}", "not JSON that can be read (Exceeds the limit (4300 digits)"),
]


@pytest.mark.parametrize(("line", "expected"), BAD_LINES, ids=lambda part: repr(part)[:40])
@pytest.mark.parametrize("is_scanned", [False, True])
def test_bad_lines_stop_with_one_sentence_or_are_listed(tmp_path, monkeypatch, line, expected, is_scanned):
    if is_scanned:
        monkeypatch.setattr(jsonl, "SCANNED_FROM", 0)
    content = lines(RECORDS[:1]) + b"\n" + line + b"\n" + lines(RECORDS[1:])
    path = written(tmp_path / "docs.jsonl", content)
    message = message_of(path)
    assert message.startswith(f"docs.jsonl:3: {expected}")
    assert message.endswith(REMEDY)
    corpus = Corpus.read(path, skip_bad=True)
    assert corpus.ids == ["d1", "d2", "d3"]
    assert len(corpus.skipped) == 1
    skipped = corpus.skipped[0].replace(f"{tmp_path}/", "")
    assert skipped.startswith(f"docs.jsonl:3: {expected.split(';')[0]}")


@pytest.mark.parametrize("name", ["docs.jsonl", "docs.parquet"])
@pytest.mark.parametrize("field", ["references", "citations"])
def test_a_reference_to_itself_is_left_out_but_not_its_document(tmp_path, name, field):
    path = tmp_path / name
    records = [RECORDS[0], {"id": "d5", field: ["d1", "d5", "d2"]}]
    if name.endswith("parquet"):
        fields = pa.schema([("id", pa.string()), (field, pa.list_(pa.string()))])
        pq.write_table(pa.Table.from_pylist(records, fields), path)
    else:
        written(path, records)
    place = "docs.parquet, record 2" if name.endswith("parquet") else "docs.jsonl:2"
    assert message_of(path) == (
        f"{place}: \"{field}\" of 'd5' names the document itself; take that reference out{REMEDY}"
    )
    corpus = Corpus.read(path, skip_bad=True)
    assert len(corpus.skipped) == 1
    assert corpus.lists(field)[1].to_pylist() == ["d1", "d2"]


def test_every_repetition_of_an_id_is_listed(tmp_path):
    path = written(tmp_path / "docs.jsonl", [{"id": "a", "title": str(n)} for n in range(4)] + [{"id": "b"}])
    corpus = Corpus.read(path, skip_bad=True)
    assert [(document.id, document.title) for document in corpus] == [("a", "0"), ("b", "")]
    assert corpus.skipped == [f"{path}:{n}: the id 'a' was already given at {path}:1" for n in (2, 3, 4)]


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", b" \r\n"])
@pytest.mark.parametrize("name", FORMATS[:3])
def test_an_empty_file(tmp_path, name, content):
    path = written(tmp_path / name, content)
    for skip_bad in (False, True):
        message = message_of(path, skip_bad=skip_bad)
        assert message == f'{name}: no documents in it; expected one record a line, such as {{"id": "x1", …}}'


def test_a_file_of_which_nothing_is_left(tmp_path):
    path = written(tmp_path / "docs.jsonl", b"[1]\n{}\n")
    message = message_of(path, skip_bad=True)
    assert message.startswith("docs.jsonl: none of its 2 records can be used, the first because of this: ")


@pytest.mark.parametrize("name", ["docs.jsonl.gz", "docs.jsonl.zst"])
def test_a_truncated_file(tmp_path, name):
    path = written(tmp_path / name, [{"id": n, "title": f"Number {n * n % 977}"} for n in range(5000)])
    path.write_bytes(path.read_bytes()[:-100])
    message = message_of(path)
    assert ": the file is cut short or damaged here (" in message
    assert message.endswith("; copy, download or compress it again" + REMEDY)
    path.write_bytes(b"this is not compressed")
    assert message_of(path).startswith(f"{name}:1: the file is cut short or damaged here (")


def test_a_gigantic_line(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonl, "BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(jsonl, "MAX_LINE_BYTES", 1 << 20)
    giant = {"id": "giant", "title": "x" * (1 << 20)}
    path = written(tmp_path / "docs.jsonl", [*RECORDS, giant, {"id": "d4"}])
    assert message_of(path) == (
        f"docs.jsonl:4: the line is longer than 1 MiB; write each record on a line of its own{REMEDY}"
    )
    assert Corpus.read(path, skip_bad=True).ids == ["d1", "d2", "d3", "d4"]


def test_a_truncated_parquet_file(tmp_path):
    Corpus.from_records(RECORDS).write(tmp_path / "docs.parquet")
    (tmp_path / "docs.parquet").write_bytes((tmp_path / "docs.parquet").read_bytes()[:-30])
    assert message_of(tmp_path / "docs.parquet").startswith("docs.parquet: cut short or damaged (")


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_that_is_not_there(tmp_path, name):
    assert message_of(tmp_path / name) == f"{name}: no such file; check the path"


def test_records_in_memory_are_checked_alike():
    with pytest.raises(MicolError, match=r"^reviews, record 2: \"authors\" must be a string"):
        Corpus.from_records([{"id": 1}, {"id": 2, "authors": 1.5}], source="reviews")
    with pytest.raises(MicolError, match=r"record 2: the id '1' was already given at records, record 1"):
        Corpus.from_records([{"id": 1}, {"id": "1"}])
    with pytest.raises(MicolError, match=r"record 1: expected an object .*, got a set"):
        Corpus.from_records([{1}])


names = st.sampled_from(FORMATS)


@given(name=names, content=st.binary(max_size=200), cut=st.integers(0, 30), is_packed=st.booleans())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_make_a_corpus_or_one_clear_error(tmp_path, name, content, cut, is_packed):
    path = tmp_path / name
    if is_packed and not name.endswith("parquet"):
        written(path, content)
        path.write_bytes(path.read_bytes()[: -cut or None])
    else:
        path.write_bytes(content)
    for skip_bad in (False, True):
        try:
            assert isinstance(Corpus.read(path, skip_bad=skip_bad), Corpus)
        except MicolError as error:
            assert_one_line(error)


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


# --- the cache ------------------------------------------------------------------------------------------


@pytest.fixture
def cached(monkeypatch):
    """Files of any size are kept."""
    monkeypatch.setattr(cache, "SMALLEST_SOURCE", 0)


def kept():
    return sorted(cache.folder().glob("*")) if cache.folder().exists() else []


@pytest.mark.usefixtures("cached")
def test_a_second_read_comes_from_the_cache(tmp_path, monkeypatch):
    path = written(tmp_path / "docs.jsonl", RECORDS)
    first = Corpus.read(path)
    assert len(kept()) == 1
    monkeypatch.setattr(jsonl, "read", None)  # no reading any more
    again = Corpus.read(path)
    assert again.table.equals(first.table)
    assert again.fingerprint == first.fingerprint
    assert again.select([1]).ids == ["d2"]
    with pytest.raises(TypeError):
        Corpus.read(path, cache=False)


def test_small_files_are_not_kept(tmp_path):
    Corpus.read(written(tmp_path / "docs.jsonl", RECORDS))
    assert not kept()


@pytest.mark.usefixtures("cached")
def test_texts_that_were_kept_serve_a_read_without_them(tmp_path, monkeypatch):
    path = written(tmp_path / "docs.jsonl", RECORDS)
    unread = Corpus.read(path, text=False, cache=False)
    Corpus.read(path)
    monkeypatch.setattr(jsonl, "read", None)
    assert Corpus.read(path, text=False).table.equals(unread.table)


@pytest.mark.usefixtures("cached")
def test_a_record_left_out_for_its_text_is_there_without_texts(tmp_path):
    path = written(tmp_path / "docs.jsonl", [*RECORDS, {"id": "d4", "title": 12}])
    assert len(Corpus.read(path, skip_bad=True)) == 3
    assert len(Corpus.read(path, text=False)) == 4


@pytest.mark.usefixtures("cached")
def test_schema_and_texts_are_kept_apart(tmp_path):
    path = written(tmp_path / "docs.jsonl", RECORDS)
    assert Corpus.read(path, text=False).texts() == [""] * 3
    assert Corpus.read(path).texts()[1] == "Two"
    other = Schema(nodes={"V": "venue"}, links={})
    assert "authors" not in Corpus.read(path, other).table.column_names
    assert len(kept()) == 3


@pytest.mark.usefixtures("cached")
def test_a_changed_file_is_read_again_and_its_old_table_dropped(tmp_path):
    path = written(tmp_path / "docs.jsonl", RECORDS)
    other = written(tmp_path / "other.jsonl", RECORDS)
    Corpus.read(path, text=False)
    Corpus.read(path)
    Corpus.read(other)
    assert len(kept()) == 3
    written(path, RECORDS[:2])
    assert Corpus.read(path).ids == ["d1", "d2"]
    assert len(kept()) == 2


@pytest.mark.usefixtures("cached")
def test_what_was_skipped_is_kept_along(tmp_path):
    path = written(tmp_path / "docs.jsonl", [*RECORDS, {"id": "d1"}])
    first = Corpus.read(path, skip_bad=True)
    again = Corpus.read(path, skip_bad=True)
    assert again.skipped == first.skipped
    assert len(again.skipped) == 1
    assert "already given" in message_of(path)


@pytest.mark.usefixtures("cached")
@pytest.mark.parametrize("damage", ["cut", "noise", "empty", "flipped"])
def test_a_damaged_cache_is_read_again(tmp_path, damage):
    path = written(tmp_path / "docs.jsonl", RECORDS)
    first = Corpus.read(path)
    (file,) = kept()
    data = bytearray(file.read_bytes())
    if damage == "cut":
        data = data[: len(data) // 2]
    elif damage == "noise":
        data = bytearray(b"\xa5" * len(data))
    elif damage == "empty":
        data = bytearray()
    else:
        # Offsets and text in the middle of the file, not only its ends.
        data[len(data) // 4 : 3 * len(data) // 4] = b"\xff" * (len(data) // 2)
    file.unlink()
    file.write_bytes(data)
    assert Corpus.read(path).table.equals(first.table)
    assert len(kept()) == 1
    assert Corpus.read(path).table.equals(first.table)


@pytest.mark.usefixtures("cached")
def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    occupied = written(tmp_path / "occupied", b"a file, no folder")
    monkeypatch.setenv("MICOL_CACHE", str(occupied))
    assert len(Corpus.read(written(tmp_path / "docs.jsonl", RECORDS))) == 3


@pytest.mark.usefixtures("cached")
def test_the_oldest_tables_make_room(tmp_path, monkeypatch):
    paths = [written(tmp_path / f"{n}.jsonl", RECORDS) for n in range(4)]
    for age, path in enumerate(paths[:3]):
        before = set(kept())
        Corpus.read(path)
        (new,) = set(kept()) - before
        os.utime(new, (1000 + age, 1000 + age))
    oldest, second, third = sorted(kept(), key=lambda file: file.stat().st_mtime)
    Corpus.read(paths[0])  # used again: no longer the oldest
    monkeypatch.setattr(cache, "LARGEST_CACHE", 3 * oldest.stat().st_size + 100)
    Corpus.read(paths[3])
    assert oldest.exists()
    assert third.exists()
    assert not second.exists()
    leftover = written(cache.folder() / ".x.arrow.abc.tmp", b"half")
    os.utime(leftover, (1000, 1000))
    Corpus.read(paths[1])
    assert not leftover.exists()


def test_where_the_cache_lies(monkeypatch, tmp_path):
    monkeypatch.setenv("MICOL_CACHE", str(tmp_path / "own"))
    assert cache.folder() == tmp_path / "own" / "tables"
    monkeypatch.delenv("MICOL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "shared"))
    assert cache.folder() == tmp_path / "shared" / "micol" / "tables"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache.folder() == tmp_path / "home" / ".cache" / "micol" / "tables"
