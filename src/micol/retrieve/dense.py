"""Dense retrieval: the labels whose vectors are nearest to a document's, among all labels."""

from __future__ import annotations

import numpy as np

from micol.compiled import kernel
from micol.errors import MicolError
from micol.ranking import Ranking
from micol.retrieve.select import CHUNK, choose_best, unpack_best_first

# Scores are computed in tiles, so that memory does not grow with the number of labels or documents.
DOCUMENTS_AT_ONCE, LABELS_AT_ONCE = 1 << 9, 1 << 14


def search(
    document_vectors: np.ndarray, label_vectors: np.ndarray, top: int, allowed: np.ndarray | None = None
) -> Ranking:
    """The `top` labels by inner product (cosine, where the vectors are normalised).

    A document whose vector is zero, having no text, gets none. `allowed` is a mask over labels.
    """
    documents = single_precision(document_vectors, "document")
    labels = np.arange(len(label_vectors)) if allowed is None else np.flatnonzero(allowed)
    heaps = np.empty((len(documents), min(top, len(labels))), np.int64)
    sizes = np.zeros(len(documents), np.int64)
    for first_label in range(0, len(labels), LABELS_AT_ONCE):
        some_labels = slice(first_label, first_label + LABELS_AT_ONCE)
        # A slice of the vectors is no copy, a list of positions is one.
        chosen = label_vectors[some_labels] if allowed is None else label_vectors[labels[some_labels]]
        vectors = single_precision(chosen, "label").T
        n_labels = vectors.shape[1]
        room = np.empty((DOCUMENTS_AT_ONCE, -(-n_labels // CHUNK), CHUNK), np.float32)
        for first_document in range(0, len(documents), DOCUMENTS_AT_ONCE):
            some_documents = slice(first_document, first_document + DOCUMENTS_AT_ONCE)
            block = documents[some_documents]
            scores = room[: len(block)]
            flat = scores.reshape(len(block), -1)
            np.matmul(block, vectors, out=flat[:, :n_labels])
            flat[:, n_labels:] = -np.inf
            offer_rows(scores, first_label, heaps[some_documents], sizes[some_documents])
    sizes[~documents.any(axis=1)] = 0
    indptr, places, scores = rows_of_heaps(heaps, sizes)
    return Ranking(indptr, labels[places].astype(np.int32), scores)


def single_precision(vectors: np.ndarray, whose: str) -> np.ndarray:
    vectors = np.asarray(vectors, np.float32)
    if np.isnan(vectors.sum()):
        raise MicolError(f"a {whose} vector is not a number, so nothing is near it; encode it again")
    return vectors


@kernel
def offer_rows(scores: np.ndarray, first_label: int, heaps: np.ndarray, sizes: np.ndarray) -> None:
    """Offers scores [documents, chunks, CHUNK] of labels from `first_label` on to each document's heap."""
    for row in range(len(scores)):
        sizes[row] = choose_best(scores[row], -np.inf, first_label, heaps[row], sizes[row])


@kernel
def rows_of_heaps(heaps: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bounds, labels and scores of each row."""
    indptr = np.zeros(len(sizes) + 1, np.int64)
    labels, scores = np.empty(heaps.size, np.int32), np.empty(heaps.size, np.float32)
    for row in range(len(sizes)):
        start, end = indptr[row], indptr[row] + sizes[row]
        unpack_best_first(heaps[row, : sizes[row]], labels[start:end], scores[start:end])
        indptr[row + 1] = end
    return indptr, labels[: indptr[-1]], scores[: indptr[-1]]
