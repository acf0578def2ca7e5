"""Mentions: where a document names a label, and what tells a telling mention from an idle one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from micol.compiled import kernel
from micol.ranking import row_numbers
from micol.retrieve import ExactMatcher, Matches

# A name like "ALS" or "CAT" is meant only where it is written so.
LONGEST_ACRONYM = 5
# A mark that joins two words, looked for before what stands around it.
JOINT = re.compile(r"[-‐‑–_](?<=[^\W_].)(?=[^\W_])")


class NameMatcher:
    """Finds names however their words are joined: `web-graph` and `web_graph` are a web graph."""

    def __init__(self, names: Sequence[Sequence[str]]) -> None:
        self.exact = ExactMatcher([[spoken(name) for name in some] for some in names])

    def match(self, texts: Sequence[str]) -> Matches:
        return self.exact.match([spoken(text) for text in texts])


def spoken(text: str) -> str:
    """As one would say it: blanks between words, and everything where it was."""
    return JOINT.sub(" ", text)


@dataclass(frozen=True)
class Mentions:
    """Labels named in texts, by text and label; every column has an entry for each."""

    rows: np.ndarray
    labels: np.ndarray
    in_title: np.ndarray  # 1 where it stands in the title
    count: np.ndarray  # log(1 + occurrences)
    early: np.ndarray  # 1 at the beginning of the text, 0 at its end
    nested: np.ndarray  # 1 where it is but a part of a longer name, as "cancer" in "breast cancer"
    miswritten: np.ndarray  # 1 where an acronym is written as a common word
    spans: np.ndarray  # where the first occurrence begins and ends


def mentions_of(
    texts: Sequence[str],
    title_lengths: np.ndarray,
    matcher: NameMatcher,
    names: Sequence[Sequence[str]],
    covering: NameMatcher,
) -> Mentions:
    """What the texts, which begin with their titles, name. `covering` has the longer names that take a
    shorter one's place.
    """
    found = matcher.match(texts)
    longer = found if covering is matcher else covering.match(texts)
    nested = np.zeros(len(found.labels), np.float32)
    mark_nested(found.indptr, found.starts, found.ends, longer.indptr, longer.starts, longer.ends, nested)
    rows = row_numbers(found.indptr)
    lengths = np.array([max(len(text), 1) for text in texts], np.float32)
    return Mentions(
        rows,
        found.labels,
        (found.starts < title_lengths[rows]).astype(np.float32),
        np.log1p(found.counts).astype(np.float32),
        (1 - found.starts / lengths[rows]).astype(np.float32),
        nested,
        miswritten(found, rows, texts, names),
        np.stack([found.starts, found.ends], axis=1),
    )


@kernel
def mark_nested(
    indptr: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    other_indptr: np.ndarray,
    other_starts: np.ndarray,
    other_ends: np.ndarray,
    nested: np.ndarray,
) -> None:
    """1 for every first occurrence that lies within a longer one of the same text."""
    for row in range(len(indptr) - 1):
        for entry in range(indptr[row], indptr[row + 1]):
            start, end = starts[entry], ends[entry]
            for other in range(other_indptr[row], other_indptr[row + 1]):
                first, last = other_starts[other], other_ends[other]
                if first <= start and last >= end and last - first > end - start:
                    nested[entry] = 1
                    break


def miswritten(
    found: Matches, rows: np.ndarray, texts: Sequence[str], names: Sequence[Sequence[str]]
) -> np.ndarray:
    flags = np.zeros(len(found.labels), np.float32)
    # Only names that were found are looked at: there may be hundreds of thousands of others.
    for entry, (label, number) in enumerate(zip(found.labels.tolist(), found.names.tolist(), strict=True)):
        name = names[label][number]
        if is_acronym(name):
            written = texts[rows[entry]][found.starts[entry] : found.ends[entry]]
            flags[entry] = spoken(written) != spoken(name)
    return flags


def is_acronym(name: str) -> bool:
    return len(name) <= LONGEST_ACRONYM and sum(character.isupper() for character in name) >= 2
