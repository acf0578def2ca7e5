"""The hash table of the compiled loops against a dictionary, with hashes that collide on purpose."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from micol.retrieve.keytable import KeyTable, add, add_beginning, find
from micol.retrieve.tokens import fold

WORDS = st.lists(st.text("abc", min_size=1, max_size=3), max_size=30)


@njit
def add_each(table, hashes, codes, bounds):
    return [add(table, hashes[i], codes, bounds[i], bounds[i + 1] - 1) for i in range(len(hashes))]


@njit
def find_each(table, hashes, codes, bounds):
    return [find(table, hashes[i], codes, bounds[i], bounds[i + 1] - 1) for i in range(len(hashes))]


@njit
def begin_each(table, hashes):
    for value in hashes:
        add_beginning(table, value)


def poor_hashes(words: list[str], values: int) -> np.ndarray:
    return np.array([sum(map(ord, word)) % values for word in words], np.uint64) << np.uint64(60)


@settings(max_examples=200, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=4), WORDS, WORDS, st.integers(1, 9))
def test_equals_a_dictionary(portions, beginnings, sought, values):
    table, numbers = KeyTable.empty(), {}
    for words in portions:
        folded = fold(words)
        table = table.with_room(folded)
        if words:
            keys = add_each(table, poor_hashes(words, values), folded.codes, folded.bounds)
            assert keys == [numbers.setdefault(word, len(numbers)) for word in words]
        if beginnings:
            table = table.with_room(fold(beginnings))
            begin_each(table, poor_hashes(beginnings, values))
    assert table.n_keys == len(numbers)
    begun = set(poor_hashes(beginnings, values).tolist())
    for state in (table, table.trimmed()):
        if sought:
            folded, hashes = fold(sought), poor_hashes(sought, values)
            found = find_each(state, hashes, folded.codes, folded.bounds)
            expected = [
                (numbers.get(word, -1), value in begun) for word, value in zip(sought, hashes.tolist())
            ]
            assert found == expected
        assert 2 * state.used[0] <= len(state.slots)
