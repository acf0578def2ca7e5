"""The fused ranker: everything that is known about a document and a label, in one calibrated score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from micol.evidence.fusion import Fusion, learn
from micol.evidence.gather import Gathered, LabelSide, gather
from micol.evidence.memory import Memory
from micol.labels import LabelSpace
from micol.progress import track
from micol.ranking import Ranking
from micol.records import Document

if TYPE_CHECKING:
    from micol.rank.bi_encoder import BiEncoder

# Unlabelled documents from which the weights are learned, so many at a time.
PRACTICE = 2_000
PORTION = 250


@dataclass(frozen=True)
class Fused:
    """What a model remembers, what it knows of its labels, and how it weighs the evidence."""

    memory: Memory
    side: LabelSide
    fusion: Fusion

    @classmethod
    def learned(
        cls,
        memory: Memory,
        encoder: BiEncoder,
        name_vectors: np.ndarray,
        text_vectors: np.ndarray,
        seed: int,
    ) -> Fused:
        """Learns from what is remembered how to weigh the evidence for the labels that training knows."""
        side = LabelSide.of(memory, memory.labels, name_vectors, text_vectors)
        return cls(memory, side, learn(practice(memory, side, encoder, seed)))

    def gather(
        self,
        documents: Sequence[Document],
        encoder: BiEncoder,
        candidates: Ranking | None = None,
        allowed: np.ndarray | None = None,
    ) -> Gathered:
        return gather(documents, self.memory, self.side, encoder, candidates=candidates, allowed=allowed)

    def rank(
        self,
        documents: Sequence[Document],
        encoder: BiEncoder,
        candidates: Ranking | None = None,
        allowed: np.ndarray | None = None,
    ) -> Ranking:
        """The candidate labels of each document by their probability."""
        gathered = self.gather(documents, encoder, candidates, allowed)
        return gathered.ranking(self.fusion.probabilities(gathered.values))

    def edited(self, space: LabelSpace, name_vectors: np.ndarray, text_vectors: np.ndarray) -> Fused:
        """For an edited label space; nothing that is known of other labels changes."""
        return replace(self, side=self.side.edited(self.memory, space, name_vectors, text_vectors))


def practice(memory: Memory, side: LabelSide, encoder: BiEncoder, seed: int) -> Gathered:
    """The evidence about some of the remembered documents."""
    some = np.random.default_rng((seed, 8)).permutation(len(memory.documents))[:PRACTICE]
    portions = [some[start : start + PORTION] for start in range(0, len(some), PORTION)]
    parts = [
        gather([memory.documents[int(position)] for position in portion], memory, side, encoder)
        for portion in track(portions, "weighing evidence", unit="portions")
    ]
    return Gathered.joined(parts)
