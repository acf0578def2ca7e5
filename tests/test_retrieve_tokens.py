"""Folding and words against plain Python that looks at whole strings."""

import re
import sys
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from micol.retrieve.tokens import fold, joins_backward, words

MARKS = st.characters(categories=["Mn", "Mc", "Me"])
TEXTS = st.text(st.one_of(st.characters(), MARKS, st.sampled_from("aAß ﬁ́̈İ+#_\t1ｱ゙가ᄀ한ᅡ漢字กำ")))


def naive_fold(text: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    folded = re.sub("[’‘ʼ]", "'", re.sub("[‐‑–−]", "-", folded))
    return re.sub(r"\s+", " ", folded)


def folded_parts(texts: list[str]) -> list[str]:
    folded = fold(texts)
    return [folded.text(start, end - 1) for start, end in pairwise(folded.bounds.tolist())]


@settings(max_examples=500, deadline=None)
@given(st.lists(TEXTS, max_size=4))
def test_folding_in_pieces_equals_folding_the_whole(texts):
    assert folded_parts(texts) == [naive_fold(text) for text in texts]


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_each_folded_character_knows_where_it_came_from(text):
    folded = fold([text])
    origin = folded.origin.tolist()
    assert origin == sorted(origin)
    assert origin[-1] == len(text)
    # Cut where a character begins, and the two sides fold to what they were (but for a run of spaces cut).
    for at, (start, following) in enumerate(pairwise(origin)):
        if start < following and not text[:following].endswith(tuple(" \t")):
            assert naive_fold(text[:following]) == folded.text(0, at + 1)


def test_whatever_composes_joins_backward():
    for code in range(sys.maxunicode + 1):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            second = chr(int(parts[1], 16))
            assert unicodedata.normalize("NFC", chr(code)) != chr(code) or joins_backward(second)
    assert all(joins_backward(jamo) for jamo in "\u1161\u1175\u11a8\u11c2")


def naive_words(text: str) -> list[str]:
    """Words by regular expressions, for text of Latin letters and Han characters."""
    found = []
    for run in re.findall(r"[一-鿿]+|[a-z0-9_]+(?:\+\+|#(?![a-z0-9_一-鿿]))?", naive_fold(text)):
        if run[0] < "一":
            found.append(run)
        else:
            found.extend([run[i : i + 2] for i in range(len(run) - 1)] or [run])
    return found


@settings(max_examples=500, deadline=None)
@given(st.text("aB1_ +#.,-\n漢字数"))
def test_words_equal_regular_expressions(text):
    assert words(text) == naive_words(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C++ and C#, R&D; C++11", ["c++", "and", "c#", "r", "d", "c++", "11"]),
        ("issue#3 of A-23187", ["issue", "3", "of", "a", "23187"]),
        ("Straße, ＤＡＴＡ, ﬁt", ["strasse", "data", "fit"]),
        ("Crohn’s dark–light", ["crohn", "s", "dark", "light"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("数据库SQL", ["数据", "据库", "sql"]),
        ("데이터 베이스", ["데이터", "베이스"]),
        ("", []),
        (" \n", []),
    ],
)
def test_words_of(text, expected):
    assert words(text) == expected


def test_lone_surrogates_do_no_harm():
    assert words("a \ud800 b") == ["a", "b"]
