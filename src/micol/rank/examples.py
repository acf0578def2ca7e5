"""Training examples: what a batch holds, and the order in which an epoch visits them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

import numpy as np
import torch

from micol.rank.negatives import by_neighbourhood
from micol.rank.packing import Framing

# Beyond this many put-off examples a batch, looking on costs more than a false negative.
MOST_CLASHES = 50


class Examples(Protocol):
    """A fixed number of training examples and a way to turn some of them into one batch."""

    def __len__(self) -> int: ...

    def order(self, epoch: int, batch_size: int, seed: int) -> np.ndarray:
        """The order in which an epoch visits the examples, a function of its arguments alone."""

    def collate(self, numbers: Sequence[int]) -> dict[str, Any]: ...


@dataclass(frozen=True)
class PairExamples:
    """Pairs of similar texts for the bi-encoder: anchors and positives are token sequences."""

    framing: Framing
    texts: Sequence[np.ndarray]
    anchors: np.ndarray
    positives: np.ndarray
    # Of each text. Those that stem from one document (its title, its abstract) must not meet as negatives.
    documents: np.ndarray
    # Where hard negatives are mined: how many alike pairs meet in a batch, and the vectors that tell.
    neighbourhood: int = 0
    untrained: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.anchors)

    def order(self, epoch: int, batch_size: int, seed: int) -> np.ndarray:
        """Shuffled so that a document occurs only once in a batch, as far as that can be."""
        generator = np.random.default_rng((seed, epoch))
        if self.untrained is None:
            shuffled = generator.permutation(len(self.anchors))
        else:
            shuffled = by_neighbourhood(self.untrained[self.anchors], self.neighbourhood, generator)
        sides = (self.documents[self.anchors].tolist(), self.documents[self.positives].tolist())
        return without_repeats(shuffled.tolist(), sides, batch_size)

    def collate(self, numbers: Sequence[int]) -> dict[str, Any]:
        chosen = np.concatenate([self.anchors[numbers], self.positives[numbers]])
        batch = vars(self.framing.pack([self.texts[text] for text in chosen]))
        batch = {**batch, "documents": torch.from_numpy(self.documents[chosen])}
        if self.untrained is not None:
            batch["untrained"] = torch.from_numpy(self.untrained[chosen])
        return batch


@dataclass(frozen=True)
class ListExamples:
    """For the cross-encoder: a document, the texts set against it, and how much each is to be preferred."""

    framing: Framing
    firsts: Sequence[np.ndarray]
    seconds: Sequence[np.ndarray]
    documents: np.ndarray  # [E] into firsts
    lists: np.ndarray  # [E, 1 + N] into seconds
    targets: np.ndarray  # [E, 1 + N], rows sum to one

    def __len__(self) -> int:
        return len(self.documents)

    def order(self, epoch: int, batch_size: int, seed: int) -> np.ndarray:
        return np.random.default_rng((seed, epoch)).permutation(len(self.documents))

    def collate(self, numbers: Sequence[int]) -> dict[str, Any]:
        pairs = [
            (self.firsts[self.documents[number]], self.seconds[second])
            for number in numbers
            for second in self.lists[number]
        ]
        targets = torch.from_numpy(self.targets[numbers].astype(np.float32))
        return {**vars(self.framing.pack_pairs(pairs)), "targets": targets}


def without_repeats(shuffled: list[int], sides: tuple[list[int], list[int]], batch_size: int) -> np.ndarray:
    """Keeps the order but puts off examples whose documents the running batch already holds.

    What cannot be placed without a repeat (few documents, joined closely) closes the order as it is; the loss
    does not take what is repeated for a negative.
    """
    order: list[int] = []
    coming = iter(shuffled)
    put_off: list[int] = []
    while True:
        seen: set[int] = set()
        clashing: list[int] = []
        placed = 0
        waiting = iter(put_off)
        for number in chain(waiting, coming):
            documents = {sides[0][number], sides[1][number]}
            if seen & documents:
                clashing.append(number)
                continue
            seen |= documents
            order.append(number)
            placed += 1
            if placed == batch_size or len(clashing) > MOST_CLASHES * batch_size:
                break
        put_off = [*clashing, *waiting]
        if placed < batch_size:
            break
    return np.array([*order, *put_off, *coming], dtype=np.int64)
