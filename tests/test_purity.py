"""Labels in common, and the Jensen-Shannon divergence, against computations from their definitions."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

from micol import Corpus
from micol.purity import LabelledDocuments, divergence, mean_divergence


def documents(label_rows):
    return Corpus.from_records(
        {"id": f"d{i}", "title": "t", "labels": sorted(labels)} for i, labels in enumerate(label_rows)
    )


def uniform(members, size):
    weights = np.zeros(size)
    weights[list(members)] = 1 / len(members)
    return weights


sets = st.sets(st.integers(0, 11), min_size=1)


@settings(max_examples=200, deadline=None)
@given(sets, sets)
def test_the_four_terms_add_up_to_the_divergence(partners, alike):
    terms = divergence(len(partners), len(alike), len(partners & alike))
    expected = jensenshannon(uniform(partners, 12), uniform(alike, 12)) ** 2
    assert terms.total == pytest.approx(expected, abs=1e-9)


def test_the_terms_as_the_paper_prints_them():
    # Partners {0, 1, 2}, documents with a common label {1, 2, 3, 4}.
    x, y = 3, 4
    terms = divergence(x, y, both=2)
    assert terms.first == pytest.approx(0.5 * math.log(2 * x / (x + y)))
    assert terms.second == pytest.approx(0.5 * 1 * (1 / x) * math.log(1 + x / y))
    assert terms.third == pytest.approx(0.5 * math.log(2 * y / (x + y)))
    assert terms.fourth == pytest.approx(0.5 * 2 * (1 / y) * math.log(1 + y / x))


def test_the_ends_of_the_scale():
    assert divergence(5, 5, both=5).total == pytest.approx(0)
    assert divergence(5, 9, both=0).total == pytest.approx(math.log(2))
    # Property 1 holds: all partners are alike. Property 2 holds: all that are alike are partners.
    assert divergence(3, 9, both=3).second == 0
    assert divergence(9, 3, both=3).fourth == 0


label_rows = st.lists(st.sets(st.integers(0, 5).map(lambda i: f"l{i}"), max_size=3), min_size=2, max_size=9)


@settings(max_examples=100, deadline=None)
@given(label_rows, st.randoms(use_true_random=False))
def test_divergences_of_documents_equal_brute_force(rows, random):
    n = len(rows)
    partners = [
        sorted(random.sample([j for j in range(n) if j != i], random.randint(0, n - 1))) for i in range(n)
    ]
    labelled = LabelledDocuments(documents(rows))
    found = labelled.divergences(range(n), lambda i: np.array(partners[i], dtype=np.int64))
    expected = []
    for i in range(n):
        joined = [j for j in partners[i] if rows[j]]
        alike = [j for j in range(n) if j != i and rows[i] & rows[j]]
        if joined and alike:
            expected.append(jensenshannon(uniform(joined, n), uniform(alike, n)) ** 2)
    assert [one.total for one in found] == pytest.approx(expected, abs=1e-9)
    if expected:
        assert mean_divergence(found).total == pytest.approx(np.mean(expected), abs=1e-9)
    else:
        assert mean_divergence(found) is None


@settings(max_examples=100, deadline=None)
@given(label_rows)
def test_common_labels_equal_brute_force(rows):
    labelled = LabelledDocuments(documents(rows))
    one, other = np.array(list(combinations(range(len(rows)), 2))).T
    expected = [bool(rows[i] & rows[j]) for i, j in zip(one, other)]
    assert labelled.in_common(one, other).tolist() == expected
    known = [common for i, j, common in zip(one, other, expected) if rows[i] and rows[j]]
    for share in (labelled.common_share(one, other, exact=True), labelled.random_share(seed=0)):
        if known:
            assert share == pytest.approx((np.mean(known), True))
        else:
            assert share is None


def test_random_pairs_of_many_documents_are_sampled():
    random = np.random.default_rng(0)
    rows = [{f"l{label}" for label in random.integers(12, size=2)} for _ in range(900)]
    labelled = LabelledDocuments(documents(rows))
    exact = np.mean([bool(one & other) for one, other in combinations(rows, 2)])
    sampled = labelled.random_share(seed=1)
    assert not sampled.exact
    assert sampled.value == pytest.approx(exact, abs=0.02)
    assert labelled.random_share(seed=1) == sampled
    assert labelled.random_share(seed=2) != sampled


def test_a_repeated_label_counts_once():
    corpus = Corpus.from_records([{"id": "a", "title": "t", "labels": ["x", "x", "y"]}])
    labelled = LabelledDocuments(corpus)
    assert labelled.of_document.nnz == 2
    assert labelled.labels == ["x", "y"]
