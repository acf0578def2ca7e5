"""Retrievers that are asked for by name."""

from __future__ import annotations

import numpy as np
import pytest

from micol.errors import UsageError
from micol.labels import LabelSpace
from micol.records import Label
from micol.retrieve import ExactMatcher, retrieve
from micol.retrieve.further import RETRIEVERS, retriever, with_further
from micol.retrieve.trigrams import LEAST_SHARE, trigrams

LABELS = LabelSpace.from_labels(
    [
        Label("l1", ("Neural network", "perceptron")),
        Label("l2", ("Photosynthesis",)),
        Label("l3", ("Web",)),
        Label("l4", ("X-ray crystallography",)),
    ]
)
TEXTS = [
    "Training neural networks",
    "photosynthesys of leaves",
    "cobwebs",
    "Xray-crystallographic methods",
    "",
]


def test_names_that_stand_there_nearly_are_found() -> None:
    found = retriever("trigrams", LABELS).search(TEXTS, 5)
    assert [[LABELS.ids[label] for label in found.row(row)[0]] for row in range(len(TEXTS))] == [
        ["l1"], ["l2"], [], ["l4"], [],
    ]  # fmt: skip


def test_scores_are_shares_of_weighted_trigrams() -> None:
    """Written out: what a text has of a name, by how few names have each of its parts."""
    names = [(place, name) for place, label in enumerate(LABELS) for name in label.names]
    parts = [trigrams(name) for _, name in names]
    weight = {
        part: np.log1p(len(names) / (1 + sum(part in each for each in parts))) for part in set().union(*parts)
    }
    found = retriever("trigrams", LABELS).search(TEXTS, 5)
    for row, text in enumerate(TEXTS):
        there = trigrams(text)
        best: dict[int, float] = {}
        for (place, _), each in zip(names, parts, strict=True):
            share = sum(weight[part] for part in each & there) / sum(weight[part] for part in each)
            if share >= LEAST_SHARE:
                best[place] = max(share, best.get(place, 0.0))
        labels, scores = found.row(row)
        assert dict(zip(labels.tolist(), scores.tolist(), strict=True)) == pytest.approx(best, abs=1e-5)


def test_they_rank_below_what_was_found_before() -> None:
    texts = ["The web of neural networks", "photosynthesis"]
    found = retrieve(texts, exact=ExactMatcher(LABELS.names))
    more = with_further(found, texts, [retriever("trigrams", LABELS)], 5)
    assert [LABELS.ids[label] for label in more.candidates.row(0)[0]] == ["l3", "l1"]
    assert [LABELS.ids[label] for label in more.candidates.row(1)[0]] == ["l2"]
    assert more.exact is found.exact


def test_every_run_sums_in_the_same_order() -> None:
    """Sets of strings have another order in each process."""
    number = retriever("trigrams", LABELS).number  # type: ignore[attr-defined]
    assert list(number) == sorted(number)


def test_at_most_so_many() -> None:
    found = retriever("trigrams", LABELS).search(["neural network photosynthesis web"], 2)
    assert len(found.row(0)[0]) == 2


def test_an_unknown_one_is_told() -> None:
    with pytest.raises(UsageError, match="'stars' is no retriever; there are trigrams"):
        retriever("stars", LABELS)
    assert all(path.startswith("micol.retrieve.") for path in RETRIEVERS.values())
