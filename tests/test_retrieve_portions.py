"""Portions of texts, and that threads change nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from micol.retrieve import BM25, ExactMatcher
from micol.retrieve.portions import in_portions, portions


@given(st.lists(st.text("ab", max_size=9)), st.integers(1, 12), st.integers(1, 5))
def test_portions_hold_all_texts_in_order(texts, characters, most_texts):
    parts = list(portions(texts, characters, most_texts))
    assert [text for part in parts for text in part] == texts
    assert all(1 <= len(part) <= most_texts for part in parts)
    assert all(len(part) == 1 or sum(map(len, part)) <= characters for part in parts)


@pytest.mark.parametrize("threads", [None, 1, 3])
def test_results_come_in_order(threads):
    texts = [str(i) * 3000 for i in range(40)]
    assert [text for part in in_portions(list, texts, threads) for text in part] == texts
    assert in_portions(list, [], threads) == []


def test_a_failure_is_not_lost():
    with pytest.raises(ZeroDivisionError):
        in_portions(lambda some: 1 // 0, ["x" * 20_000] * 8, 4)


def test_threads_find_the_same():
    rng = np.random.default_rng(3)
    texts = [" ".join(f"é{word}" for word in rng.zipf(1.3, 400) % 500) for _ in range(300)]
    labels = [f"é{i} é{i + 1}" for i in range(500)]
    matcher, bm25 = ExactMatcher([[label] for label in labels]), BM25(labels)
    one, several = matcher.match(texts, threads=1), matcher.match(texts, threads=4)
    for name in ("indptr", "labels", "counts", "starts", "ends", "names"):
        assert np.array_equal(getattr(one, name), getattr(several, name))
    one, several = bm25.search(texts, threads=1), bm25.search(texts, threads=4)
    for name in ("indptr", "labels", "scores"):
        assert np.array_equal(getattr(one, name), getattr(several, name))
