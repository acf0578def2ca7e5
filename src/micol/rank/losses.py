"""The two contrastive losses of the paper."""

from __future__ import annotations

import torch
from torch.nn.functional import cross_entropy, log_softmax, normalize


def info_nce(anchors: torch.Tensor, positives: torch.Tensor, temperature: float) -> torch.Tensor:
    """Eq. 9: each anchor against its positive, the other positives of the batch being its negatives.

    anchors [B, dim]; positives [M, dim], M >= B, of which the first B belong to the anchors in order.
    """
    cosines = normalize(anchors.float(), dim=1) @ normalize(positives.float(), dim=1).T  # [B, M]
    return cross_entropy(cosines / temperature, torch.arange(len(anchors), device=anchors.device))


def listwise(scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Eq. 11, scores and targets [B, 1 + N]: softmax over the texts set against one document.

    A target row is one-hot for the paper's one positive among N negatives, or a teacher's distribution.
    """
    return -(targets * log_softmax(scores.float(), dim=1)).sum(dim=1).mean()
