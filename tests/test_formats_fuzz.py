"""Whatever bytes a file holds, a format gives valid records or one clear sentence, and nothing else."""

from __future__ import annotations

import gzip
import json
import logging
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from micol.errors import MicolError
from micol.formats import FORMATS, debtags, mesh, module, skos
from micol.formats.base import Options
from micol.formats.writing import write
from micol.layout import Problems

DATA = Path(__file__).parent / "data"
# More in the environment for a long night's search.
EXAMPLES = int(os.environ.get("MICOL_FUZZ_EXAMPLES", "50"))
SAMPLES = {
    "annif-tsv": ("annif", "annif/corpus.tsv"),
    "annif-csv": ("annif", "annif/corpus.csv"),
    "annif-jsonl": ("annif", "annif/corpus.jsonl"),
    "arxiv": ("arxiv", "arxiv/arxiv-metadata-oai-snapshot.json"),
    "csv": ("csv", "annif/corpus.csv"),
    "debian": ("debian", "debian/Packages"),
    "jats": ("jats", "jats/one.xml"),
    "micol": ("micol", "release/train.json"),
    "micol-labels": ("micol", "release/labels.json"),
    "micol-candidates": ("micol", "release/candidates.json"),
    "openalex": ("openalex", "openalex/works.jsonl"),
    "pubmed": ("pubmed", "pubmed/pubmed26n0001.xml"),
}
VOCABULARIES = {
    "mesh": (mesh.labels, "pubmed/desc2026.xml"),
    "skos": (skos.labels, "skos/vocabulary.ttl"),
    "debtags": (lambda path: debtags.labels(path, Problems(str(path), False)), "debian/vocabulary"),
}
# JSON's and XML's own characters, halves of characters, numbers out of bounds: where parsers break.
AWKWARD = [
    b'"', b"{", b"}", b"[", b"]", b"null", b"true", b"-1", b"1e999", b"\\ud800", b"\xff", b"\x00", b"\n",
    b"\t", b"<", b">", b"</", b"&", b"&x;", b"<!--", b"<![CDATA[", b":", b",", b'""',
    b"9" * 5000, b"[" * 3000,
]  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn, sample: bytes) -> bytes:
    """A sample with a few bytes cut out, put in or put elsewhere."""
    content = sample
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        stop = min(len(content), start + draw(st.integers(0, 30)))
        put = draw(
            st.one_of(st.sampled_from(AWKWARD), st.binary(max_size=8), st.just(content[start:stop] * 2))
        )
        content = content[:start] + put + content[stop:]
    return content


def contents(sample: bytes) -> st.SearchStrategy[bytes]:
    return st.one_of(mutated(sample), mutated(sample), st.binary(max_size=200))


def check(name: str, file: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(file).name
        path.write_bytes(content)
        for skip_bad in (False, True):
            options = Options(skip_bad=skip_bad)
            if name == "debian":
                options.labels = str(DATA / "debian/vocabulary")
            message = ""
            try:
                write(module(name).read([path], options), Path(folder) / "out", options)
            except MicolError as error:
                message = str(error)
            assert "\n" not in message
            for written in (Path(folder) / "out").iterdir() if not message else ():
                for line in written.read_bytes().splitlines():
                    record = json.loads(line)
                    assert record["id"]
                    assert isinstance(record["id"], str)


@pytest.mark.parametrize("sample", SAMPLES)
def test_documents(sample):
    name, file = SAMPLES[sample]

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(contents((DATA / file).read_bytes()))
    def fuzz(content: bytes) -> None:
        check(name, file, content)

    fuzz()


@pytest.mark.parametrize("sample", ["openalex", "pubmed", "jats"])
def test_damaged_archives(sample):
    name, file = SAMPLES[sample]

    @settings(max_examples=EXAMPLES // 2, deadline=None, suppress_health_check=list(HealthCheck))
    @given(mutated(gzip.compress((DATA / file).read_bytes())))
    def fuzz(content: bytes) -> None:
        check(name, f"{file}.gz", content)

    fuzz()


@pytest.mark.parametrize("name", VOCABULARIES)
def test_labels(name):
    read, file = VOCABULARIES[name]
    # rdflib reports doubtful URIs, of which there are many here.
    logging.getLogger("rdflib").setLevel(logging.CRITICAL)

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(contents((DATA / file).read_bytes()))
    def fuzz(content: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / Path(file).name
            path.write_bytes(content)
            labels, message = [], ""
            try:
                labels += read(path)
            except MicolError as error:
                message = str(error)
            assert "\n" not in message
            for label in labels:
                assert label.id
                assert all(label.names)
                assert label.names

    fuzz()


def test_every_format_is_fuzzed():
    assert {name for name, _ in SAMPLES.values()} == set(FORMATS)
