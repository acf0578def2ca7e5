"""Dropout for compiled training.

A compiled model makes the random numbers of dropout in the middle of other work, once forward and once
backward, and its generator takes longer than that work. A hash of an element's number with the seed of the
call is random enough to drop a tenth of the values, and costs next to nothing.
"""

from __future__ import annotations

import torch


class HashDropout(torch.nn.Module):
    """As torch.nn.Dropout: values are zeroed with probability p in training, the others grow to make up."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        if not self.training or self.p == 0.0:
            return values
        seed = torch.randint(-(2**31), 2**31 - 1, (), dtype=torch.int32, device=values.device)
        kept = uniform_bits(values.numel(), seed).view(values.shape) >= round(self.p * 2**24)
        return (values * kept) * (1.0 / (1.0 - self.p))


def uniform_bits(count: int, seed: torch.Tensor) -> torch.Tensor:
    """Integers below 2**24 for 0, 1, … count - 1: two multiplications with shifts between mix every bit."""
    mixed = torch.arange(count, dtype=torch.int32, device=seed.device) ^ seed
    for multiplier, shift in ((0x7FEB352D, 15), (-0x7B935975, 16)):
        mixed = (mixed ^ shifted(mixed, shift)) * multiplier
    return shifted(mixed, 8)


def shifted(values: torch.Tensor, bits: int) -> torch.Tensor:
    """Shift to the right that fills with zeros, which torch lacks for signed integers."""
    return (values >> bits) & ((1 << (32 - bits)) - 1)


def hash_dropout(model: torch.nn.Module) -> None:
    """Puts hashed dropout in the place of every torch.nn.Dropout of the model."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, torch.nn.Dropout):
                setattr(parent, name, HashDropout(child.p))
