"""Exact matching against a naive scan of the whole text for each name."""

import re
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from micol.errors import MicolError
from micol.retrieve import ExactMatcher
from micol.retrieve.tokens import joins_backward

# Few characters, so that names occur often: cases, expanding folds, marks, punctuation, spaceless scripts.
CHARACTERS = (
    "aAbBcC1_+#:-,' \t\n\xa0ßẞİıﬁſΣσςéÉe\u0301\u0327½℃’‐–データ数据庫กา\u0e48\u0e33ㄱ가\u1100\u1161\u11a8µ"
)
TEXTS = st.text(CHARACTERS, max_size=40)
NAMES = st.lists(st.lists(st.text(CHARACTERS, max_size=6), min_size=1, max_size=3), min_size=1, max_size=8)


def naive_fold(text: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    folded = re.sub("[’‘ʼ]", "'", re.sub("[‐‑–−]", "-", folded))
    return re.sub(r"\s+", " ", folded)


def is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("M")


def in_spaced_word(text: str, at: int) -> bool:
    """Whether text[at] is of a word of a script that separates words; a mark is what it stands on is."""
    while at > 0 and is_mark(text[at]):
        at -= 1
    # One that begins a text stands on nothing, and counts as a letter.
    if is_mark(text[at]):
        return True
    # The test's few characters of scripts without spaces are told by name.
    if re.match("CJK|HIRAGANA|KATAKANA|THAI", unicodedata.name(text[at], "")):
        return False
    return text[at] == "_" or unicodedata.category(text[at])[0] in "LMN"


def may_cut(text: str, at: int) -> bool:
    if at in (0, len(text)):
        return True
    return not is_mark(text[at]) and not (in_spaced_word(text, at - 1) and in_spaced_word(text, at))


def naive_matches(names: list[list[str]], text: str) -> dict[int, int]:
    """Label -> number of occurrences, by looking for each name at each place."""
    text = naive_fold(text)
    counts = {}
    for label, label_names in enumerate(names):
        wanted = {naive_fold(name).strip(" ") for name in label_names} - {""}
        spans = [
            (start, -(start + len(name)))
            for name in wanted
            for start in range(len(text) - len(name) + 1)
            if text.startswith(name, start) and may_cut(text, start) and may_cut(text, start + len(name))
        ]
        free_from = 0
        for start, negative_end in sorted(spans):
            if start >= free_from:
                counts[label] = counts.get(label, 0) + 1
                free_from = -negative_end
    return counts


def row(matches, document: int) -> dict[int, int]:
    entries = slice(matches.indptr[document], matches.indptr[document + 1])
    return dict(zip(matches.labels[entries].tolist(), matches.counts[entries].tolist()))


@settings(max_examples=400, deadline=None)
@given(NAMES, st.lists(TEXTS, max_size=4))
@example([["C++"], ["c"]], ["C++11 and C"])
@example([["e\u0301"], ["e"]], ["e\u0301 \u0301e"])
@example([["1", "2"], ["1", "2"]], ["½"])
@example([["1"]], ["\u0e481"])
def test_equals_a_naive_scan(names, texts):
    matches = ExactMatcher(names).match(texts)
    for document, text in enumerate(texts):
        assert row(matches, document) == naive_matches(names, text)


@settings(max_examples=300, deadline=None)
@given(NAMES, TEXTS, st.integers(0, 7), st.integers(0, 2))
def test_offsets_show_the_name_in_the_original_text(names, around, label, name):
    label %= len(names)
    text = f"{around} {names[label][name % len(names[label])]} {around}"
    matches = ExactMatcher(names).match([text])
    assert (np.diff(matches.labels) > 0).all()
    for found, start, end, which in zip(matches.labels, matches.starts, matches.ends, matches.names):
        wanted = naive_fold(names[found][which]).strip(" ")
        # A single original character (½) may fold into more than the name.
        assert wanted in naive_fold(text[start:end])
        if not any(joins_backward(character) for character in text[start:end]):
            assert wanted not in naive_fold(text[start + 1 : end])
            assert wanted not in naive_fold(text[start : end - 1])


def found(names: list[str], text: str) -> list[str]:
    return [names[label] for label in ExactMatcher([[name] for name in names]).match([text]).labels]


def test_nested_and_overlapping_names_are_all_found():
    names = ["graph", "graph neural network", "neural network", "network security"]
    assert found(names, "A Graph Neural Network security study") == names


def test_punctuation_is_literal():
    names = ["Abnormality, Congenital", "A-23187", "C++", "C", "game::strategy", "game", ".NET"]
    assert found(names, "abnormality, CONGENITAL") == names[:1]
    assert found(names, "abnormality congenital; A23187; gamestrategy; NET") == []
    assert found(names, "A-23187 in C++17 with .NET") == ["A-23187", "C++", "C", ".NET"]
    assert found(names, "role::game::strategy") == ["game::strategy", "game"]


@pytest.mark.parametrize(
    ("name", "matching", "other"),
    [
        ("R", ["R", "R&D", "(R)"], ["Rust", "R2", "R_x"]),
        ("C++", ["C++", "C++17"], ["C+"]),
        ("C", ["C", "C++", "C-14"], ["Cu"]),
        ("A-23187", ["a-23187", "A‑23187"], ["A23187", "A 23187"]),
        ("Abnormality, Congenital", ["an abnormality, congenital"], ["congenital abnormality"]),
        ("game::strategy", ["role::game::strategy"], ["game strategy"]),
        ("数据", ["关系数据库"], []),
        ("데이터", ["데이터"], ["데이터베이스"]),
    ],
)
def test_the_examples_of_the_documentation(name, matching, other):
    assert [found([name], text) for text in matching] == [[name]] * len(matching)
    assert [found([name], text) for text in other] == [[]] * len(other)


def test_words_are_not_cut():
    assert found(["R", "cat", "art"], "Rust, concatenate, cats, art_2, 3art, heart") == []
    assert found(["R", "cat"], "R&D (cat)") == ["R", "cat"]


def test_typography_and_width_do_not_matter():
    assert found(["Crohn's disease"], "Crohn’s\n  disease") == ["Crohn's disease"]
    assert found(["structure-activity"], "Structure–Activity") == ["structure-activity"]
    assert found(["database"], "ＤＡＴＡＢＡＳＥ") == ["database"]


def test_scripts_without_spaces_match_as_substrings():
    assert found(["数据", "数据库", "SQL"], "关系数据库SQL语言") == ["数据", "数据库", "SQL"]
    assert found(["ภาษา"], "เรียนภาษาไทย") == ["ภาษา"]
    assert found(["데이터"], "데이터베이스") == []


def test_offsets_survive_folds_that_change_length():
    text = "İİ ßß ﬁﬁ Straße"
    matches = ExactMatcher([["STRASSE"]]).match([text])
    assert text[matches.starts[0] : matches.ends[0]] == "Straße"


def test_one_name_of_two_labels_and_two_names_of_one():
    matches = ExactMatcher([["java"], ["Java", "JVM"], ["cell", "cell line"]]).match(
        ["Java JVM JAVA; cell line"]
    )
    assert matches.labels.tolist() == [0, 1, 2]
    assert matches.counts.tolist() == [2, 3, 1]
    assert matches.names.tolist() == [0, 0, 1]
    assert matches.ranking().labels.tolist() == [1, 0, 2]


def test_title_is_the_first_line():
    texts = ["graphs\non trees", "trees", ""]
    matches = ExactMatcher([["graphs"], ["trees"]]).match(texts)
    assert matches.labels.tolist() == [0, 1, 1]
    assert matches.in_title(texts).tolist() == [True, False, True]


def test_allowed_limits_labels():
    matcher = ExactMatcher([["a"], ["a", "b"], ["b"]])
    matches = matcher.match(["a b", "b"], allowed=np.array([False, True, True]))
    assert matches.labels.tolist() == [1, 2, 1, 2]
    assert matches.indptr.tolist() == [0, 2, 4]


def test_no_text_no_match():
    matcher = ExactMatcher([["a"], [""], [" "]])
    assert matcher.match(["", " ", "b"]).indptr.tolist() == [0, 0, 0, 0]
    assert len(matcher.match([])) == 0


def test_no_label_is_an_error():
    with pytest.raises(MicolError, match="no label"):
        ExactMatcher([])


def test_many_names_at_each_place():
    names = [[" ".join(["a"] * length)] for length in range(1, 31)]
    text = "a " * 100
    assert row(ExactMatcher(names).match([text, text]), 1) == naive_matches(names, text)
