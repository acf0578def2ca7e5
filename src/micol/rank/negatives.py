"""Negatives of a batch: hard ones, which come from alike documents, but not false ones.

An anchor's negatives are the positives of the other pairs in its batch. Random ones are soon told apart.
Pairs of alike documents in one batch are harder; among them are documents that could as well be the anchor's
positive, and those the untrained encoder gives away: to it they are nearer than the positive is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from micol.rank import team
from micol.rank.losses import false_negatives


@dataclass(frozen=True)
class Sides:
    """Both sides of a batch's B pairs, anchors first: documents [2, B] and, where negatives are mined, the
    untrained encoder's unit vectors [2, B, dim]."""

    documents: torch.Tensor
    untrained: torch.Tensor | None = None

    @classmethod
    def popped_from(cls, inputs: dict[str, Any]) -> Sides:
        documents, vectors = inputs.pop("documents"), inputs.pop("untrained", None)
        return cls(documents.view(2, -1), None if vectors is None else vectors.unflatten(0, (2, -1)))

    def everyones(self) -> Sides:
        """With those of all processes, one's own first."""
        return Sides(together(self.documents), None if self.untrained is None else together(self.untrained))

    def left_out(self, own: int) -> torch.Tensor:
        """[own, B]: which positives are no negatives of the first anchors."""
        anchors, positives = self.documents
        found = false_negatives(anchors[:own], anchors, positives)
        if self.untrained is None:
            return found
        cosines = self.untrained[0, :own].float() @ self.untrained[1].float().T
        return found | (cosines > cosines.diagonal()[:, None])


def together(sides: torch.Tensor) -> torch.Tensor:
    return torch.stack([team.everyones(side) for side in sides])


def by_neighbourhood(vectors: np.ndarray, size: int, generator: np.random.Generator) -> np.ndarray:
    """All positions, at most `size` alike ones in a row, and the rows in random order.

    Split in halves again and again, by which of two random members each is nearer to.
    """
    whole, rows = [np.arange(len(vectors))], []
    while whole:
        some = whole.pop()
        if len(some) <= size:
            rows.append(some)
            continue
        one, other = vectors[generator.choice(some, 2, replace=False)].astype(np.float32)
        halves = np.array_split(some[np.argsort(vectors[some] @ (one - other), kind="stable")], 2)
        whole += halves
    return np.concatenate([rows[row] for row in generator.permutation(len(rows))])
