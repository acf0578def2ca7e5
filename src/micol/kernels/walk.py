"""Walks over the network: from one document to all it reaches along a meta-path.

A chain is walked as a set of nodes, hop by hop, up to its last step. What remains are *bundles*: nodes, each
of which leads by the last hop to a row of documents, or by a meta-graph to documents that meet a condition.
"""

from __future__ import annotations

import numpy as np

from micol.compiled import bare, kernel
from micol.kernels.program import (
    ANCHOR,
    ANCHOR_COST,
    CHECK_COST,
    CHOSEN,
    FOUND,
    HIT,
    HOP,
    LISTED,
    LISTED_SIZE,
    LISTED_STAMP,
    NODES,
    NONE,
    READY,
    SEEN,
    SIZE,
    SPARE,
    TALLIES,
    TALLY,
    UNLIMITED,
    WORK,
    ZERO,
    Program,
    Scratch,
    is_hub,
    length,
    neighbour,
    place_of,
    row,
    tick,
)
from micol.network import Graph


@bare
def share(graph: Graph, program: Program, branch: int, node: int, document: int) -> bool:
    """Whether two documents share as many nodes as a branch of a meta-graph asks for."""
    branches = program.branches
    into, out, need = branches[branch, 0], branches[branch, 1], branches[branch, 2]
    short, short_end = row(graph, into, node)
    long, long_end = row(graph, out ^ 1, document)
    if short_end - short > long_end - long:
        short, short_end, long, long_end = long, long_end, short, short_end
    leap = long_end - long > 8 * (short_end - short)
    count = 0
    # As long as enough are left.
    while count + short_end - short >= need and long < long_end:
        wanted = neighbour(graph, short)
        if leap:
            long = place_of(graph, long, long_end, wanted)
        while long < long_end and graph.indices[long] < wanted:
            long += 1
        if (
            long < long_end
            and graph.indices[long] == wanted
            and not is_hub(graph, program, wanted, into, out)
        ):
            count += 1
            if count >= need:
                return True
        short += 1
    return False


@bare
def holds(graph: Graph, program: Program, step: int, node: int, document: int, known: int) -> bool:
    """Whether every branch of a meta-graph holds between two documents; of one it is known already."""
    for branch in range(program.steps[step, 1], program.steps[step, 2]):
        if branch != known and not share(graph, program, branch, node, document):
            return False
    return True


@bare
def fill(
    graph: Graph, program: Program, branch: int, node: int, chosen: np.ndarray, needed_only: bool
) -> tuple[int, int]:
    """The shared nodes of a branch that partners are looked for at, and the sum of their lengths.

    Who shares m of k nodes is at one of any k - m + 1 of them: the m - 1 longest rows are not needed.
    """
    branches = program.branches
    into, out, need = branches[branch, 0], branches[branch, 1], branches[branch, 2]
    begin, end = row(graph, into, node)
    size, total = ZERO, ZERO
    for at in range(begin, end):
        shared = neighbour(graph, at)
        if not is_hub(graph, program, shared, into, out):
            chosen[size] = shared
            total += length(graph, out, shared)
            size += 1
    if size < need:
        return ZERO, NONE
    for _ in range(need - 1 if needed_only else ZERO):
        longest = ZERO
        for index in range(1, size):
            if length(graph, out, chosen[index]) > length(graph, out, chosen[longest]):
                longest = index
        total -= length(graph, out, chosen[longest])
        size -= 1
        chosen[longest] = chosen[size]
    return size, total


@bare
def choose(graph: Graph, program: Program, step: int, node: int, chosen: np.ndarray) -> tuple[int, int, int]:
    """The branch by which partners of a node are found with least work, its bundles, and their lengths."""
    best, least = NONE, UNLIMITED
    for branch in range(program.steps[step, 1], program.steps[step, 2]):
        _, total = fill(graph, program, branch, node, chosen, True)
        if total == NONE:
            return branch, ZERO, ZERO
        if total < least:
            best, least = branch, total
    size, total = fill(graph, program, best, node, chosen, True)
    return best, size, total


@bare
def meet(
    graph: Graph, program: Program, scratch: Scratch, step: int, node: int, known: int, stamp: int,
    target: int, size: int,
) -> int:  # fmt: skip
    """Appends to a list the nodes that a meta-graph joins with a node, unless they are in a set already."""
    chosen, tally = scratch.lists[CHOSEN], scratch.lists[TALLY]
    branch, bundles, total = choose(graph, program, step, node, chosen)
    if bundles == 0:
        return size
    branches = program.branches
    into, out, need = branches[branch, 0], branches[branch, 1], branches[branch, 2]
    # To count how often a document turns up takes all rows; to look at each one's own nodes, most rows only.
    everything = fill(graph, program, branch, node, chosen, False)
    counting = need == 1 or everything[1] < total * (8 + length(graph, into, node))
    if counting:
        bundles, total = everything
    else:
        bundles, total = fill(graph, program, branch, node, chosen, True)
        need = ZERO + 1
    scratch.clock[WORK] += CHECK_COST * total
    # Counts, at most MOST_LETTERS, stand upon a base that no earlier one has reached: they need no clearing.
    scratch.clock[TALLIES] += 1
    base = scratch.clock[TALLIES] << 16
    for index in range(bundles):
        begin, end = row(graph, out, chosen[index])
        for at in range(begin, end):
            other = neighbour(graph, at)
            # Whether a document was met before is remembered only where to look at it again costs more.
            if need > 1 or not counting:
                count = max(tally[other], base) + 1
                if count > base + need:
                    continue
                tally[other] = count
                if count < base + need:
                    continue
            if not holds(graph, program, step, node, other, branch if counting else NONE):
                continue
            if scratch.stamps[known, other] != stamp:
                scratch.stamps[known, other] = stamp
                scratch.lists[target, size] = other
                size += 1
    return size


