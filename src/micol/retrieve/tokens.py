"""What counts as the same text and as a word, for every retriever.

Folding is Unicode's NFKC with case folding; typographic hyphens and apostrophes are read as the ASCII ones,
and each run of white space as one space. Two neighbouring characters of folded text have a boundary between
them unless both belong to one word: letters, digits and underscores of scripts that separate words by
spaces. Scripts written without spaces have a boundary at every character. A combining mark belongs to the
character before it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from micol.compiled import inlined, kernel

SAME_CHARACTER = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "‐": "-", "‑": "-", "–": "-", "−": "-"})

# Scripts that put no space between words (first, last): Thai, Lao and Tibetan, Myanmar, Khmer, Tai scripts,
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

# A kind: no part of a word, or a word character by sort of script; then two flags.
OTHER, SPACED, UNSPACED = 0, 1, 2
SCRIPT_BITS, MARK, BOUNDARY_BEFORE = 3, 4, 8
SPACE, PLUS, HASH = ord(" "), ord("+"), ord("#")

# What the compiled loops know of each code point; filled in as code points turn up.
FOLD_ALONE = np.zeros(0x110000, np.uint32)  # its fold, where that is one character whatever stands around it
KINDS = np.zeros(0x110000, np.uint8)
TRAITS = np.zeros(0x110000, np.uint8)
KNOWN, INVOLVED, JOINS_BACKWARD = 1, 2, 4


class Folded(NamedTuple):
    """Folded texts one after another, each followed by a code without meaning."""

    codes: np.ndarray  # uint32: code points
    kinds: np.ndarray  # uint8: kind and flags of each
    origin: np.ndarray  # int32: where in its text as given each begins; at the end of a text, its length
    bounds: np.ndarray  # int64 [texts + 1]: where each text begins

    def text(self, start: int, end: int) -> str:
        return self.codes[start:end].tobytes().decode("utf-32-le", "surrogatepass")


def fold(texts: Sequence[str]) -> Folded:
    """Folds texts; every retriever reads documents and labels through this."""
    # The newline between texts keeps a mark that begins a text from joining the text before.
    joined = "\n".join([*texts, ""])
    codes = code_points(joined)
    bounds = np.cumsum([0, *(len(text) + 1 for text in texts)])
    clusters, replacements = np.empty((0, 2), np.int64), []
    if not joined.isascii():
        learn(codes)
        clusters = involved_clusters(codes, FOLD_ALONE, TRAITS)
        replacements = [fold_cluster(joined[start:end]) for start, end in clusters.tolist()]
    replaced = code_points("".join(replacements))
    learn(replaced)
    lengths = np.array([len(replacement) for replacement in replacements], np.int64)
    return Folded(*write_folded(codes, bounds, clusters, replaced, lengths, FOLD_ALONE, KINDS))


def code_points(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def words(text: str) -> list[str]:
    """The words of a text as BM25 sees them.

    A run of word characters is a word; "++" and "#" stay in "c++" and "c#". In scripts without spaces each
    two neighbouring characters are a word, and one that stands alone.
    """
    folded = fold([text])
    last = folded.bounds[1] - 1
    found: list[str] = []
    start, end, resume = next_word(folded.codes, folded.kinds, 0, last)
    while start < last:
        found.append(folded.text(start, end))
        start, end, resume = next_word(folded.codes, folded.kinds, resume, last)
    return found


def kind(character: str) -> int:
    """The kind of a character taken alone."""
    category = unicodedata.category(character)
    if category[0] == "M":
        return MARK
    if category[0] not in "LN" and character != "_":
        return OTHER
    code = ord(character)
    return UNSPACED if any(first <= code <= last for first, last in UNSPACED_SCRIPTS) else SPACED


def joins_backward(character: str) -> bool:
    """Whether normalisation may merge a character with the one before: marks, Hangul vowels and finals."""
    first = unicodedata.normalize("NFKD", character)[0]
    return kind(first) == MARK or "\u1160" <= first <= "\u11ff" or "\ud7b0" <= first <= "\ud7ff"


@lru_cache(maxsize=1 << 16)
def fold_cluster(cluster: str) -> str:
    """A character with those after it that join it, folded."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", cluster).casefold())
    return "".join(" " if c.isspace() else c for c in folded.translate(SAME_CHARACTER))


