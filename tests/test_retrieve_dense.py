"""Dense search against sorting every row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from micol.errors import MicolError
from micol.retrieve import dense


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 6), st.integers(1, 200), st.integers(1, 9), st.integers(0, 2**32 - 1), st.booleans())
def test_equals_sorting(documents, labels, top, seed, limited):
    rng = np.random.default_rng(seed)
    # Small whole numbers: exact sums, many ties, negative scores.
    document_vectors = rng.integers(-2, 3, (documents, 3)).astype(np.float32)
    label_vectors = rng.integers(-2, 3, (labels, 3)).astype(np.float32)
    allowed = rng.random(labels) < 0.5 if limited else None
    ranking = dense.search(document_vectors, label_vectors, top, allowed)
    assert len(ranking) == documents
    for row in range(documents):
        scores = label_vectors @ document_vectors[row]
        admitted = range(labels) if allowed is None else np.flatnonzero(allowed).tolist()
        expected = sorted(admitted, key=lambda label: (-scores[label], label))[:top]
        if not document_vectors[row].any():
            expected = []
        found, found_scores = ranking.row(row)
        assert found.tolist() == expected
        assert found_scores.tolist() == scores[expected].tolist()


def test_tiles_do_not_show(monkeypatch):
    rng = np.random.default_rng(0)
    documents, labels = rng.normal(size=(40, 8)), rng.normal(size=(700, 8)).astype(np.float16)
    allowed = rng.random(700) < 0.7
    whole = [dense.search(documents, labels, 10), dense.search(documents, labels, 10, allowed)]
    monkeypatch.setattr(dense, "DOCUMENTS_AT_ONCE", 7)
    monkeypatch.setattr(dense, "LABELS_AT_ONCE", 128)
    tiles = [dense.search(documents, labels, 10), dense.search(documents, labels, 10, allowed)]
    for one, other in zip(whole, tiles):
        assert np.array_equal(one.labels, other.labels)
        assert one.scores == pytest.approx(other.scores, rel=1e-5)


def test_no_label_is_allowed():
    ranking = dense.search(np.ones((2, 3)), np.ones((4, 3)), 2, np.zeros(4, bool))
    assert ranking.indptr.tolist() == [0, 0, 0]


@pytest.mark.parametrize("whose", ["document", "label"])
def test_nan_is_refused(whose):
    vectors = {"document": np.ones((2, 3)), "label": np.ones((4, 3))}
    vectors[whose][1, 1] = np.nan
    with pytest.raises(MicolError, match=f"a {whose} vector is not a number"):
        dense.search(vectors["document"], vectors["label"], 2)
