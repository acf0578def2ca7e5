"""The scanner against Python's JSON parser, and the cutting of files into blocks."""

import gzip
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from micol import jsonl
from micol.corpus import document_layout
from micol.errors import MicolError
from micol.jsonl import Block, blocks_of, exactly, quickly
from micol.layout import Layout, Problems
from micol.scan import scanned
from micol.schema import DEFAULT_SCHEMA, Schema

LAYOUT = document_layout(DEFAULT_SCHEMA)
RELEASE = LAYOUT.suited_to({"paper"})

names = st.one_of(st.text(max_size=6), st.sampled_from(["a", "b", "10.1/x", "é", "😀", ""]))
scalars = st.one_of(
    names,
    st.none(),
    st.booleans(),
    st.integers(-(10**25), 10**25),
    st.floats(),
    st.sampled_from([0, -0.0, 7, 10**18]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(names, inner, max_size=3)),
    max_leaves=8,
)
lists = st.one_of(
    names, st.none(), st.lists(st.one_of(names, st.none(), st.integers(-9, 9)), max_size=5), values
)
records = st.fixed_dictionaries(
    {},
    optional={
        "id": st.one_of(names, st.integers(0, 50), values),
        "paper": names,
        "title": st.one_of(names, st.none(), values),
        "abstract": names,
        "text": st.one_of(names, st.lists(names, max_size=3)),
        "authors": lists,
        "author": lists,
        "venue": lists,
        "references": lists,
        "citations": lists,
        "labels": lists,
        "year": values,
        "extra": values,
    },
)


@st.composite
def lines(draw):
    """A record as JSON, in any of the ways one may write it."""
    record = draw(records)
    separators = draw(st.sampled_from([(", ", ": "), (",", ":"), (" ,\t", " :\r ")]))
    text = json.dumps(record, ensure_ascii=draw(st.booleans()), separators=separators)
    text = draw(st.sampled_from(["", " ", "\t"])) + text + draw(st.sampled_from(["", " ", "\r", " x", "{}"]))
    return text.replace("\n", " ").encode("utf-8", "replace")


# Pieces of JSON, and of what is nearly JSON, put together without care: a key may come twice.
raw_keys = st.sampled_from(rb'"id" "id" "id" "title" "text" "authors" "venue" "x" "\u0069d" "" id "i'.split())
raw_strings = rb"""
    "a" "b" "" "\u0041" "\u00e9" "\u07ff" "\uffff" "\ud83d\ude00" "\ud800" "\ud800x" "\ud800\u0041" "\udc00"
    "\u12" "\u00G0" "\x" "\"\\\/\b\f\n\r\t" "\" "
"""
raw_others = rb"""
    0 -0 7 -7 01 -01 1. .5 1.5 1e5 1E+5 1e - + 1x 0x1 1234567890123456789012
    null true false nul nulll True NaN -Infinity [] {} [ ] , :
"""
raw_bytes = [
    b'"\x00"',
    b'"\x1f"',
    b'"\x7f"',
    b'"\xc3\xa9"',
    b'"\xff"',
    b'"\xed\xa0\x80"',
    b"\x0c",
    b'"a" "b"',
    b"",
]
raw_scalars = st.sampled_from([*raw_strings.split(), *raw_others.split(), *raw_bytes])


def joined(pieces):
    return b",".join(pieces)


raw_values = st.recursive(
    raw_scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: b"[" + joined(items) + b"]"),
        st.lists(st.tuples(raw_keys, inner), max_size=2).map(
            lambda items: b"{" + joined(key + b":" + value for key, value in items) + b"}"
        ),
    ),
    max_leaves=4,
)
raw_lines = st.tuples(
    st.lists(st.tuples(raw_keys, raw_values), max_size=4),
    st.sampled_from([b"", b"", b"", b" ", b",", b"}", b"{}"]),
).map(
    lambda parts: (
        b'{"id":"a"' + b"".join(b"," + key + b":" + value for key, value in parts[0]) + b"}" + parts[1]
    )
)


def same(block, layout):
    quick, exact = quickly(block, layout), exactly(block, layout)
    assert quick.table.equals(exact.table)
    assert [(line, error.problem) for line, error in quick.errors] == [
        (line, error.problem) for line, error in exact.errors
    ]


@given(st.lists(st.one_of(lines(), st.binary(max_size=12)), max_size=5), st.booleans())
@settings(max_examples=120, deadline=None)
def test_both_ways_give_the_same_table_and_the_same_errors(content, is_release):
    same(Block(b"\n".join(content), 1), RELEASE if is_release else LAYOUT)


