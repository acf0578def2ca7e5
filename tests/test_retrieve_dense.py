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


def test_blocks_do_not_show(monkeypatch):
    rng = np.random.default_rng(0)
    documents, labels = rng.normal(size=(40, 8)), rng.normal(size=(100, 8))
    whole = dense.search(documents, labels, 10)
    monkeypatch.setattr(dense, "SCORES_AT_ONCE", 700)
    parts = dense.search(documents, labels, 10)
    assert np.array_equal(whole.labels, parts.labels)
    assert parts.scores == pytest.approx(whole.scores, rel=1e-6)


@pytest.mark.parametrize("whose", ["document", "label"])
def test_nan_is_refused(whose):
    vectors = {"document": np.ones((2, 3)), "label": np.ones((4, 3))}
    vectors[whose][1, 1] = np.nan
    with pytest.raises(MicolError, match=f"a {whose} vector is not a number"):
        dense.search(vectors["document"], vectors["label"], 2)
