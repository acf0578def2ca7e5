"""Texts in portions, worked on by several threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")

# Characters of a portion: few enough to stay in a processor's cache, enough to be worth a call.
LEAST, MOST = 1 << 14, 1 << 17


def portions(texts: Sequence[str], characters: int = MOST, most_texts: int = MOST) -> Iterator[Sequence[str]]:
    start, size = 0, 0
    for i, text in enumerate(texts):
        if i > start and (size + len(text) > characters or i - start == most_texts):
            yield texts[start:i]
            start, size = i, 0
        size += len(text)
    if start < len(texts):
        yield texts[start:]


def in_portions(
    work: Callable[[Sequence[str]], Result],
    texts: Sequence[str],
    threads: int | None = None,
    most_texts: int = MOST,
) -> list[Result]:
    """What `work` makes of each portion, in order; on as many threads as there are cores, if none are given.

    Threads help because the compiled loops run without the interpreter's lock.
    """
    threads = threads or available_cores()
    # Two for each thread, for some take longer than others.
    size = min(max(sum(map(len, texts)) // (2 * threads), LEAST), MOST)
    parts = list(portions(texts, size, most_texts))
    if threads == 1 or len(parts) < 2:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(min(threads, len(parts))) as pool:
        return list(pool.map(work, parts))


def available_cores() -> int:
    # Linux alone can say that a process may use only some of the cores.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
