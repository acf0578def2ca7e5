"""Draws that are uniform over all documents an anchor reaches: the paper's 1/X.

Short lists are written down and drawn from by a partial shuffle. Larger sets are never listed: a document is
proposed, and rejected with the probability that makes all documents of the set equally likely.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from micol.compiled import bare, kernel
from micol.kernels.program import (
    BRANCH,
    DRAWN,
    EARLY,
    FOUND,
    LEVEL,
    MANY,
    MARK,
    MARKS,
    MATRIX,
    MODE,
    NODES,
    NONE,
    OWNER,
    PLACE,
    SIZE,
    SPARE,
    STOP,
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
from micol.kernels.random import below, start
from micol.kernels.walk import expand, holds, settle
from micol.network import Graph


class Limits(NamedTuple):
    """When drawing gives up one way for another; they cost or save time and never change a probability."""

    expand: int  # sets of at most so many path instances are listed
    frontier: int  # a hop before the last with more neighbours than this is not walked, but asked backwards
    misses: int  # at least so many proposals may fail before the set is listed after all


@bare
def multiplicity(graph: Graph, program: Program, scratch: Scratch, chain: int, document: int) -> int:
    """In how many bundles of a chain a document lies; 0 where a meta-graph does not hold for it."""
    state, nodes = scratch.state[chain], scratch.lists[NODES + 2 * chain]
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


@bare
def leads_back(graph: Graph, program: Program, scratch: Scratch, chain: int, document: int) -> bool:
    """Whether some walk back from a document meets the frontier of a chain; stops at the first that does."""
    state, place, stop = scratch.state[chain], scratch.lists[PLACE], scratch.lists[STOP]
    last = program.chains[chain + 1] - 1
    visited = MARKS + len(scratch.state)
    stamp = tick(scratch)
    # A stack of rows: where each goes on, and where it ends.
    depth = ZERO
    place[0], stop[0] = row(graph, program.steps[last, 1] ^ 1, document)
    while depth >= 0:
        if place[depth] == stop[depth]:
            depth -= 1
            continue
        node = neighbour(graph, place[depth])
        place[depth] += 1
        if last - depth == state[LEVEL]:
            if scratch.stamps[MARKS + chain, node] == state[MARK]:
                return True
        elif scratch.stamps[visited + depth, node] != stamp:
            scratch.stamps[visited + depth, node] = stamp
            depth += 1
            place[depth], stop[depth] = row(graph, program.steps[last - depth, 1] ^ 1, node)
    return False


@bare
def reaches(graph: Graph, program: Program, scratch: Scratch, document: int) -> bool:
    """Whether any chain leads to a document."""
    for chain in range(len(program.chains) - 1):
        if scratch.state[chain, MODE] == EARLY:
            if leads_back(graph, program, scratch, chain, document):
                return True
        elif multiplicity(graph, program, scratch, chain, document) > 0:
            return True
    return False


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
def instance(graph: Graph, program: Program, scratch: Scratch, place: int) -> int:
    """The document at the end of the path instance with this number, over all chains and bundles."""
    chain = ZERO
    while place >= scratch.state[chain, TOTAL]:
        place -= scratch.state[chain, TOTAL]
        chain += 1
    state = scratch.state[chain]
    sums = scratch.lists[SUMS + 2 * chain]
    bundle = first_above(sums, state[SIZE], place)
    _, end = row(graph, state[MATRIX], scratch.lists[NODES + 2 * chain][bundle])
    return neighbour(graph, end - (sums[bundle] - place))


@bare
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
        counts[index] = 0
        if total == 0 and not early and not many:
            continue
        mine, count, misses = tick(scratch), ZERO, ZERO
        scratch.stamps[DRAWN, anchor] = mine
        if not many and (early or total > limits.expand):
            # Listing costs about as much as one proposal for every few dozen instances; more, where it means
            # to walk on from a large frontier; less, where each proposal is held against a meta-graph.
            allowed = max(limits.misses, total >> 6) if cheap else limits.misses
            if early:
                allowed = 16 * limits.misses
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


@bare
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
