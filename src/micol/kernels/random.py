"""Random integers that are a pure function of seed, anchor and draw number.

A counter-based generator (the output function of SplitMix64) needs no stream: any anchor can be drawn alone,
in any order, on any machine, and gives the same positives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np

from micol.compiled import bare, kernel

# A plain 0 would be a type of its own ("literally 0"), and have functions compiled again for it.
int64 = cast("Callable[[Any], int]", np.int64)

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: consecutive counters land far apart
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
S11, S27, S30, S31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)
ZERO, ONE = np.uint64(0), np.uint64(1)
SMALLEST_PART, MOST_PARTS = 1 << 16, 32


@bare
def mix(word: np.uint64) -> np.uint64:
    """Scrambles 64 bits so that each bit of the result depends on every bit of the argument."""
    word = (word ^ (word >> S30)) * FIRST
    word = (word ^ (word >> S27)) * SECOND
    return word ^ (word >> S31)


@bare
def start(random: np.ndarray, seed: np.uint64, anchor: int) -> None:
    """Points the generator, an array of key and counter, at the draws of one anchor."""
    random[0] = mix(seed + GOLDEN * (np.uint64(anchor) + ONE))
    random[1] = ZERO


@bare
def bits(random: np.ndarray) -> np.uint64:
    """The next 64 random bits."""
    random[1] += ONE
    return mix(random[0] + GOLDEN * random[1])


@bare
def below(random: np.ndarray, bound: int) -> int:
    """A random integer in [0, bound), each exactly as likely as any other."""
    limit = np.uint64(bound)
    while True:
        word = bits(random)
        rest = word % limit
        # The last, incomplete run of `bound` numbers would favour small remainders.
        if word - rest <= ZERO - limit:
            return int64(rest)


@bare
def unit(random: np.ndarray) -> float:
    """A random number in [0, 1) with 53 bits."""
    return np.float64(bits(random) >> S11) * 2.0**-53


@kernel
def sort_keys(items: np.ndarray, seed: np.uint64) -> np.ndarray:
    keys = np.empty(len(items), dtype=np.uint64)
    for index in range(len(items)):
        # Never mix(0), which is 0 and would put document 0 first under seed 0.
        keys[index] = mix(seed ^ mix(GOLDEN * (np.uint64(items[index]) + ONE)))
    return keys


def seed_word(seed: int) -> np.uint64:
    """Any integer as a seed of 64 bits."""
    return np.uint64(seed % (1 << 64))


def shuffled(items: np.ndarray, seed: int) -> np.ndarray:
    """A random permutation of distinct non-negative integers, decided by the set and the seed alone."""
    return np.concatenate([items[:0], *shuffled_parts(items, seed)])


def shuffled_parts(items: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    """The same permutation part by part, so that who needs only its beginning does not wait for all of it."""
    # No two items have the same key, for every step from item to key can be undone.
    return in_parts(items, sort_keys(items, seed_word(seed)))


def in_parts(items: np.ndarray, keys: np.ndarray) -> Iterator[np.ndarray]:
    """Items in the order of their keys, which are spread evenly over 64 bits, part by part."""
    parts = min(len(items) // SMALLEST_PART + 1, MOST_PARTS)
    width = (1 << 64) // parts + 1
    for part in range(parts):
        first, last = part * width, min((part + 1) * width, 1 << 64) - 1
        within = np.flatnonzero((keys >= np.uint64(first)) & (keys <= np.uint64(last)))
        yield items[within[np.argsort(keys[within])]]