def learn(codes: np.ndarray) -> None:
    """Notes what the compiled loops need of code points not met before."""
    unknown = codes[TRAITS[codes] == 0]
    for code in np.unique(unknown).tolist():
        character = chr(code)
        folded = fold_cluster(character)
        KINDS[code] = kind(character)
        for part in folded:
            KINDS[ord(part)] = kind(part)
        traits = KNOWN
        if joins_backward(character):
            traits |= INVOLVED | JOINS_BACKWARD
        elif len(folded) != 1:
            traits |= INVOLVED
        else:
            FOLD_ALONE[code] = ord(folded)
        TRAITS[code] = traits


@kernel
def involved_clusters(codes: np.ndarray, fold_alone: np.ndarray, traits: np.ndarray) -> np.ndarray:
    """[start, end) of the clusters that cannot be folded one character at a time."""
    found = np.empty((len(codes), 2), np.int64)
    n = 0
    start = 0
    involved = False
    for i in range(len(codes)):
        joins = traits[codes[i]] & JOINS_BACKWARD and i > 0 and fold_alone[codes[i - 1]] != SPACE
        if not joins:
            if involved:
                found[n, 0], found[n, 1] = start, i
                n += 1
            start, involved = i, False
        involved |= traits[codes[i]] & INVOLVED != 0
    # The newline that ends the last text is not involved, so no cluster is left open.
    return found[:n].copy()


@kernel
def write_folded(
    codes: np.ndarray,
    bounds: np.ndarray,
    clusters: np.ndarray,
    replaced: np.ndarray,
    lengths: np.ndarray,
    fold_alone: np.ndarray,
    kind_of: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    size = len(codes) + len(replaced)
    out, kinds = np.empty(size, np.uint32), np.empty(size, np.uint8)
    origin, out_bounds = np.empty(size, np.int32), np.empty(len(bounds), np.int64)
    n = cluster = done = 0
    for text in range(len(bounds) - 1):
        first, last = bounds[text], bounds[text + 1] - 1
        out_bounds[text] = n
        script, previous = SPACED, np.uint32(0)
        i = first
        while i < last:
            begin = i
            if cluster < len(clusters) and clusters[cluster, 0] == i:
                i = clusters[cluster, 1]
                parts = lengths[cluster]
                cluster += 1
            else:
                i += 1
                parts = 0
            for part in range(max(parts, 1)):
                if parts:
                    code = replaced[done]
                    done += 1
                else:
                    code = fold_alone[codes[begin]]
                if code == SPACE and previous == SPACE:
                    continue
                kind = kind_of[code]
                if kind == MARK:
                    kind |= script
                    if n == out_bounds[text]:
                        kind |= BOUNDARY_BEFORE
                else:
                    if n == out_bounds[text] or script != SPACED or kind != SPACED:
                        kind |= BOUNDARY_BEFORE
                    script = kind & SCRIPT_BITS
                # Where a cluster keeps its length its characters keep their places.
                out[n], kinds[n] = code, kind
                origin[n] = begin - first + (part if parts == i - begin else 0)
                previous = code
                n += 1
        out[n], kinds[n], origin[n] = 0, BOUNDARY_BEFORE, last - first
        n += 1
    out_bounds[-1] = n
    return out[:n], kinds[:n], origin[:n], out_bounds


@inlined
def unit_end(kinds: np.ndarray, start: int) -> int:
    """Where the stretch without a boundary that begins at `start` ends."""
    end = start + 1
    while kinds[end] < BOUNDARY_BEFORE:
        end += 1
    return end


@inlined
def next_word(codes: np.ndarray, kinds: np.ndarray, start: int, last: int) -> tuple[int, int, int]:
    """The first word at or after the boundary `start`: its start and end, and from where to look on.

    At the end of the text, `last`, there is none, and the start is `last`.
    """
    while start < last:
        end = unit_end(kinds, start)
        script = kinds[start] & SCRIPT_BITS
        if script == SPACED:
            if codes[end] == PLUS and codes[end + 1] == PLUS and end + 1 < last:
                return start, end + 2, end + 2
            if (
                codes[end] == HASH
                and end < last
                and (end + 1 == last or kinds[end + 1] & SCRIPT_BITS == OTHER)
            ):
                return start, end + 1, end + 1
            return start, end, end
        if script == UNSPACED:
            if kinds[end] & SCRIPT_BITS == UNSPACED:
                return start, unit_end(kinds, end), end
            if start == 0 or kinds[start - 1] & SCRIPT_BITS != UNSPACED:
                return start, end, end
        start = end
    return last, last, last


# Texts of these alone are not searched for unknown ones.
learn(np.arange(128, dtype=np.uint32))
