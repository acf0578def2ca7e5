"""Near matches: names of which a document has the words, if in another order, form or place."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np
from scipy.sparse import csr_array

from micol.retrieve.stop_words import ENGLISH
from micol.sparse import Entries

WORD = re.compile(r"[^\W_]+")
# Endings that English words take on, longest first; what is left must be long enough to mean something.
ENDINGS = (
    "ization", "isation", "ational", "ation", "ingly", "edly", "ment", "ness", "able", "ible", "ing", "ion",
    "ers", "er", "ed", "ly", "al", "ic", "ive", "e",
)  # fmt: skip
SHORTEST_STEM = 4
# A name with less of its weight in a document is not near it.
LEAST_SHARE = 0.5
# All words of a name, but for rounding.
WHOLE = 0.999
# Documents that are matched at a time: with many names and long texts, the shares of all would fill memory.
PORTION = 500


@lru_cache(maxsize=1 << 18)
def stem(word: str) -> str:
    """A word without its plural and its ending."""
    if len(word) > 3:
        if word.endswith("ies"):
            word = word[:-3] + "y"
        elif word.endswith(("ses", "xes", "ches", "shes", "zes")):
            word = word[:-2]
        elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
            word = word[:-1]
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= SHORTEST_STEM:
            return word[: -len(ending)]
    return word


def stems(text: str) -> set[str]:
    return {stem(word) for word in WORD.findall(text.lower())}


def frequency_of_stems(texts: Iterable[set[str]]) -> dict[str, int]:
    """In how many texts, given by their stems, each stem occurs."""
    return Counter(found for text in texts for found in text)


class NearMatcher:
    """Says for names how much of their words, weighed by rarity, a document has."""

    def __init__(self, names: Sequence[Sequence[str]], frequency: Mapping[str, int], texts: int) -> None:
        self.n_labels = len(names)
        self.number: dict[str, int] = {}
        rows: list[int] = []
        columns: list[int] = []
        weights: list[float] = []
        owners: list[int] = []
        for label, label_names in enumerate(names):
            for found in {frozenset(telling(name)) for name in label_names} - {frozenset()}:
                rarity = [np.log((texts + 1) / (frequency.get(word, 0) + 1)) for word in found]
                total = sum(rarity)
                if total <= 0:
                    continue
                rows += [self.number.setdefault(word, len(self.number)) for word in found]
                columns += [len(owners)] * len(found)
                weights += [weight / total for weight in rarity]
                owners.append(label)
        self.owners = np.array(owners, np.int64)
        shape = (max(len(self.number), 1), max(len(owners), 1))
        self.shares = csr_array((np.array(weights, np.float32), (rows, columns)), shape=shape)

    def match(self, texts: Sequence[str]) -> Entries:
        """For each text the labels with a near name, and the greatest share of any of their names."""
        return self.match_stems([stems(text) for text in texts])

    def frequency(self, texts: Sequence[set[str]]) -> np.ndarray:
        """How many of the texts, given by their stems, have all words of a label's name: [labels]."""
        counts = np.zeros(self.n_labels, np.int64)
        for start in range(0, len(texts), PORTION):
            found = self.match_stems(texts[start : start + PORTION])
            whole = found.keys[found.values >= WHOLE] % max(self.n_labels, 1)
            counts += np.bincount(whole, minlength=self.n_labels)
        return counts

    def match_stems(self, texts: Sequence[set[str]]) -> Entries:
        rows, columns = [], []
        for row, text in enumerate(texts):
            known = [self.number[word] for word in text if word in self.number]
            rows += [row] * len(known)
            columns += known
        shape = (len(texts), self.shares.shape[0])
        has = csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)
        found = (has @ self.shares).tocoo()
        near = found.data >= LEAST_SHARE
        labels = self.owners[found.col[near]] if len(self.owners) else np.empty(0, np.int64)
        return Entries.greatest(found.row[near], labels, found.data[near], len(texts), self.n_labels)


def telling(name: str) -> set[str]:
    words = {word for word in WORD.findall(name.lower()) if len(word) > 1 and word not in ENGLISH}
    return {stem(word) for word in words}
