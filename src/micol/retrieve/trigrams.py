"""Labels whose names stand in a text nearly: misspelt, inflected, or with a hyphen more or less."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from micol.ranking import Ranking
from micol.retrieve.tokens import words

if TYPE_CHECKING:
    from micol.labels import LabelSpace

LENGTH = 3
# Of a name's letters, by weight, so many must be found: else half of all words are like half of all names.
LEAST_SHARE = 0.7
TEXTS_AT_ONCE = 256


class Trigrams:
    """Names as sets of runs of three letters; a text has a name by the share of these that its words have."""

    def __init__(self, labels: LabelSpace) -> None:
        self.label_of_name = np.repeat(np.arange(len(labels)), [len(names) for names in labels.names])
        names = [trigrams(name) for name in chain.from_iterable(labels.names)]
        # In one order on every run, for the order of a sum decides its last digit.
        self.number = {part: place for place, part in enumerate(sorted(set().union(*names)))}
        held = self.matrix(names)
        # What few names have tells more.
        rarity = np.log1p(len(names) / (1 + held.sum(axis=0)))
        weighted = csr_array(held.multiply(rarity[None, :]))
        total = np.maximum(weighted.sum(axis=1), 1e-9)
        self.shares = csr_array(weighted.multiply(1 / total[:, None])).T.tocsr()  # [trigrams, names]

    def matrix(self, parts: Iterable[set[str]]) -> csr_array:
        columns, bounds = [], [0]
        for each in parts:
            columns += sorted(self.number[part] for part in each if part in self.number)
            bounds.append(len(columns))
        shape = (len(bounds) - 1, max(len(self.number), 1))
        return csr_array((np.ones(len(columns), np.float32), columns, bounds), shape=shape)

    def search(self, texts: Sequence[str], top: int) -> Ranking:
        """The `top` labels by the share of the best of their names."""
        parts = []
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            some = texts[start : start + TEXTS_AT_ONCE]
            found = (self.matrix(map(trigrams, some)) @ self.shares).tocoo()
            near = found.data >= LEAST_SHARE
            rows, names = found.coords[0][near], found.coords[1][near]
            labels = self.label_of_name[names]
            parts.append(Ranking.from_entries(rows, labels, found.data[near], len(some)).top(top))
        return Ranking.concatenate(parts)


def trigrams(text: str) -> set[str]:
    """Runs of three letters of each word, its beginning and its end marked."""
    found: set[str] = set()
    for word in set(words(text)):
        marked = f" {word} "
        found.update(marked[place : place + LENGTH] for place in range(len(marked) - LENGTH + 1))
    return found
