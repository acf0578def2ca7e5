"""Reading predictions: the quick reader and the careful one agree, and bad lines are named."""

import gzip
import json
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from micol import MicolError
from micol.predictions import Predictions


def line(document, *labels):
    return json.dumps(
        {"id": document, "labels": [{"id": label, "name": label, "score": s} for label, s in labels]}
    )


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**6), 10**6)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(names, st.lists(st.tuples(names, numbers), max_size=5), min_size=1, max_size=5))
def test_what_is_written_is_read(tmp_path_factory, rows):
    path = tmp_path_factory.getbasetemp() / "written.jsonl"
    path.write_text("".join(line(document, *labels) + "\n" for document, labels in rows.items()))
    predictions = Predictions.read(path)
    assert predictions.ids == list(rows)
    once = [list(dict.fromkeys(label for label, _ in labels)) for labels in rows.values()]
    distinct = predictions.labels.to_pylist()
    read = [
        [distinct[code] for code in codes] for codes in np.split(predictions.codes, predictions.indptr[1:-1])
    ]
    assert read == once
    assert predictions.repeated_labels == sum(map(len, rows.values())) - sum(map(len, once))
    rising = [any(a[1] < b[1] for a, b in pairwise(labels)) for labels in rows.values()]
    assert predictions.rising_rows == sum(rising)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace")))
def test_any_bytes_are_read_or_refused_with_a_sentence(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "fuzz.jsonl"
    path.write_bytes(content)
    with pytest.raises(MicolError, match=r"fuzz\.jsonl"):
        Predictions.read(path)


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_reads_plain_and_compressed(tmp_path, suffix):
    path = tmp_path / f"p{suffix}"
    content = (line("a", ("x", 0.9), ("y", 0.5)) + "\n\n" + line("b") + "\n").encode()
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    predictions = Predictions.read(path)
    assert predictions.ids == ["a", "b"]
    assert predictions.indptr.tolist() == [0, 2, 2]
    assert predictions.depth == 2
    assert predictions.labels.to_pylist() == ["x", "y"]


def test_scores_may_be_left_out(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_text('{"id": "a", "labels": [{"id": "x"}, {"id": "y"}]}\n')
    assert Predictions.read(path).codes.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ("{", "p.jsonl:2: not valid JSON"),
        ("null", r"p.jsonl:2: expected \{\"id\""),
        ("[1]", r"p.jsonl:2: expected \{\"id\""),
        ('{"id": 7, "labels": []}', "p.jsonl:2: `id` must be a string, got 7"),
        ('{"id": "b"}', "p.jsonl:2: `labels` must be a list, got None"),
        ('{"id": "b", "labels": ["x"]}', "p.jsonl:2: each label must have a string `id`, got 'x'"),
        ('{"id": "b", "labels": [{"id": "x", "score": "0.3"}]}', "label 'x' must be a number, got '0.3'"),
        ('{"id": "b", "labels": [{"id": "x", "score": null}]}', "label 'x' must be a number, got None"),
        ('{"id": "b", "labels": [{"id": "x", "score": true}]}', "label 'x' must be a number, got True"),
        ('{"id": "b", "labels": [{"id": "x", "score": NaN}]}', "label 'x' must be a number, got nan"),
        ('{"id": "b", "labels": [{"id": "x", "score": 1e999}]}', "label 'x' must be a number, got inf"),
        (f'{{"id": "b", "labels": [{{"id": "x", "score": 1{"0" * 400}}}]}}', "label 'x' must be a number"),
        ('{"id": "a", "labels": []}', "document 'a' has 2 rows"),
        ("[" * 100_000, "p.jsonl:2: not valid JSON"),
    ],
)
def test_bad_lines_are_named(tmp_path, bad, sentence):
    path = tmp_path / "p.jsonl"
    path.write_text(f"{line('a', ('x', 1.0))}\n{bad}\n")
    with pytest.raises(MicolError, match=sentence):
        Predictions.read(path)


def test_a_file_that_is_not_utf8_or_cut_off_is_named(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_bytes(b'{"id": "\xff", "labels": []}\n')
    with pytest.raises(MicolError, match=r"p\.jsonl:1: not UTF-8"):
        Predictions.read(path)
    path = tmp_path / "p.jsonl.gz"
    path.write_bytes(gzip.compress(line("a", ("x", 1.0)).encode() * 100)[:-20])
    with pytest.raises(MicolError, match="cannot be read to its end"):
        Predictions.read(path)
    path.write_bytes(gzip.compress(line("a", ("x", 1.0)).encode() * 100).replace(b"a", b"b")[:60] + b"x" * 60)
    with pytest.raises(MicolError, match="cannot be read to its end"):
        Predictions.read(path)
    with pytest.raises(MicolError, match="no such file"):
        Predictions.read(tmp_path / "none.jsonl")


ROWS = [
    {
        "id": "d1",
        "labels": [{"id": "l1", "name": "x", "score": 0.9}, {"id": "l2", "name": "y", "score": 0.8}],
    },
    {"id": "d2", "labels": []},
    {
        "id": "d3",
        "labels": [{"id": "l2", "name": "y", "score": 0.1}, {"id": "l3", "name": "z", "score": 0.4}],
    },
]


def test_parquet_is_read_as_lines_are(tmp_path):
    lines = tmp_path / "lines.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    expected = Predictions.read(lines)
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "whole.parquet")
    folder = tmp_path / "parts"
    (folder / "year=2020").mkdir(parents=True)
    (folder / "_rejected").mkdir()
    pq.write_table(pa.Table.from_pylist(ROWS[:1]), folder / "a.parquet")
    pq.write_table(pa.Table.from_pylist(ROWS[1:]), folder / "year=2020" / "b.parquet")
    (folder / "_rejected" / "a.jsonl").write_text("no data")
    for source in (tmp_path / "whole.parquet", folder):
        found = Predictions.read(source)
        assert (found.ids, found.labels.to_pylist()) == (expected.ids, expected.labels.to_pylist())
        assert found.indptr.tolist() == expected.indptr.tolist() == [0, 2, 2, 4]
        assert found.codes.tolist() == expected.codes.tolist()
        assert found.rising_rows == expected.rising_rows == 1


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([{"id": "d1"}], "no column 'labels'; expected records"),
        ([{"id": "d1", "labels": ["l1"]}], "columns `id` and `labels` hold string and list"),
        ([{"id": "d1", "labels": [{"name": "l1"}]}], "an `id` of a document or of a label is null"),
        ([{"id": "d1", "labels": []}] * 2, "document 'd1' has 2 rows"),
    ],
)
def test_parquet_that_is_something_else_is_named(tmp_path, rows, sentence):
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "p.parquet")
    with pytest.raises(MicolError, match=sentence):
        Predictions.read(tmp_path / "p.parquet")
