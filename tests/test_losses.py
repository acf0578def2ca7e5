"""The two losses of the paper, and gradient caching, against independent computation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import world
from micol.rank.bi_encoder import pool
from micol.rank.encoder import Encoder
from micol.rank.examples import PairExamples
from micol.rank.losses import false_negatives, info_nce, listwise
from micol.rank.packing import Packed, pack
from micol.rank.trainer import BiModule, ContrastiveTrainer
from micol.settings import Settings

ANCHORS = np.array([[1.0, 2.0, 0.5], [-0.3, 0.8, 1.5], [2.0, -1.0, 0.1]])
POSITIVES = np.array([[0.9, 1.7, 0.9], [0.2, 0.4, 1.0], [1.0, 1.0, 1.0]])


def info_nce_by_hand(anchors: np.ndarray, positives: np.ndarray, temperature: float) -> float:
    """Eq. 9 written out: minus the logarithm of each positive's share, averaged."""
    losses = []
    for i, anchor in enumerate(anchors):
        shares = [
            np.exp(anchor @ other / np.linalg.norm(anchor) / np.linalg.norm(other) / temperature)
            for other in positives
        ]
        losses.append(-np.log(shares[i] / np.sum(shares)))
    return float(np.mean(losses))


@pytest.mark.parametrize(("temperature", "golden"), [(0.05, 0.0557695), (1.0, 0.9425185)])
def test_info_nce_equals_its_formula(temperature: float, golden: float) -> None:
    loss = info_nce(torch.tensor(ANCHORS), torch.tensor(POSITIVES), temperature)
    assert float(loss) == pytest.approx(info_nce_by_hand(ANCHORS, POSITIVES, temperature), abs=1e-5)
    assert float(loss) == pytest.approx(golden, abs=1e-5)


def test_info_nce_takes_more_negatives_behind_the_positives() -> None:
    more = np.concatenate([POSITIVES, [[0.0, 0.0, 1.0]]])
    loss = info_nce(torch.tensor(ANCHORS), torch.tensor(more), 0.5)
    assert float(loss) == pytest.approx(info_nce_by_hand(ANCHORS, more, 0.5), abs=1e-5)


def test_what_is_left_out_is_no_negative() -> None:
    """Without the third positive the first anchor has one negative, as if the batch had two pairs."""
    left_out = torch.tensor([[False, False, True], [False] * 3, [False] * 3])
    loss = info_nce(torch.tensor(ANCHORS), torch.tensor(POSITIVES), 0.5, left_out)
    cosines = [
        [a @ p / np.linalg.norm(a) / np.linalg.norm(p) / 0.5 for p in POSITIVES[: 2 if row == 0 else 3]]
        for row, a in enumerate(ANCHORS)
    ]
    by_hand = np.mean([np.log(np.exp(row).sum()) - row[i] for i, row in enumerate(cosines)])
    assert float(loss) == pytest.approx(by_hand, abs=1e-5)


def test_a_document_is_no_negative_of_itself_nor_of_its_partners() -> None:
    # Pairs 0-1, 2-0, 0-3, 4-1, 5-6, of which the first four are one's own.
    first, second = torch.tensor([0, 2, 0, 4, 5]), torch.tensor([1, 0, 3, 1, 6])
    found = false_negatives(first[:4], first, second)
    assert found.int().tolist() == [
        [0, 1, 1, 1, 0],
        [0, 0, 0, 0, 0],
        [1, 1, 0, 1, 0],
        [1, 0, 0, 0, 0],
    ]


def test_documents_that_repeat_in_a_batch_do_not_blow_up_the_loss(tiny_bert: Path, tmp_path: Path) -> None:
    """Three documents, each paired with both others: set against themselves, they would be torn apart."""
    encoder = Encoder.load(tiny_bert, 64)
    every = pair_examples(encoder)
    anchors, positives = np.array([0, 0, 1, 1, 2, 2]), np.array([1, 2, 0, 2, 0, 1])
    examples = PairExamples(encoder.framing, every.texts, anchors, positives, every.documents)
    for cache in (0, 2):
        loss, _ = gradients(tiny_bert, cache, tmp_path, "no dropout", examples)
        assert loss < 1e-6


