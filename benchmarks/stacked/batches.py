"""Batches of several runs, made on the device from the examples' numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from micol.rank.examples import ListExamples, PairExamples

# In the place of an example: the batch is short. In that of a second text: the sequence has only one.
NONE = -1


@dataclass(frozen=True)
class Sequences:
    """Examples of several runs as numbers on the device: S sequences each, of one text or of two."""

    tokens: torch.Tensor  # of all texts, end to end
    offsets: torch.Tensor  # [texts]
    lengths: torch.Tensor  # [texts]
    firsts: torch.Tensor  # [M, E, S] into the texts
    seconds: torch.Tensor  # [M, E, S], NONE where a sequence has one text
    sides: torch.Tensor  # [M, E, 2] documents of pairs (bi-encoder)
    targets: torch.Tensor  # [M, E, S] (cross-encoder)
    sizes: np.ndarray  # [M, E] tokens of an example

    @classmethod
    def of(cls, examples: Sequence[PairExamples | ListExamples], device: torch.device) -> Sequences:
        texts: list[np.ndarray] = []
        parts: list[tuple[np.ndarray, ...]] = []
        for some in examples:
            begin = len(texts)
            if isinstance(some, PairExamples):
                texts += list(some.texts)
                firsts = np.stack([some.anchors, some.positives], axis=1) + begin
                seconds = np.full_like(firsts, NONE)
                sides, targets = some.documents[firsts - begin], np.zeros(firsts.shape, np.float32)
            else:
                texts += [*some.firsts, *some.seconds]
                firsts = np.repeat(some.documents[:, None], some.lists.shape[1], axis=1) + begin
                seconds = some.lists + begin + len(some.firsts)
                sides, targets = np.zeros((len(firsts), 2), np.int64), some.targets
            parts.append((firsts, seconds, sides, targets))
        lengths = np.array([len(text) for text in texts])
        longest = max(len(some) for some in examples)
        firsts, seconds, sides, targets = (
            np.stack([np.pad(part, ((0, longest - len(part)), (0, 0))) for part in column])
            for column in zip(*parts, strict=True)
        )
        sizes = lengths[firsts] + 2 + np.where(seconds == NONE, 0, lengths[seconds] + 1)
        arrays = (
            np.concatenate(texts).astype(np.int32), np.cumsum(lengths) - lengths, lengths,
            firsts, seconds, sides, targets,
        )  # fmt: skip
        return cls(*(torch.from_numpy(array).to(device) for array in arrays), sizes.sum(axis=2))

    def sizes_of(self, numbers: np.ndarray) -> np.ndarray:
        """The tokens of batches of examples [..., M, B]; an example that is NONE takes two a text."""
        sizes = self.sizes[np.arange(len(self.sizes))[:, None], np.maximum(numbers, 0)]
        return np.where(numbers == NONE, 2 * self.firsts.shape[2], sizes).sum(axis=-1)


@dataclass(frozen=True)
class Batch:
    """The sequences of a batch of each of M runs, laid end to end and filled up to T tokens."""

    ids: torch.Tensor  # [M, T]
    types: torch.Tensor  # [M, T]
    positions: torch.Tensor  # [M, T]
    begins: torch.Tensor  # [M, N] where each sequence begins
    bounds: torch.Tensor  # int32, of all sequences and of what fills up, over all runs
    asked: torch.Tensor  # the same where only the [CLS] tokens are asked for


def packed(
    data: Sequences, numbers: torch.Tensor, tokens: int, longest: int, framing: tuple[int, int]
) -> Batch:
    """[M, B] examples (NONE: an empty text) as one batch, made on the device."""
    runs = torch.arange(len(numbers), device=numbers.device)[:, None]
    present = (numbers != NONE)[..., None]
    firsts = data.firsts[runs, numbers.clamp(min=0)]
    seconds = data.seconds[runs, numbers.clamp(min=0)]
    is_pair = present & (seconds != NONE)
    first_length = torch.where(present, data.lengths[firsts], 0).flatten(1)  # [M, N]
    second_length = torch.where(is_pair, data.lengths[seconds.clamp(min=0)], NONE).flatten(1)
    starts = torch.nn.functional.pad((first_length + second_length + 3).cumsum(1), (1, 0))
    places = torch.arange(tokens, device=numbers.device).expand(len(numbers), -1).contiguous()
    sequence = torch.searchsorted(starts[:, 1:].contiguous(), places, right=True)
    fills = sequence == firsts.flatten(1).shape[1]
    within = places - starts.gather(1, sequence)
    sequence = sequence.clamp(max=first_length.shape[1] - 1)
    first, second = (length.gather(1, sequence) for length in (first_length, second_length))

    def word(texts: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        offsets = data.offsets[texts.clamp(min=0).flatten(1)].gather(1, sequence)
        return data.tokens[(offsets + at).clamp(0, len(data.tokens) - 1)].long()

    cls, sep = framing
    ids = torch.full_like(places, sep)
    in_second = (within > first + 1) & (within < first + second + 2)
    ids = torch.where(in_second, word(seconds, within - first - 2), ids)
    ids = torch.where(within <= first, word(firsts, within - 1), ids)
    ids = torch.where(within == 0, cls, ids)
    # What fills up is a few sequences of its own, no longer than the others may be.
    more = torch.arange(1, math.ceil(tokens / longest) + 1, device=numbers.device) * longest
    bounds = torch.cat([starts, (starts[:, -1:] + more).clamp(max=tokens)], dim=1)
    asked = torch.arange(bounds.shape[1], device=numbers.device).clamp(max=first_length.shape[1])
    return Batch(
        torch.where(fills, 0, ids),
        torch.where(fills, 0, (within >= first + 2).long()),
        within % longest,
        starts[:, :-1],
        joined_bounds(bounds, tokens),
        joined_bounds(asked.expand_as(bounds), first_length.shape[1]),
    )


def joined_bounds(bounds: torch.Tensor, size: int) -> torch.Tensor:
    """Bounds [M, K + 1] of each run as those of all, one after the other."""
    runs = torch.arange(len(bounds), device=bounds.device)[:, None]
    ends = (bounds[:, 1:] + runs * size).flatten()
    return torch.nn.functional.pad(ends, (1, 0)).to(torch.int32)
