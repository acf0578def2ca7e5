"""Ranking: for each document, labels with scores, best first; what every retriever and ranker returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from micol.errors import MicolError


@dataclass(frozen=True)
class Ranking:
    """Rows of (label position, score): falling score, ties by rising label position, a label once a row."""

    indptr: np.ndarray  # int64 [documents + 1]
    labels: np.ndarray  # int32 [entries]
    scores: np.ndarray  # float32 [entries]

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @classmethod
    def empty(cls, documents: int) -> Ranking:
        """As many rows as documents, none with a label."""
        return cls(np.zeros(documents + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))

    @classmethod
    def from_rows(cls, rows: Iterable[Iterable[tuple[int, float]]]) -> Ranking:
        """From (label position, score) pairs in any order; of a repeated label the best score stays."""
        indptr, labels, scores = [0], [], []
        for row in rows:
            for label, score in row:
                labels.append(label)
                scores.append(score)
            indptr.append(len(labels))
        return cls.from_entries(
            row_numbers(np.array(indptr, np.int64)), np.array(labels), np.array(scores), len(indptr) - 1
        )

    @classmethod
    def from_entries(
        cls, rows: np.ndarray, labels: np.ndarray, scores: np.ndarray, documents: int
    ) -> Ranking:
        """From entries in any order, each with the number of its row; of a repeated label the best stays."""
        rows = np.asarray(rows, np.int64)
        labels = np.asarray(labels, np.int32)
        scores = np.asarray(scores, np.float32)
        if np.isnan(scores).any():
            raise MicolError("a score is not a number, so its row has no order; check the vectors or weights")
        order = by_row_and_label(rows, labels)
        first = first_of_each_label(rows[order], labels[order], adjacent=True)
        if not first.all():
            # Rare, and slower: of a label's entries in a row the best is to come first.
            order = np.lexsort((-scores, labels, rows))
        rows, labels, scores = rows[order][first], labels[order][first], scores[order][first]
        best_first = by_row_and_falling_score(rows, scores)
        return cls(row_bounds(rows, documents), labels[best_first], scores[best_first])

    @classmethod
    def concatenate(cls, parts: Sequence[Ranking]) -> Ranking:
        """The rows of the first, then of the second, and so on."""
        if not parts:
            return cls.empty(0)
        offsets = np.cumsum([0, *(len(part.labels) for part in parts)])
        return cls(
            np.concatenate([[0], *(part.indptr[1:] + offset for part, offset in zip(parts, offsets))]),
            np.concatenate([part.labels for part in parts]),
            np.concatenate([part.scores for part in parts]),
        )

    def row(self, document: int) -> tuple[np.ndarray, np.ndarray]:
        """Label positions and scores of one document."""
        entries = slice(self.indptr[document], self.indptr[document + 1])
        return self.labels[entries], self.scores[entries]

    def rows(self) -> np.ndarray:
        """The row number of each entry."""
        return row_numbers(self.indptr)

    def top(self, k: int) -> Ranking:
        """The first k of each row."""
        rows = self.rows()
        keep = np.arange(len(self.labels)) - self.indptr[rows] < k
        return Ranking(row_bounds(rows[keep], len(self)), self.labels[keep], self.scores[keep])

    def slice(self, start: int, end: int) -> Ranking:
        """Rows start to end."""
        first, last = self.indptr[start], self.indptr[end]
        return Ranking(self.indptr[start : end + 1] - first, self.labels[first:last], self.scores[first:last])

    def restrict(self, allowed: np.ndarray) -> Ranking:
        """Without the labels that a mask over labels leaves out."""
        keep = allowed[self.labels]
        return Ranking(row_bounds(self.rows()[keep], len(self)), self.labels[keep], self.scores[keep])

    def union(self, other: Ranking) -> Ranking:
        """The labels of both, row by row; a label that both have keeps the score it has here."""
        if len(self) != len(other):
            raise ValueError(f"rankings of {len(self)} and {len(other)} documents cannot be joined")
        rows = np.concatenate([self.rows(), other.rows()])
        labels = np.concatenate([self.labels, other.labels])
        scores = np.concatenate([self.scores, other.scores])
        # Where both have a label, the entry of `self` comes first.
        by_label = by_row_and_label(rows, labels)
        kept = by_label[first_of_each_label(rows[by_label], labels[by_label], adjacent=True)]
        return Ranking.from_entries(rows[kept], labels[kept], scores[kept], len(self))


def rank_by_cosine(documents: np.ndarray, labels: np.ndarray, candidates: Ranking) -> Ranking:
    """Re-orders the candidates of each document by the cosine of unit vectors, [N, dim] each."""
    rows = candidates.rows()
    scores = np.empty(len(rows), dtype=np.float32)
    for start in range(0, len(rows), 65_536):
        part = slice(start, start + 65_536)
        scores[part] = np.einsum("ij,ij->i", documents[rows[part]], labels[candidates.labels[part]])
    return Ranking.from_entries(rows, candidates.labels, scores, len(candidates))


def row_numbers(indptr: np.ndarray) -> np.ndarray:
    """[0, 2, 3] -> [0, 0, 1]"""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def row_bounds(rows: np.ndarray, documents: int) -> np.ndarray:
    """[0, 0, 1] -> [0, 2, 3]; rows must not fall."""
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=documents))]).astype(np.int64)


def first_of_each_label(rows: np.ndarray, labels: np.ndarray, *, adjacent: bool = False) -> np.ndarray:
    """A mask of the entries whose (row, label) has not come before; quicker where equal ones lie together."""
    if not len(labels):
        return np.zeros(0, bool)
    if adjacent:
        return np.concatenate([[True], (np.diff(rows) != 0) | (np.diff(labels) != 0)])
    by_label = by_row_and_label(rows, labels)
    first = np.empty(len(labels), bool)
    first[by_label] = first_of_each_label(rows[by_label], labels[by_label], adjacent=True)
    return first


def by_row_and_label(rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """An order of the entries; equal ones stay as they are."""
    # One whole number for both sorts several times quicker than lexsort does.
    return np.argsort((rows.astype(np.int64) << 32) + labels, kind="stable")


def by_row_and_falling_score(rows: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """An order of the entries; equal ones stay as they are. `scores` are float32."""
    # The bits of floats sort as the floats do, those of negative ones turned round; -0.0 + 0.0 is 0.0.
    bits = (scores + np.float32(0)).view(np.int32)
    falling = 0x7FFFFFFF - np.where(bits < 0, bits ^ 0x7FFFFFFF, bits).astype(np.int64)
    return np.argsort((rows.astype(np.int64) << 32) + falling, kind="stable")
