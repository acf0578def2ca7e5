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
) -> Retrieved:
    """The union of what the given retrievers find; `allowed` is a mask over labels."""
    matches = exact.match(texts, allowed) if exact else None
    lexical = bm25.search(texts, bm25_top, bm25_threshold, allowed) if bm25 else None
    nearest = None
    if dense_top:
        if document_vectors is None or label_vectors is None:
            raise ValueError("dense retrieval needs document_vectors and label_vectors")
        nearest = dense_search.search(document_vectors, label_vectors, dense_top, allowed)
    return Retrieved(unite(len(texts), matches, lexical, nearest), matches, lexical, nearest)


def unite(documents: int, exact: Matches | None, bm25: Ranking | None, nearest: Ranking | None) -> Ranking:
    """Labels named in the document first, then by BM25 score, then by vector."""
    union = Ranking.empty(documents)
    for found in (nearest, bm25, exact.ranking() if exact else None):
        if found is not None:
            union = lifted_above(found, union).union(union)
    return union


def lifted_above(upper: Ranking, lower: Ranking) -> Ranking:
    """`upper` with a constant added to each row so that all of it ranks above `lower`."""
    best = row_maxima(lower)
    worst = -row_maxima(Ranking(upper.indptr, upper.labels, -upper.scores))
    lift = np.maximum(best - worst + 1.0, 0.0)
    lift[np.isneginf(best)] = 0.0
    return Ranking(upper.indptr, upper.labels, (upper.scores + lift[upper.rows()]).astype(np.float32))


def row_maxima(ranking: Ranking) -> np.ndarray:
    maxima = np.full(len(ranking), -np.inf)
    np.maximum.at(maxima, ranking.rows(), ranking.scores)
    return maxima
