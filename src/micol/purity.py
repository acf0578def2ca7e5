"""Do documents that a meta-path joins have labels in common? The paper's appendix, measured.

Only documents that carry labels are looked at, on both sides: nothing is known of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from micol.corpus import Corpus
from micol.predictions import first_in_row
from micol.ranking import row_bounds, row_numbers

# Every pair of so few documents is looked at; of more, a sample.
ALL_PAIRS_UP_TO = 200
RANDOM_PAIRS = 20_000
PAIRS_AT_ONCE = 10_000


class Share(NamedTuple):
    """A share of something, and whether all of it was looked at or a sample."""

    value: float
    exact: bool


class Divergence(NamedTuple):
    """The Jensen-Shannon divergence of P_MICoL and P_Sup, and the four terms it is printed as.

    With X partners, Y documents that share a label, in natural logarithms:
      first   1/2 log 2X / (X + Y)
      second  1/2 sum over partners without a common label of 1/X log(1 + X/Y)   0 where Property 1 holds
      third   1/2 log 2Y / (X + Y)
      fourth  1/2 sum over non-partners with a common label of 1/Y log(1 + Y/X)  0 where Property 2 holds
    """

    first: float
    second: float
    third: float
    fourth: float

    @property
    def total(self) -> float:
        return self.first + self.second + self.third + self.fourth


def divergence(partners: int, alike: int, both: int) -> Divergence:
    """From X partners, Y documents that share a label, and how many are both."""
    x, y = partners, alike
    return Divergence(
        0.5 * np.log(2 * x / (x + y)),
        0.5 * (x - both) / x * np.log(1 + x / y),
        0.5 * np.log(2 * y / (x + y)),
        0.5 * (y - both) / y * np.log(1 + y / x),
    )


class LabelledDocuments:
    """Which documents carry which labels, both ways."""

    def __init__(self, corpus: Corpus) -> None:
        indptr, values = corpus.lists("labels")
        encoded = values.dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        rows = row_numbers(indptr)
        once = first_in_row(rows, codes, len(encoded.dictionary))
        rows, codes = rows[once], codes[once]
        self.labels: list[str] = encoded.dictionary.to_pylist()
        self.of_document = csr_array(
            (np.ones(len(codes), np.int32), codes, row_bounds(rows, len(corpus))),
            shape=(len(corpus), len(self.labels)),
        )
        self.with_label = self.of_document.T.tocsr()
        self.has_any = np.diff(self.of_document.indptr) > 0
        self.positions = np.flatnonzero(self.has_any)

    def in_common(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """For pairs of documents: whether they share a label."""
        parts = [
            self.of_document[one[at : at + PAIRS_AT_ONCE]].multiply(
                self.of_document[other[at : at + PAIRS_AT_ONCE]]
            )
            for at in range(0, len(one), PAIRS_AT_ONCE)
        ]
        return np.concatenate([np.zeros(0, bool), *(part.sum(axis=1) > 0 for part in parts)])

    def common_share(self, one: np.ndarray, other: np.ndarray, exact: bool) -> Share | None:
        """The share of pairs with a common label, among pairs that have labels on both sides."""
        known = self.has_any[one] & self.has_any[other]
        if not known.any():
            return None
        return Share(float(self.in_common(one[known], other[known]).mean()), exact)

    def random_share(self, seed: int) -> Share | None:
        """The same for pairs drawn at random from all labelled documents."""
        n = len(self.positions)
        if n < 2:
            return None
        if n <= ALL_PAIRS_UP_TO:
            one, other = np.array(list(combinations(self.positions, 2))).T
            return self.common_share(one, other, exact=True)
        random = np.random.default_rng(seed)
        one = random.integers(n, size=RANDOM_PAIRS)
        # A step of 1 to n - 1 from the first never ends at the first.
        other = (one + random.integers(1, n, size=RANDOM_PAIRS)) % n
        return self.common_share(self.positions[one], self.positions[other], exact=False)

    def divergences(
        self, anchors: Iterable[int], partners_of: Callable[[int], np.ndarray]
    ) -> list[Divergence]:
        """The divergence of each anchor that has labelled partners and a label that others have as well."""
        found = []
        alike = np.zeros(len(self.has_any), bool)
        for anchor in anchors:
            partners = partners_of(anchor)
            partners = partners[self.has_any[partners]]
            rows = [self._documents_with(label) for label in self._labels_of(anchor)]
            for row in rows:
                alike[row] = True
            alike[anchor] = False
            n_alike, n_both = int(np.count_nonzero(alike)), int(np.count_nonzero(alike[partners]))
            for row in rows:
                alike[row] = False
            if len(partners) and n_alike:
                found.append(divergence(len(partners), n_alike, n_both))
        return found

    def _labels_of(self, document: int) -> np.ndarray:
        rows = self.of_document
        return rows.indices[rows.indptr[document] : rows.indptr[document + 1]]

    def _documents_with(self, label: int) -> np.ndarray:
        rows = self.with_label
        return rows.indices[rows.indptr[label] : rows.indptr[label + 1]]


def mean_divergence(found: list[Divergence]) -> Divergence | None:
    return Divergence(*np.mean(found, axis=0).tolist()) if found else None
