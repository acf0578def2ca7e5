"""How chance decides which pairs are drawn: one rule, which every engine follows to the same pairs.

All chance comes from MD5, which SQL has as well. The key of a document is a number of 60 bits made of its id.

- Anchors come in the order of `spread`, with coefficients made of the seed.
- Trial t of an anchor is the digest of "seed:key:t": its first 15 digits choose a path instance, the next 15
  decide whether the document at its end is accepted. Instances are numbered in the order of the names of the
  nodes that they lead through.
- Documents that are listed come in the order of `spread`, with coefficients made of "seed:key:list".

`spread` is linear in the two halves of a key, modulo a prime, with three random coefficients: the places of
any three documents whose keys lie on no line are exactly independent, and with keys made by MD5 nothing that
is known of more than three lets one of them come sooner than another.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

PRIME = 2**31 - 1
HALF = 2**30
KEY_DIGITS = 15
SEEDS = 2**64
FEW_NODES = 200  # walks of a mean document before a last step


class Limits(NamedTuple):
    """When drawing gives way to listing. Other limits give other pairs, with the same probabilities.

    The last two cost or save the embedded engine time, and never change a pair of the uniform method.
    """

    listed: int = 256  # anchors with at most so many path instances have their documents listed
    trials: int = 64  # before they are listed after all: at least so many,
    share: int = 64  # and one for every so many instances,
    most: int = 512  # and never more than these
    frontier: int = 5_000  # a hop with more neighbours is not counted ahead from an anchor, but back to it
    misses: int = 64  # of the other methods: so many proposals may fail before partners are listed


LIMITS = Limits()


def seed_text(seed: int) -> str:
    """Any integer as a seed of 64 bits."""
    return str(seed % SEEDS)


def coefficients(text: str) -> tuple[int, int, int]:
    """Three random numbers below the prime."""
    digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    first, second, third = (int(digest[begin : begin + 8], 16) % PRIME for begin in (0, 8, 16))
    return first, second, third


def order_of_anchors(seed: int) -> tuple[int, int, int]:
    return coefficients(f"{seed_text(seed)}:anchors")


def are_few(walks: int, documents: int) -> bool:
    """Whether what lies before the last step of a chain is walked as a set, in which a node counts once.

    Otherwise, where so many walks begin at so many documents, each walk counts, and no set is made.
    """
    return walks <= FEW_NODES * documents
