"""Documents that cannot be read: one sentence each, or a list of what was left out."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from document_files import FORMATS, RECORDS, assert_one_line, lines, message_of, written
from micol import Corpus, MicolError, jsonl


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("MICOL_CACHE", str(tmp_path_factory.mktemp("cache")))


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
