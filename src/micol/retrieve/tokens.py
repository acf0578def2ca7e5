"""What counts as the same text and as a word, for every retriever: folding, boundaries and words.

Folding is Unicode's NFKC with case folding, typographic hyphens and apostrophes read as ASCII ones, and each
run of white space read as one space. Two characters have a boundary between them unless both belong to one
word; scripts written without spaces have a boundary at every character.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from itertools import pairwise

SAME_CHARACTER = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "‐": "-", "‑": "-", "–": "-", "−": "-"})

# Scripts that put no space between words (first, last): Thai and Lao, Tibetan, Myanmar, Khmer, Tai scripts,
# Han, kana, bopomofo and their extensions. Hangul is written with spaces.
UNSPACED_SCRIPTS = (
    (0x0E00, 0x0FFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x1950, 0x19FF),
    (0x1A20, 0x1AAF),
    (0x2E80, 0x2FDF),
    (0x3005, 0x3007),
    (0x3021, 0x312F),
    (0x31A0, 0x31BF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xA9E0, 0xA9FF),
    (0xAA60, 0xAADF),
    (0xF900, 0xFAFF),
    (0x1AFF0, 0x1B16F),
    (0x20000, 0x3FFFF),
)
OTHER, SPACED, UNSPACED, SPACED_MARK, UNSPACED_MARK = range(5)


@lru_cache(maxsize=1 << 16)
def kind(character: str) -> int:
    """No part of a word, a word character, or a combining mark; the latter two by sort of script."""
    category = unicodedata.category(character)
    if category[0] not in "LMN" and character != "_":
        return OTHER
    code = ord(character)
    unspaced = any(first <= code <= last for first, last in UNSPACED_SCRIPTS)
    if category[0] == "M":
        return UNSPACED_MARK if unspaced else SPACED_MARK
    return UNSPACED if unspaced else SPACED


def joins_backward(character: str) -> bool:
    """Whether normalisation may merge a character with the one before: marks, Hangul vowels and finals."""
    first = unicodedata.normalize("NFKD", character)[0]
    code = ord(first)
    return kind(first) >= SPACED_MARK or 0x1160 <= code <= 0x11FF or 0xD7B0 <= code <= 0xD7FF


@lru_cache(maxsize=1 << 16)
def fold_cluster(cluster: str) -> str:
    """A character with the marks that follow it, folded."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", cluster).casefold())
    return "".join(
        " " if character.isspace() else character for character in folded.translate(SAME_CHARACTER)
    )


def fold(text: str) -> tuple[str, list[int]]:
    """The folded text, and where each of its characters begins in the original (its length last)."""
    folded: list[str] = []
    origin: list[int] = []
    starts = [i for i, c in enumerate(text) if i == 0 or text[i - 1].isspace() or not joins_backward(c)]
    for start, end in pairwise([*starts, len(text)]):
        for character in fold_cluster(text[start:end]):
            if character == " " and folded and folded[-1] == " ":
                continue
            folded.append(character)
            origin.append(start)
    return "".join(folded), [*origin, len(text)]


def is_boundary(before: str, after: str) -> bool:
    """Whether a name may begin or end between two neighbouring characters of folded text."""
    within_word = kind(before) in (SPACED, SPACED_MARK) and kind(after) == SPACED
    return not within_word and kind(after) < SPACED_MARK


def words(text: str) -> list[str]:
    """The words of a text for BM25: folded runs of word characters, "++" and "#" kept in "c++" and "c#".

    A run in a script without spaces gives each two neighbouring characters (or its only one).
    """
    folded = fold(text)[0]
    bounds = [i for i in range(1, len(folded)) if is_boundary(folded[i - 1], folded[i])]
    units = [folded[start:end] for start, end in pairwise([0, *bounds, len(folded)])] if folded else []
    kinds = [kind(unit[0]) for unit in units]
    found: list[str] = []
    for i, unit in enumerate(units):
        before = kinds[i - 1] if i else OTHER
        after = kinds[i + 1] if i + 1 < len(units) else OTHER
        if kinds[i] == UNSPACED:
            if after == UNSPACED:
                found.append(unit + units[i + 1])
            elif before != UNSPACED:
                found.append(unit)
        elif kinds[i] != OTHER:
            found.append(unit + sign_after(units[i + 1 : i + 4]))
    return found


def sign_after(units: list[str]) -> str:
    """The sign that belongs to the word before: ++ always, # where no word follows it at once."""
    if units[:2] == ["+", "+"]:
        return "++"
    if units[:1] == ["#"] and (len(units) == 1 or kind(units[1][0]) == OTHER):
        return "#"
    return ""
