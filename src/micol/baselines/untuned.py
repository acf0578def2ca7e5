"""An encoder as it is, as a bi-encoder: SciBERT before training, SPECTER, or any other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from micol.benchmark.task import Task
from micol.errors import MicolError
from micol.ranking import Ranking, rank_by_cosine

AUTO = "auto"  # as the encoder was trained, else the mean
POOLINGS = (AUTO, "cls", "mean")
HOW_TO_PROVIDE = "say with --weights ID=FOLDER where the model lies"


@dataclass(frozen=True)
class UntunedEncoder:
    """Cosine between the vectors of document and label text."""

    supervised: ClassVar[bool] = False
    deterministic: ClassVar[bool] = True

    base: str | None = None
    pooling: str = AUTO
    max_tokens: int = 256

    def __post_init__(self) -> None:
        if self.pooling not in POOLINGS:
            raise MicolError(f"pooling must be one of {', '.join(POOLINGS)}, got {self.pooling!r}")

    @property
    def title(self) -> str:
        return f"Untuned encoder{f' ({self.base})' if self.base else ''}"

    def rank(self, task: Task, seed: int) -> Ranking:
        found = self.vectors(task)
        return rank_by_cosine(found["documents"], found["labels"], task.candidates)

    def vectors(self, task: Task) -> Mapping[str, np.ndarray]:
        """Of the test documents and of the labels; the same for every row with this encoder."""
        decides = {**vars(self), **task.fingerprint}
        return task.kept.get("vectors", decides, lambda: self._encoded(task))

    def _encoded(self, task: Task) -> dict[str, np.ndarray]:
        from micol.rank.base import resolve_base
        from micol.rank.bi_encoder import BiEncoder
        from micol.rank.encoder import Encoder, saved_pooling

        source = resolve_base(task.model(self.base))
        encoder = Encoder.load(source, self.max_tokens, remedy=HOW_TO_PROVIDE)
        encoder.settle()
        pooling = self.pooling if self.pooling != AUTO else saved_pooling(source) or "mean"
        ranker = BiEncoder(encoder, pooling)
        return {
            "documents": ranker.vectors(task.test_texts, "encoding documents"),
            "labels": ranker.vectors(task.label_texts, "encoding labels"),
        }
