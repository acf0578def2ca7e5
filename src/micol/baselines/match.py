"""MATCH (Zhang et al. 2021) without the label hierarchy: the paper's supervised reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from micol.benchmark.task import DEPTH, Task
from micol.errors import MicolError
from micol.progress import say
from micol.ranking import Ranking

ALL = "all"


@dataclass(frozen=True)
class Match:
    """A Transformer over [CLS] tokens, metadata and words, with a sigmoid for every label.

    It reads the labels of training documents, and ranks all labels, not only candidates.
    """

    supervised: ClassVar[bool] = True
    deterministic: ClassVar[bool] = False

    # How many labelled documents it learns from.
    training: int | str = ALL
    dimension: int = 100
    layers: int = 3
    heads: int = 2
    cls_tokens: int = 8
    # Metadata and words of a document that are read; more are cut.
    max_metadata: int = 64
    max_words: int = 256
    min_count: int = 2
    pretraining_epochs: int = 5
    # As many epochs as this, or as it takes to come to so many steps: a few documents need more epochs.
    epochs: int = 15
    least_steps: int = 1_000
    batch_size: int = 256
    learning_rate: float = 1e-3
    dropout: float = 0.1

    def __post_init__(self) -> None:
        if isinstance(self.training, str) and self.training != ALL:
            raise MicolError(f'training must be a number of documents or "{ALL}", got {self.training!r}')
        if self.dimension % self.heads:
            raise MicolError(f"dimension ({self.dimension}) must be a multiple of heads ({self.heads})")

    @property
    def title(self) -> str:
        amount = "all" if self.training == ALL else thousands(int(self.training))
        return f"MATCH ({amount} training documents)"

    def rank(self, task: Task, seed: int) -> Ranking:
        from micol.baselines.match_model import trained
        from micol.baselines.match_vocabulary import Vocabulary, label_targets

        corpus = task.train.select(self.chosen(task, seed))
        say(f"MATCH learns from {len(corpus):,} labelled documents")
        vocabulary = Vocabulary.of(corpus, self.min_count)
        targets = label_targets(corpus, task.labels)
        model = trained(self, vocabulary, vocabulary.sequences(corpus, self), targets, len(task.labels), seed)
        return model.ranking(vocabulary.sequences(task.test, self), DEPTH)

    def chosen(self, task: Task, seed: int) -> np.ndarray:
        """Positions of the labelled documents that it learns from, drawn by chance."""
        known = set(task.labels.ids)
        labelled = np.array([at for at, gold in enumerate(task.train.gold) if known.intersection(gold)])
        wanted = len(labelled) if self.training == ALL else int(self.training)
        if wanted > len(labelled) or not len(labelled):
            raise MicolError(
                f"{task.train.source}: {wanted:,} labelled training documents are asked for, and there are "
                f"{len(labelled):,}"
            )
        return np.sort(np.random.default_rng((seed, 7)).permutation(labelled)[:wanted])


def thousands(count: int) -> str:
    return f"{count // 1000}K" if count and count % 1000 == 0 else f"{count:,}"
