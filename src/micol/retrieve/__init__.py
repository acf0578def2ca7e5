"""Retrieval: each retriever turns documents into candidate labels; the paper takes the union of two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from micol.ranking import Ranking
from micol.retrieve import dense as dense_search
from micol.retrieve.bm25 import BM25
from micol.retrieve.exact import ExactMatcher, Matches

__all__ = ["BM25", "ExactMatcher", "Matches", "Retrieved", "retrieve"]


@dataclass(frozen=True)
class Retrieved:
    """What each retriever found for a batch of documents; None where it was not asked."""

    candidates: Ranking
    exact: Matches | None = None
    bm25: Ranking | None = None
    dense: Ranking | None = None


def retrieve(
    texts: Sequence[str],
    *,
    exact: ExactMatcher | None = None,
    bm25: BM25 | None = None,
    bm25_top: int | None = 50,
    bm25_threshold: float | None = None,
    document_vectors: np.ndarray | None = None,
    label_vectors: np.ndarray | None = None,
    dense_top: int = 0,
    allowed: np.ndarray | None = None,
    threads: int | None = None,
) -> Retrieved:
    """The union of what the given retrievers find; `allowed` is a mask over labels.

    The work is done by as many threads as there are cores, if no number is given.
    """
    matches = exact.match(texts, allowed, threads) if exact else None
    lexical = bm25.search(texts, bm25_top, bm25_threshold, allowed, threads) if bm25 else None
    nearest = None
    if dense_top:
        if document_vectors is None or label_vectors is None:
            raise ValueError("dense retrieval needs document_vectors and label_vectors")
        nearest = dense_search.search(document_vectors, label_vectors, dense_top, allowed)
    return Retrieved(unite(len(texts), matches, lexical, nearest), matches, lexical, nearest)


def unite(documents: int, exact: Matches | None, bm25: Ranking | None, nearest: Ranking | None) -> Ranking:
    """All labels found. Those that a document names come first, the most often named ones before others and
    those of equal number by BM25; then follow the others by BM25, and the rest by vector.
    """
    union = nearest or Ranking.empty(documents)
    if bm25 is not None:
        union = lifted_above(bm25, union).union(union)
    if exact is not None:
        named = exact.ranking()
        if bm25 is not None:
            named = with_fraction(named, bm25)
        union = lifted_above(named, union).union(union)
    return union


def with_fraction(named: Ranking, bm25: Ranking) -> Ranking:
    """Whole scores, to each a fraction that rises with its BM25 score."""
    rows = np.concatenate([named.rows(), bm25.rows()])
    keys = (rows << 32) | np.concatenate([named.labels, bm25.labels])
    keys, entries = np.unique(keys, return_inverse=True)
    fractions = np.zeros(len(keys))
    fractions[entries[len(named.labels) :]] = bm25.scores / (1 + bm25.scores)
    scores = named.scores + fractions[entries[: len(named.labels)]]
    return Ranking.from_entries(named.rows(), named.labels, scores, len(named))


def lifted_above(upper: Ranking, lower: Ranking) -> Ranking:
    """`upper` with a constant added to each row so that all of it ranks above `lower`."""
    lift = row_maxima(lower.rows(), lower.scores, len(lower)) + row_maxima(
        upper.rows(), -upper.scores, len(upper)
    )
    # A row that is empty on either side has nothing to rank above, or nothing to lift.
    lift = np.where(np.isfinite(lift), np.maximum(lift + 1.0, 0.0), 0.0)
    return Ranking(upper.indptr, upper.labels, (upper.scores + lift[upper.rows()]).astype(np.float32))


def row_maxima(rows: np.ndarray, scores: np.ndarray, documents: int) -> np.ndarray:
    maxima = np.full(documents, -np.inf)
    np.maximum.at(maxima, rows, scores)
    return maxima
