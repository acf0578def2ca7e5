"""The command: tables and JSON on stdout, one sentence where the input is broken."""

import gzip
import json
import subprocess
import sys
from functools import partial

import pytest

from micol.cli.inspect import command
from micol.errors import MicolError, UsageError
from processes import invoked

run = partial(invoked, command)

RECORDS = [
    {"id": "a", "title": "t", "authors": ["x"], "venue": "v", "references": ["b"], "labels": ["l1"]},
    {"id": "b", "title": "t", "authors": ["x"], "venue": "w", "references": [], "labels": ["l1", "l9"]},
    {"id": "c", "title": "t", "authors": ["y"], "venue": "w", "references": ["b"], "labels": []},
]


@pytest.fixture
def docs(tmp_path):
    path = tmp_path / "docs.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps(record) + "\n" for record in RECORDS).encode()))
    return path


def test_tables(docs, tmp_path):
    labels = tmp_path / "labels.jsonl"
    labels.write_text('{"id": "l1", "names": ["Label"]}\n')
    text = run(docs, "--labels", labels).stdout
    assert text.splitlines()[0].startswith("documents  with labels  labels  in use")
    for word in ("A  authors", "V  venue", "P  references", "P(AV)P", "random pairs", "lacks, such as 'l9'"):
        assert word in text


def test_json_of_chosen_paths(docs):
    found = json.loads(run(docs, "--json", "--path", "PAP", "--path", "P->P|PVP").stdout)
    assert found["documents"] == 3
    assert found["nodes"]["A"]["values"] == 2
    assert found["links"]["P"]["edges_inside"] == 2
    assert list(found["paths"]) == ["PAP", "P->P|PVP"]
    assert found["paths"]["PAP"]["pairs"] == 2
    assert found["paths"]["PAP"]["common_label"] == {"share": 1.0, "exact": True}
    assert found["paths"]["PAP"]["jensen_shannon"] == pytest.approx(0)
    assert len(found["paths"]["PAP"]["jensen_shannon_terms"]) == 4
    assert any("authors: 67% of the documents have 'x'" in warning for warning in found["warnings"])


def test_output_file(docs, tmp_path):
    out = tmp_path / "report.txt"
    assert run(docs, "-o", out).stdout == ""
    assert "P->(PP)<-P" in out.read_text()


def test_another_schema_names_the_fields_that_are_there(docs, tmp_path):
    schema = tmp_path / "s.toml"
    schema.write_text('[nodes]\nW = "writers"\n')
    text = run(docs, "--schema", schema).stdout
    assert "writers: no document has any" in text
    assert "the first record has id, title, authors," in " ".join(text.split())
    assert "PWP" in text


def test_a_repeated_id_stops_or_is_counted(docs, tmp_path):
    twice = tmp_path / "twice.jsonl"
    twice.write_text("".join(json.dumps(record) + "\n" for record in [*RECORDS, RECORDS[0]]))
    with pytest.raises(MicolError, match=r"twice\.jsonl:4"):
        run(twice)
    found = json.loads(run(twice, "--skip-bad", "--json").stdout)
    assert found["documents"] == 3
    assert any("left out because of --skip-bad: 1" in warning for warning in found["warnings"])


def test_a_malformed_path_shows_where_it_breaks_before_anything_is_read(tmp_path):
    with pytest.raises(UsageError, match="meta-path 'P"):
        run(tmp_path / "no-such-file.jsonl", "--path", "P(AP")
    with pytest.raises(UsageError, match="no letter 'X'"):
        run(tmp_path / "no-such-file.jsonl", "--path", "PXP")


def test_exit_codes_of_the_program(docs, tmp_path):
    def micol(*arguments):
        return subprocess.run(
            [sys.executable, "-c", "from micol.cli import main; main()", "inspect", *map(str, arguments)],
            capture_output=True,
            text=True,
        )

    assert micol(docs, "--path", "P(AP").returncode == 2
    missing = micol(tmp_path / "none.jsonl")
    assert missing.returncode == 1
    assert missing.stderr.startswith("micol: ")
    assert "Traceback" not in missing.stderr
