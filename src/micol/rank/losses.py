"""The two contrastive losses of the paper."""

from __future__ import annotations

import torch
from torch.nn.functional import cross_entropy, log_softmax, normalize


def info_nce(
    anchors: torch.Tensor,
    positives: torch.Tensor,
    temperature: float,
    left_out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Eq. 9: each anchor against its positive, the other positives of the batch being its negatives.

    anchors [B, dim]; positives [M, dim], M >= B, of which the first B belong to the anchors in order.
    left_out [B, M] is true for positives that are no negatives of an anchor.
    """
    cosines = normalize(anchors.float(), dim=1) @ normalize(positives.float(), dim=1).T  # [B, M]
    if left_out is not None:
        cosines = cosines.masked_fill(left_out, -torch.inf)
    return cross_entropy(cosines / temperature, torch.arange(len(anchors), device=anchors.device))


def false_negatives(
    anchors: torch.Tensor, all_anchors: torch.Tensor, all_positives: torch.Tensor
) -> torch.Tensor:
    """[…, B, M]: where another pair's positive is the anchor itself or a document that it is paired with.

    Given are documents: of the anchors, and of both sides of all M pairs, of which theirs come first.
    Few documents joined closely cannot fill a batch without meeting twice, and a document set against itself
    teaches the encoder to tear apart what is alike.
    """
    itself = equal(anchors, all_positives)
    towards = joined(equal(anchors, all_anchors), equal(all_positives, all_positives))
    backwards = joined(itself, equal(all_anchors, all_positives))
    found = itself | towards | backwards
    return found & ~torch.eye(*found.shape[-2:], dtype=torch.bool, device=found.device)


def equal(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Each of one side against each of the other."""
    return first[..., :, None] == second[..., None, :]


def joined(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Which of one side reach which of the other: the product of two relations."""
    return first.float() @ second.float() > 0


def listwise(scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Eq. 11, scores and targets [B, 1 + N]: softmax over the texts set against one document.

    A target row is one-hot for the paper's one positive among N negatives, or a teacher's distribution.
    """
    return -(targets * log_softmax(scores.float(), dim=1)).sum(dim=1).mean()
