"""The path instances of an anchor, numbered in the order of names: how many there are, and which is where.

The number of an instance leads to it by prefix sums: how many lie behind each node that the anchor leads to,
behind each that those lead to, and so on.
"""

from __future__ import annotations

import numpy as np

from micol.compiled import bare
from micol.kernels.count import look_ahead
from micol.kernels.names import (
    BRANCH,
    BRANCH_NAMES,
    FRONT,
    FRONT_MEET,
    KIND,
    LAST,
    LONG,
    NAMES,
    ONE,
    RUNG,
    SPARED,
    STARTS,
    TARGETS,
    WEIGHTS,
    Canon,
    documents_at,
    sort_by_name,
)
from micol.kernels.program import (
    CHOSEN,
    HOP,
    MARK,
    MARKS,
    NODES,
    NONE,
    OWNER,
    PATH,
    READY,
    SIZE,
    SUMS,
    TOTAL,
    ZERO,
    Program,
    Scratch,
    neighbour,
    place_of,
    row,
    tick,
)
from micol.kernels.random import int64
from micol.kernels.walk import advance
from micol.network import Graph
from micol.rule import Limits


@bare
def first_above(sums: np.ndarray, size: int, value: float) -> int:
    """The first of ascending sums that is greater than a value."""
    begin, end = ZERO, size
    while begin < end:
        middle = (begin + end) >> 1
        if sums[middle] <= value:
            begin = middle + 1
        else:
            end = middle
    return begin


@bare
def multiplicity(graph: Graph, scratch: Scratch, slot: int, matrix: int, document: int) -> int:
    """From how many nodes of a slot a hop leads to a document."""
    state, nodes = scratch.state[slot], scratch.lists[NODES + 2 * slot]
    begin, end = row(graph, matrix ^ 1, document)
    count = ZERO
    if end - begin <= 16 * state[SIZE]:
        for at in range(begin, end):
            if scratch.stamps[MARKS + slot, graph.indices[at]] == state[MARK]:
                count += 1
        return count
    for index in range(state[SIZE]):
        begin, end = row(graph, matrix, nodes[index])
        at = place_of(graph, begin, end, document)
        if at < end and graph.indices[at] == document:
            count += 1
    return count


@bare
def length(graph: Graph, program: Program, matrix: int, node: int) -> int:
    begin, end = documents_at(graph, program.n_documents, matrix, node)
    return end - begin


@bare
def branch_total(
    graph: Graph, program: Program, scratch: Scratch, canon: Canon, chain: int, node: int
) -> int:
    """How many instances of the meta-graph that a chain ends with begin at a node."""
    spared, last = canon.chains[chain, SPARED], canon.chains[chain, LAST]
    begin, end = row(graph, program.branches[canon.chains[chain, BRANCH], 0], node)
    total, largest, size = ZERO, ZERO, ZERO
    for at in range(begin, end):
        count = length(graph, program, last, neighbour(graph, at))
        total += count
        largest = max(largest, count)
        if spared > 1:
            scratch.lists[CHOSEN, size] = count
            size += 1
    if spared == 1:
        return total - largest
    for _ in range(min(spared, size)):
        most = ZERO
        for index in range(1, size):
            if scratch.lists[CHOSEN, index] > scratch.lists[CHOSEN, most]:
                most = index
        total -= scratch.lists[CHOSEN, most]
        scratch.lists[CHOSEN, most] = 0
    return total


@bare
def count_instances(
    graph: Graph, program: Program, scratch: Scratch, canon: Canon, chain: int, anchor: int
) -> None:
    """Brings the number of a chain's path instances from an anchor up to date."""
    state, kind = scratch.state[chain], canon.chains[chain, KIND]
    if kind == LONG:
        first = canon.rungs[canon.chains[chain, RUNG]]
        begin = canon.ladder[first[STARTS] + anchor]
        end = canon.ladder[first[STARTS] + anchor + 1]
        state[TOTAL] = canon.ladder[first[WEIGHTS] + end - 1] if begin < end else ZERO
        return
    if kind == ONE:
        state[TOTAL] = length(graph, program, canon.chains[chain, LAST], anchor)
        return
    if not advance(graph, program, scratch, chain, anchor):
        return
    nodes, total = scratch.lists[NODES + 2 * chain], ZERO
    for index in range(state[SIZE]):
        if kind == FRONT:
            total += length(graph, program, canon.chains[chain, LAST], nodes[index])
        else:
            total += branch_total(graph, program, scratch, canon, chain, nodes[index])
    state[TOTAL] = total


