"""Mentions: names found in texts, however their words are joined, and what tells one from another."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from micol.evidence.mentions import NameMatcher, mentions_of, spoken


def test_a_name_within_a_longer_one_and_a_miswritten_acronym_are_marked() -> None:
    names = [["cancer"], ["breast cancer"], ["CAT"], ["cat food"]]
    matcher = NameMatcher(names)
    texts = ["Breast cancer\nA cat scan, then cancer", "The CAT scan"]
    found = mentions_of(texts, np.array([13, 0]), matcher, names, matcher)
    table = {
        (int(row), int(label)): (int(nested), int(miswritten), int(title))
        for row, label, nested, miswritten, title in zip(
            found.rows, found.labels, found.nested, found.miswritten, found.in_title, strict=True
        )
    }
    assert table == {(0, 0): (1, 0, 1), (0, 1): (0, 0, 1), (0, 2): (0, 1, 0), (1, 2): (0, 0, 0)}


@given(st.text(alphabet="aB1é中 -‐–_.\n", max_size=30))
def test_what_is_spoken_stays_where_it_was(text: str) -> None:
    said, around = spoken(text), f" {text} "
    assert len(said) == len(text)
    for before, mark, after, now in zip(around, text, around[2:], said, strict=False):
        joins = mark in "-‐–_" and before.isalnum() and after.isalnum()
        assert now == (" " if joins else mark)


def test_a_name_is_found_however_its_words_are_joined() -> None:
    names = [["machine-learning"], ["web graph", "web_page"], ["HIV-1"], ["A-"], ["learning"]]
    texts = ["Machine learning of Web-Graphs and a web_graph", "hiv 1, HIV 1 and HIV-1", "a b", "Web–page"]
    found = NameMatcher(names).match(texts)
    rows = np.repeat(np.arange(len(texts)), np.diff(found.indptr))
    assert [
        (label, texts[row][start:end])
        for row, label, start, end in zip(rows, found.labels, found.starts, found.ends, strict=True)
    ] == [(0, "Machine learning"), (1, "web_graph"), (4, "learning"), (2, "hiv 1"), (1, "Web–page")]
    matcher = NameMatcher(names)
    written = mentions_of(["HIV 1", "Hiv-1"], np.array([0, 0]), matcher, names, matcher)
    assert written.miswritten.tolist() == [0, 1]
    nested = mentions_of(["machine_learning"], np.array([0]), matcher, names, matcher)
    assert dict(zip(nested.labels.tolist(), nested.nested.tolist(), strict=True)) == {0: 0, 4: 1}


def test_longer_names_that_came_later_cover_nothing() -> None:
    names, before = [["cancer"], ["breast cancer"]], NameMatcher([["cancer"]])
    found = mentions_of(["breast cancer"], np.array([0]), NameMatcher(names), names, before)
    assert found.nested.tolist() == [0, 0]
