"""Hard negatives: alike pairs meet in a batch, and what may be right is no negative."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

import micol
import world
from conftest import write_lines
from micol.rank.encoder import Encoder
from micol.rank.examples import PairExamples
from micol.rank.negatives import Sides, by_neighbourhood


@given(st.integers(0, 60), st.integers(1, 9), st.integers(0, 5))
def test_every_position_comes_once(count: int, size: int, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(count, 4)).astype(np.float16)
    order = by_neighbourhood(vectors, size, np.random.default_rng(seed))
    assert sorted(order.tolist()) == list(range(count))


def test_equal_vectors_can_be_split_as_well() -> None:
    order = by_neighbourhood(np.ones((40, 3), np.float16), 4, np.random.default_rng(0))
    assert sorted(order.tolist()) == list(range(40))


def test_neighbours_come_together_and_anew_in_each_epoch(tiny_bert: Path) -> None:
    """Eight groups of four nearly equal vectors: most pairs that meet are of one group."""
    generator = np.random.default_rng(0)
    groups = np.repeat(np.arange(8), 4)
    centres = generator.normal(size=(8, 16))
    vectors = centres[groups] + 0.05 * generator.normal(size=(32, 16))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    both = np.concatenate([vectors, vectors]).astype(np.float16)
    texts = [np.array([5])] * 64
    framing = Encoder.load(tiny_bert, 64).framing
    examples = PairExamples(
        framing, texts, np.arange(32), np.arange(32, 64), np.arange(64), neighbourhood=4, untrained=both
    )

    def of_one_group(order: np.ndarray) -> float:
        return float(np.mean([len(set(groups[batch])) == 1 for batch in order.reshape(8, 4)]))

    first, second = examples.order(0, 4, seed=3), examples.order(1, 4, seed=3)
    assert of_one_group(first) > 0.5
    assert of_one_group(second) > 0.5
    assert of_one_group(generator.permutation(32)) < 0.2
    assert first.tolist() != second.tolist()
    assert examples.order(0, 4, seed=3).tolist() == first.tolist()
    batch = examples.collate([2, 0])
    np.testing.assert_array_equal(batch["untrained"].numpy(), both[[2, 0, 34, 32]])


def test_what_is_nearer_than_the_positive_is_no_negative() -> None:
    """By hand: the second positive is nearer to the first anchor than its own, the third is not."""
    angles = torch.tensor([[0.0, 2.0, 4.0], [0.6, 0.5, 0.7]])
    vectors = torch.stack([angles.cos(), angles.sin()], dim=2)
    cosines = torch.cos(angles[0][:, None] - angles[1][None])
    expected = cosines > cosines.diagonal()[:, None]
    documents = torch.arange(6).view(2, 3)
    assert Sides(documents, vectors).left_out(3).tolist() == expected.tolist()
    assert expected.tolist()[0] == [False, True, False]
    assert not Sides(documents).left_out(3).any()


def test_sides_are_taken_out_of_a_batch() -> None:
    batch = {"ids": 1, "documents": torch.arange(4), "untrained": torch.arange(8).view(4, 2)}
    sides = Sides.popped_from(batch)
    assert batch == {"ids": 1}
    assert sides.documents.tolist() == [[0, 1], [2, 3]]
    assert sides.untrained is not None
    assert sides.untrained.tolist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]


def test_training_with_hard_negatives_differs_and_repeats(tiny_bert: Path, tmp_path: Path) -> None:
    corpus = micol.Corpus.from_records(world.documents(120))
    labels = micol.LabelSpace.read(write_lines(tmp_path / "labels.jsonl", world.label_records()))

    def vectors(hard_negatives: int) -> np.ndarray:
        model = micol.train(
            corpus, labels, "P->P", base=str(tiny_bert), pairs=64, batch_size=16, evidence=False,
            hard_negatives=hard_negatives,
        )  # fmt: skip
        return model.ranker.vectors(corpus.texts()[:5])

    hard = vectors(8)
    np.testing.assert_array_equal(hard, vectors(8))
    assert np.abs(hard - vectors(0)).max() > 1e-4
