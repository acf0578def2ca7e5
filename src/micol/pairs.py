"""Network and meta-path become training pairs (d, d+).

Anchors come in a random order. Each draw of an anchor gives one positive, uniform over all documents that it
reaches (the paper's 1/X). Where one round over all anchors gives too few pairs, further rounds draw a further
positive for each anchor that has one left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from micol.errors import UsageError
from micol.kernels.by_node import draw_by_rarity, draw_node_first
from micol.kernels.random import seed_word, shuffled
from micol.kernels.uniform import Limits, draw_uniform
from micol.metapath import MetaPath
from micol.network import Network
from micol.progress import Progress
from micol.reach import Plan, neighbours_together, plan

Method = Literal["uniform", "node-first", "rarity"]
KERNELS: dict[str, Callable[..., None]] = {
    "uniform": draw_uniform,
    "node-first": draw_node_first,
    "rarity": draw_by_rarity,
}
METHODS = tuple(KERNELS)
# Measured: below these, listing is faster than proposing.
LIMITS = Limits(expand=512, frontier=2_000, misses=64)
ANCHORS_A_CALL, POSITIVES_A_CALL = 1 << 16, 1 << 22


class Pairs(NamedTuple):
    """Positions of anchors and of their positives; `exhausted` where no further pair exists."""

    anchor: np.ndarray
    positive: np.ndarray
    exhausted: bool


class Draws(NamedTuple):
    """Positives, each with its anchor's place in the order of anchors and the round it was drawn in."""

    place: np.ndarray
    round: np.ndarray
    positive: np.ndarray


class Sampler(NamedTuple):
    """Everything that decides what an anchor draws; the same anchor always draws the same."""

    plan: Plan
    kernel: Callable[..., None]
    limits: Limits
    seed: np.uint64

    def draw(self, anchors: np.ndarray, rounds: int) -> tuple[np.ndarray, np.ndarray]:
        """Up to `rounds` positives for each anchor: a row each, and how many of it are filled."""
        order = neighbours_together(self.plan, anchors)
        positives = np.empty((len(anchors), rounds), dtype=np.int32)
        counts = np.empty(len(anchors), dtype=np.int64)
        self.kernel(*self.plan, self.limits, self.seed, anchors[order], positives, counts)
        as_given = np.argsort(order)
        return positives[as_given], counts[as_given]


def draw_pairs(
    network: Network,
    path: MetaPath | str,
    n: int,
    seed: int = 0,
    method: Method = "uniform",
    documents: np.ndarray | None = None,
    limits: Limits = LIMITS,
) -> Pairs:
    """Draws n distinct pairs, or all there are: anchors among `documents` (positions), positives anywhere."""
    if method not in KERNELS:
        raise UsageError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if n < 0:
        raise UsageError(f"the number of pairs must not be negative, got {n}")
    path = MetaPath(path) if isinstance(path, str) else path
    sampler = Sampler(plan(network, path), KERNELS[method], limits, seed_word(seed))
    anchors = shuffled(anchor_positions(network, documents), seed)
    # One pair more than asked for tells whether there is one.
    draws = draw_in_rounds(sampler, anchors, n + 1, f"drawing pairs by {path}")
    first = np.lexsort((draws.place, draws.round))[:n]
    return Pairs(anchors[draws.place[first]], draws.positive[first], exhausted=len(draws.place) <= n)


def anchor_positions(network: Network, documents: np.ndarray | None) -> np.ndarray:
    if documents is None:
        return np.arange(network.n_documents, dtype=np.int64)
    positions = np.unique(np.asarray(documents, dtype=np.int64))
    if len(positions) and not 0 <= positions[0] <= positions[-1] < network.n_documents:
        raise UsageError(f"anchors must be positions from 0 to {network.n_documents - 1}")
    return positions


def draw_in_rounds(sampler: Sampler, anchors: np.ndarray, enough: int, what: str) -> Draws:
    """Draws of whole rounds, as many as give enough pairs; of the first round no more than needed."""
    draws, open_places = sweep(sampler, anchors, np.arange(len(anchors)), 1, enough, what)
    finished, rounds = [draws], 1
    while sum(len(draws.place) for draws in finished) < enough and len(open_places):
        # Who had as many partners as there were rounds may have more, and starts again with more rounds.
        finished = [
            Draws(*(part[~np.isin(draws.place, open_places)] for part in draws)) for draws in finished
        ]
        missing = enough - sum(len(draws.place) for draws in finished)
        rounds = max(2 * rounds, -(-missing // len(open_places)))
        draws, open_places = sweep(sampler, anchors, open_places, rounds, None, what)
        finished.append(draws)
    return Draws(*map(np.concatenate, zip(*finished)))


def sweep(
    sampler: Sampler, anchors: np.ndarray, places: np.ndarray, rounds: int, enough: int | None, what: str
) -> tuple[Draws, np.ndarray]:
    """Draws for the anchors at some places in turn, and the places whose anchors filled every round."""
    parts = [Draws(*(np.empty(0, dtype=np.int64) for _ in Draws._fields))]
    full = [np.empty(0, dtype=np.int64)]
    done = got = 0
    with Progress(what, len(places), "documents") as progress:
        while done < len(places) and (enough is None or got < enough):
            likely = ANCHORS_A_CALL if enough is None else max(enough - got, 1024)
            some = places[done : done + min(likely, ANCHORS_A_CALL, max(1, POSITIVES_A_CALL // rounds))]
            positives, counts = sampler.draw(anchors[some], rounds)
            index, round = np.nonzero(np.arange(rounds) < counts[:, None])
            parts.append(Draws(some[index], round, positives[index, round].astype(np.int64)))
            full.append(some[counts == rounds])
            done, got = done + len(some), got + len(index)
            progress.advance(len(some))
    return Draws(*map(np.concatenate, zip(*parts))), np.concatenate(full)
