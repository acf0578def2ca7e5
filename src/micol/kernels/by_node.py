"""Draws through shared nodes: a node first and then a document, or documents by the rarity of their nodes."""

from __future__ import annotations

import numpy as np

from micol.compiled import bare, inner, kernel
from micol.kernels.instances import first_above
from micol.kernels.program import (
    DRAWN,
    FOUND,
    HIT,
    HOP,
    MET_NODE,
    MET_SIZE,
    MET_STAMP,
    MET_STEP,
    NODES,
    NONE,
    SEEN,
    SIZE,
    SPARE,
    ZERO,
    Program,
    Scratch,
    length,
    neighbour,
    place_of,
    row,
    tick,
)
from micol.kernels.random import below, int64, start, unit
from micol.kernels.walk import advance, meet
from micol.network import Graph
from micol.rule import Limits

# Columns of the list of shared nodes: the node, the hop that leaves it, and, where that hop belongs to a
# meta-graph, the step and the document at its other end.
NODE, OUT, STEP, FROM = map(int64, range(4))


@inner
def shared_nodes(graph: Graph, program: Program, scratch: Scratch, anchor: int) -> np.ndarray:
    """All nodes from which a last hop leads on; of a meta-graph those of its first branch."""
    listed, size = np.empty((16, 4), dtype=np.int64), ZERO
    for chain in range(len(program.chains) - 1):
        advance(graph, program, scratch, chain, anchor)
        last = program.chains[chain + 1] - 1
        kind, first = program.steps[last, 0], program.steps[last, 1]
        for frontier in scratch.lists[NODES + 2 * chain][: scratch.state[chain, SIZE]]:
            if kind == HOP:
                listed, size = append(graph, listed, size, frontier, first, last, NONE)
                continue
            begin, end = row(graph, program.branches[first, 0], frontier)
            for at in range(begin, end):
                out = program.branches[first, 1]
                listed, size = append(graph, listed, size, neighbour(graph, at), out, last, frontier)
    scratch.clock[MET_NODE] = NONE
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
def met(graph: Graph, program: Program, scratch: Scratch, step: int, node: int) -> int:
    """How many a meta-graph joins with a node; they are in the list SPARE and the set SEEN."""
    clock = scratch.clock
    if clock[MET_NODE] != node or clock[MET_STEP] != step:
        clock[MET_NODE], clock[MET_STEP], clock[MET_STAMP] = node, step, tick(scratch)
        clock[MET_SIZE] = meet(graph, program, scratch, step, node, SEEN, clock[MET_STAMP], SPARE, ZERO)
    return clock[MET_SIZE]


@bare
def is_new(program: Program, scratch: Scratch, document: int, mine: int) -> bool:
    """Whether a node is a document that was not drawn yet."""
    return document < program.n_documents and scratch.stamps[DRAWN, document] != mine


@bare
def is_joined(graph: Graph, matrix: int, node: int, other: int) -> bool:
    begin, end = row(graph, matrix, node)
    at = place_of(graph, begin, end, other)
    return at < end and graph.indices[at] == other


@bare
def list_at_node(graph: Graph, program: Program, scratch: Scratch, shared: np.ndarray, mine: int) -> int:
    """Lists in FOUND the new partners at one node; returns how many."""
    begin, end = row(graph, shared[OUT], shared[NODE])
    size = ZERO
    met_size = ZERO
    if shared[FROM] != NONE:
        met_size = met(graph, program, scratch, shared[STEP], shared[FROM])
        if 8 * met_size < end - begin:
            for index in range(met_size):
                document = scratch.lists[SPARE, index]
                if is_new(program, scratch, document, mine) and is_joined(
                    graph, shared[OUT] ^ 1, document, shared[NODE]
                ):
                    scratch.lists[FOUND, size] = document
                    size += 1
            return size
    for at in range(begin, end):
        document = neighbour(graph, at)
        if shared[FROM] != NONE and scratch.stamps[SEEN, document] != scratch.clock[MET_STAMP]:
            continue
        if is_new(program, scratch, document, mine):
            scratch.lists[FOUND, size] = document
            size += 1
    return size


