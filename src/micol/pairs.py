"""Network and meta-path become training pairs (d, d+).

Anchors come in a random order. Each draw of an anchor gives one positive, uniform over all documents that it
reaches (the paper's 1/X). Where one round over all anchors gives too few pairs, further rounds draw a further
positive for each anchor that has one left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

from micol.canon import canon, order_of
from micol.errors import UsageError
from micol.kernels.by_node import draw_by_rarity, draw_node_first
from micol.kernels.hashing import hasher, order_keys
from micol.kernels.random import in_parts, seed_word, shuffled_parts
from micol.kernels.uniform import draw_uniform
from micol.metapath import MetaPath
from micol.network import Network
from micol.progress import Progress
from micol.reach import Plan, best_order, plan, renew_stamps
from micol.rule import LIMITS, Limits, order_of_anchors, seed_text
from micol.schema import Schema

Method = Literal["uniform", "node-first", "rarity"]
# The methods that are not drawn by `micol.rule`.
KERNELS: dict[str, Callable[..., None]] = {"node-first": draw_node_first, "rarity": draw_by_rarity}
METHODS = ("uniform", *KERNELS)
FEWEST_ANCHORS_A_CALL, ANCHORS_A_CALL, POSITIVES_A_CALL = 1 << 10, 1 << 16, 1 << 22


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
    chance: tuple[Any, ...]  # what the kernel takes beside the plan

    def draw(self, anchors: np.ndarray, rounds: int) -> tuple[np.ndarray, np.ndarray]:
        """Up to `rounds` positives for each anchor: a row each, and how many of it are filled."""
        renew_stamps(self.plan.scratch)
        order = best_order(self.plan, anchors)
        positives = np.empty((len(anchors), rounds), dtype=np.int32)
        counts = np.empty(len(anchors), dtype=np.int64)
        self.kernel(*self.plan, *self.chance, anchors[order], positives, counts)
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
    if method not in METHODS:
        raise UsageError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if n < 0:
        raise UsageError(f"the number of pairs must not be negative, got {n}")
    path = MetaPath(path) if isinstance(path, str) else path
    positions = anchor_positions(network, documents)
    bound = plan(network, path)
    if method == "uniform":
        seeded = np.frombuffer(seed_text(seed).encode(), np.uint8)
        sampler = Sampler(bound, draw_uniform, (canon(network, bound.program), hasher(), limits, seeded))
        parts = anchors_in_parts(network, positions, seed)
    else:
        sampler = Sampler(bound, KERNELS[method], (limits, seed_word(seed)))
        parts = shuffled_parts(positions, seed)
    # One pair more than asked for tells whether there is one.
    anchors, draws = draw_in_rounds(sampler, parts, n + 1)
    first = np.argsort(draws.round * len(anchors) + draws.place)[:n]
    return Pairs(anchors[draws.place[first]], draws.positive[first], exhausted=len(draws.place) <= n)


def anchors_in_parts(network: Network, positions: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    """Anchors in the order that all engines draw for them; in parts, of which the first may be enough."""
    coefficients = np.array(order_of_anchors(seed))
    return in_parts(positions, order_keys(order_of(network).keys, positions, coefficients))


def anchor_positions(network: Network, documents: np.ndarray | None) -> np.ndarray:
    if documents is None:
        return np.arange(network.n_documents, dtype=np.int64)
    positions = np.unique(np.asarray(documents, dtype=np.int64))
    if len(positions) and not 0 <= positions[0] <= positions[-1] < network.n_documents:
        raise UsageError(f"anchors must be positions from 0 to {network.n_documents - 1}")
    return positions


def draw_in_rounds(sampler: Sampler, parts: Iterator[np.ndarray], enough: int) -> tuple[np.ndarray, Draws]:
    """Anchors, and draws of whole rounds, as many as give enough; of the first round no more than needed."""
    anchors = np.empty(0, dtype=np.int64)
    swept: list[tuple[Draws, np.ndarray]] = []
    with Progress("drawing pairs", enough - 1, "pairs") as progress:
        for part in parts:
            missing = enough - sum(len(draws.place) for draws, _ in swept)
            if missing <= 0:
                break
            places = np.arange(len(anchors), len(anchors) + len(part))
            anchors = np.concatenate([anchors, part])
            swept.append(sweep(sampler, anchors, places, 1, missing, progress))
    draws = joined([draws for draws, _ in swept])
    full = np.concatenate([anchors[:0], *(places for _, places in swept)])
    rounds = 1
    while len(draws.place) < enough and len(full):
        # Who had as many partners as there were rounds may have more, and starts again with more rounds.
        starts_again = np.zeros(len(anchors), dtype=bool)
        starts_again[full] = True
        finished = Draws(*(part[~starts_again[draws.place]] for part in draws))
        likely = -(-(enough - len(finished.place)) // len(full))
        # Nobody has as many partners as there are documents.
        rounds = min(max(2 * rounds, likely), sampler.plan.program.n_documents)
        with Progress(f"drawing up to {rounds:,} pairs a document", None, "pairs") as progress:
            draws, full = sweep(sampler, anchors, full, rounds, None, progress)
        draws = joined([finished, draws])
    return anchors, draws


def joined(draws: list[Draws]) -> Draws:
    none = Draws(*(np.empty(0, dtype=np.int64) for _ in Draws._fields))
    return Draws(*map(np.concatenate, zip(none, *draws)))


def sweep(
    sampler: Sampler,
    anchors: np.ndarray,
    places: np.ndarray,
    rounds: int,
    enough: int | None,
    progress: Progress,
) -> tuple[Draws, np.ndarray]:
    """Draws for the anchors at some places in turn, and the places whose anchors filled every round."""
    parts: list[Draws] = []
    full = [places[:0]]
    done = drawn = 0
    while done < len(places) and (enough is None or drawn < enough):
        likely = ANCHORS_A_CALL if enough is None else max(enough - drawn, FEWEST_ANCHORS_A_CALL)
        some = places[done : done + min(likely, ANCHORS_A_CALL, max(1, POSITIVES_A_CALL // rounds))]
        positives, counts = sampler.draw(anchors[some], rounds)
        index, round = np.nonzero(np.arange(rounds) < counts[:, None])
        parts.append(Draws(some[index], round, positives[index, round].astype(np.int64)))
        full.append(some[counts == rounds])
        done, drawn = done + len(some), drawn + len(index)
        progress.advance(len(index))
    return joined(parts), np.concatenate(full)


def why_none(network: Network, path: MetaPath) -> str:
    """Which field leaves a path without pairs, and what to do."""
    return why_joined_by_none(network.schema, path, lambda letter: network.relations[letter].forward.nnz == 0)


def why_joined_by_none(schema: Schema, path: MetaPath, is_empty: Callable[[str], bool]) -> str:
    fields = {**schema.nodes, **schema.links}
    for letter in sorted(path.letters(schema)):
        if is_empty(letter):
            return (
                f"no document has {fields[letter]!r}; check the field's name, or take a path without {letter}"
            )
    return (
        "the fields it follows are there, but lead nowhere; `micol inspect` shows which paths join documents"
    )
