"""The recipes, and settings that cannot be."""

from __future__ import annotations

import pytest

from micol.errors import UsageError
from micol.settings import PAPER, resolve, resolve_teacher


def test_what_is_not_given_is_of_each_ones_own_recipe() -> None:
    given = {"pairs": 20_000, "negatives": 3, "epochs": 2}  # as many pairs as the cross-encoder has anyway
    cross = resolve("cross", "P->P", "best", given)
    teacher = resolve_teacher(cross, given)
    assert teacher == resolve("bi", "P->P", "best", {"pairs": 20_000, "epochs": 2, "evidence": False})
    assert teacher.max_tokens != cross.max_tokens
    assert resolve_teacher(resolve("cross", "P->P", "paper", {}), {}) is None


def test_the_papers_recipe_is_its_appendix() -> None:
    for architecture, batch, tokens in (("bi", 8, 256), ("cross", 4, 512)):
        settings = resolve(architecture, "P->P", "paper", {})
        assert (settings.pairs, settings.validation_pairs, settings.epochs) == (50_000, 5_000, 3)
        assert (settings.batch_size, settings.max_tokens) == (batch, tokens)
        assert (settings.keep_best, settings.interpolate, settings.title_pairs) == (True, 1.0, 0.0)
        assert (settings.sampling, settings.weight_decay, settings.warmup) == ("uniform", 0.0, 0.0)
        assert settings.dropout
        assert settings.attention_dropout
    assert PAPER["bi"]["pooling"] == "cls"
    assert resolve("bi", "P->P", "paper", {}).temperature == 0.05
    assert resolve("cross", "P->P", "paper", {}).negatives == 1
    assert resolve("cross", "P->P", "paper", {}).teacher == "none"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epoch": 3}, "unknown setting 'epoch'; there are .*epochs"),
        ({"epochs": 0}, "epochs must be above 0, got 0"),
        ({"warmup": 2.0}, "warmup must be between 0 and 1, got 2.0"),
        ({"temperature": float("nan")}, "temperature must be above 0, got nan"),
        ({"dense_top": -1}, "dense_top must be 0 or more, got -1"),
        ({"labels_per_document": -1}, "labels_per_document must be between 0 and 40, got -1"),
        ({"labels_per_document": 41}, "labels_per_document must be between 0 and 40, got 41"),
        ({"max_tokens": 2}, "max_tokens must be at least 8, got 2"),
        ({"keep_best": True, "checkpoints": 0}, "keep_best chooses among checkpoints"),
        ({"pooling": "max"}, "pooling must be one of auto, cls, mean, got 'max'"),
        ({"teacher": "bi"}, "teacher is a setting of the cross-encoder"),
    ],
)
def test_impossible_settings_are_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolve("bi", "P->P", "best", given)
