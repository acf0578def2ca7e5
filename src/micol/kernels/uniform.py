"""Draws that are uniform over all documents an anchor reaches: the paper's 1/X, by the rule of `micol.rule`.

Short lists are written down, and come in a random order. Larger sets are never listed: a path instance is
drawn, and the document at its end rejected with the probability that makes all documents equally likely.
"""

from __future__ import annotations

import numpy as np

from micol.compiled import bare, kernel
from micol.kernels.count import look_ahead, walks_to
from micol.kernels.hashing import (
    Hasher,
    begin_anchor,
    first_digits,
    hash_list,
    hash_trial,
    next_digits,
    spread,
)
from micol.kernels.instances import count_instances, enter, instance, multiplicity, n_rungs, prepare
from micol.kernels.names import (
    BRANCH,
    BY,
    FRONT,
    FRONT_MEET,
    KIND,
    LAST,
    LONG,
    MEETS,
    ONE,
    RUNG,
    STARTS,
    TARGETS,
    Canon,
)
from micol.kernels.program import (
    ANCHOR,
    DRAWN,
    FOUND,
    MARK,
    MARKS,
    MET,
    NODES,
    NONE,
    PATH,
    SEEN,
    SIZE,
    SPARE,
    TOTAL,
    UNLIMITED,
    ZERO,
    Program,
    Scratch,
    place_of,
    row,
    tick,
)
from micol.kernels.walk import expand, holds, meet
from micol.network import Graph
from micol.rule import PRIME, Limits

LOW = (1 << 32) - 1  # the bits of a document beside its place
WALKS_BACK = 32  # trials after which one long walk ahead costs less than further walks back


@bare
def is_known(program: Program, branch: int) -> int:
    """The branch, if one shared node is enough for it: who was found by it has that."""
    return branch if program.branches[branch, 2] == 1 else NONE


@bare
def parallels(
    graph: Graph, program: Program, scratch: Scratch, canon: Canon, chain: int, document: int, luck: int
) -> int:
    """How many instances follow the same documents as the one just drawn; 0 where a meta-graph fails.

    Meta-graphs are looked at only where luck does not rule the document out anyway.
    """
    kind, last = canon.chains[chain, KIND], program.chains[chain + 1] - 1
    path = scratch.lists[PATH]
    if kind == FRONT_MEET:
        slot = enter(graph, program, scratch, canon, chain, path[0])
        times = multiplicity(graph, scratch, slot, canon.chains[chain, LAST], document)
        known = is_known(program, canon.chains[chain, BRANCH])
        if luck % times == 0 and holds(graph, program, last, path[0], document, known):
            return times
        return ZERO
    times = ZERO + 1
    if kind != LONG:
        return times
    for depth in range(n_rungs(program, chain)):
        here = canon.rungs[canon.chains[chain, RUNG] + depth]
        if here[MEETS] == NONE:
            continue
        begin = canon.ladder[here[STARTS] + path[depth]]
        end = canon.ladder[here[STARTS] + path[depth] + 1]
        shared, out = ZERO, program.branches[here[BY], 1]
        for at in range(begin, end):
            first, stop = row(graph, out, canon.ladder[here[TARGETS] + at])
            found = place_of(graph, first, stop, path[depth + 2])
            if found < stop and graph.indices[found] == path[depth + 2]:
                shared += 1
        times *= shared
        known = is_known(program, here[BY])
        if luck % times != 0 or not holds(graph, program, here[MEETS], path[depth], path[depth + 2], known):
            return ZERO
    return times


@bare
def ways(
    graph: Graph, program: Program, scratch: Scratch, canon: Canon, chain: int, anchor: int, document: int
) -> int:
    """How many walks along a chain lead to a document; through a meta-graph it is one."""
    kind = canon.chains[chain, KIND]
    if kind == ONE:
        begin, end = row(graph, canon.chains[chain, LAST], anchor)
        at = place_of(graph, begin, end, document)
        return ZERO + 1 if at < end and graph.indices[at] == document else ZERO
    if kind == FRONT:
        return multiplicity(graph, scratch, chain, canon.chains[chain, LAST], document)
    if kind == LONG:
        return walks_to(graph, program, scratch, chain, document)
    last = program.chains[chain + 1] - 1
    state = scratch.state[chain]
    if state[SIZE] == 1:
        node = scratch.lists[NODES + 2 * chain][0]
        return ZERO + 1 if holds(graph, program, last, node, document, NONE) else ZERO
    back = program.steps[last, 3]
    size = meet(graph, program, scratch, back, document, SEEN, tick(scratch), MET, ZERO)
    count = ZERO
    for index in range(size):
        if scratch.stamps[MARKS + chain, scratch.lists[MET, index]] == state[MARK]:
            count += 1
    return count


@bare
def is_accepted(
    graph: Graph, program: Program, scratch: Scratch, canon: Canon, chain: int, anchor: int, document: int,
    luck: int,
) -> bool:  # fmt: skip
    """Whether a document that was drawn is taken: once in as many times as instances lead to it."""
    times = parallels(graph, program, scratch, canon, chain, document, luck)
    if times == 0:
        return False
    if len(program.chains) == 2 and program.chains[1] == 1:
        # A single step joins two documents, or does not.
        return True
    count = ZERO
    for other in range(len(program.chains) - 1):
        count += ways(graph, program, scratch, canon, ZERO + other, anchor, document)
    return luck % (times * count) == 0


