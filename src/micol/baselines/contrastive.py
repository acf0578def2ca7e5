"""MICoL itself, and the contrastive training that the augmentation baselines share with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from micol.benchmark.task import Task
from micol.corpus import Corpus
from micol.errors import MicolError
from micol.metapath import MetaPath
from micol.pairs import Pairs
from micol.ranking import Ranking
from micol.settings import ARCHITECTURES, Settings, resolve

ARCHITECTURE_NAMES = {"bi": "Bi-Encoder", "cross": "Cross-Encoder"}


@dataclass(frozen=True)
class Micol:
    """An encoder trained on the pairs of a meta-path, or on those of several put together."""

    supervised: ClassVar[bool] = False
    deterministic: ClassVar[bool] = False

    architecture: str = "bi"
    path: str = ""
    # Paths whose pairs are put together, in equal shares; a number stands for that many of the best ones.
    combine: int | tuple[str, ...] = 0
    base: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_architecture(self.architecture)
        if bool(self.path) == bool(self.combine):
            raise MicolError("micol needs either a path or combine, which puts several paths together")
        for path in self.paths:
            MetaPath(path)

    @property
    def paths(self) -> tuple[str, ...]:
        return self.combine if isinstance(self.combine, tuple) else (self.path,) if self.path else ()

    @property
    def title(self) -> str:
        what = self.path or (" and ".join(self.paths) if self.paths else f"top {self.combine} paths together")
        return f"MICoL ({ARCHITECTURE_NAMES[self.architecture]}, {what})"

    def rank(self, task: Task, seed: int) -> Ranking:
        request = Request(self.architecture, " and ".join(self.paths), self.base, self.settings, seed)
        settings = request.resolved()
        share = replace(settings, pairs=max(1, settings.pairs // len(self.paths)))
        parts = [drawn_pairs(task, replace(share, path=path)) for path in self.paths]
        pairs = parts[0] if len(parts) == 1 else together(parts, seed)
        return trained_ranking(task, task.train, pairs, request)


class Request(NamedTuple):
    """What is asked of a training: the options of a row, and its seed."""

    architecture: str
    path: str
    base: str | None
    settings: Mapping[str, Any]  # with the recipe among them
    seed: int

    @property
    def recipe(self) -> str:
        return str(self.settings.get("recipe", "best"))

    @property
    def given(self) -> dict[str, Any]:
        """Settings in the place of the recipe's."""
        rest = {name: value for name, value in self.settings.items() if name != "recipe"}
        return {**rest, "seed": self.seed}

    def resolved(self) -> Settings:
        return resolve(self.architecture, self.path, self.recipe, self.given)


def check_architecture(architecture: str) -> None:
    if architecture not in ARCHITECTURES:
        raise MicolError(f"architecture must be one of {', '.join(ARCHITECTURES)}, got {architecture!r}")


def drawn_pairs(task: Task, settings: Settings) -> Pairs:
    """The pairs of a path; both architectures, and later runs, find them drawn."""
    from micol.training import pairs_for

    names = ("path", "pairs", "sampling", "seed", "keep_best", "validation_pairs")
    decides = {name: getattr(settings, name) for name in names} | {"train": task.fingerprint["train"]}

    def draw() -> dict[str, np.ndarray]:
        return {name: np.asarray(value) for name, value in pairs_for(task.train, settings)._asdict().items()}

    found = task.kept.get("pairs", decides, draw)
    return Pairs(found["anchor"], found["positive"], bool(found["exhausted"]))


def together(parts: Sequence[Pairs], seed: int) -> Pairs:
    """The pairs of several paths, mixed: those held back for validation are to be of all paths, too."""
    anchors = np.concatenate([part.anchor for part in parts])
    positives = np.concatenate([part.positive for part in parts])
    order = np.random.default_rng((seed, 5)).permutation(len(anchors))
    return Pairs(anchors[order], positives[order], all(part.exhausted for part in parts))


def trained_ranking(task: Task, corpus: Corpus, pairs: Pairs, request: Request) -> Ranking:
    """Trains on pairs of documents of a corpus and re-ranks the candidates of the test documents."""
    from micol.training import train

    model = train(
        corpus,
        task.labels,
        request.path,
        request.architecture,
        recipe=request.recipe,
        base=task.model(request.base),
        ready_pairs=pairs,
        **{"evidence": False, **request.given},
    )
    return model.rank_texts(task.test_texts, task.candidates)


def augmented_ranking(
    task: Task, augment: Callable[[Sequence[str], np.random.Generator], list[str]], request: Request
) -> Ranking:
    """The same training on artificial pairs: a document, and itself after augmentation.

    The corpus holds each drawn document and, behind them all, what was made of each.
    """
    settings = request.resolved()
    generator = np.random.default_rng((request.seed, 6))
    wanted = settings.pairs + (settings.validation_pairs if settings.keep_best else 0)
    texts = [text for text in task.train.texts() if text.strip()]
    texts = [texts[at] for at in generator.permutation(len(texts))[:wanted]]
    both = [*texts, *augment(texts, generator)]
    corpus = Corpus.from_records(
        ({"id": str(number), "text": text} for number, text in enumerate(both)), source=task.train.source
    )
    anchors = np.arange(len(texts), dtype=np.int64)
    return trained_ranking(task, corpus, Pairs(anchors, anchors + len(texts), False), request)