@bare
def prepare(
    graph: Graph, program: Program, scratch: Scratch, canon: Canon, limits: Limits, chain: int, anchor: int
) -> None:
    """Makes ready for trials: nodes in the order of names, with sums, marked; walks counted half-way."""
    state, kind = scratch.state[chain], canon.chains[chain, KIND]
    if kind == LONG:
        look_ahead(graph, program, scratch, chain, anchor, limits.frontier)
        return
    second = scratch.state[len(program.chains) - 1 + chain]
    if kind == ONE or state[READY] != NONE:
        return
    nodes, sums = scratch.lists[NODES + 2 * chain], scratch.lists[SUMS + 2 * chain]
    state[READY], state[MARK], second[OWNER] = 1, tick(scratch), NONE
    sort_by_name(canon, canon.chains[chain, NAMES], nodes, state[SIZE])
    total = ZERO
    for index in range(state[SIZE]):
        node = nodes[index]
        scratch.stamps[MARKS + chain, node] = state[MARK]
        if kind == FRONT:
            total += length(graph, program, canon.chains[chain, LAST], node)
        else:
            total += branch_total(graph, program, scratch, canon, chain, node)
        sums[index] = total


@bare
def enter(graph: Graph, program: Program, scratch: Scratch, canon: Canon, chain: int, node: int) -> int:
    """Fills a chain's second slot with the nodes by which a meta-graph is entered; returns that slot."""
    slot = len(program.chains) - 1 + chain
    state, nodes, sums = scratch.state[slot], scratch.lists[NODES + 2 * slot], scratch.lists[SUMS + 2 * slot]
    if state[OWNER] == node:
        return slot
    last, size = canon.chains[chain, LAST], ZERO
    begin, end = row(graph, program.branches[canon.chains[chain, BRANCH], 0], node)
    for at in range(begin, end):
        if length(graph, program, last, neighbour(graph, at)) > 0:
            nodes[size] = neighbour(graph, at)
            size += 1
    sort_by_name(canon, canon.chains[chain, BRANCH_NAMES], nodes, size)
    for _ in range(min(canon.chains[chain, SPARED], size)):
        largest = ZERO
        for index in range(1, size):
            if length(graph, program, last, nodes[index]) > length(graph, program, last, nodes[largest]):
                largest = index
        size -= 1
        for index in range(largest, size):
            nodes[index] = nodes[index + 1]
    state[OWNER], state[SIZE], state[MARK] = node, size, tick(scratch)
    total = ZERO
    for index in range(size):
        total += length(graph, program, last, nodes[index])
        sums[index] = total
        scratch.stamps[MARKS + slot, nodes[index]] = state[MARK]
    return slot


@bare
def at_place(
    graph: Graph, program: Program, scratch: Scratch, canon: Canon, slot: int, matrix: int, place: int
) -> int:
    """The document with this number behind the nodes of a slot."""
    sums = scratch.lists[SUMS + 2 * slot]
    bundle = first_above(sums, scratch.state[slot, SIZE], place)
    before = sums[bundle - 1] if bundle > 0 else ZERO
    begin, _ = row(graph, matrix, scratch.lists[NODES + 2 * slot][bundle])
    return int64(canon.ordered[begin + place - before])


@bare
def instance(
    graph: Graph, program: Program, scratch: Scratch, canon: Canon, chain: int, anchor: int, place: int
) -> int:
    """The document at the end of the path instance with this number; PATH is how it got there."""
    kind, last = canon.chains[chain, KIND], canon.chains[chain, LAST]
    if kind == ONE:
        begin, _ = row(graph, last, anchor)
        return int64(canon.ordered[begin + place])
    if kind == FRONT:
        return at_place(graph, program, scratch, canon, chain, last, place)
    path = scratch.lists[PATH]
    if kind == FRONT_MEET:
        sums = scratch.lists[SUMS + 2 * chain]
        bundle = first_above(sums, scratch.state[chain, SIZE], place)
        path[0] = scratch.lists[NODES + 2 * chain][bundle]
        slot = enter(graph, program, scratch, canon, chain, path[0])
        before = sums[bundle - 1] if bundle > 0 else ZERO
        return at_place(graph, program, scratch, canon, slot, last, place - before)
    path[0], depth, level = anchor, ZERO, canon.chains[chain, RUNG]
    while level < canon.chains[chain, RUNG] + n_rungs(program, chain):
        here = canon.rungs[level]
        begin = canon.ladder[here[STARTS] + path[depth]]
        end = canon.ladder[here[STARTS] + path[depth] + 1]
        sums = canon.ladder[here[WEIGHTS] + begin : here[WEIGHTS] + end]
        at = first_above(sums, end - begin, place)
        place -= sums[at - 1] if at > 0 else ZERO
        path[depth + 1] = canon.ladder[here[TARGETS] + begin + at]
        depth, level = depth + 1, level + 1
    begin, _ = row(graph, last, path[depth])
    path[depth + 1] = canon.ordered[begin + place]
    return path[depth + 1]


@bare
def n_rungs(program: Program, chain: int) -> int:
    """The hops of a chain but the last; through a meta-graph there are two."""
    count = ZERO
    for step in range(program.chains[chain], program.chains[chain + 1]):
        count += 1 if program.steps[step, 0] == HOP else 2
    return count - 1
