"""Recall of retrievers, gathered batch by batch: the share of a document's labels that were found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from micol.console import aligned
from micol.ranking import Ranking
from micol.retrieve import Retrieved

AT = (10, 50, 100)


class Recall:
    """Sums over the documents that carry labels; a label outside the label space counts as missed."""

    def __init__(self, position_of: Mapping[str, int]) -> None:
        self.position_of = position_of
        self.documents = 0
        self.unknown: set[str] = set()
        self.sums: dict[str, np.ndarray] = {}  # retriever -> sum of recall at each depth, and of all found
        self.sizes: dict[str, int] = {}  # retriever -> labels found

    def add(self, gold: Sequence[Sequence[str]], found: Retrieved) -> None:
        """Judges a batch."""
        judged = np.array([len(labels) > 0 for labels in gold])
        if not judged.any():
            return
        self.documents += int(judged.sum())
        self.unknown.update(label for labels in gold for label in labels if label not in self.position_of)
        rankings = {
            "exact": None if found.exact is None else found.exact.ranking(),
            "BM25": found.bm25,
            "dense": found.dense,
            "union": found.candidates,
        }
        for name, ranking in rankings.items():
            if ranking is not None:
                recall = self.recall_of(gold, ranking)[judged].sum(axis=0)
                self.sums[name] = self.sums.get(name, 0) + recall
                self.sizes[name] = self.sizes.get(name, 0) + int(np.diff(ranking.indptr)[judged].sum())

    def recall_of(self, gold: Sequence[Sequence[str]], ranking: Ranking) -> np.ndarray:
        """float64 [documents, depths + 1]"""
        sizes = np.array([len(labels) for labels in gold])
        rows = np.repeat(np.arange(len(gold)), sizes)
        positions = [self.position_of.get(label, -1) for labels in gold for label in labels]
        wanted = (rows << 32) + np.array(positions, np.int64)
        rank = np.arange(len(ranking.labels)) - ranking.indptr[ranking.rows()]
        is_hit = np.isin((ranking.rows() << 32) + ranking.labels, wanted)
        hits = [
            np.bincount(ranking.rows()[is_hit & (rank < depth)], minlength=len(gold))
            for depth in (*AT, len(self.position_of))
        ]
        return np.stack(hits, axis=1) / np.maximum(sizes, 1)[:, None]

    def report(self) -> str:
        """A table: a row a retriever."""
        rows = [["", *(f"R@{depth}" for depth in AT), "recall", "labels a document"]]
        for name, sums in self.sums.items():
            rows.append([name, *(f"{value / self.documents:.4f}" for value in sums)])
            rows[-1].append(f"{self.sizes[name] / self.documents:.1f}")
        lines = [f"recall over {self.documents:,} documents with labels", aligned(rows)]
        if self.unknown:
            lines.append(
                f"{len(self.unknown):,} of their labels are not in the label space, such as "
                f"{min(self.unknown)!r}; they count as missed"
            )
        return "\n".join(lines)
