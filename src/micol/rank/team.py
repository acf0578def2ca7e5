"""Several processes that train one model together, one for each GPU, as torchrun or accelerate starts them.

Each takes its share of every batch. The negatives of an anchor come from the whole batch, so the gradient is
that of a single process with all of it.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from accelerate import PartialState
from torch import distributed

from micol.errors import UsageError
from micol.progress import is_leader

__all__ = ["everyones", "is_leader", "join", "share_of", "size", "wait"]


def size() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


def join() -> None:
    """Meets the others, and takes a device of one's own."""
    if size() > 1:
        PartialState(cpu=not torch.cuda.is_available())


def wait() -> None:
    """Until all have come this far."""
    if distributed.is_initialized():
        distributed.barrier()


def share_of(batch_size: int) -> int:
    """Examples of a batch that each process takes."""
    if batch_size % size():
        raise UsageError(f"batch_size {batch_size} is no multiple of the {size()} processes; make it one")
    return batch_size // size()


def everyones(vectors: torch.Tensor) -> torch.Tensor:
    """The vectors of all processes, one's own first."""
    if size() == 1:
        return vectors
    together: torch.Tensor = Gathered.apply(vectors)
    return together.roll(-distributed.get_rank() * len(vectors), dims=0)


class Gathered(torch.autograd.Function):
    """Vectors of all processes in order; each gets back the gradients that all have for its own."""

    @staticmethod
    def forward(context: Any, vectors: torch.Tensor) -> torch.Tensor:
        parts = [torch.empty_like(vectors) for _ in range(size())]
        distributed.all_gather(parts, vectors.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> torch.Tensor:
        total = gradients[0].contiguous()
        distributed.all_reduce(total)
        return total.chunk(size())[distributed.get_rank()]
