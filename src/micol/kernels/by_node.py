"""Draws through shared nodes: a node first and then a document, or documents by the rarity of their nodes."""

from __future__ import annotations

import numpy as np

from micol.compiled import bare, inner, kernel
from micol.kernels.program import (
    DRAWN,
    FOUND,
    HIT,
    HOP,
    NODES,
    NONE,
    SIZE,
    UNLIMITED,
    ZERO,
    Program,
    Scratch,
    length,
    neighbour,
    row,
    tick,
)
from micol.kernels.random import below, int64, start, unit
from micol.kernels.uniform import Limits, first_above
from micol.kernels.walk import (
    advance,
    holds,
)
from micol.network import Graph

# Columns of the list of shared nodes: the node, the hop that leaves it, and, where that hop belongs to a
# meta-graph, the step and the document at its other end.
NODE, OUT, STEP, FROM = map(int64, range(4))


@inner
def shared_nodes(
    graph: Graph, program: Program, scratch: Scratch, anchor: int, every_branch: bool
) -> np.ndarray:
    """All nodes from which a last hop leads on; of a meta-graph those of its first branch, or of all."""
    listed, size = np.empty((16, 4), dtype=np.int64), ZERO
    for chain in range(len(program.chains) - 1):
        advance(graph, program, scratch, chain, chain, anchor, UNLIMITED)
        last = program.chains[chain + 1] - 1
        kind, first, stop = program.steps[last]
        if not every_branch:
            stop = first + 1
        for frontier in scratch.lists[NODES + 2 * chain][: scratch.state[chain, SIZE]]:
            if kind == HOP:
                listed, size = append(graph, listed, size, frontier, first, last, NONE)
                continue
            for branch in range(first, stop):
                begin, end = row(graph, program.branches[branch, 0], frontier)
                for at in range(begin, end):
                    out = program.branches[branch, 1]
                    listed, size = append(graph, listed, size, neighbour(graph, at), out, last, frontier)
    return listed[:size]


@inner
def append(
    graph: Graph, listed: np.ndarray, size: int, node: int, out: int, step: int, origin: int
) -> tuple[np.ndarray, int]:
    if length(graph, out, node) == 0:
        return listed, size
    if size == len(listed):
        listed = np.concatenate((listed, np.empty_like(listed)))
    listed[size, NODE], listed[size, OUT], listed[size, STEP], listed[size, FROM] = node, out, step, origin
    return listed, size + 1


@bare
def is_new(
    graph: Graph, program: Program, scratch: Scratch, shared: np.ndarray, document: int, mine: int
) -> bool:
    """Whether a document at a shared node is a partner that was not drawn yet."""
    if document >= program.n_documents or scratch.stamps[DRAWN, document] == mine:
        return False
    if shared[FROM] == NONE:
        return True
    return holds(graph, program, shared[STEP], shared[FROM], document, NONE)


@bare
def draw_at_node(
    graph: Graph, program: Program, scratch: Scratch, limits: Limits, random: np.ndarray, shared: np.ndarray,
    mine: int,
) -> int:  # fmt: skip
    """A new partner at one node, uniform over all of them; NONE where the node has no more."""
    begin, end = row(graph, shared[OUT], shared[NODE])
    for _ in range(min(limits.misses, end - begin)):
        document = neighbour(graph, begin + below(random, end - begin))
        if is_new(graph, program, scratch, shared, document, mine):
            return document
    size = ZERO
    for at in range(begin, end):
        if is_new(graph, program, scratch, shared, neighbour(graph, at), mine):
            scratch.lists[FOUND, size] = neighbour(graph, at)
            size += 1
    return scratch.lists[FOUND, below(random, size)] if size else NONE