@given(st.lists(lines(), max_size=5))
@settings(max_examples=80, deadline=None)
def test_both_ways_agree_where_texts_are_not_read(content):
    same(Block(b"\n".join(content) + b"\n", 7), document_layout(DEFAULT_SCHEMA, text=False))


@given(st.lists(raw_lines, min_size=1, max_size=8))
@settings(max_examples=250, deadline=None)
def test_both_ways_agree_on_what_is_nearly_json(content):
    same(Block(b"\n".join(content), 1), LAYOUT)


TRICKY = [
    b'{"id":"a","id":"b"}',
    b'{"id":"a","title":"t","x":1,"title":"u"}',
    b'{"\\u0069d":"a"}',
    b'{"id":"a","\\u0069d":"b"}',
    b'{"id":-0}',
    b'{"id":"a","authors":[-0,0,"0"]}',
    b'{"id":01}',
    b'{"id":"a","x":01}',
    b'{"id":"a","x":-01}',
    b'{"id":"a","title":"\\udc00"}',
    b'{"id":"a","title":"\\ud800\\u0041"}',
    b'{"id":"a","title":"\\ud83d\\ude00"}',
    b'{"id":"a","x":"\\ud800"}',
    b'{"id":"a","x":"\xff"}',
    b'{"id":"a","title":"\xed\xa0\x80"}',
    b'{"id":"a"}\x0c',
    b'{"id":"a"} {"id":"b"}',
    b'{"id":"a"}\r{"id":"b"}',
    b'{"id":"a"}null',
    b"null",
    b"{}",
    b'{"id":"a",}',
    b'{,"id":"a"}',
    b'{"id":"a","authors":["x",]}',
    b'{"id":"a","authors":[,"x"]}',
    b'{"id":"a","authors":["x" "y"]}',
    b'{"id":"a","x":[{}],"y":{"z":[]}}',
    b'{"id":"a","x":[1}',
    b'{"id":"a","x":{"y":1]}',
    b'{"id":"a","x":{"y"}}',
    b'{"id":"a","x":{"y":}}',
    b'{"id":"a","authors":[null,"x",null]}',
    b'{"id":"a","authors":["x",["y"]]}',
    b'{"id":"a","authors":true}',
    b'{"id":"a","title":["t","u"]}',
    b'{"id":"a","title":5}',
    b'{"id":null}',
    b'{"id":""}',
    b'{"id":"a',
    b'{"id":"a\\',
    b'{"id":"a\\u',
    b"{",
]


@pytest.mark.parametrize("line", TRICKY, ids=repr)
def test_both_ways_agree_on_tricky_lines(line):
    for end in (b"", b"\n", b'\n{"id":"z"}\n'):
        same(Block(b'{"id":"first"}\n' + line + end, 1), LAYOUT)


strings = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
plain_records = st.fixed_dictionaries(
    {"id": st.one_of(strings.filter(bool), st.integers(0, 10**15))},
    optional={
        "title": st.one_of(strings, st.none()),
        "text": strings,
        "authors": st.one_of(
            strings, st.none(), st.lists(st.one_of(strings, st.integers(-9, 9)), max_size=5)
        ),
        "venue": strings,
        "year": st.integers(),
        "scores": st.dictionaries(st.text("abc"), st.lists(st.floats(allow_nan=False, allow_infinity=False))),
        "open": st.sampled_from([True, False, None]),
    },
)


@given(st.lists(plain_records, max_size=5), st.booleans())
@settings(max_examples=80, deadline=None)
def test_the_scanner_takes_every_plain_record_itself(content, ensure_ascii):
    text = "".join(json.dumps(record, ensure_ascii=ensure_ascii) + "\n" for record in content)
    table, others = scanned(text.encode(), 1, len(content), LAYOUT)
    assert not others
    assert len(table) == len(content)


def test_deep_nesting_long_lists_and_long_numbers_are_judged_exactly():
    deep = b'{"id":"a","x":' + b"[" * 500 + b"]" * 500 + b"}\n"
    deeper = b'{"id":"b","x":' + b"[" * 200_000 + b"\n"
    long_list = json.dumps({"id": "c", "authors": [str(n % 700) for n in range(2000)]}).encode() + b"\n"
    digits = b'{"id":"d","x":' + b"1" * 5000 + b"}\n"
    block = Block(deep + deeper + long_list + digits, 1)
    same(block, LAYOUT)
    table, errors = quickly(block, LAYOUT)
    assert table["id"].to_pylist() == ["a", "c"]
    assert len(table["authors"][1]) == 700
    assert [line for line, _ in errors] == [2, 4]


