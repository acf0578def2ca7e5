"""micol candidates as a person calls it: outputs, recall, messages, exit codes."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys

import numpy as np
import pytest

import micol
from micol.cli import main
from micol.retrieve import BM25, ExactMatcher, retrieve
from micol.retrieve.candidates import read_candidates

LABELS = [
    {"id": "g", "names": ["graph", "graphs"], "description": "nodes joined by edges"},
    {"id": "t", "names": ["tree"], "description": "a graph without a cycle"},
    {"id": "w", "names": ["web graph"], "description": "pages joined by links"},
    {"id": "c", "names": ["cell line"], "description": "cells that grow in culture"},
]
DOCS = [
    {"id": "d0", "title": "A web graph", "abstract": "Pages, links and graphs.", "labels": ["w", "g"]},
    {"id": "d1", "title": "Growth", "abstract": "Cells in culture grow edges.", "labels": ["c", "lost"]},
    {"id": "d2", "title": "", "abstract": "", "labels": ["t"]},
    {"id": "d3", "title": "A tree", "abstract": "Without any label of its own."},
]


def lines(records) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "labels.jsonl").write_text(lines(LABELS), encoding="utf-8")
    (tmp_path / "docs.jsonl").write_text(lines(DOCS), encoding="utf-8")
    return tmp_path


def run(monkeypatch, capsys, *arguments):
    """Calls the command in this process: exit code, output and messages."""
    monkeypatch.setattr(sys, "argv", ["micol", "candidates", *map(str, arguments)])
    code: object = 0
    try:
        main()
    except SystemExit as exit:
        code = exit.code
    captured = capsys.readouterr()
    return subprocess.CompletedProcess(arguments, code, captured.out, captured.err)


def labels_of(text: str) -> list[list[str]]:
    return [[entry["id"] for entry in json.loads(line)["labels"]] for line in text.splitlines()]


def test_candidates_are_those_of_the_library(files, monkeypatch, capsys):
    output = files / "cand.jsonl"
    done = run(monkeypatch, capsys, files / "labels.jsonl", files / "docs.jsonl", "-o", output)
    assert (done.returncode, done.stdout) == (0, "")
    space, corpus = micol.LabelSpace.read(files / "labels.jsonl"), micol.Corpus.read(files / "docs.jsonl")
    found = retrieve(corpus.texts(), exact=ExactMatcher(space.names), bm25=BM25(space.texts())).candidates
    again = read_candidates(output, corpus, space)
    assert np.array_equal(again.indptr, found.indptr)
    assert np.array_equal(again.labels, found.labels)
    assert np.array_equal(again.scores, found.scores)
    first = json.loads(output.read_text(encoding="utf-8").splitlines()[0])
    assert first["id"] == "d0"
    assert first["labels"][0] == {"id": "g", "name": "graph", "score": pytest.approx(found.scores[0])}


def test_output_to_stdout_and_from_stdin(files, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((files / "docs.jsonl").read_bytes())))
    done = run(monkeypatch, capsys, files / "labels.jsonl", "-", "--no-bm25")
    assert labels_of(done.stdout) == [["g", "w"], [], [], ["t"]]


def test_compressed_output(files, monkeypatch, capsys):
    output = files / "cand.jsonl.gz"
    run(monkeypatch, capsys, files / "labels.jsonl", files / "docs.jsonl", "-o", output, "--no-bm25")
    assert labels_of(gzip.decompress(output.read_bytes()).decode()) == [["g", "w"], [], [], ["t"]]


def test_recall_of_each_retriever(files, monkeypatch, capsys):
    done = run(monkeypatch, capsys, files / "labels.jsonl", files / "docs.jsonl")
    rows = [line.split() for line in done.stderr.splitlines()]
    assert ["recall", "over", "3", "documents", "with", "labels"] in rows
    # exact: both of d0, none of d1's two, not the one of d2; BM25 finds "cell line" by its description.
    assert next(row for row in rows if row[:1] == ["exact"])[1:] == ["0.3333"] * 4 + ["0.7"]
    assert next(row for row in rows if row[:1] == ["BM25"])[1:5] == ["0.5000"] * 4
    assert next(row for row in rows if row[:1] == ["union"])[1:5] == ["0.5000"] * 4
    assert "1 of their labels are not in the label space, such as 'lost'" in done.stderr


def test_no_labels_no_recall(files, monkeypatch, capsys):
    (files / "plain.jsonl").write_text(lines(DOCS[3:]), encoding="utf-8")
    assert "recall" not in run(monkeypatch, capsys, files / "labels.jsonl", files / "plain.jsonl").stderr


def test_top_and_threshold(files, monkeypatch, capsys):
    both = (files / "labels.jsonl", files / "docs.jsonl", "--no-exact")
    everything = labels_of(run(monkeypatch, capsys, *both).stdout)
    assert labels_of(run(monkeypatch, capsys, *both, "--bm25-top", "1").stdout) == [
        row[:1] for row in everything
    ]
    scores = [
        entry["score"]
        for line in run(monkeypatch, capsys, *both, "--threshold", "2").stdout.splitlines()
        for entry in json.loads(line)["labels"]
    ]
    assert scores
    assert min(scores) > 2


def test_variants_of_bm25(files, monkeypatch, capsys):
    both = (files / "labels.jsonl", files / "docs.jsonl", "--no-exact")
    # d3 shares "a" and "without" with the description of "tree", and "of" with nothing.
    assert "t" in labels_of(run(monkeypatch, capsys, *both).stdout)[3]
    stopped = run(monkeypatch, capsys, *both, "--stop-words", "--repeats", "log")
    assert labels_of(stopped.stdout)[3] == ["t"]


@pytest.fixture(scope="module")
def model(tmp_path_factory, tiny_bert):
    """An untrained bi-encoder as a model folder."""
    folder = tmp_path_factory.mktemp("model") / "bi"
    corpus = micol.Corpus.from_records(DOCS)
    labels = micol.LabelSpace.from_labels(
        micol.Label(label["id"], tuple(label["names"]), label["description"]) for label in LABELS
    )
    micol.train(corpus, labels, "P->P", base=str(tiny_bert), init_only=True, output=folder, bm25_top=1)
    return folder


def test_a_model_folder_brings_labels_settings_and_vectors(files, model, monkeypatch, capsys):
    lexical = run(monkeypatch, capsys, model, files / "docs.jsonl", "--no-exact")
    assert [len(row) for row in labels_of(lexical.stdout)] == [1, 1, 0, 1]
    dense = run(monkeypatch, capsys, model, files / "docs.jsonl", "--no-exact", "--no-bm25", "--dense", "3")
    assert dense.returncode == 0
    loaded, corpus = micol.load(model), micol.Corpus.read(files / "docs.jsonl")
    scores = loaded.ranker.vectors(corpus.texts()) @ loaded.label_vectors.astype(np.float32).T
    expected = [[LABELS[label]["id"] for label in np.argsort(-row)[:3]] for row in scores]
    expected[2] = []
    assert labels_of(dense.stdout) == expected
    assert "dense" in dense.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["labels.jsonl", "docs.jsonl", "--no-exact", "--no-bm25"], 2, "leave nothing to retrieve with"),
        (["labels.jsonl", "docs.jsonl", "--dense", "5"], 2, "--dense needs vectors; give a model folder"),
        (["labels.jsonl", "none.jsonl"], 1, "none.jsonl: no such file"),
        (["none.jsonl", "docs.jsonl"], 1, "none.jsonl: no such file"),
        (["labels.jsonl", "empty.jsonl"], 1, "no documents in it"),
        (["empty.jsonl", "docs.jsonl"], 1, "no labels in it"),
        (["labels.jsonl", "bad.jsonl"], 1, "bad.jsonl:2: "),
        ([".", "docs.jsonl"], 1, "config.toml"),
    ],
)
def test_mistakes_are_told_and_leave_no_file(files, monkeypatch, capsys, arguments, code, message):
    (files / "empty.jsonl").write_text("", encoding="utf-8")
    (files / "bad.jsonl").write_text(lines(DOCS[:1]) + "{\n", encoding="utf-8")
    before = sorted(files.iterdir())
    monkeypatch.chdir(files)
    done = run(monkeypatch, capsys, *arguments, "-o", "cand.jsonl")
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(files.iterdir()) == before


def test_bad_records_can_be_skipped(files, monkeypatch, capsys):
    (files / "bad.jsonl").write_text(lines(DOCS[:1]) + "{\n" + lines(DOCS[1:2]), encoding="utf-8")
    done = run(monkeypatch, capsys, files / "labels.jsonl", files / "bad.jsonl", "--skip-bad")
    assert len(done.stdout.splitlines()) == 2
    assert "left out by --skip-bad: " in done.stderr


@pytest.mark.slow
def test_memory_does_not_grow_with_documents(files):
    script = (
        "import atexit, resource, sys; from micol.cli import main\n"
        "atexit.register(lambda: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))\n"
        "sys.argv = ['micol', *sys.argv[1:]]\n"
        "main()"
    )
    peaks = []
    for number in (20_000, 80_000):
        with (files / "many.jsonl").open("w", encoding="utf-8") as stream:
            for i in range(number):
                stream.write(f'{{"id": "d{i}", "title": "web graph {i}", "abstract": "{"links " * 400}"}}\n')
        arguments = ["candidates", files / "labels.jsonl", files / "many.jsonl", "-o", files / "cand.jsonl"]
        done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, check=True)
        peaks.append(int(done.stdout) / 1024)
    # The second file is 148 MB larger.
    assert peaks[1] - peaks[0] < 70
