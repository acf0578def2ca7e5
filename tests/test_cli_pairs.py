"""micol pairs as a person calls it: outputs, messages, exit codes."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

import pyarrow.parquet as pq
import pytest

from micol.cli import main

RECORDS = [
    {"id": "a", "title": "one", "authors": ["x", "y"], "venue": "v", "references": ["c", "z"]},
    {"id": "b", "title": "two", "authors": ["x", "y"], "venue": "v", "references": ["c", "z"]},
    {"id": "c", "title": "three", "authors": ["y"], "venue": "w"},
]


def write(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.fixture
def docs(tmp_path):
    return write(tmp_path / "docs.jsonl", RECORDS)


def run(*arguments):
    """Calls the command in this process."""
    stdout, stderr = io.StringIO(), io.StringIO()
    before = sys.argv
    sys.argv = ["micol", "pairs", *map(str, arguments)]
    code: object = 0
    try:
        with redirect_stdout(stdout), redirect_stderr(stderr):
            main()
    except SystemExit as exit:
        code = exit.code
    finally:
        sys.argv = before
    return subprocess.CompletedProcess(arguments, code, stdout.getvalue(), stderr.getvalue())


def test_pairs_are_written_as_parquet(docs, tmp_path):
    output = tmp_path / "pairs.parquet"
    done = run(docs, "--path", "P → P ← P", "-n", 2, "-o", output)
    assert (done.returncode, done.stdout) == (0, "")
    table = pq.read_table(output)
    assert table.column_names == ["anchor", "positive"]
    rows = {tuple(row.values()) for row in table.to_pylist()}
    assert rows == {("a", "b"), ("b", "a")}
    assert table.schema.metadata == {b"path": b"P->P<-P", b"method": b"uniform", b"seed": b"0"}
    # A first run says before that it compiles.
    assert done.stderr.splitlines()[-2:] == [
        "2 pairs by P->P<-P from 2 of 3 documents",
        "asked for 2: these are all the pairs there are",
    ]


def test_without_an_output_lines_are_printed(docs):
    done = run(docs, "--path", "PAP", "-n", 4, "--seed", 5)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert len(lines) == 4
    assert {anchor for anchor, _ in lines} == {"a", "b", "c"}
    assert "4 pairs by PAP from 3 of 3 documents" in done.stderr
    assert "all the pairs" not in done.stderr
    assert run(docs, "--path", "PAP", "-n", 4, "--seed", 5, "-o", "-").stdout == done.stdout
    assert run(docs, "--path", "PAP", "-n", 4, "--seed", 6).stdout != done.stdout


def test_every_method_draws_from_the_same_pairs(docs):
    for method in ("node-first", "rarity"):
        done = run(docs, "--path", "PAP|P->P", "-n", 100, "--method", method)
        assert sorted(done.stdout.splitlines()) == ["a\tb", "a\tc", "b\ta", "b\tc", "c\ta", "c\tb"]


def test_standard_input(docs):
    command = [sys.executable, "-c", "from micol.cli import main; main()", "pairs", "-", "--path", "PVP"]
    done = subprocess.run(command, capture_output=True, text=True, input=docs.read_text(encoding="utf-8"))
    assert sorted(done.stdout.splitlines()) == ["a\tb", "b\ta"]


def test_any_schema(tmp_path):
    posts = [
        {"id": "1", "text": "a", "tags": ["t"]},
        {"id": "2", "text": "b", "tags": ["t"], "answers": ["1"]},
    ]
    schema = tmp_path / "schema.toml"
    schema.write_text('document = "D"\n[nodes]\nT = "tags"\n[links]\nN = "answers"\n', encoding="utf-8")
    docs = write(tmp_path / "posts.jsonl", posts)
    assert run(docs, "--schema", schema, "--path", "D->N").stdout == "2\t1\n"
    assert sorted(run(docs, "--schema", schema, "--path", "DTD").stdout.split()) == ["1", "1", "2", "2"]


def test_bad_records_can_be_skipped(docs):
    docs.write_text(docs.read_text(encoding="utf-8") + "{broken\n", encoding="utf-8")
    stopped = run(docs, "--path", "PAP")
    assert stopped.returncode == 1
    assert "docs.jsonl" in stopped.stderr
    skipped = run(docs, "--path", "PAP", "-n", 1, "--skip-bad")
    assert skipped.returncode == 0
    assert "left out by --skip-bad" in skipped.stderr


def test_no_pair_at_all_is_explained(docs, tmp_path):
    output = tmp_path / "pairs.parquet"
    done = run(docs, "--path", "P<-(PP)->P", "-o", output)
    assert (done.returncode, output.exists()) == (1, False)
    assert "P<-(PP)->P joins no two documents" in done.stderr
    assert "micol inspect" in done.stderr
    bare = write(tmp_path / "bare.jsonl", [{"id": "a", "title": "one"}, {"id": "b", "title": "two"}])
    assert "no document has 'venue'" in run(bare, "--path", "PVP").stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--path", "P(AAP"], "the bracket opened here is never closed"),
        (["--path", "PXP"], "the schema has no letter 'X'"),
        (["--path", "PAP", "-o", "pairs.csv"], "give a name that ends in .parquet"),
        (["--path", "PAP", "-n", "0"], "0 is not in the range"),
        (["--path", "PAP", "--method", "best"], "'best' is not one of"),
        ([], "Missing option '--path'"),
    ],
)
def test_misuse_exits_with_2_and_says_what_is_wrong(docs, arguments, words):
    done = run(docs, *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_path_points_at_the_mistake(docs):
    lines = run(docs, "--path", "P(AAP").stderr.splitlines()
    assert lines == [
        "micol: meta-path 'P(AAP': the bracket opened here is never closed",
        "  P(AAP",
        "   ^",
        "a valid example: P(AA)P",
    ]


def test_ids_that_would_break_lines_are_not_printed(tmp_path):
    docs = write(
        tmp_path / "docs.jsonl",
        [{"id": "a\tb", "title": "1", "venue": "v"}, {"id": "c", "title": "2", "venue": "v"}],
    )
    done = run(docs, "--path", "PVP")
    assert (done.returncode, done.stdout) == (1, "")
    assert "-o" in done.stderr
