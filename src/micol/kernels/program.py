"""What every kernel works on: a meta-path in numbers, memory, and the rows of the network's matrices.

Kernels take few, wide arrays and 64-bit integers only: every further argument or type costs the first user
seconds of compilation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from micol.compiled import bare
from micol.kernels.random import int64
from micol.network import Graph

NONE, ZERO, UNLIMITED = int64(-1), int64(0), int64(2**62)
# What a candidate for a meta-graph and an anchor cost beside one visit to a neighbour, as measured.
CHECK_COST, ANCHOR_COST = int64(16), int64(64)
# Kinds of steps: along one relation, or a meta-graph between two documents.
HOP, MEET = map(int64, range(2))


class Program(NamedTuple):
    """A bound meta-path in numbers; chain c has the steps chains[c] : chains[c + 1]."""

    chains: np.ndarray
    # Kind; matrix of a hop, or first and last branch of a meta-graph; the meta-graph from end to beginning,
    # a step after those of all chains.
    steps: np.ndarray
    branches: np.ndarray  # matrix into the shared nodes, matrix out of them, least number of shared nodes
    n_documents: int
    hub_degree: int  # nodes between with more neighbours are passed over; NONE: no node is


class Scratch(NamedTuple):
    """Memory of the kernels. A slot holds the walk of one chain."""

    state: np.ndarray  # a row for each slot
    lists: np.ndarray  # TALLY to THERE_WALKS, then two for each slot: its nodes, and numbers for them
    stamps: np.ndarray  # sets: SEEN, HIT, DRAWN, then the nodes of each slot, then those that a step leads to
    clock: np.ndarray  # single numbers


# Columns of Scratch.state.
ANCHOR, SIZE, TOTAL, MARK, LEVEL, OWNER, READY = map(int64, range(7))
TALLY, SPARE, CHOSEN, FOUND, PATH, MET, HERE, HERE_WALKS, THERE, THERE_WALKS = map(int64, range(10))
NODES, SUMS = map(int64, range(10, 12))
# A node is in a set where the array holds the set's stamp.
SEEN, HIT, DRAWN, MARKS = map(int64, range(4))
# Scratch.clock: stamps and tallies given; whether FOUND is up to date, its size and stamp; visits made.
# Whose partners by a meta-graph were listed last, by which step, how many, under which stamp.
STAMP, TALLIES, LISTED, LISTED_SIZE, LISTED_STAMP, WORK = map(int64, range(6))
MET_NODE, MET_STEP, MET_SIZE, MET_STAMP = map(int64, range(6, 10))
LAST_STAMP = 1 << 30  # stamps have 32 bits, and one call of a kernel takes fewer than half of them


@bare
def row(graph: Graph, matrix: int, node: int) -> tuple[int, int]:
    """Where the neighbours of a node begin and end; a node outside the matrix has none."""
    if node >= graph.rows[matrix]:
        return ZERO, ZERO
    if graph.single[matrix] != NONE:
        return graph.single[matrix] + node, graph.single[matrix] + node + 1
    at = graph.first[matrix] + node
    return graph.indptr[at], graph.indptr[at + 1]


@bare
def length(graph: Graph, matrix: int, node: int) -> int:
    begin, end = row(graph, matrix, node)
    return end - begin


@bare
def neighbour(graph: Graph, at: int) -> int:
    return int64(graph.indices[at])


@bare
def tick(scratch: Scratch) -> int:
    """A stamp never used before."""
    scratch.clock[STAMP] += 1
    return scratch.clock[STAMP]


@bare
def is_hub(graph: Graph, program: Program, node: int, into: int, out: int) -> bool:
    """Whether a node between has too many neighbours along one of the hops beside it."""
    if program.hub_degree == NONE:
        return False
    if into != NONE and length(graph, into ^ 1, node) > program.hub_degree:
        return True
    return out != NONE and length(graph, out, node) > program.hub_degree


@bare
def place_of(graph: Graph, begin: int, end: int, node: int) -> int:
    """The first place in an ascending row that is not below a node."""
    while begin < end:
        middle = (begin + end) >> 1
        if graph.indices[middle] < node:
            begin = middle + 1
        else:
            end = middle
    return begin