@kernel
def draw_uniform(
    graph: Graph, program: Program, scratch: Scratch, canon: Canon, hasher: Hasher, limits: Limits,
    seed: np.ndarray, anchors: np.ndarray, positives: np.ndarray, counts: np.ndarray,
) -> None:  # fmt: skip
    """For each anchor up to positives.shape[1] distinct documents, uniform over all it reaches."""
    quota, n_chains = positives.shape[1], len(program.chains) - 1
    for index in range(len(anchors)):
        anchor, total = anchors[index], ZERO
        for chain in range(n_chains):
            count_instances(graph, program, scratch, canon, ZERO + chain, anchor)
            total = min(total + scratch.state[chain, TOTAL], UNLIMITED)
        counts[index] = 0
        if total == 0:
            continue
        mine, count, begin, trial, trials = tick(scratch), ZERO, ZERO, ZERO, ZERO
        scratch.stamps[DRAWN, anchor] = mine
        # More instances than can be counted are listed, too.
        if limits.listed < total < UNLIMITED:
            begin = begin_anchor(hasher, seed, canon.keys[anchor])
            trials = min(max(limits.trials, total // limits.share), limits.most)
            for chain in range(n_chains):
                prepare(graph, program, scratch, canon, limits, ZERO + chain, anchor)
        while count < quota and trial < trials:
            if trial == WALKS_BACK:
                look_far_ahead(graph, program, scratch, canon, anchor)
            hash_trial(hasher, begin, trial)
            trial += 1
            place, luck = first_digits(hasher) % total, next_digits(hasher)
            chain = ZERO
            while place >= scratch.state[chain, TOTAL]:
                place -= scratch.state[chain, TOTAL]
                chain += 1
            document = instance(graph, program, scratch, canon, chain, anchor, place)
            # What was drawn once is not drawn again, whether it would be accepted or not.
            if scratch.stamps[DRAWN, document] == mine:
                continue
            if is_accepted(graph, program, scratch, canon, chain, anchor, document, luck):
                scratch.stamps[DRAWN, document] = mine
                positives[index, count] = document
                count += 1
        if count < quota:
            size = left_over(scratch, expand(graph, program, scratch, anchor), mine)
            if size > 1:
                hash_list(hasher, begin_anchor(hasher, seed, canon.keys[anchor]))
            count = draw_listed(scratch, canon, hasher, size, positives[index], count)
        counts[index] = count


@bare
def look_far_ahead(graph: Graph, program: Program, scratch: Scratch, canon: Canon, anchor: int) -> None:
    """Counts the walks of long chains up to their last step, whatever that costs."""
    n_chains = len(program.chains) - 1
    for chain in range(n_chains):
        if canon.chains[chain, KIND] == LONG:
            scratch.state[n_chains + chain, ANCHOR] = NONE
            look_ahead(graph, program, scratch, ZERO + chain, anchor, UNLIMITED)


@bare
def left_over(scratch: Scratch, size: int, mine: int) -> int:
    """Puts in SPARE the documents of FOUND that were not drawn yet; returns how many."""
    left = ZERO
    for index in range(size):
        document = scratch.lists[FOUND, index]
        if scratch.stamps[DRAWN, document] != mine:
            scratch.lists[SPARE, left] = document
            left += 1
    return left


@bare
def sort_numbers(numbers: np.ndarray, size: int) -> None:
    """A heap sort; numpy's takes a second to compile."""
    unsorted, root = size, size // 2
    while unsorted > 1:
        if root > 0:
            root -= 1
        else:
            unsorted -= 1
            numbers[0], numbers[unsorted] = numbers[unsorted], numbers[0]
        parent = root
        while 2 * parent + 1 < unsorted:
            child = 2 * parent + 1
            if child + 1 < unsorted and numbers[child + 1] > numbers[child]:
                child += 1
            if numbers[parent] >= numbers[child]:
                break
            numbers[parent], numbers[child] = numbers[child], numbers[parent]
            parent = child


@bare
def draw_listed(
    scratch: Scratch, canon: Canon, hasher: Hasher, size: int, positives: np.ndarray, count: int
) -> int:
    """Draws from the documents in SPARE: all of them are in a random order, which ends where enough are."""
    listed, keys = scratch.lists[SPARE], canon.keys
    first, second, third = hasher.digest[0] % PRIME, hasher.digest[1] % PRIME, hasher.digest[2] % PRIME
    if len(positives) - count == 1 and size > 0:
        best, least = listed[0], spread(keys[listed[0]], first, second, third)
        for index in range(1, size):
            document = listed[index]
            place = spread(keys[document], first, second, third)
            if place < least or (place == least and keys[document] < keys[best]):
                best, least = document, place
        positives[count] = best
        return count + 1
    for index in range(size):
        # Beside each other: the place, and who is there.
        listed[index] |= spread(keys[listed[index]], first, second, third) << 32
    sort_numbers(listed, size)
    for index in range(1, size):
        at = index
        # Those in one place come in the order of their keys.
        while (
            at > 0
            and listed[at] >> 32 == listed[at - 1] >> 32
            and keys[listed[at] & LOW] < keys[listed[at - 1] & LOW]
        ):
            listed[at], listed[at - 1] = listed[at - 1], listed[at]
            at -= 1
    for index in range(min(size, len(positives) - count)):
        positives[count] = listed[index] & LOW
        count += 1
    return count
