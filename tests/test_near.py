"""Near names: stems, and names of which a text has the words, against a plain search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from micol.evidence.facts import rarity_of
from micol.evidence.near import LEAST_SHARE, NearMatcher, stem, telling


@pytest.mark.parametrize(
    ("one", "other"),
    [("game", "games"), ("library", "libraries"), ("classify", "classifies"), ("encode", "encoding")],
)
def test_forms_of_a_word_have_one_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


def test_different_words_keep_different_stems() -> None:
    assert len({stem(word) for word in ("virus", "analysis", "class", "gas", "ring", "able")}) == 6


NAMES = [["text editor", "editing of texts"], ["sound"], ["the of"], ["network client", "client"]]


@given(
    st.lists(
        st.sampled_from(["text", "editor", "editing", "sound", "network", "client", "of", "game"]), max_size=8
    )
)
def test_near_names_are_those_of_a_plain_search(words: list[str]) -> None:
    frequency = {stem("text"): 3, stem("client"): 8, stem("sound"): 1}
    found = NearMatcher(NAMES, frequency, 10).match([" ".join(words)])
    present = {stem(word) for word in words}
    expected = {}
    for label, names in enumerate(NAMES):
        for name in names:
            weights = {word: np.log(11 / (frequency.get(word, 0) + 1)) for word in telling(name)}
            share = sum(weights[word] for word in weights if word in present) / (sum(weights.values()) or 1)
            if weights and share >= LEAST_SHARE:
                expected[label] = max(share, expected.get(label, 0))
    assert dict(zip(found.keys.tolist(), found.values.tolist(), strict=True)) == pytest.approx(expected)


@given(st.lists(st.sets(st.sampled_from(["text", "edit", "sound", "network", "client"])), max_size=6))
def test_the_frequency_of_a_near_name_is_that_of_texts_with_all_its_words(texts: list[set[str]]) -> None:
    found = NearMatcher(NAMES, {"client": 8}, 10).frequency(texts)
    expected = [
        sum(any(telling(name) and telling(name) <= text for name in names) for text in texts)
        for names in NAMES
    ]
    assert found.tolist() == expected


def test_a_near_name_counts_for_less_where_its_words_meet_by_chance() -> None:
    assert rarity_of(np.array([0, 1, 9]), 9) == pytest.approx([1, 1 - np.log(2) / np.log(10), 0])
