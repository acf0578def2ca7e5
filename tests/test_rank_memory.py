"""Batches in parts that fit into memory have the gradient of the whole batch; and several batches in one."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import TrainingArguments

import world
from micol.rank.cross_encoder import CrossEncoder
from micol.rank.encoder import Encoder
from micol.rank.examples import Examples, ListExamples, PairExamples
from micol.rank.memory import main_memory, parts_that_fit, tokens_at_once
from micol.rank.recorded import filled
from micol.rank.trainer import BiModule, ContrastiveTrainer, CrossModule, choose_dropout
from micol.settings import Settings


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(1, 30), st.integers(1, 3))
def test_parts_hold_every_sequence_once_and_fit_where_they_can(
    lengths: list[int], most: int, together: int
) -> None:
    lengths = [length for length in lengths for _ in range(together)]
    starts = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    parts = parts_that_fit(starts, most, together)
    assert [first for first, _ in parts] == [0, *(last for _, last in parts[:-1])]
    assert parts[-1][1] == len(lengths)
    for first, last in parts:
        assert first % together == 0
        assert first < last
        assert starts[last] - starts[first] <= most or last - first == together
    for (first, middle), _ in pairwise(parts):  # none could have taken one more
        assert starts[middle + together] - starts[first] > most


def test_memory_is_what_the_system_says(tiny_bert: Path) -> None:
    if (information := Path("/proc/meminfo")).is_file():
        kilobytes = int(information.read_text(encoding="ascii").split()[1])
        assert 0 < main_memory() <= kilobytes * 1024
    small = Encoder.load(tiny_bert, 64, device=torch.device("cpu")).model
    assert tokens_at_once(small) > 100_000


def examples_for(encoder: Encoder, architecture: str) -> Examples:
    texts = encoder.tokenize([f"{record['title']} {record['abstract']}" for record in world.documents(24)])
    if architecture == "bi":
        return PairExamples(encoder.framing, texts, np.arange(12), np.arange(12, 24), np.arange(24))
    lists = np.arange(24).reshape(8, 3)
    targets = np.random.default_rng(0).dirichlet(np.ones(3), 8)
    return ListExamples(encoder.framing, texts, texts, np.arange(8), lists, targets)


def trainer_for(folder: Path, architecture: str, batch_size: int, output: Path) -> ContrastiveTrainer:
    """A trainer without dropout, whose validation examples are those of training."""
    encoder = Encoder.load(folder, 128)
    examples = examples_for(encoder, architecture)
    module: BiModule | CrossModule = BiModule(encoder, "mean")
    if architecture == "cross":
        cross = CrossEncoder.untrained(encoder, 0)
        module = CrossModule(encoder, cross.head)
    settings = Settings(architecture, "P->P", "best", bf16=False, batch_size=batch_size, dropout=False)
    choose_dropout(encoder.model, settings)
    arguments = TrainingArguments(str(output), use_cpu=True, report_to=[])
    return ContrastiveTrainer(module, settings, examples, examples, args=arguments)


def step(
    folder: Path, architecture: str, most_tokens: int, output: Path
) -> tuple[float, list[torch.Tensor], int]:
    """The loss and the gradients of one batch, and how often the encoder ran."""
    trainer = trainer_for(folder, architecture, 12, output)
    trainer.most_tokens = most_tokens
    trainer.current_gradient_accumulation_steps = 1
    module, examples = trainer.model, trainer.examples
    runs: list[int] = []
    module.register_forward_hook(lambda *_: runs.append(1))
    loss = trainer.training_step(module, examples.collate(range(len(examples))))
    return float(loss), [weight.grad for weight in module.parameters() if weight.grad is not None], len(runs)


@pytest.mark.parametrize("architecture", ["bi", "cross"])
@pytest.mark.parametrize("most_tokens", [1, 200])
def test_parts_have_the_gradient_of_the_whole(
    tiny_bert: Path, tmp_path: Path, architecture: str, most_tokens: int
) -> None:
    whole_loss, whole, once = step(tiny_bert, architecture, 1_000_000, tmp_path)
    loss, gradients, runs = step(tiny_bert, architecture, most_tokens, tmp_path)
    assert once == 1
    assert runs > 2
    assert loss == pytest.approx(whole_loss, rel=1e-5)
    for one, other in zip(whole, gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("architecture", ["bi", "cross"])
@pytest.mark.parametrize("at_once", [1, 10, 64])
def test_the_validation_loss_is_the_mean_over_batches_however_many_run_together(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, architecture: str, at_once: int
) -> None:
    monkeypatch.setattr("micol.rank.trainer.EVALUATED_TOGETHER", at_once)
    trainer = trainer_for(tiny_bert, architecture, 5, tmp_path)
    module, examples = trainer.model.eval(), trainer.examples
    order = examples.order(0, 5, 0).tolist()
    batches = [order[start : start + 5] for start in range(0, len(order), 5)]
    assert len(batches[-1]) < 5
    with torch.no_grad():
        losses = [float(trainer.compute_loss(module, examples.collate(batch))) for batch in batches]
    expected = np.average(losses, weights=[len(batch) for batch in batches])
    assert trainer.evaluate()["eval_loss"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("architecture", ["bi", "cross"])
def test_a_filled_batch_has_the_loss_and_gradient_of_the_batch(
    tiny_bert: Path, tmp_path: Path, architecture: str
) -> None:
    found = []
    for is_filled in (False, True):
        trainer = trainer_for(tiny_bert, architecture, 12, tmp_path)
        batch = trainer.examples.collate(range(8))
        if is_filled:
            batch = filled(batch, trainer.model.encoder.max_tokens)
            assert len(batch["ids"]) % trainer.model.encoder.max_tokens == 0
        loss = trainer.compute_loss(trainer.model, batch)
        loss.backward()
        found.append([loss, *(w.grad for w in trainer.model.parameters() if w.grad is not None)])
    for plain, full in zip(*found, strict=True):
        torch.testing.assert_close(full, plain, atol=1e-6, rtol=1e-4)
