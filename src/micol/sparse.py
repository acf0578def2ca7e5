"""Numbers for some pairs of a document and a label: the common form of what the sources of evidence find."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Entries:
    """Pairs by rising key, document x labels + label, each with a value."""

    keys: np.ndarray  # int64, sorted, each once
    values: np.ndarray  # float32
    documents: int
    labels: int

    @classmethod
    def of(
        cls, rows: np.ndarray, labels: np.ndarray, values: np.ndarray, documents: int, n_labels: int
    ) -> Entries:
        """Of pairs that occur once each."""
        keys = rows.astype(np.int64) * n_labels + labels
        order = np.argsort(keys, kind="stable")
        return cls(keys[order], values[order].astype(np.float32), documents, n_labels)

    @classmethod
    def greatest(
        cls, rows: np.ndarray, labels: np.ndarray, values: np.ndarray, documents: int, n_labels: int
    ) -> Entries:
        """Of pairs that may occur several times: the greatest value of each stays."""
        keys = rows.astype(np.int64) * n_labels + labels
        order = np.lexsort((-values, keys))
        kept, first = np.unique(keys[order], return_index=True)
        return cls(kept, values[order][first].astype(np.float32), documents, n_labels)

    def at(self, keys: np.ndarray) -> np.ndarray:
        """The values of these pairs; 0 for those that are not here."""
        if not len(self.keys):
            return np.zeros(len(keys), np.float32)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, self.values[places], np.float32(0))

    def top(self, count: int) -> np.ndarray:
        """The keys of the greatest values of each document, at most `count` each."""
        rows = self.keys // self.labels
        order = np.lexsort((-self.values, rows))
        begins = np.searchsorted(rows, np.arange(self.documents))
        place = np.arange(len(rows)) - begins[rows]
        return self.keys[order[place < count]]
