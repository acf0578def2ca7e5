"""Documents in batches against the whole corpus."""

import gzip
import json

import pytest

from micol.corpus import Corpus
from micol.errors import MicolError
from micol.stream import document_batches

RECORDS = [
    {"id": f"d{i}", "title": f"title {i}", "abstract": "x" * i, "authors": ["a"], "labels": [f"l{i % 3}"]}
    for i in range(25)
]


def lines(records) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture(params=["docs.jsonl", "docs.jsonl.gz", "docs.parquet"])
def docs(request, tmp_path):
    path = tmp_path / request.param
    if path.suffix == ".parquet":
        Corpus.from_records(RECORDS).write(path)
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(lines(RECORDS).encode()))
    else:
        path.write_text(lines(RECORDS), encoding="utf-8")
    return path


@pytest.mark.parametrize("size", [1, 7, 100])
def test_batches_make_up_the_corpus(docs, size):
    batches = list(document_batches(docs, size))
    whole = Corpus.read(docs)
    assert [identifier for batch in batches for identifier in batch.ids] == whole.ids
    assert [text for batch in batches for text in batch.texts()] == whole.texts()
    assert [labels for batch in batches for labels in batch.gold] == whole.gold
    assert {len(batch) for batch in batches[:-1]} <= {size}


def test_annif_files_are_read(tmp_path):
    path = tmp_path / "corpus.tsv"
    path.write_text("first text\t<http://x/1>\nsecond text\t<http://x/2>\n", encoding="utf-8")
    assert [len(batch) for batch in document_batches(path, 1)] == [1, 1]


def test_bad_records_stop_or_are_listed(tmp_path):
    path = tmp_path / "docs.jsonl"
    path.write_text(lines(RECORDS[:2]) + '{"title": "no id"}\n' + lines(RECORDS[2:3]), encoding="utf-8")
    with pytest.raises(MicolError, match=r"docs\.jsonl:3: "):
        list(document_batches(path))
    batches = list(document_batches(path, 1, skip_bad=True))
    assert [batch.ids for batch in batches] == [["d0"], ["d1"], ["d2"]]
    assert sum(len(batch.skipped) for batch in batches) == 1


def test_a_repeated_id_is_told(tmp_path):
    path = tmp_path / "docs.jsonl"
    path.write_text(lines([*RECORDS[:2], RECORDS[0]]), encoding="utf-8")
    with pytest.raises(MicolError, match="'d0'"):
        list(document_batches(path))


def test_nothing_in_it_is_an_error(tmp_path):
    path = tmp_path / "docs.jsonl"
    path.write_text("", encoding="utf-8")
    with pytest.raises(MicolError, match="no documents in it"):
        list(document_batches(path))
    with pytest.raises(MicolError, match="no such file"):
        list(document_batches(tmp_path / "other.jsonl"))
