"""The fused ranker: everything that is known about a document and a label, in one calibrated score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from micol.evidence.fusion import Fusion, learn
from micol.evidence.gather import TOGETHER, Gathered, LabelSide, Read, gather
from micol.evidence.memory import Memory
from micol.evidence.tags import PRACTICE, portions_of, practised, tags_of
from micol.evidence.together import Reader
from micol.labels import LabelSpace
from micol.progress import track
from micol.ranking import Ranking
from micol.records import Document
from micol.settings import Settings

if TYPE_CHECKING:
    from micol.rank.bi_encoder import BiEncoder
    from micol.rank.cross_encoder import CrossEncoder


@dataclass(frozen=True)
class Fused:
    """What a model remembers, what it knows of its labels, and how it weighs the evidence."""

    memory: Memory
    side: LabelSide
    fusion: Fusion
    reader: Reader | None = None

    @classmethod
    def learned(
        cls,
        memory: Memory,
        encoder: BiEncoder,
        name_vectors: np.ndarray,
        text_vectors: np.ndarray,
        settings: Settings,
        cross: CrossEncoder | None = None,
    ) -> Fused:
        """Learns from what is remembered how to weigh the evidence for the labels that training knows."""
        side = LabelSide.of(memory, memory.labels, name_vectors, text_vectors)
        tags = tags_of(memory, side, settings.seed, settings.hierarchy)
        memory, side = memory.with_tags(tags), side.tagged(tags)
        reader = reader_of(cross, memory.labels, memory)
        evidence = practice(memory, side, encoder, settings.seed, reader)
        fusion = learn(
            evidence, hierarchy=settings.hierarchy, labels_per_document=settings.labels_per_document
        )
        return cls(memory, side, fusion, reader)

    def gather(
        self,
        documents: Sequence[Document],
        encoder: BiEncoder,
        candidates: Ranking | None = None,
        allowed: np.ndarray | None = None,
    ) -> Gathered:
        read = Read.by(encoder, documents)
        found = gather(documents, read, self.memory, self.side, candidates=candidates, allowed=allowed)
        if self.reader is None:
            return found
        if not self.fusion.weight(TOGETHER):
            return found.with_together(np.zeros(len(found.keys)))
        return self.reader.read(documents, found)

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
        return replace(
            self,
            side=self.side.edited(self.memory, space, name_vectors, text_vectors),
            reader=self.reader.edited(space) if self.reader else None,
        )


def reader_of(cross: CrossEncoder | None, labels: LabelSpace, memory: Memory) -> Reader | None:
    return Reader.of(cross, labels, memory.labels) if cross else None


def practice(
    memory: Memory,
    side: LabelSide,
    encoder: BiEncoder,
    seed: int,
    reader: Reader | None = None,
    most: int = PRACTICE,
) -> Gathered:
    """The evidence about some of the remembered documents."""
    parts = []
    portions = portions_of(practised(memory, seed, most))
    for portion in track(portions, "weighing evidence", unit="portions"):
        documents = [memory.documents[int(position)] for position in portion]
        found = gather(documents, Read.by(encoder, documents), memory, side)
        parts.append(reader.read(documents, found) if reader else found)
    return Gathered.joined(parts)
