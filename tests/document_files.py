"""Files of documents, in every form that they are read in, and the sentence with which reading stops."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest

from micol import Corpus, MicolError

FORMATS = ["docs.jsonl", "docs.jsonl.gz", "docs.jsonl.zst", "docs.parquet"]
RECORDS = [
    {"id": "d1", "title": "One", "abstract": "First.", "authors": ["a1", "a2"], "venue": "WWW"},
    {"id": "d2", "title": "Two", "authors": ["a2"], "references": ["d1", "x9"], "labels": ["l1", "l2"]},
    {"id": "d3", "text": "Third text.", "venue": "KDD", "references": ["d2"], "citations": ["d1"]},
]


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
