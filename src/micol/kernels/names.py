"""The order of names, by which path instances are numbered: rows of the network in that order.

Positions of nodes differ from engine to engine, and with the order of files; names do not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from micol.compiled import bare, kernel
from micol.kernels.program import NONE, UNLIMITED, ZERO, neighbour, place_of, row
from micol.kernels.random import int64
from micol.network import Graph

# How a chain is drawn from: it is one hop; nodes before a last hop; nodes before a last meta-graph; or it has
# so many walks that none are listed.
ONE, FRONT, FRONT_MEET, LONG = map(int64, range(4))
# Columns of Canon.chains: the kind, where the names of the nodes before the last step begin, the last hop; of
# a meta-graph that comes last: the branch that documents are looked for by, where the names of its nodes
# begin, and how many of the largest are left alone; the first rung of a long chain.
KIND, NAMES, LAST, BRANCH, BRANCH_NAMES, SPARED, RUNG = map(int64, range(7))
# Columns of Canon.rungs: where in the ladder rows begin, their targets, the sums of their weights; the step
# of a meta-graph that begins here, else NONE; and the branch it is entered by.
STARTS, TARGETS, WEIGHTS, MEETS, BY = map(int64, range(5))
FEW = 24  # are sorted by insertion


class Canon(NamedTuple):
    """What uniform draws need beside the network: keys of documents, and the order of names."""

    keys: np.ndarray
    ordered: np.ndarray  # the network's indices; the rows of last hops hold documents, in the order of ids
    offsets: np.ndarray  # of the names of nodes, one kind after another
    names: np.ndarray
    chains: np.ndarray
    rungs: np.ndarray  # of each long chain one for each hop but the last
    ladder: np.ndarray


@bare
def comes_before(canon: Canon, names: int, one: int, other: int) -> bool:
    begin, end = canon.offsets[names + one], canon.offsets[names + one + 1]
    other_begin, other_end = canon.offsets[names + other], canon.offsets[names + other + 1]
    common = min(end - begin, other_end - other_begin)
    for place in range(common):
        byte, other_byte = canon.names[begin + place], canon.names[other_begin + place]
        if byte != other_byte:
            return byte < other_byte
    return end - begin < other_end - other_begin


@bare
def sort_by_name(canon: Canon, names: int, nodes: np.ndarray, size: int) -> None:
    if size > FEW:
        for root in range(size // 2 - 1, -1, -1):
            sift(canon, names, nodes, int64(root), size)
        for last in range(size - 1, 0, -1):
            nodes[0], nodes[last] = nodes[last], nodes[0]
            sift(canon, names, nodes, ZERO, int64(last))
        return
    for index in range(1, size):
        node, place = nodes[index], index
        while place > 0 and comes_before(canon, names, node, nodes[place - 1]):
            nodes[place] = nodes[place - 1]
            place -= 1
        nodes[place] = node


@bare
def sift(canon: Canon, names: int, nodes: np.ndarray, root: int, size: int) -> None:
    """Lets a node down in a heap with the last name on top."""
    while 2 * root + 1 < size:
        child = 2 * root + 1
        if child + 1 < size and comes_before(canon, names, nodes[child], nodes[child + 1]):
            child += 1
        if not comes_before(canon, names, nodes[root], nodes[child]):
            return
        nodes[root], nodes[child] = nodes[child], nodes[root]
        root = child


@bare
def documents_at(graph: Graph, n_documents: int, matrix: int, node: int) -> tuple[int, int]:
    """Where in a row documents begin and end; link nodes outside the corpus come after them."""
    begin, end = row(graph, matrix, node)
    may_lead_out = graph.rows[matrix ^ 1] > n_documents
    if may_lead_out and begin < end and graph.indices[end - 1] >= n_documents:
        end = place_of(graph, begin, end, n_documents)
    return begin, end


@kernel
def order_rows(graph: Graph, matrix: int, documents: np.ndarray, ordered: np.ndarray) -> None:
    """Fills the rows of a matrix with their documents, which are given in order."""
    filled = np.zeros(graph.rows[matrix], dtype=np.int32)
    for index in range(len(documents)):
        document = documents[index]
        begin, end = row(graph, matrix ^ 1, document)
        for at in range(begin, end):
            node = neighbour(graph, at)
            start, _ = row(graph, matrix, node)
            ordered[start + filled[node]] = document
            filled[node] += 1


@kernel
def lengths(graph: Graph, matrix: int, n_nodes: int, n_documents: int) -> np.ndarray:
    """The lengths of rows; where a number of documents is given, not NONE, those in them alone count."""
    found = np.empty(n_nodes, dtype=np.int64)
    for node in range(n_nodes):
        if n_documents == NONE:
            begin, end = row(graph, matrix, int64(node))
        else:
            begin, end = documents_at(graph, n_documents, matrix, int64(node))
        found[node] = end - begin
    return found


@kernel
def rung(
    graph: Graph, matrix: int, spared: int, order: np.ndarray, degrees: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows of a hop, in the order of names: where they begin, their nodes, the sums of their weights.

    Nodes that lead nowhere are left out, and of each row so many with the highest degrees.
    """
    starts = np.zeros(graph.rows[matrix] + 1, dtype=np.int64)
    for node in order:
        if degrees[node] > 0:
            begin, end = row(graph, matrix ^ 1, int64(node))
            for at in range(begin, end):
                starts[graph.indices[at] + 1] += 1
    starts = np.cumsum(starts)
    filled = starts[:-1].copy()
    targets = np.empty(starts[-1], dtype=np.int64)
    for node in order:
        if degrees[node] > 0:
            begin, end = row(graph, matrix ^ 1, int64(node))
            for at in range(begin, end):
                targets[filled[graph.indices[at]]] = node
                filled[graph.indices[at]] += 1
    sums = np.empty(len(targets), dtype=np.int64)
    kept = ZERO
    for source in range(len(starts) - 1):
        begin, end = starts[source], starts[source + 1]
        for _ in range(min(spared, end - begin)):
            largest = begin
            for at in range(begin + 1, end):
                if degrees[targets[at]] > degrees[targets[largest]]:
                    largest = at
            for at in range(largest, end - 1):
                targets[at] = targets[at + 1]
            end -= 1
        starts[source] = kept
        total = ZERO
        for at in range(begin, end):
            node = targets[at]
            if weights[node] > 0:
                total = min(total + weights[node], UNLIMITED)
                targets[kept], sums[kept] = node, total
                kept += 1
    starts[-1] = kept
    return starts, targets[:kept], sums[:kept]
