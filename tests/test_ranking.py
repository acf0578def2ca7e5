"""Ranking against plain dictionaries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from micol.errors import MicolError
from micol.ranking import Ranking

SCORES = st.sampled_from([-1.5, -0.25, -0.0, 0.0, 0.5, 2.0])
ROW = st.lists(st.tuples(st.integers(0, 6), SCORES), max_size=8)
ROWS = st.lists(ROW, max_size=5)


def as_lists(ranking: Ranking) -> list[list[tuple[int, float]]]:
    rows = [ranking.row(i) for i in range(len(ranking))]
    return [list(zip(labels.tolist(), scores.tolist())) for labels, scores in rows]


def ordered(row: dict[int, float]) -> list[tuple[int, float]]:
    return sorted(row.items(), key=lambda entry: (-entry[1], entry[0]))


def best_of_each(row: list[tuple[int, float]]) -> dict[int, float]:
    return {label: max(score for other, score in row if other == label) for label, _ in row}


@given(ROWS)
def test_rows_are_ordered_and_hold_each_label_once(rows):
    ranking = Ranking.from_rows(rows)
    assert as_lists(ranking) == [ordered(best_of_each(row)) for row in rows]
    assert ranking.indptr.dtype == np.int64
    assert ranking.labels.dtype == np.int32
    assert ranking.scores.dtype == np.float32


@given(ROWS, st.integers(0, 9))
def test_top_keeps_the_first(rows, k):
    ranking = Ranking.from_rows(rows)
    assert as_lists(ranking.top(k)) == [row[:k] for row in as_lists(ranking)]


@given(ROWS, ROWS)
def test_concatenate_joins_rows(first, second):
    parts = [Ranking.from_rows(first), Ranking.from_rows(second)]
    assert as_lists(Ranking.concatenate(parts)) == as_lists(parts[0]) + as_lists(parts[1])


@given(ROWS, st.data())
def test_slice_takes_rows(rows, data):
    ranking = Ranking.from_rows(rows)
    start = data.draw(st.integers(0, len(rows)))
    end = data.draw(st.integers(start, len(rows)))
    assert as_lists(ranking.slice(start, end)) == as_lists(ranking)[start:end]


@given(ROWS, st.lists(st.booleans(), min_size=7, max_size=7))
def test_restrict_keeps_what_is_allowed(rows, allowed):
    ranking = Ranking.from_rows(rows)
    expected = [[entry for entry in row if allowed[entry[0]]] for row in as_lists(ranking)]
    assert as_lists(ranking.restrict(np.array(allowed))) == expected


def test_concatenate_of_nothing_has_no_rows():
    assert len(Ranking.concatenate([])) == 0


@given(st.lists(st.tuples(ROW, ROW), max_size=5))
def test_union_keeps_the_scores_of_the_first(pairs):
    first = Ranking.from_rows([left for left, _ in pairs])
    second = Ranking.from_rows([right for _, right in pairs])
    expected = [ordered(best_of_each(right) | best_of_each(left)) for left, right in pairs]
    assert as_lists(first.union(second)) == expected


def test_union_refuses_other_documents():
    with pytest.raises(ValueError, match="1 and 2 documents"):
        Ranking.empty(1).union(Ranking.empty(2))


def test_nan_is_refused():
    with pytest.raises(MicolError, match="not a number"):
        Ranking.from_rows([[(0, float("nan"))]])
