"""What is taken away from a data set is gone, and nothing else."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import micol
import world
from micol.labels import LabelSpace

pytestmark = pytest.mark.usefixtures("benchmarks_can_be_imported")


@pytest.fixture
def whole(labels_file: Path) -> Any:
    from best import Data

    records = world.documents(120)
    train, test = (micol.Corpus.from_records(some) for some in (records[:80], records[80:]))
    return Data("small", train, test, LabelSpace.read(labels_file))


def test_only_what_is_named_is_taken_away(whole: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import poorer

    monkeypatch.setattr(poorer, "FEW_LABELS", 5)
    monkeypatch.setattr(poorer, "FEW_DOCUMENTS", 30)
    documents, labels = list(whole.test), list(whole.labels)
    assert any(len(label.names) > 1 and label.description for label in labels)
    assert any(label.parents for label in labels)
    named = poorer.names_alone(whole)
    assert [(label.names, label.text, label.parents) for label in named.labels] == [
        (label.names[:1], label.name, label.parents) for label in labels
    ]
    flat = poorer.flat(whole)
    assert [(label.names, label.text, label.parents) for label in flat.labels] == [
        (label.names, label.text, ()) for label in labels
    ]
    bare = poorer.no_metadata(whole)
    assert not any(any(document.metadata.values()) for document in [*bare.train, *bare.test])
    assert bare.test.texts() == whole.test.texts()
    assert list(bare.test.gold) == list(whole.test.gold)
    assert poorer.titles_alone(whole).test.texts() == [document.title for document in documents]
    assert poorer.no_titles(whole).test.texts() == [document.abstract for document in documents]
    fewer = poorer.few_labels(whole)
    kept = set(fewer.labels.ids)
    assert len(kept) == 5
    assert [set(document.labels) for document in fewer.test] == [
        kept & set(document.labels) for document in documents if kept & set(document.labels)
    ]
    assert {label.id: set(label.parents) for label in fewer.labels} == {
        label.id: kept & set(label.parents) for label in labels if label.id in kept
    }
    small = poorer.few_documents(whole)
    assert len(small.train) == 30
    assert set(small.train.ids) <= set(whole.train.ids)
    assert small.test is whole.test


def test_each_text_and_case_is_read_once_and_rows_are_tabled(
    tmp_path: Path, data_folder: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import poorer
    from micol.rank.bi_encoder import BiEncoder

    output, ways = tmp_path / "rows.jsonl", ["as it is", "no metadata"]
    read: list[str] = []
    vectors = BiEncoder.vectors

    def counted(encoder: BiEncoder, texts: Any, what: str | None = None) -> Any:
        read.extend(texts)
        return vectors(encoder, texts, what)

    monkeypatch.setattr(BiEncoder, "vectors", counted)
    arguments = ["x", str(data_folder), "--base", str(tiny_bert), "--output", str(output), "--ways", *ways]
    monkeypatch.setattr(sys, "argv", arguments)
    poorer.main()
    texts = micol.Corpus.from_records(world.documents(240)).texts()
    assert [read.count(text) for text in texts] == [1] * len(texts)
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    poorer.main()
    assert rows == [json.loads(line) for line in output.read_text().splitlines()]
    glance, whole, said = (table.splitlines() for table in poorer.tables(output).split("\n\n"))
    fused, lexical, untrained = (row["scores"] for row in rows[:3])
    above = sum(fused[name] > max(lexical[name], untrained[name]) for name in poorer.SHOWN)
    first = f"{fused['P@1']:.3f} / {max(lexical['P@1'], untrained['P@1']):.3f}"
    assert glance[2] == f"| as it is | {first} |"
    assert whole[2].startswith(f"| small | as it is | {first} | ")
    assert whole[2].endswith(f" | {above} of 7 |")
    assert [line.split(" | ")[1:3] for line in said[2:]] == [["as it is", place] for place in poorer.SAID]
