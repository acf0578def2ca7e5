"""Dense retrieval: the labels whose vectors are nearest to a document's, over all labels at once."""

from __future__ import annotations

import numpy as np

from micol.ranking import Ranking

# Documents at a time such that their scores against all labels stay within this many values.
SCORES_AT_ONCE = 1 << 24


def search(
    document_vectors: np.ndarray, label_vectors: np.ndarray, top: int, allowed: np.ndarray | None = None
) -> Ranking:
    """The `top` labels by inner product (cosine, where the vectors are normalised)."""
    labels = np.arange(len(label_vectors)) if allowed is None else np.flatnonzero(allowed)
    vectors = np.ascontiguousarray(label_vectors[labels], np.float32)
    top = min(top, len(labels))
    step = max(1, SCORES_AT_ONCE // max(len(labels), 1))
    parts = []
    for first in range(0, len(document_vectors), step):
        block = np.asarray(document_vectors[first : first + step], np.float32)
        scores = block @ vectors.T
        parts.append(best_of_rows(scores, labels, top))
    return Ranking.concatenate(parts)


def best_of_rows(scores: np.ndarray, labels: np.ndarray, top: int) -> Ranking:
    """The `top` columns of each row; of equal scores the first columns."""
    if top == 0:
        return Ranking.empty(len(scores))
    # The top-th best score of each row; more than `top` entries reach it where scores tie.
    least = -np.partition(-scores, top - 1, axis=1)[:, top - 1]
    rows, columns = np.nonzero(scores >= least[:, None])
    return Ranking.from_entries(rows, labels[columns], scores[rows, columns], len(scores)).top(top)
