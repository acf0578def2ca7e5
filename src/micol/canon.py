"""A network and a path made ready for uniform draws: what chance and the order of names decide.

Made once for a network, as far as a path needs it, and kept with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from micol.kernels.hashing import hasher, keys_of
from micol.kernels.names import FRONT, FRONT_MEET, LONG, ONE, Canon, lengths, order_rows, rung
from micol.kernels.program import HOP, NONE, UNLIMITED, Program
from micol.network import Network
from micol.rule import are_few

KEPT: WeakKeyDictionary[Network, Order] = WeakKeyDictionary()


class Hops(NamedTuple):
    """The hops of a chain, through meta-graphs by one branch each."""

    matrices: list[int]
    spared: list[int]  # of the nodes that each leads to, so many of the largest are left alone
    steps: list[int]  # the step of a meta-graph that begins with a hop, else NONE
    branches: list[int]


def canon(network: Network, program: Program) -> Canon:
    """What uniform draws along a path need."""
    order = order_of(network)
    path = tuple(part.tobytes() for part in (program.chains, program.steps, program.branches))
    if order.last is None or order.last[0] != path:
        order.last = path, order.canon(program)
    return order.last[1]


def order_of(network: Network) -> Order:
    if network not in KEPT:
        KEPT[network] = Order(network)
    return KEPT[network]


class Order:
    """The order of names in a network; each part is made when it is first needed."""

    def __init__(self, network: Network) -> None:
        self.graph, self.names, self.n_documents = network.graph, network.names, network.n_documents
        self.ids = network.ids
        self.letters = list(network.relations)
        self.nodes = set(network.schema.nodes)
        self.ordered = np.empty_like(self.graph.indices)
        self.are_ordered: set[int] = set()
        self.texts: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self.ranks: dict[str, np.ndarray] = {}
        self.last: tuple[tuple[bytes, ...], Canon] | None = None  # the path that was drawn along last

    @cached_property
    def id_array(self) -> pa.Array:
        return pa.array(self.ids, pa.string())

    @cached_property
    def keys(self) -> np.ndarray:
        return keys_of(*buffers(self.id_array), hasher())

    def leads_to(self, matrix: int) -> str:
        """What a hop leads to: the nodes of a letter, or of all link letters together."""
        letter = self.letters[matrix // 2]
        return letter if letter in self.nodes and matrix % 2 == 0 else ""

    def names_of(self, kind: str) -> pa.Array:
        if kind:
            return self.names[kind]
        outside = [names for letter, names in self.names.items() if letter not in self.nodes][:1]
        return pa.concat_arrays([self.id_array, *outside])

    def text_of(self, kind: str) -> tuple[np.ndarray, np.ndarray]:
        if kind not in self.texts:
            self.texts[kind] = buffers(self.names_of(kind))
        return self.texts[kind]

    def rank(self, kind: str) -> np.ndarray:
        """The nodes in the order of their names."""
        if kind not in self.ranks:
            self.ranks[kind] = np.asarray(pc.sort_indices(self.names_of(kind)), dtype=np.int64)
        return self.ranks[kind]

    def order(self, matrix: int) -> None:
        """Has documents ordered in the rows of a hop that paths end with."""
        if matrix not in self.are_ordered:
            rank = self.rank("")
            order_rows(self.graph, matrix, rank[rank < self.n_documents], self.ordered)
            self.are_ordered.add(matrix)

    def canon(self, program: Program) -> Canon:
        chains: list[tuple[int, ...]] = []
        texts: dict[str, int] = {}
        rungs: list[tuple[int, ...]] = []
        ladder: list[np.ndarray] = []
        for first, stop in zip(program.chains, program.chains[1:]):
            hops = self.hops(program, range(first, stop))
            self.order(hops.matrices[-1])
            kind = self.kind(program, range(first, stop))
            before = "" if stop - first == 1 else self.leads_to(self.end(program, stop - 2))
            branch, by, spared, rung_at = NONE, "", 0, len(rungs)
            if kind == FRONT_MEET:
                branch, by, spared = hops.branches[-2], self.leads_to(hops.matrices[-2]), hops.spared[-2]
            if kind == LONG:
                self.add_rungs(hops, rungs, ladder)
            needed = {ONE: [], FRONT: [before], FRONT_MEET: [before, by], LONG: []}[kind]
            for text in needed:
                if text not in texts:
                    texts[text] = sum(len(self.text_of(other)[0]) for other in texts)
            chains.append(
                (
                    kind,
                    texts.get(before, NONE),
                    hops.matrices[-1],
                    branch,
                    texts.get(by, NONE),
                    spared,
                    rung_at,
                )
            )
        offsets, names = joined([self.text_of(text) for text in texts])
        return Canon(
            self.keys,
            self.ordered,
            offsets,
            names,
            np.array(chains, dtype=np.int64),
            np.array(rungs, dtype=np.int64).reshape(-1, 5),
            np.concatenate([np.empty(0, np.int64), *ladder]),
        )

    def end(self, program: Program, step: int) -> int:
        """The hop that a step ends with."""
        kind, first, *_ = program.steps[step]
        return int(first if kind == HOP else program.branches[first, 1])

    def hops(self, program: Program, steps: Sequence[int]) -> Hops:
        found = Hops([], [], [], [])
        for step in steps:
            kind, first, last, _ = (int(number) for number in program.steps[step])
            if kind == HOP:
                taken = [(first, 0, NONE, NONE)]
            else:
                branch = self.proposer(program, range(first, last))
                into, out, least = (int(number) for number in program.branches[branch])
                taken = [(into, least - 1, step, branch), (out, 0, NONE, NONE)]
            for values in taken:
                for column, value in zip(found, values):
                    column.append(value)
        return found

    def proposer(self, program: Program, branches: range) -> int:
        """The branch of a meta-graph that has the fewest instances; documents are looked for along it."""
        if len(branches) == 1:
            return branches[0]
        return min(branches, key=lambda branch: self.instances(program, branch))

    def instances(self, program: Program, branch: int) -> int:
        """How many instances a branch of a meta-graph has."""
        into, out, _ = program.branches[branch]
        n_nodes = int(self.graph.rows[into ^ 1])
        arrivals = lengths(self.graph, into ^ 1, n_nodes, NONE)
        departures = lengths(self.graph, out, n_nodes, NONE)
        products = arrivals * departures
        return int((products >> 32).sum()) * 2**32 + int((products & (2**32 - 1)).sum())

    def kind(self, program: Program, steps: range) -> int:
        last_is_hop = program.steps[steps[-1], 0] == HOP
        if len(steps) == 1:
            return ONE if last_is_hop else FRONT_MEET
        before = self.hops(program, steps[:-1])
        if len(before.matrices) > 1:
            rungs: list[tuple[int, ...]] = []
            ladder: list[np.ndarray] = []
            walks = self.add_rungs(before, rungs, ladder, to_documents=False)
            are_countable = not len(walks) or walks.max() < UNLIMITED
            total = sum(map(int, walks)) if are_countable else UNLIMITED * len(walks)
            if not are_few(total, int(np.count_nonzero(walks))):
                return LONG
        return FRONT if last_is_hop else FRONT_MEET

    def add_rungs(
        self,
        hops: Hops,
        rungs: list[tuple[int, ...]],
        ladder: list[np.ndarray],
        *,
        to_documents: bool = True,
    ) -> np.ndarray:
        """Adds the rows of all hops but the last; returns how many walks begin at each document."""
        documents = self.n_documents if to_documents else NONE
        last = hops.matrices[-1]
        weights = lengths(self.graph, last, self.reach(hops.matrices[-2]), documents)
        made = []
        for place in range(len(hops.matrices) - 2, -1, -1):
            matrix, then = hops.matrices[place], hops.matrices[place + 1]
            is_last = place + 2 == len(hops.matrices)
            degrees = lengths(self.graph, then, self.reach(matrix), documents if is_last else NONE)
            order = self.rank(self.leads_to(matrix))
            rows = rung(self.graph, matrix, hops.spared[place], order[order < len(degrees)], degrees, weights)
            made.append((place, rows))
            starts, _, sums = rows
            ends = starts[1:]
            weights = np.where(starts[:-1] < ends, sums[ends - 1] if len(sums) else 0, 0)
            if place:
                weights = padded(weights, self.reach(hops.matrices[place - 1]))
        at = sum(map(len, ladder))
        for place, rows in reversed(made):
            begins = at + np.cumsum([0, *(len(part) for part in rows)])
            rungs.append((*map(int, begins[:-1]), hops.steps[place], hops.branches[place]))
            ladder += rows
            at = int(begins[-1])
        return padded(weights, self.n_documents)

    def reach(self, matrix: int) -> int:
        """How many nodes there are of the kind that a hop leads to."""
        return int(self.graph.rows[matrix ^ 1])


def padded(numbers: np.ndarray, size: int) -> np.ndarray:
    """As many numbers as there are nodes; those that a matrix does not know have 0."""
    return np.concatenate([numbers, np.zeros(max(0, size - len(numbers)), np.int64)])[:size]


def buffers(names: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Name i is data[offsets[i] : offsets[i + 1]]."""
    names = names.cast(pa.large_string())
    if names.offset:
        names = pa.concat_arrays([names])
    _, offsets, data = names.buffers()
    found = np.frombuffer(offsets, np.int64)[: len(names) + 1] if len(names) else np.zeros(1, np.int64)
    return found, np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)


def joined(texts: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Names of several kinds, one after another."""
    if len(texts) == 1:
        return texts[0]
    at, offsets, data = 0, [np.zeros(1, np.int64)][: not texts], [np.zeros(1, np.uint8)][: not texts]
    for begins, names in texts:
        offsets.append(begins + at)
        data.append(names)
        at += len(names)
    return np.concatenate(offsets), np.concatenate(data)