@bare
def hop(
    graph: Graph, program: Program, scratch: Scratch, nodes: np.ndarray, size: int, matrix: int, out: int
) -> int:
    """Lists in SPARE, each once, the nodes that a hop leads to."""
    stamp, count = tick(scratch), ZERO
    for index in range(size):
        begin, end = row(graph, matrix, nodes[index])
        scratch.clock[WORK] += end - begin
        for at in range(begin, end):
            node = neighbour(graph, at)
            if scratch.stamps[SEEN, node] != stamp:
                scratch.stamps[SEEN, node] = stamp
                if not is_hub(graph, program, node, matrix, out):
                    scratch.lists[SPARE, count] = node
                    count += 1
    return count


@bare
def same_row(graph: Graph, matrix: int, one: int, other: int) -> bool:
    begin, end = row(graph, matrix, one)
    other_begin, other_end = row(graph, matrix, other)
    if end - begin != other_end - other_begin:
        return False
    for offset in range(end - begin):
        if graph.indices[begin + offset] != graph.indices[other_begin + offset]:
            return False
    return True


@bare
def advance(graph: Graph, program: Program, scratch: Scratch, chain: int, anchor: int) -> bool:
    """Walks from the anchor up to the last step; False where the anchor before it led to the same nodes."""
    state, nodes, spare = scratch.state[chain], scratch.lists[NODES + 2 * chain], scratch.lists[SPARE]
    step, end = program.chains[chain], program.chains[chain + 1]
    begins_alike = (
        state[ANCHOR] != NONE
        and end - step > 1
        and program.steps[step, 0] == HOP
        and same_row(graph, program.steps[step, 1], state[ANCHOR], anchor)
    )
    if state[ANCHOR] == anchor or begins_alike:
        return False
    state[ANCHOR], state[READY] = anchor, NONE
    nodes[0] = anchor
    size = ZERO + 1
    while step < end - 1:
        out = program.steps[step + 1, 1] if program.steps[step + 1, 0] == HOP else NONE
        if program.steps[step, 0] == HOP:
            count = hop(graph, program, scratch, nodes, size, program.steps[step, 1], out)
        else:
            stamp, count = tick(scratch), ZERO
            for index in range(size):
                count = meet(graph, program, scratch, step, nodes[index], SEEN, stamp, SPARE, count)
        size = 0
        for index in range(count):
            if program.steps[step, 0] == HOP or not is_hub(graph, program, spare[index], NONE, out):
                nodes[size] = spare[index]
                size += 1
        step += 1
    state[SIZE] = size
    scratch.clock[LISTED] = 0
    return True


@bare
def list_bundles(graph: Graph, scratch: Scratch, chain: int, matrix: int, stamp: int, size: int) -> int:
    """Appends to FOUND the documents of a chain's bundles that are not there yet."""
    nodes = scratch.lists[NODES + 2 * chain]
    for index in range(scratch.state[chain, SIZE]):
        begin, end = row(graph, matrix, nodes[index])
        scratch.clock[WORK] += end - begin
        for at in range(begin, end):
            document = neighbour(graph, at)
            if scratch.stamps[HIT, document] != stamp:
                scratch.stamps[HIT, document] = stamp
                scratch.lists[FOUND, size] = document
                size += 1
    return size


@bare
def expand(graph: Graph, program: Program, scratch: Scratch, anchor: int) -> int:
    """Lists in FOUND, each once, all that any chain leads to, the anchor among them; returns how many."""
    n_chains = len(program.chains) - 1
    for chain in range(n_chains):
        advance(graph, program, scratch, chain, anchor)
    if scratch.clock[LISTED] == 1:
        return scratch.clock[LISTED_SIZE]
    stamp, size = tick(scratch), ZERO
    for chain in range(n_chains):
        last = program.chains[chain + 1] - 1
        if program.steps[last, 0] == HOP:
            size = list_bundles(graph, scratch, chain, program.steps[last, 1], stamp, size)
            continue
        for index in range(scratch.state[chain, SIZE]):
            node = scratch.lists[NODES + 2 * chain][index]
            size = meet(graph, program, scratch, last, node, HIT, stamp, FOUND, size)
    # Link nodes outside the corpus are no documents.
    kept = ZERO
    for index in range(size):
        if scratch.lists[FOUND, index] < program.n_documents:
            scratch.lists[FOUND, kept] = scratch.lists[FOUND, index]
            kept += 1
    scratch.clock[LISTED], scratch.clock[LISTED_SIZE], scratch.clock[LISTED_STAMP] = 1, kept, stamp
    return kept


@kernel
def count_partners(
    graph: Graph, program: Program, scratch: Scratch, anchors: np.ndarray, counts: np.ndarray
) -> None:
    """How many documents each anchor reaches; those of the last one stay in FOUND."""
    for index in range(len(anchors)):
        anchor = anchors[index]
        scratch.clock[WORK] += ANCHOR_COST
        counts[index] = expand(graph, program, scratch, anchor)
        if scratch.stamps[HIT, anchor] == scratch.clock[LISTED_STAMP]:
            counts[index] -= 1
