"""The development sets: what is read from the sources, on examples of a few lines."""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pages import ROOT

pytestmark = pytest.mark.usefixtures("benchmarks_can_be_imported")


ENTRY = """Point-to-Point Protocol
PPP

   1. <communications, protocol> (PPP) The {protocol} defined in
   {RFC 1661}, for serial {network
   layer} links.  It is designed for many.

   2. <Debian> See {A paper (ftp://example.org/a.ps)}.

   {Home (http://example.org/)}.

   (1994-12-13)
"""


def test_an_entry_of_a_dictionary_loses_its_markup() -> None:
    from development.foldoc import Entry

    entry = Entry.parse(ENTRY)
    assert entry.headwords == ("Point-to-Point Protocol", "PPP")
    assert entry.categories == ("communications", "protocol", "debian")
    assert entry.references == ("protocol", "rfc_1661", "network_layer")
    assert entry.body == (
        "1. (PPP) The protocol defined in RFC 1661, for serial network layer links. It is designed for many. "
        "2. See A paper. Home."
    )
    assert entry.first_sentence == "(PPP) The protocol defined in RFC 1661, for serial network layer links."


@pytest.mark.parametrize("start", ['<a href="x">', "<ada@example.org>", "< b"])
def test_other_angle_brackets_are_no_categories(start: str) -> None:
    from development.foldoc import Entry

    entry = Entry.parse(f"word\n\n   {start} and so on.\n")
    assert entry.categories == ()
    assert entry.body == f"{start} and so on."


def test_an_index_leads_to_each_text_once() -> None:
    from development.foldoc import dictd_number, dictd_texts

    assert [dictd_number(digits) for digits in ("A", "BA", "/")] == [0, 64, 63]
    data = "info\nfirst é\nsecond\n".encode()
    index = "00-database-info\tA\tF\nalias\tF\tJ\nfirst\tF\tJ\nsecond\tO\tH\n"
    assert list(dictd_texts(index, data)) == ["first é\n", "second\n"]


def test_an_entry_that_explains_a_category_describes_its_label() -> None:
    from development.foldoc import Entry, dictionary_set

    words = "says enough to be a document of its own."
    texts = [f"word {number}\n\n   <tool, rare{number}> This {{tool}} {words}\n" for number in range(3)]
    made = dictionary_set(map(Entry.parse, [*texts, f"Tool\nutility\n\n   A thing {words}  More of it.\n"]))
    assert made.labels == [
        {"id": "tool", "names": ["tool"], "description": f"A thing {words}", "parents": []}
    ]
    assert [record["id"] for record in made.documents] == ["word_0", "word_1", "word_2"]
    assert all(record["labels"] == ["tool"] == record["references"] for record in made.documents)


def test_a_line_of_wordnet() -> None:
    from development.wordnet import Synset

    pointers = "003 @ 00002000 n 0000 ;c 00003000 n 0000 = 00004000 s 0000"
    line = f"00001740 05 n 02 big_cat 0 cat 1 {pointers} | a cat; purrs  "
    synset = Synset.parse(line, "n")
    assert (synset.id, synset.file, synset.words) == ("n00001740", 5, ("big cat", "cat"))
    assert synset.gloss == "a cat; purrs"
    assert synset.to("@", ";c") == ["n00002000", "n00003000"]
    assert synset.to("=") == ["a00004000"]


def test_ancestors_within_a_hierarchy() -> None:
    from development.common import ancestors, nearest

    parents = {"d": ["c"], "c": ["b", "x"], "b": ["a"], "x": ["a"], "a": []}
    assert ancestors("d", parents.__getitem__, "abc", 2) == ["c", "b"]
    assert nearest("d", parents.__getitem__, "ab") == ["b"]
    assert nearest("a", parents.__getitem__, "ab") == []


def record(id: str, references: list[str], labels: list[str]) -> dict[str, Any]:
    from development.common import document

    return document(id, id, "text", labels, references=references)


def test_metadata_that_join_nothing_and_documents_without_label_are_left_out() -> None:
    from development.common import drawn

    documents = drawn(
        [
            record("b", ["a", "b", "shared", "lone"], ["l"]),
            record("a", ["shared"], ["l"]),
            record("c", [], []),
        ]
    )
    assert [(found["id"], found["references"]) for found in documents] == [
        ("a", ["shared"]),
        ("b", ["a", "shared"]),
    ]


