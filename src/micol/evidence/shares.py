"""Shares that differ from label to label, estimated where a label has been seen only a few times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Where a label always or never does, nothing is known of one that was not seen, but that it is usual.
LEAST_PRIOR = 1e-6


@dataclass(frozen=True)
class Share:
    """Of the documents of a label, those that something is true of: what is usual, and how labels differ."""

    usual: float
    # As many documents of a label count as much as what is usual; infinite where labels do not differ.
    prior: float

    @classmethod
    def of(cls, hits: np.ndarray, documents: np.ndarray) -> Share:
        """From the counts of each label, by how much they vary between labels more than within them."""
        hits, documents = hits[documents > 0].astype(float), documents[documents > 0].astype(float)
        total, labels = documents.sum(), len(documents)
        usual = float(hits.sum() / total) if labels else 0.0
        if labels < 2 or total == labels:
            return cls(usual, np.inf)
        shares = hits / documents
        between = (documents * (shares - usual) ** 2).sum() / (labels - 1)
        within = (documents * shares * (1 - shares)).sum() / (total - labels)
        size = (total - (documents**2).sum() / total) / (labels - 1)
        prior = size * within / (between - within) if between > within else np.inf
        return cls(usual, max(float(prior), LEAST_PRIOR))

    def times_usual(self, hits: np.ndarray, documents: np.ndarray) -> np.ndarray:
        """The share of each label as a multiple of what is usual, nearer to one the less is known of it."""
        if np.isinf(self.prior):
            return np.ones(len(documents))
        shrunk: np.ndarray = (hits + self.prior * self.usual) / (documents + self.prior)
        return shrunk / self.usual
