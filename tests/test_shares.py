"""How far labels differ in a share, and what is made of few documents."""

from __future__ import annotations

import numpy as np
import pytest

from micol.evidence.shares import Share


@pytest.mark.parametrize("prior", [2.0, 10.0, 50.0])
def test_how_far_labels_differ_is_found_again(prior: float) -> None:
    generator = np.random.default_rng(0)
    documents = generator.integers(1, 200, 20_000)
    hits = generator.binomial(documents, generator.beta(0.2 * prior, 0.8 * prior, len(documents)))
    found = Share.of(hits, documents)
    assert found.usual == pytest.approx(0.2, abs=0.01)
    assert found.prior == pytest.approx(prior, rel=0.1)
    shrunk = found.usual * found.times_usual(hits, documents)
    assert shrunk == pytest.approx((hits + found.prior * found.usual) / (documents + found.prior))


def test_labels_that_do_not_differ_have_the_usual_share() -> None:
    generator = np.random.default_rng(0)
    documents = generator.integers(1, 200, 20_000)
    alike = Share.of(np.full(100, 2), np.full(100, 10))
    assert alike.times_usual(np.array([0, 9]), np.array([9, 9])).tolist() == [1, 1]
    assert Share.of(generator.binomial(documents, 0.2), documents).prior > 1_000
    always_or_never = Share.of(np.array([4, 0]), np.array([4, 9]))
    assert always_or_never.times_usual(np.zeros(2), np.array([0, 9])) == pytest.approx([1, 0], abs=1e-3)
    for nothing in (Share.of(np.zeros(3), np.zeros(3)), Share.of(np.zeros(3), np.array([4, 0, 9]))):
        assert nothing.usual == 0
        assert nothing.times_usual(np.zeros(1), np.ones(1)).tolist() == [1]
