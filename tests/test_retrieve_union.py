"""The union of retrievers against sets and an order written out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from micol.retrieve import BM25, ExactMatcher, dense, retrieve

NAMES = ["graph", "graph theory", "tree", "cell line", "rna", "web graph"]
WORDS = ["graph", "theory", "tree", "cell", "line", "rna", "web", "the"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
EXACT, LEXICAL = ExactMatcher([[name] for name in NAMES]), BM25(NAMES)


@settings(max_examples=200, deadline=None)
@given(st.lists(TEXTS, max_size=4), st.integers(0, 4), st.integers(0, 3), st.booleans(), st.integers(0, 99))
def test_union_holds_all_in_order(texts, bm25_top, dense_top, limited, seed):
    rng = np.random.default_rng(seed)
    document_vectors, label_vectors = rng.normal(size=(len(texts), 4)), rng.normal(size=(len(NAMES), 4))
    allowed = rng.random(len(NAMES)) < 0.6 if limited else None
    found = retrieve(
        texts,
        exact=EXACT,
        bm25=LEXICAL,
        bm25_top=bm25_top,
        document_vectors=document_vectors,
        label_vectors=label_vectors,
        dense_top=dense_top,
        allowed=allowed,
    )
    assert len(found.candidates) == len(texts)
    for row in range(len(texts)):
        entries = slice(found.exact.indptr[row], found.exact.indptr[row + 1])
        counts = dict(zip(found.exact.labels[entries].tolist(), found.exact.counts[entries].tolist()))
        lexical = dict(zip(*(column.tolist() for column in found.bm25.row(row))))
        nearest = dict(zip(*(column.tolist() for column in found.dense.row(row)))) if dense_top else {}

        def rank(label, counts=counts, lexical=lexical, nearest=nearest):
            by_vector = 0 if label in counts or label in lexical else -nearest[label]
            return -counts.get(label, 0), -lexical.get(label, 0), by_vector, label

        expected = sorted({*counts, *lexical, *nearest}, key=rank)
        labels, scores = found.candidates.row(row)
        assert labels.tolist() == expected
        assert (np.diff(scores) <= 0).all()
        if allowed is not None:
            assert allowed[labels].all()


def test_each_retriever_alone():
    texts = ["a web graph", ""]
    exact = retrieve(texts, exact=EXACT)
    assert exact.candidates.labels.tolist() == [0, 5]
    assert exact.bm25 is None
    assert exact.dense is None
    lexical = retrieve(texts, bm25=LEXICAL, bm25_top=2)
    assert np.array_equal(lexical.candidates.labels, LEXICAL.search(texts, 2).labels)
    vectors = np.eye(6)
    nearest = retrieve(texts, document_vectors=vectors[:2], label_vectors=vectors, dense_top=1)
    assert np.array_equal(nearest.candidates.labels, dense.search(vectors[:2], vectors, 1).labels)
    assert retrieve(texts).candidates.indptr.tolist() == [0, 0, 0]


def test_threshold_is_handed_on():
    found = retrieve(["web graph tree"], bm25=LEXICAL, bm25_top=None, bm25_threshold=1.6)
    assert (found.bm25.scores > 1.6).all()
    assert len(found.bm25.labels) < len(LEXICAL.search(["web graph tree"], None).labels)


def test_dense_without_vectors_is_a_mistake():
    with pytest.raises(ValueError, match="vectors"):
        retrieve(["a"], dense_top=3)
