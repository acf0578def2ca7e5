"""Encoders trained as one stack learn what each would have learned alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import micol
import world
from micol.labels import LabelSpace
from micol.pairs import Pairs
from micol.settings import Settings, resolve
from micol.training import pairs_for

# The last batch of an epoch is short; without chance, as the two draw their dropout differently.
GIVEN: dict[str, Any] = {
    "pairs": 101, "validation_pairs": 21, "epochs": 2, "checkpoints": 3, "learning_rate": 1e-3,
    "dropout": False, "attention_dropout": False, "bf16": False,
}  # fmt: skip
# What adds the same to all that is compared has no gradient but noise, which Adam enlarges.
IN_VAIN = {"bi": ("key.bias",), "cross": ("key.bias", "layer.1.output.LayerNorm.bias")}
RUNS = (("P->P", 0), ("PAP", 0), ("PAP", 1))


pytestmark = pytest.mark.usefixtures("benchmarks_can_be_imported")


def prepared(corpus: micol.Corpus, encoder: Any, settings: Settings) -> Any:
    import side_by_side

    return side_by_side.prepared(corpus, encoder, settings, pairs_for(corpus, settings))


@pytest.mark.parametrize("architecture", ["bi", "cross"])
def test_a_stack_learns_what_each_would_alone(
    architecture: str, tiny_bert: Path, labels_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import side_by_side
    from stacked import training as stacked

    # Alone, a run has its batches in another order.
    monkeypatch.setattr(stacked, "alike_in_size", lambda orders, examples: np.stack(orders, axis=1))
    corpus, labels = micol.Corpus.from_records(world.documents(240)), LabelSpace.read(labels_file)
    settings = [resolve(architecture, path, "paper", {**GIVEN, "seed": seed}) for path, seed in RUNS]
    encoder = side_by_side.Rememberer.load(tiny_bert, settings[0].max_tokens)
    runs = [prepared(corpus, encoder, one) for one in settings]
    training = stacked.Training(encoder, runs)
    assert all(weight.is_leaf for weight in training.stack.weights.values())
    training.fit()
    for (path, seed), run in zip(RUNS, runs, strict=True):
        alone = micol.train(
            corpus, labels, path, architecture, recipe="paper", base=str(tiny_bert), seed=seed, **GIVEN
        )
        together = side_by_side.ranker_of(run, encoder)
        expected = dict(alone.ranker.encoder.exact_weights or alone.ranker.encoder.model.state_dict())
        found = together.encoder.model.state_dict()
        assert expected.keys() == found.keys()
        for name, weight in expected.items():
            if name.endswith(IN_VAIN[architecture]):
                continue
            torch.testing.assert_close(found[name], weight, rtol=1e-3, atol=1e-4, msg=f"{path} {name}")
        if architecture == "cross":
            torch.testing.assert_close(together.head.weight, alone.ranker.head.weight, rtol=1e-3, atol=1e-4)
        assert run.losses[-1] < run.losses[0]


def test_batches_of_a_step_are_alike_in_size() -> None:
    from stacked.batches import NONE, Sequences
    from stacked.training import alike_in_size

    generator = np.random.default_rng(0)
    orders = [generator.permutation(200).reshape(50, 4) for _ in range(3)]
    orders[1][-1, 2:] = NONE
    sizes = generator.integers(3, 500, (3, 200))
    none = torch.zeros(0)
    examples = Sequences(none, none, none, torch.zeros(3, 200, 2), none, none, none, sizes)
    ordered = alike_in_size(orders, examples)
    expected = [
        sorted((sum(sizes[run][n] if n != NONE else 4 for n in batch), tuple(batch)) for batch in order)
        for run, order in enumerate(orders)
    ]
    assert (ordered[:, 0] == orders[0]).all()
    for batches in zip(*expected, strict=True):
        at = [tuple(batch) for batch in orders[0]].index(batches[0][1])
        assert [tuple(batch) for batch in ordered[at]] == [batch for _, batch in batches]


def test_a_stack_with_dropout_learns_the_same_again(tiny_bert: Path) -> None:
    import side_by_side
    from stacked.training import Training

    corpus = micol.Corpus.from_records(world.documents(60))
    settings = resolve("bi", "PAP", "paper", {**GIVEN, "dropout": True, "attention_dropout": True})
    encoder = side_by_side.Rememberer.load(tiny_bert, settings.max_tokens)
    runs = [prepared(corpus, encoder, settings) for _ in range(2)]
    for run in runs:
        Training(encoder, [run]).fit()
    assert runs[0].losses == runs[1].losses


def test_what_is_not_the_papers_recipe_is_not_stacked(tiny_bert: Path, tiny_roberta: Path) -> None:
    import side_by_side
    from stacked.training import Training

    corpus = micol.Corpus.from_records(world.documents(60))
    plain, warm, other = (
        resolve("bi", "PAP", "paper", {**GIVEN, **more}) for more in ({}, {"warmup": 0.1}, {"batch_size": 4})
    )
    encoder = side_by_side.Rememberer.load(tiny_bert, plain.max_tokens)
    runs = [prepared(corpus, encoder, settings) for settings in (plain, warm, other)]
    with pytest.raises(ValueError, match="no warm-up"):
        Training(encoder, runs[1:2])
    with pytest.raises(ValueError, match="one architecture, batch size"):
        Training(encoder, [runs[0], runs[2]])
    with pytest.raises(ValueError, match="only BERT is stacked here, not roberta"):
        Training(side_by_side.Rememberer.load(tiny_roberta, plain.max_tokens), runs[:1])


@pytest.fixture
def rows_of(
    tmp_path: Path, data_folder: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], list[dict[str, Any]]]:
    """Runs the benchmark, quickly, and returns all rows so far."""
    import side_by_side

    def short(*settings: Any) -> Settings:
        return resolve(*settings[:-1], {**GIVEN, **settings[-1]})

    def run(chosen: str) -> list[dict[str, Any]]:
        output = tmp_path / "rows.jsonl"
        arguments = f"x {data_folder} --architecture bi {chosen} --base {tiny_bert} --output {output}"
        monkeypatch.setattr(sys, "argv", arguments.split())
        side_by_side.main()
        return [json.loads(line) for line in output.read_text().splitlines()]

    monkeypatch.setattr(side_by_side, "resolve", short)
    return run


def test_rows_are_written_once(rows_of: Callable[[str], list[dict[str, Any]]]) -> None:
    rows_of("--seeds 0 1 --paths PAP")
    rows = rows_of("--seeds 0 1 --paths PAP")
    assert [(row["path"], row["seed"], row["together"]) for row in rows] == [("PAP", 0, 2), ("PAP", 1, 2)]
    assert all(0 < row["scores"]["P@1"] <= 1 for row in rows)


def test_stacks_are_as_large_as_is_said(rows_of: Callable[[str], list[dict[str, Any]]]) -> None:
    rows = rows_of("--seeds 0 1 2 3 --paths PAP --at-once 3")
    assert [(row["seed"], row["together"]) for row in rows] == [(seed, 2) for seed in range(4)]


def test_paths_with_the_same_pairs_are_trained_once(
    rows_of: Callable[[str], list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    import side_by_side

    def of_one_venue(corpus: micol.Corpus, settings: Settings) -> Pairs:
        return pairs_for(corpus, replace(settings, path=settings.path.replace("(AV)", "A")))

    monkeypatch.setattr(side_by_side, "pairs_for", of_one_venue)
    found = {(row["path"], row["seed"]): row for row in rows_of("--seeds 0 1 --paths PAP P(AV)P P->P")}
    assert len(found) == 6
    assert {row["together"] for row in found.values()} <= {2, 4}
    for (path, seed), row in found.items():
        assert row.get("pairs_of") == ("PAP" if path == "P(AV)P" else None)
        assert path != "P(AV)P" or row["scores"] == found["PAP", seed]["scores"]