def test_the_cross_loss_equals_its_formula() -> None:
    scores = np.array([[2.0, 0.5, -1.0], [0.1, 0.3, 0.2]])
    one_positive = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    by_hand = -np.mean(np.log(np.exp(scores[:, 0]) / np.exp(scores).sum(axis=1)))
    loss = float(listwise(torch.tensor(scores), torch.tensor(one_positive)))
    assert loss == pytest.approx(by_hand, abs=1e-6)
    assert loss == pytest.approx(0.7216271, abs=1e-5)


def test_the_cross_loss_takes_a_teachers_distribution() -> None:
    scores = np.array([[2.0, 0.5, -1.0]])
    teacher = np.array([[0.7, 0.2, 0.1]])
    logarithms = np.log(np.exp(scores) / np.exp(scores).sum())
    assert float(listwise(torch.tensor(scores), torch.tensor(teacher))) == pytest.approx(
        -(teacher * logarithms).sum(), abs=1e-6
    )


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_pooling_takes_the_first_token_or_their_mean(pooling: str) -> None:
    hidden = torch.arange(12, dtype=torch.float32).view(6, 2)
    batch = pack([np.array([5, 6, 7, 8]), np.array([9, 9])])
    expected = {"cls": [[0.0, 1.0], [8.0, 9.0]], "mean": [[3.0, 4.0], [9.0, 10.0]]}
    assert pool(hidden, batch, pooling).tolist() == expected[pooling]


def pair_examples(encoder: Encoder) -> PairExamples:
    texts = encoder.tokenize([f"{record['title']} {record['abstract']}" for record in world.documents(24)])
    return PairExamples(encoder.framing, texts, np.arange(12), np.arange(12, 24), np.arange(24))


def settings(**given: object) -> Settings:
    return Settings("bi", "P->P", "best", **{"bf16": False, "batch_size": 12, **given})


def gradients(
    folder: Path, gradient_cache: int, tmp_path: Path, mode: str, examples: PairExamples | None = None
) -> tuple[float, list[torch.Tensor]]:
    """Loss and gradients of one batch, as the trainer computes them."""
    from transformers import TrainingArguments

    encoder = Encoder.load(folder, 64)
    examples = examples or pair_examples(encoder)
    trainer = ContrastiveTrainer(
        BiModule(encoder, "mean"),
        settings(gradient_cache=gradient_cache),
        examples,
        None,
        args=TrainingArguments(str(tmp_path), use_cpu=True, report_to=[]),
    )
    if mode == "no dropout":
        for part in encoder.model.modules():
            if isinstance(part, torch.nn.Dropout):
                part.p = 0.0
    trainer.current_gradient_accumulation_steps = 1
    torch.manual_seed(3)
    loss = trainer.training_step(trainer.model, examples.collate(np.arange(len(examples))))
    return float(loss), [weight.grad for weight in encoder.model.parameters() if weight.grad is not None]


@pytest.mark.parametrize("size", [1, 5, 24])
def test_gradient_caching_gives_the_plain_gradient(tiny_bert: Path, tmp_path: Path, size: int) -> None:
    plain_loss, plain = gradients(tiny_bert, 0, tmp_path, "no dropout")
    cached_loss, cached = gradients(tiny_bert, size, tmp_path, "no dropout")
    assert cached_loss == pytest.approx(plain_loss, rel=1e-5)
    for one, other in zip(plain, cached, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-4)


def test_gradient_caching_repeats_the_dropout_of_its_first_pass(tiny_bert: Path, tmp_path: Path) -> None:
    """In one part, with the same seed, the cached step has the very dropout of the plain one."""
    plain_loss, plain = gradients(tiny_bert, 0, tmp_path, "dropout")
    cached_loss, cached = gradients(tiny_bert, 24, tmp_path, "dropout")
    assert cached_loss == pytest.approx(plain_loss, rel=1e-5)
    for one, other in zip(plain, cached, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-4)


def test_a_batch_survives_the_way_through_the_trainer(tiny_bert: Path) -> None:
    encoder = Encoder.load(tiny_bert, 64)
    examples = pair_examples(encoder)
    collated = examples.collate([3, 1])
    assert collated.pop("documents").tolist() == [3, 1, 15, 13]
    batch = Packed(**collated)
    chosen = [examples.texts[position] for position in (3, 1, 15, 13)]
    assert batch.starts.diff().tolist() == [len(text) + 2 for text in chosen]
    assert batch.ids[1 : 1 + len(chosen[0])].tolist() == chosen[0].tolist()
