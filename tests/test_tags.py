"""What remembered documents are tagged with, and what that says of the documents near them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import micol
from micol.evidence.gather import NEARBY, SHARE_OF_TAGS, TAG_TRACE, TRACE
from micol.evidence.memory import Memory
from micol.evidence.tags import MOST_ODDS
from micol.rank.bi_encoder import BiEncoder


@pytest.fixture(scope="module")
def model(corpus: micol.Corpus, labels: micol.LabelSpace, tiny_bert: Path) -> micol.Classifier:
    return micol.train(
        corpus, labels, "P->P", base=str(tiny_bert), pairs=128, batch_size=32, learning_rate=1e-3
    )


def encoder_of(model: micol.Classifier) -> BiEncoder:
    assert isinstance(model.ranker, BiEncoder)
    return model.ranker


def test_neighbours_speak_by_what_they_name_and_by_what_they_would_be_tagged_with(
    model: micol.Classifier, unseen: micol.Corpus
) -> None:
    assert model.fused
    documents, memory, facts = list(unseen), model.fused.memory, model.fused.side.facts
    found = model.fused.gather(documents, encoder_of(model))
    assert memory.tags is not None
    odds, worth = memory.tags.toarray(), facts.mentions.toarray()
    nearest = memory.similar(found.vectors, memory.own_positions(documents)).toarray()
    for number, near in enumerate((nearest, memory.linked(documents).toarray())):
        column, named = found.values[:, NEARBY[number]], found.untagged.values[:, NEARBY[number]]
        alone = ~near.any(axis=1)
        assert not column[alone[found.rows]].any()
        assert (column != named).any()
        for pair in np.flatnonzero(~alone[found.rows])[::7]:
            row, label = divmod(int(found.keys[pair]), found.labels)
            tagged = np.log((near[row] @ odds[label] + TAG_TRACE) / (odds[label].mean() + TAG_TRACE))
            expected = SHARE_OF_TAGS * tagged + (1 - SHARE_OF_TAGS) * named[pair]
            assert column[pair] == pytest.approx(expected, abs=1e-4)
            if (near[row] @ worth.T).any():
                lifted = np.log((near[row] @ worth[label] + TRACE) / (worth[label].mean() + TRACE))
                assert named[pair] == pytest.approx(lifted, abs=1e-4)


def test_remembered_documents_are_tagged_with_what_is_most_likely_right(
    model: micol.Classifier, corpus: micol.Corpus, tmp_path: Path
) -> None:
    assert model.fused
    memory = model.fused.memory
    assert memory.tags is not None
    odds = memory.tags.toarray()
    assert odds.max() <= MOST_ODDS
    # As many are kept as are likely right, and those are the best: so most of them are likely right.
    kept = odds[odds > 0]
    assert len(memory.documents) / 2 < len(kept) < 3 * len(memory.documents)
    assert (kept / (1 + kept)).sum() > len(kept) / 2
    gold = {document.id: document.labels[0] for document in corpus}
    best = [memory.labels.ids[label] for label in odds.argmax(axis=0)]
    right = [gold[document.id] == label for document, label in zip(memory.documents, best, strict=True)]
    assert np.mean(right) > 0.5
    memory.save(tmp_path / "memory")
    assert (Memory.load(tmp_path / "memory", corpus.schema).tags != memory.tags).nnz == 0


def test_of_a_label_that_comes_later_neighbours_say_what_they_name(
    model: micol.Classifier, unseen: micol.Corpus, tmp_path: Path
) -> None:
    model.save(tmp_path / "model")
    edited = micol.load(tmp_path / "model")
    label = model.labels[5]
    edited.remove_labels([label.id])
    edited.add_labels([replace(label, id="new")])
    assert edited.fused
    facts = edited.fused.side.facts
    assert facts.tagged.tolist() == [*[True] * (len(model.labels) - 1), False]
    found = edited.fused.gather(list(unseen), encoder_of(edited))
    new = found.keys % found.labels == found.labels - 1
    assert new.any()
    assert (found.values[new] == found.untagged.values[new]).all()
    # One that is there again as training knew it has its tags again.
    edited.remove_labels(["new"])
    edited.add_labels([label])
    again = edited.fused.side.facts
    assert again.tagged.all()
    assert model.fused
    assert (again.tags[[-1]] != model.fused.memory.tags[[5]]).nnz == 0
