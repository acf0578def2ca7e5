"""Compiled draws: positives for anchors, from the bundles that their walks end in.

Every draw is exact. `found` lists are drawn from by a partial shuffle; larger sets by proposing a document
and rejecting it with the probability that makes all documents of the set equally likely.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from micol._random import below, inner, int64, kernel, start, unit
from micol._walk import (
    BRANCH,
    DRAWN,
    EARLY,
    FOUND,
    HIT,
    HOP,
    LEVEL,
    MANY,
    MARK,
    MARKS,
    MATRIX,
    MODE,
    NONE,
    OWNER,
    SIZE,
    SPARE,
    TOTAL,
    UNLIMITED,
    ZERO,
    Program,
    Scratch,
    advance,
    expand,
    holds,
    length,
    neighbour,
    nodes_of,
    place_of,
    row,
    settle,
    sums_of,
    tick,
)
from micol.network import Graph


class Limits(NamedTuple):
    """When drawing gives up one way for another; they cost or save time and never change a probability."""

    expand: int  # sets of at most so many path instances are listed
    frontier: int  # a hop with more neighbours than this is not walked before its last nodes are needed
    misses: int  # so many proposals in a row may fail before the set is listed after all


@inner
def multiplicity(graph: Graph, program: Program, scratch: Scratch, chain: int, document: int) -> int:
    """In how many bundles of a chain a document lies; 0 where a meta-graph does not hold for it."""
    state, nodes = scratch.state[chain], nodes_of(scratch, chain)
    begin, end = row(graph, state[MATRIX] ^ 1, document)
    count = 0
    if end - begin <= 16 * state[SIZE]:
        for at in range(begin, end):
            if scratch.stamps[MARKS + chain, graph.indices[at]] == state[MARK]:
                count += 1
    else:
        for index in range(state[SIZE]):
            begin, end = row(graph, state[MATRIX], nodes[index])
            at = place_of(graph, begin, end, document)
            if at < end and graph.indices[at] == document:
                count += 1
    if count > 0 and state[OWNER] != NONE:
        last = program.chains[chain + 1] - 1
        if not holds(graph, program, last, state[OWNER], document, state[BRANCH]):
            return 0
    return count


@inner
def leads_back(graph: Graph, program: Program, scratch: Scratch, chain: int, document: int) -> bool:
    """Whether some walk back from a document meets the frontier of a chain; stops at the first that does."""
    state = scratch.state[chain]
    last = program.chains[chain + 1] - 1
    places = np.empty((last - state[LEVEL] + 1, 2), dtype=np.int64)
    visited = MARKS + len(scratch.state)
    stamp = tick(scratch)
    depth = ZERO
    places[0, 0], places[0, 1] = row(graph, program.steps[last, 1] ^ 1, document)
    while depth >= 0:
        if places[depth, 0] == places[depth, 1]:
            depth -= 1
            continue
        node = neighbour(graph, places[depth, 0])
        places[depth, 0] += 1
        if last - depth == state[LEVEL]:
            if scratch.stamps[MARKS + chain, node] == state[MARK]:
                return True
        elif scratch.stamps[visited + depth, node] != stamp:
            scratch.stamps[visited + depth, node] = stamp
            depth += 1
            places[depth, 0], places[depth, 1] = row(graph, program.steps[last - depth, 1] ^ 1, node)
    return False


@inner
def reaches(graph: Graph, program: Program, scratch: Scratch, document: int) -> bool:
    """Whether any chain leads to a document."""
    for chain in range(len(program.chains) - 1):
        if scratch.state[chain, MODE] == EARLY:
            if leads_back(graph, program, scratch, chain, document):
                return True
        elif multiplicity(graph, program, scratch, chain, document) > 0:
            return True
    return False


@inner
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


@inner
def instance(graph: Graph, program: Program, scratch: Scratch, place: int) -> int:
    """The document at the end of the path instance with this number, over all chains and bundles."""
    chain = ZERO
    while place >= scratch.state[chain, TOTAL]:
        place -= scratch.state[chain, TOTAL]
        chain += 1
    state = scratch.state[chain]
    sums = sums_of(scratch, chain)
    bundle = first_above(sums, state[SIZE], place)
    _, end = row(graph, state[MATRIX], nodes_of(scratch, chain)[bundle])
    return neighbour(graph, end - (sums[bundle] - place))


@inner
def propose(
    graph: Graph, program: Program, scratch: Scratch, random: np.ndarray, total: int, early: bool
) -> int:
    """One proposal, NONE where it is rejected; each reached document is equally likely to come out."""
    if early:
        document = below(random, program.n_documents)
        return document if reaches(graph, program, scratch, document) else NONE
    document = instance(graph, program, scratch, below(random, total))
    if document >= program.n_documents:
        return NONE
    times = ZERO
    for chain in range(len(program.chains) - 1):
        times += multiplicity(graph, program, scratch, chain, document)
    # A document at the end of `times` instances is proposed so many times as often.
    return document if times > 0 and below(random, times) == 0 else NONE


@kernel
def draw_uniform(
    graph: Graph, program: Program, scratch: Scratch, limits: Limits, seed: np.uint64, anchors: np.ndarray,
    positives: np.ndarray, counts: np.ndarray,
) -> None:  # fmt: skip
    """For each anchor up to positives.shape[1] distinct documents, uniform over all it reaches."""
    random = np.empty(2, dtype=np.uint64)
    quota = positives.shape[1]
    for index in range(len(anchors)):
        anchor = anchors[index]
        start(random, seed, anchor)
        total, early, many, cheap = ZERO, False, False, True
        for chain in range(len(program.chains) - 1):
            settle(graph, program, scratch, chain, chain, anchor, limits.frontier)
            total += scratch.state[chain, TOTAL]
            early |= scratch.state[chain, MODE] == EARLY
            many |= scratch.state[chain, MODE] == MANY
            cheap &= scratch.state[chain, OWNER] == NONE
        mine, count, misses = tick(scratch), ZERO, ZERO
        scratch.stamps[DRAWN, anchor] = mine
        if not many and (early or total > limits.expand):
            # Listing costs about as much as one proposal for every few dozen instances.
            allowed = max(limits.misses, total >> 6) if cheap else limits.misses
            while count < quota and misses < allowed:
                document = propose(graph, program, scratch, random, total, early)
                if document == NONE or scratch.stamps[DRAWN, document] == mine:
                    misses += 1
                    continue
                scratch.stamps[DRAWN, document] = mine
                positives[index, count] = document
                count += 1
        if count < quota:
            size = expand(graph, program, scratch, anchor)
            count = shuffle(scratch, random, size, mine, positives[index], count)
        counts[index] = count


@inner
def shuffle(
    scratch: Scratch, random: np.ndarray, size: int, mine: int, positives: np.ndarray, count: int
) -> int:
    """Draws the rest from the listed documents, those already drawn left out; the list stays as it was."""
    found, swapped = scratch.lists[FOUND], scratch.lists[SPARE]
    done = ZERO
    while done < size and count < len(positives):
        other = done + below(random, size - done)
        found[done], found[other] = found[other], found[done]
        swapped[done] = other
        if scratch.stamps[DRAWN, found[done]] != mine:
            positives[count] = found[done]
            count += 1
        done += 1
    # The next anchor may lead to the same list, and must find it in the same order.
    while done > 0:
        done -= 1
        found[done], found[swapped[done]] = found[swapped[done]], found[done]
    return count


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
        for frontier in nodes_of(scratch, chain)[: scratch.state[chain, SIZE]]:
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


@inner
def is_new(
    graph: Graph, program: Program, scratch: Scratch, shared: np.ndarray, document: int, mine: int
) -> bool:
    """Whether a document at a shared node is a partner that was not drawn yet."""
    if document >= program.n_documents or scratch.stamps[DRAWN, document] == mine:
        return False
    if shared[FROM] == NONE:
        return True
    return holds(graph, program, shared[STEP], shared[FROM], document, NONE)


@inner
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


@inner
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
