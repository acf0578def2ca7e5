"""Dense retrieval: the labels whose vectors are nearest to a document's, among all labels."""

from __future__ import annotations

import numpy as np

from micol.compiled import kernel
from micol.errors import MicolError
from micol.ranking import Ranking
from micol.retrieve.select import choose_best, chunked, unpack_best_first

# Documents at a time such that their scores against all labels stay within this many values.
SCORES_AT_ONCE = 1 << 24


def search(
    document_vectors: np.ndarray, label_vectors: np.ndarray, top: int, allowed: np.ndarray | None = None
) -> Ranking:
    """The `top` labels by inner product (cosine, where the vectors are normalised).

    A document whose vector is zero, having no text, gets none. `allowed` is a mask over labels.
    """
    n_labels = len(label_vectors)
    for vectors, whose in ((document_vectors, "document"), (label_vectors, "label")):
        if np.isnan(np.sum(vectors, dtype=np.float64)):
            raise MicolError(f"a {whose} vector is not a number, so no label is near; encode it again")
    step = max(1, SCORES_AT_ONCE // max(n_labels, 1))
    room = chunked(min(step, len(document_vectors)), n_labels)
    parts = []
    for first in range(0, len(document_vectors), step):
        block = np.asarray(document_vectors[first : first + step], np.float32)
        scores = room[: len(block)]
        flat = scores.reshape(len(block), -1)
        flat[:, :n_labels] = block @ np.asarray(label_vectors, np.float32).T
        flat[:, n_labels:] = -np.inf
        if allowed is not None:
            flat[:, :n_labels][:, ~allowed] = -np.inf
        flat[~block.any(axis=1)] = -np.inf
        parts.append(Ranking(*best_of_rows(scores, min(top, n_labels))))
    return Ranking.concatenate(parts)


@kernel
def best_of_rows(scores: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bounds, labels and scores of the best finite scores of each row."""
    indptr = np.zeros(len(scores) + 1, np.int64)
    labels, best = np.empty(len(scores) * most, np.int32), np.empty(len(scores) * most, np.float32)
    heap = np.empty(most, np.int64)
    for row in range(len(scores)):
        size, start = choose_best(scores[row], -np.inf, heap), indptr[row]
        unpack_best_first(heap[:size], labels[start : start + size], best[start : start + size])
        indptr[row + 1] = start + size
    return indptr, labels[: indptr[-1]].copy(), best[: indptr[-1]].copy()
