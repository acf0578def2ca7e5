"""How much of a batch is trained on at once, so that it fits into memory."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import torch
from transformers import PreTrainedModel

# Bytes that the backward pass needs of each token, layer and hidden unit: measured on a CPU, where a batch of
# 51,000 tokens took 15 GB with six layers of 384 units. A GPU needs less.
BYTES_HELD = 128
# Of the machine's memory, whatever else runs: training resumes to the same loss only if this stays the same.
SHARE = 0.5
# Where the system does not tell.
USUAL_MEMORY = 16 << 30
CONTROL_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def tokens_at_once(model: PreTrainedModel) -> int:
    """Tokens that a forward and backward pass may hold."""
    each = BYTES_HELD * model.config.num_hidden_layers * model.config.hidden_size
    return int(SHARE * memory_of(model.device) / each)


def memory_of(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return main_memory()


def main_memory() -> int:
    """That of the machine, or of the container that this runs in."""
    try:
        least = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not on every system
        least = USUAL_MEMORY
    for path in map(Path, CONTROL_GROUPS):
        limit = path.read_text(encoding="ascii").strip() if path.is_file() else "max"
        if limit.isdigit():
            least = min(least, int(limit))
    return least


def parts_that_fit(starts: list[int], most_tokens: int, together: int = 1) -> list[tuple[int, int]]:
    """Ranges of the sequences that begin at these places, each of so many tokens at most where that can be.

    Sequences are kept together by so many.
    """
    parts = []
    first = 0
    for begin, end in pairwise([*range(0, len(starts) - 1, together), len(starts) - 1]):
        if begin > first and starts[end] - starts[first] > most_tokens:
            parts.append((first, begin))
            first = begin
    return [*parts, (first, len(starts) - 1)]
