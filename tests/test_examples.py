"""What a batch holds, and the order in which an epoch visits the examples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from micol.rank.encoder import Encoder
from micol.rank.examples import ListExamples, PairExamples, without_repeats
from micol.rank.packing import Packed

PAIRS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 30)).filter(lambda p: p[0] != p[1]), max_size=120
)


def repeats(numbers: list[int], pairs: list[tuple[int, int]]) -> bool:
    documents = [document for number in numbers for document in pairs[number]]
    return len(set(documents)) < len(documents)


@given(PAIRS, st.integers(1, 8))
def test_every_example_comes_once_and_no_document_twice_in_a_batch(
    pairs: list[tuple[int, int]], size: int
) -> None:
    sides = ([pair[0] for pair in pairs], [pair[1] for pair in pairs])
    order = without_repeats(list(range(len(pairs))), sides, size).tolist()
    assert sorted(order) == list(range(len(pairs)))
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    is_clean = [not repeats(batch, pairs) for batch in batches]
    # Batches with a repeat come last, and only when what was left could not fill a batch without one.
    first_bad = is_clean.index(False) if False in is_clean else len(batches)
    left = [number for batch in batches[first_bad:] for number in batch]
    if left:
        greedy: list[int] = []
        for number in left:
            if not repeats([*greedy, number], pairs):
                greedy.append(number)
        assert len(greedy) < size


def test_many_documents_leave_no_repeat_at_all() -> None:
    generator = np.random.default_rng(0)
    pairs = [tuple(generator.choice(500, 2, replace=False).tolist()) for _ in range(600)]
    order = without_repeats(list(range(600)), tuple(map(list, zip(*pairs))), 32).tolist()
    assert not any(repeats(order[start : start + 32], pairs) for start in range(0, 576, 32))


@pytest.fixture(scope="module")
def encoder(tiny_bert: Path) -> Encoder:
    return Encoder.load(tiny_bert, 64)


def test_pairs_are_visited_anew_each_epoch_and_the_same_again(encoder: Encoder) -> None:
    texts = [np.array([number + 5]) for number in range(40)]
    examples = PairExamples(encoder.framing, texts, np.arange(20), np.arange(20, 40), np.arange(40))
    first, second = examples.order(0, 4, seed=1), examples.order(1, 4, seed=1)
    assert sorted(first) == sorted(second) == list(range(20))
    assert first.tolist() != second.tolist()
    assert examples.order(0, 4, seed=1).tolist() == first.tolist()
    assert examples.order(0, 4, seed=2).tolist() != first.tolist()


def test_texts_of_one_document_do_not_meet_as_negatives(encoder: Encoder) -> None:
    """A title and an abstract are two texts, but one document."""
    texts = [np.array([5])] * 8
    owners = np.array([0, 1, 0, 2, 3, 4, 5, 6])
    examples = PairExamples(encoder.framing, texts, np.array([0, 2, 4, 6]), np.array([1, 3, 5, 7]), owners)
    for seed in range(10):
        order = examples.order(0, 2, seed).tolist()
        assert set(order[:2]) != {0, 1}


def test_a_list_is_one_document_against_several_texts(encoder: Encoder) -> None:
    firsts, seconds = [np.array([5, 6]), np.array([7])], [np.array([8]), np.array([9, 10]), np.array([11])]
    lists, targets = np.array([[0, 2], [1, 0]]), np.array([[1.0, 0.0], [0.75, 0.25]])
    examples = ListExamples(encoder.framing, firsts, seconds, np.array([0, 1]), lists, targets)
    batch = examples.collate([1, 0])
    assert batch.pop("targets").tolist() == [[0.75, 0.25], [1.0, 0.0]]
    packed = Packed(**batch)
    first, last = encoder.framing.first, encoder.framing.last
    sequences = [part.tolist() for part in packed.ids.split(packed.starts.diff().tolist())]
    assert sequences == [
        [first, 7, last, 9, 10, last],
        [first, 7, last, 8, last],
        [first, 5, 6, last, 8, last],
        [first, 5, 6, last, 11, last],
    ]
    assert packed.types[:6].tolist() == [0, 0, 0, 1, 1, 1]
    assert sorted(examples.order(0, 1, 0)) == [0, 1]