@kernel
def draw_node_first(
    graph: Graph, program: Program, scratch: Scratch, limits: Limits, seed: np.uint64, anchors: np.ndarray,
    positives: np.ndarray, counts: np.ndarray,
) -> None:  # fmt: skip
    """A shared node, uniform over those with a partner left, then a partner, uniform over those at it."""
    random = np.empty(2, dtype=np.uint64)
    for index in range(len(anchors)):
        anchor = anchors[index]
        start(random, seed, anchor)
        listed = shared_nodes(graph, program, scratch, anchor, False)
        left, mine, count = len(listed), tick(scratch), ZERO
        scratch.stamps[DRAWN, anchor] = mine
        while left > 0 and count < positives.shape[1]:
            pick = below(random, left)
            document = draw_at_node(graph, program, scratch, limits, random, listed[pick], mine)
            if document == NONE:
                left -= 1
                for column in range(listed.shape[1]):
                    listed[pick, column] = listed[left, column]
                continue
            scratch.stamps[DRAWN, document] = mine
            positives[index, count] = document
            count += 1
        counts[index] = count


@kernel
def draw_by_rarity(
    graph: Graph, program: Program, scratch: Scratch, limits: Limits, seed: np.uint64, anchors: np.ndarray,
    positives: np.ndarray, counts: np.ndarray,
) -> None:  # fmt: skip
    """Partners with weights: the sum of 1 / degree over the nodes shared with them."""
    random = np.empty(2, dtype=np.uint64)
    weights = np.zeros(program.n_documents)
    quota = positives.shape[1]
    for index in range(len(anchors)):
        anchor = anchors[index]
        start(random, seed, anchor)
        listed = shared_nodes(graph, program, scratch, anchor, True)
        mine, count, misses = tick(scratch), ZERO, ZERO
        scratch.stamps[DRAWN, anchor] = mine
        # A node, then a document at it: the weights of a node's documents add up to the same for every node.
        while len(listed) > 0 and count < quota and misses < limits.misses:
            shared = listed[below(random, len(listed))]
            begin, end = row(graph, shared[OUT], shared[NODE])
            document = neighbour(graph, begin + below(random, end - begin))
            misses += 1
            if is_new(graph, program, scratch, shared, document, mine):
                scratch.stamps[DRAWN, document] = mine
                positives[index, count] = document
                count, misses = count + 1, 0
        if count < quota:
            size = weigh(graph, program, scratch, listed, mine, weights)
            count = draw_weighted(scratch, limits, random, weights, size, mine, positives[index], count)
        counts[index] = count


@bare
def weigh(
    graph: Graph, program: Program, scratch: Scratch, listed: np.ndarray, mine: int, weights: np.ndarray
) -> int:
    """Lists the partners not drawn yet and sums up their weights."""
    stamp, size = tick(scratch), ZERO
    for shared in listed:
        begin, end = row(graph, shared[OUT], shared[NODE])
        for at in range(begin, end):
            document = neighbour(graph, at)
            if not is_new(graph, program, scratch, shared, document, mine):
                continue
            if scratch.stamps[HIT, document] != stamp:
                scratch.stamps[HIT, document] = stamp
                scratch.lists[FOUND, size] = document
                weights[document] = 0.0
                size += 1
            weights[document] += 1.0 / (end - begin)
    return size


@inner
def draw_weighted(
    scratch: Scratch, limits: Limits, random: np.ndarray, weights: np.ndarray, size: int, mine: int,
    positives: np.ndarray, count: int,
) -> int:  # fmt: skip
    """Draws listed documents one after another by their weights, none twice."""
    sums = np.empty(size)
    while size > 0 and count < len(positives):
        total = 0.0
        for place in range(size):
            total += weights[scratch.lists[FOUND, place]]
            sums[place] = total
        misses = 0
        while count < len(positives) and misses < limits.misses:
            place = min(first_above(sums, size, unit(random) * total), size - 1)
            document = scratch.lists[FOUND, place]
            misses += 1
            if scratch.stamps[DRAWN, document] != mine:
                scratch.stamps[DRAWN, document] = mine
                positives[count] = document
                count, misses = count + 1, 0
        # Most of the weight is drawn: go on with the rest alone.
        kept = ZERO
        for place in range(size):
            if scratch.stamps[DRAWN, scratch.lists[FOUND, place]] != mine:
                scratch.lists[FOUND, kept] = scratch.lists[FOUND, place]
                kept += 1
        size = kept
    return count