@bare
def draw_at_node(
    graph: Graph, program: Program, scratch: Scratch, limits: Limits, random: np.ndarray, shared: np.ndarray,
    mine: int,
) -> int:  # fmt: skip
    """A new partner at one node, uniform over all of them; NONE where the node has no more."""
    if shared[FROM] == NONE:
        begin, end = row(graph, shared[OUT], shared[NODE])
        for _ in range(min(limits.misses, end - begin)):
            document = neighbour(graph, begin + below(random, end - begin))
            if is_new(program, scratch, document, mine):
                return document
    size = list_at_node(graph, program, scratch, shared, mine)
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
        listed = shared_nodes(graph, program, scratch, anchor)
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
    only_hops = True
    for chain in range(len(program.chains) - 1):
        only_hops &= program.steps[program.chains[chain + 1] - 1, 0] == HOP
    for index in range(len(anchors)):
        anchor = anchors[index]
        start(random, seed, anchor)
        listed = shared_nodes(graph, program, scratch, anchor)
        mine, count, misses = tick(scratch), ZERO, ZERO
        scratch.stamps[DRAWN, anchor] = mine
        # A node, then a document at it: the weights of a node's documents add up to the same for every node.
        while only_hops and len(listed) > 0 and count < quota and misses < limits.misses:
            pick = below(random, len(listed))
            begin, end = row(graph, listed[pick, OUT], listed[pick, NODE])
            document = neighbour(graph, begin + below(random, end - begin))
            misses += 1
            if is_new(program, scratch, document, mine):
                scratch.stamps[DRAWN, document] = mine
                positives[index, count] = document
                count, misses = count + 1, ZERO
        if len(listed) > 0 and count < quota:
            size = weigh(graph, program, scratch, mine, weights)
            count = draw_weighted(scratch, limits, random, weights, size, mine, positives[index], count)
        counts[index] = count


@bare
def weigh(graph: Graph, program: Program, scratch: Scratch, mine: int, weights: np.ndarray) -> int:
    """Lists in FOUND the partners not drawn yet and sums up their weights."""
    stamp, size = tick(scratch), ZERO
    for chain in range(len(program.chains) - 1):
        last = program.chains[chain + 1] - 1
        for index in range(scratch.state[chain, SIZE]):
            node = scratch.lists[NODES + 2 * chain, index]
            if program.steps[last, 0] == HOP:
                begin, end = row(graph, program.steps[last, 1], node)
                for at in range(begin, end):
                    document, weight = neighbour(graph, at), 1.0 / (end - begin)
                    size = add_weight(program, scratch, weights, document, weight, stamp, size, mine)
                continue
            for place in range(met(graph, program, scratch, last, node)):
                document = scratch.lists[SPARE, place]
                weight = shared_weight(graph, program, last, node, document)
                size = add_weight(program, scratch, weights, document, weight, stamp, size, mine)
    return size


@bare
def add_weight(
    program: Program, scratch: Scratch, weights: np.ndarray, document: int, weight: float, stamp: int,
    size: int, mine: int,
) -> int:  # fmt: skip
    if not is_new(program, scratch, document, mine):
        return size
    if scratch.stamps[HIT, document] != stamp:
        scratch.stamps[HIT, document] = stamp
        scratch.lists[FOUND, size] = document
        weights[document] = 0.0
        size += 1
    weights[document] += weight
    return size


@bare
def shared_weight(graph: Graph, program: Program, step: int, node: int, document: int) -> float:
    """The sum of 1 / degree over all nodes that two documents share in a meta-graph."""
    weight = 0.0
    for branch in range(program.steps[step, 1], program.steps[step, 2]):
        into, out = program.branches[branch, 0], program.branches[branch, 1]
        begin, end = row(graph, into, node)
        for at in range(begin, end):
            shared = neighbour(graph, at)
            if is_joined(graph, out ^ 1, document, shared):
                weight += 1.0 / length(graph, out, shared)
    return weight


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