def test_a_substitute_counts_only_where_the_field_itself_is_empty():
    block = Block(
        b'{"id":1,"text":"t"}\n{"id":2,"abstract":"a","text":"t"}\n{"id":3,"abstract":"","text":"t"}\n', 1
    )
    same(block, LAYOUT)
    assert quickly(block, LAYOUT).table["abstract"].to_pylist() == ["t", "a", "t"]


def test_many_fields_and_keys_that_begin_alike():
    schema = Schema(nodes={letter: f"field_{letter}" for letter in "ABCDEFGHIJKLMN"}, links={})
    layout = document_layout(schema)
    record = {"id": "x", "field": "no", **{f"field_{letter}": [letter] for letter in "ABCDEFGHIJKLMN"}}
    block = Block(json.dumps(record).encode(), 1)
    same(block, layout)
    assert quickly(block, layout).table["field_N"].to_pylist() == [["N"]]


# --- blocks ---------------------------------------------------------------------------------------------


@pytest.fixture
def tiny_blocks(monkeypatch):
    monkeypatch.setattr(jsonl, "BLOCK_BYTES", 16)
    monkeypatch.setattr(jsonl, "PIECE_BYTES", 5)
    monkeypatch.setattr(jsonl, "MAX_LINE_BYTES", 40)


@given(content=st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")), max_size=20))
@settings(max_examples=80, deadline=None)
def test_blocks_keep_every_byte_and_know_their_first_line(content):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl, "BLOCK_BYTES", 16)
        patch.setattr(jsonl, "PIECE_BYTES", 5)
        data = b"\n".join(content)
        blocks = list(blocks_of(io.BufferedReader(io.BytesIO(data)), Problems("f", False)))
    assert b"".join(block.data for block in blocks) == data.removeprefix(jsonl.BYTE_ORDER_MARK)
    assert all(block.data.endswith(b"\n") for block in blocks[:-1])
    line = 1
    for block in blocks:
        assert block.first_line == line
        line += block.data.count(b"\n")


@pytest.mark.usefixtures("tiny_blocks")
def test_a_gigantic_line_is_left_out_and_the_lines_around_it_are_not():
    data = b"one\n" + b"x" * 100 + b"\nthree\n" + b"y" * 200
    problems = Problems("f", skip_bad=True)
    blocks = list(blocks_of(io.BytesIO(data), problems))
    assert b"".join(block.data for block in blocks) == b"one\nthree\n"
    assert [block.first_line for block in blocks if block.data == b"three\n"] == [3]
    assert [message.split(":")[1] for message in problems.skipped] == ["2", "4"]
    with pytest.raises(MicolError, match=r"^f:2: the line is longer than .*; write each record on a line"):
        list(blocks_of(io.BytesIO(data), Problems("f", skip_bad=False)))


@pytest.mark.usefixtures("tiny_blocks")
@pytest.mark.parametrize("length", [38, 39, 40, 41, 42])
@pytest.mark.parametrize("before", range(18))
def test_the_limit_of_a_line_does_not_depend_on_where_it_stands(length, before):
    data = b"-" * before + b"\n" + b"x" * length + b"\nend\n"
    problems = Problems("f", skip_bad=True)
    kept = b"".join(block.data for block in blocks_of(io.BytesIO(data), problems))
    assert (len(problems.skipped) == 1) == (length > 40)
    assert kept.endswith(b"end\n")


def test_what_stands_before_the_damage_is_kept_when_bad_records_are_skipped():
    data = "".join(json.dumps({"id": n, "text": "word " * (n % 7)}) + "\n" for n in range(20_000)).encode()
    packed = gzip.compress(data)[:-2000]
    problems = Problems("f.gz", skip_bad=True)
    with gzip.open(io.BytesIO(packed)) as stream:
        kept = b"".join(block.data for block in blocks_of(stream, problems))
    assert kept.endswith(b"}\n")
    assert data.startswith(kept)
    assert len(kept) > len(data) // 2
    line = len(kept.splitlines()) + 1
    assert problems.skipped[0].startswith(f"f.gz:{line}: the file is cut short or damaged")


def test_a_layout_of_texts_alone_and_of_lists_alone():
    for layout in (Layout("thing", ("title",), ()), Layout("thing", (), ("tags",))):
        same(Block(b'{"id": "a", "title": "t", "tags": ["x", "x", ""]}', 1), layout)