def test_the_same_records_make_the_same_files(tmp_path: Path) -> None:
    from development.common import Made, label, write

    made = Made([record(f"d{n}", ["r"], ["l"]) for n in range(5)], [label("l", ["L"])])
    for folder in ("one", "two"):
        write(made, tmp_path / folder)
    for name in ("docs.jsonl.gz", "labels.jsonl.gz", "test_ids.txt"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    lines = gzip.decompress((tmp_path / "one/docs.jsonl.gz").read_bytes()).decode().splitlines()
    assert [json.loads(line)["id"] for line in lines] == [f"d{n}" for n in range(5)]


def test_the_narrow_headings_of_mesh_are_the_documents(tmp_path: Path) -> None:
    from development.mesh import meshnotes

    path = tmp_path / "mesh.jsonl"
    rows = [{"id": "top", "names": ["Top"], "description": "All.", "parents": []}]
    rows += [
        {"id": f"n{n}", "names": [f"Name {n}"], "description": f"Note {n}.", "parents": ["top"]}
        for n in range(8)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    made = meshnotes(path)
    assert [found["id"] for found in made.labels] == ["top"]
    assert [found["labels"] for found in made.documents] == [["top"]] * 8


PYTHON_COMMAND = """
from googlecloudsdk.api_lib.dns import util
from googlecloudsdk.calliope import base

class List(base.ListCommand):
  \"\"\"List zones.

  Lists the managed zones.
  \"\"\"
  detailed_help = {'EXAMPLES': '''To list:

  $ {command}'''}

  def Args(parser):
    parser.add_argument('--project-name')
"""
YAML_COMMAND = """
- release_tracks: [GA]
  help_text:
    brief: Delete a zone.
    description: Deletes it for good.
  arguments:
    params: !REF googlecloudsdk.dns.zone
    other: {arg_name: zone}
"""


def test_commands_become_documents_and_groups_and_verbs_labels(tmp_path: Path) -> None:
    from development.gcloud import gcloud

    surface = tmp_path / "lib" / "surface"
    for group in ("dns", "dns/zones", "dns/keys", "dns/keys/old", "alpha/dns"):
        (surface / group).mkdir(parents=True)
        (surface / group / "list.py").write_text(PYTHON_COMMAND)
    (surface / "dns" / "zones" / "__init__.py").write_text('class Zones:\n  """Manage zones."""\n')
    (surface / "dns" / "zones" / "delete.yaml").write_text(YAML_COMMAND)
    (surface / "dns" / "zones" / "_hidden.py").write_text(PYTHON_COMMAND)
    made = gcloud(tmp_path)
    found = {record["id"]: record for record in made.documents}
    assert sorted(found) == [
        "dns/keys/list",
        "dns/keys/old/list",
        "dns/list",
        "dns/zones/delete",
        "dns/zones/list",
    ]
    listed = found["dns/zones/list"]
    assert listed["title"] == "List zones."
    assert listed["abstract"] == "List zones.\n\nLists the managed zones.\nTo list:\n\n$ gcloud"
    assert (listed["references"], listed["authors"]) == (
        ["googlecloudsdk.api_lib.dns.util"],
        ["project-name"],
    )
    assert listed["labels"] == ["dns", "verb.list"]
    assert found["dns/zones/delete"]["references"] == ["googlecloudsdk.dns.zone"]
    assert found["dns/zones/delete"]["authors"] == ["zone"]
    # The five commands are in "dns", and four of them list; other groups and verbs are too small.
    assert [(record["id"], record["names"]) for record in made.labels] == [
        ("dns", ["dns"]),
        ("verb.list", ["list"]),
    ]


def test_the_weights_in_use_are_those_that_were_settled() -> None:
    from micol.evidence.fusion import ROUGH

    results = (ROOT / "benchmarks/results/settle.jsonl").read_text(encoding="utf-8").splitlines()
    *_, beginning, others, settled = map(json.loads, results)
    in_use = {name: weight for name, weight in ROUGH.items() if name != "together"}
    assert set(settled["rough"]) == {"wordnet", "meshnotes", "foldoc", "gcloud", "npm"}
    assert all(rough == in_use for rough in settled["rough"].values())
    page = (ROOT / "docs/best.md").read_text(encoding="utf-8")
    for found in (beginning, others, settled):
        for name, scores in found["scores"].items():
            shown = " | ".join(f"{score:.3f}" for score in scores.values())
            assert f"| {name} | {found['weights']} | {shown} |" in page


def test_weights_are_settled_and_each_set_is_left_out_in_turn(
    data_folder: Path, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import settle
    from micol.evidence import fusion

    monkeypatch.setattr(fusion, "ROUGH", dict(fusion.ROUGH))
    monkeypatch.setattr(settle, "ORDERS", 1)
    sets = [tmp_path / name for name in ("one", "other")]
    for folder in sets:
        shutil.copytree(data_folder, folder)
    output = tmp_path / "settled.jsonl"
    monkeypatch.setattr(
        sys, "argv", ["x", *map(str, sets), "--base", str(tiny_bert), "--output", str(output)]
    )
    settle.main()
    *ends, beginning, others, settled = map(json.loads, output.read_text(encoding="utf-8").splitlines())
    # The two are the same, so it does not matter which of them is left out.
    assert [end["without"] for end in ends] == [None, "one", "other"]
    assert ends[0]["rough"] == ends[1]["rough"] == ends[2]["rough"] == settled["rough"]["one"]
    assert others["scores"] == settled["scores"]
    one = settle.evidence_of(sets[0])
    assert settle.mean_of([one], ends[0]["rough"]) > settle.mean_of([one], beginning["rough"]["one"])
    assert np.load(sets[0] / "evidence.npz")["tested_values"].dtype == np.float16


def test_scores_of_settling_are_those_of_an_evaluation(data_folder: Path, tiny_bert: Path) -> None:
    import settle

    one = settle.evidence_of(data_folder, str(tiny_bert))
    generator = np.random.default_rng(0)
    for _ in range(5):
        scores = one.tested.values @ generator.normal(size=one.tested.values.shape[1]).astype(np.float32)
        expected = one.data.scores(one.tested.ranking(scores))
        found = one.measures.scores(scores)
        assert found == pytest.approx({name: expected[name] for name in found}, abs=1e-4)
