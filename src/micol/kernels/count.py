"""How many walks along a chain lead from an anchor to a document: ahead from one, and back from the other."""

from __future__ import annotations

from micol.compiled import bare
from micol.kernels.program import (
    ANCHOR,
    HERE,
    HERE_WALKS,
    HOP,
    LEVEL,
    MARK,
    MARKS,
    MET,
    NODES,
    SEEN,
    SIZE,
    SUMS,
    THERE,
    THERE_WALKS,
    ZERO,
    Program,
    Scratch,
    length,
    neighbour,
    row,
    tick,
)
from micol.kernels.random import int64
from micol.kernels.walk import meet
from micol.network import Graph

# Which way a step goes; the way back along matrix m is m ^ 1.
AHEAD, BACK = map(int64, range(2))


@bare
def add(scratch: Scratch, stamp: int, node: int, walks: int, size: int) -> int:
    """Adds walks to a node of THERE; returns how many nodes it has."""
    reached = MARKS + len(scratch.state)
    if scratch.stamps[reached, node] == stamp:
        scratch.lists[THERE_WALKS, node] += walks
        return size
    scratch.stamps[reached, node] = stamp
    scratch.lists[THERE, size], scratch.lists[THERE_WALKS, node] = node, walks
    return size + 1


@bare
def step_on(graph: Graph, program: Program, scratch: Scratch, step: int, back: int, size: int) -> int:
    """From the nodes in HERE, with so many walks to each, one step on, or back; then that is HERE."""
    stamp, count = tick(scratch), ZERO
    for index in range(size):
        node = scratch.lists[HERE, index]
        walks = scratch.lists[HERE_WALKS, node]
        if program.steps[step, 0] == HOP:
            begin, end = row(graph, program.steps[step, 1] ^ back, node)
            for at in range(begin, end):
                count = add(scratch, stamp, neighbour(graph, at), walks, count)
        else:
            met = program.steps[step, 3] if back == BACK else step
            joined = meet(graph, program, scratch, met, node, SEEN, tick(scratch), MET, ZERO)
            for place in range(joined):
                count = add(scratch, stamp, scratch.lists[MET, place], walks, count)
    for index in range(count):
        node = scratch.lists[THERE, index]
        scratch.lists[HERE, index], scratch.lists[HERE_WALKS, node] = node, scratch.lists[THERE_WALKS, node]
    return count


@bare
def look_ahead(graph: Graph, program: Program, scratch: Scratch, chain: int, anchor: int, limit: int) -> None:
    """Counts walks from an anchor, up to the last step or a hop with too many neighbours."""
    slot = len(program.chains) - 1 + chain
    state = scratch.state[slot]
    if state[ANCHOR] == anchor:
        return
    scratch.lists[HERE, 0], scratch.lists[HERE_WALKS, anchor] = anchor, 1
    step, size = program.chains[chain], ZERO + 1
    while step < program.chains[chain + 1] - 1:
        cost = ZERO
        if program.steps[step, 0] == HOP:
            for index in range(size):
                cost += length(graph, program.steps[step, 1], scratch.lists[HERE, index])
        if cost > limit:
            break
        size = step_on(graph, program, scratch, step, AHEAD, size)
        step += 1
    state[ANCHOR], state[LEVEL], state[SIZE], state[MARK] = anchor, step, size, tick(scratch)
    for index in range(size):
        node = scratch.lists[HERE, index]
        scratch.lists[NODES + 2 * slot, index] = node
        scratch.lists[SUMS + 2 * slot, node] = scratch.lists[HERE_WALKS, node]
        scratch.stamps[MARKS + slot, node] = state[MARK]


@bare
def walks_to(graph: Graph, program: Program, scratch: Scratch, chain: int, document: int) -> int:
    """How many walks lead to a document from the anchor that was last looked ahead from."""
    slot = len(program.chains) - 1 + chain
    state = scratch.state[slot]
    scratch.lists[HERE, 0], scratch.lists[HERE_WALKS, document] = document, 1
    step, size = program.chains[chain + 1] - 1, ZERO + 1
    while step >= state[LEVEL]:
        size = step_on(graph, program, scratch, step, BACK, size)
        step -= 1
    count = ZERO
    for index in range(size):
        node = scratch.lists[HERE, index]
        if scratch.stamps[MARKS + slot, node] == state[MARK]:
            count += scratch.lists[SUMS + 2 * slot, node] * scratch.lists[HERE_WALKS, node]
    return count
