"""A meta-path bound to a network, ready for the compiled kernels; what it reaches, and how much."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from micol.errors import UsageError
from micol.kernels.program import (
    FOUND,
    HOP,
    LAST_STAMP,
    LISTED,
    LISTED_SIZE,
    MARKS,
    MEET,
    MET_STAMP,
    NODES,
    NONE,
    READY,
    STAMP,
    WORK,
    Program,
    Scratch,
)
from micol.kernels.random import shuffled
from micol.kernels.walk import count_partners
from micol.metapath import Hop, MetaPath
from micol.network import Graph, Network

# A node between is a hub if it has more neighbours than this, and than this share of the number of documents.
HUB_DEGREE, HUB_SHARE = 100, 0.01
# `coverage` looks at so many neighbours, a few seconds' work, before it is content with a sample.
WORK_BUDGET = 300_000_000
FIRST_SAMPLE = 256


class Plan(NamedTuple):
    """What every kernel is called with."""

    graph: Graph
    program: Program
    scratch: Scratch


class PathStatistics(NamedTuple):
    """How far a meta-path reaches; estimated from a sample of documents unless `exact`."""

    documents_with_partner: int
    pairs: int
    mean_partners: float  # over all documents, those without a partner among them
    exact: bool
    hub_only_share: float  # of the pairs, those that no way joins but through a hub


def hub_degree(n_documents: int) -> int:
    """The most neighbours that a node may have without being a hub."""
    return max(HUB_DEGREE, int(HUB_SHARE * n_documents))


def plan(network: Network, path: MetaPath, hubs: int = NONE) -> Plan:
    """Binds a path to a network; nodes with more than `hubs` neighbours are left out of its walks."""
    chains = [0]
    steps: list[tuple[int, int, int, int]] = []
    branches: list[tuple[int, int, int]] = []
    for chain in path.bind(network.schema):
        for step in chain:
            if isinstance(step, Hop):
                steps.append((HOP, network.matrix(*step), NONE, NONE))
                continue
            steps.append((MEET, len(branches), len(branches) + len(step), NONE))
            for branch in step:
                branches.append((network.matrix(*branch.into), network.matrix(*branch.out_of), branch.least))
        chains.append(len(steps))
    for place, (kind, first, last, _) in enumerate(steps[: chains[-1]]):
        if kind == MEET:
            steps[place] = (MEET, first, last, len(steps))
            steps.append((MEET, len(branches), len(branches) + last - first, place))
            branches += [(out ^ 1, into ^ 1, least) for into, out, least in branches[first:last]]
    program = Program(
        np.array(chains, dtype=np.int64),
        np.array(steps, dtype=np.int64),
        np.array(branches, dtype=np.int64).reshape(-1, 3),
        network.n_documents,
        hubs,
    )
    return Plan(network.graph, program, scratch(network, program))


def scratch(network: Network, program: Program) -> Scratch:
    """Fresh memory; pages that no kernel touches cost nothing."""
    n_nodes = max(network.n_documents, int(max(network.graph.rows, default=0)), 2 * len(program.steps) + 1)
    # Each chain has a second slot: what the meta-graph that it ends with begins with, or how many walks lead
    # from an anchor to the nodes half-way.
    slots = 2 * (len(program.chains) - 1)
    return Scratch(
        state=np.full((slots, READY + 1), NONE, dtype=np.int64),
        lists=np.zeros((NODES + 2 * slots, n_nodes), dtype=np.int64),
        stamps=np.zeros((MARKS + slots + 1, n_nodes), dtype=np.int32),
        clock=np.zeros(MET_STAMP + 1, dtype=np.int64),
    )


def reachable_positions(network: Network, path: MetaPath, position: int) -> np.ndarray:
    """The documents that one reaches, ascending."""
    if not 0 <= position < network.n_documents:
        raise UsageError(f"position must be from 0 to {network.n_documents - 1}, got {position}")
    bound = plan(network, path)
    count_partners(*bound, np.array([position]), np.empty(1, dtype=np.int64))
    found = np.sort(bound.scratch.lists[FOUND, : bound.scratch.clock[LISTED_SIZE]])
    return found[found != position]


def neighbours_together(plan: Plan, anchors: np.ndarray) -> np.ndarray:
    """An order of anchors that brings those with the same first neighbour together.

    A walk that starts as the one before it is not walked again, so one venue is expanded once, not once for
    each of its documents.
    """
    kind, first, *_ = plan.program.steps[0]
    matrix = first if kind == HOP else plan.program.branches[first, 0]
    begin = plan.graph.indptr[plan.graph.first[matrix] + anchors]
    end = plan.graph.indptr[plan.graph.first[matrix] + anchors + 1]
    neighbour = np.full(len(anchors), NONE, dtype=np.int64)
    joined = begin < end
    neighbour[joined] = plan.graph.indices[begin[joined]]
    return np.argsort(neighbour, kind="stable")


def best_order(plan: Plan, anchors: np.ndarray) -> np.ndarray:
    """The order of anchors in which draws are quickest."""
    # One or two steps are walked sooner than they are compared: then read the network from front to back.
    if np.diff(plan.program.chains).max() <= 2:
        return np.argsort(anchors)
    return neighbours_together(plan, anchors)


def coverage(
    network: Network,
    path: MetaPath | str,
    sample: int | None = None,
    seed: int = 0,
    budget: int = WORK_BUDGET,
) -> PathStatistics:
    """How many documents have partners, and how many; from all documents if that is affordable.

    Otherwise from as many documents, drawn at random, as the budget allows, and at most `sample`.
    """
    path = MetaPath(path) if isinstance(path, str) else path
    n_documents = network.n_documents
    anchors = shuffled(np.arange(n_documents, dtype=np.int64), seed)[:sample]
    every, no_hubs = plan(network, path), plan(network, path, hub_degree(n_documents))
    counts, without_hubs = np.zeros(len(anchors), np.int64), np.zeros(len(anchors), np.int64)
    done, step, spent, next_cost = 0, FIRST_SAMPLE, 0, 0.0
    while done < len(anchors) and spent + next_cost <= budget:
        some = slice(done, done + step)
        counts[some] = partners(every, anchors[some])
        without_hubs[some] = partners(no_hubs, anchors[some])
        done = min(done + step, len(anchors))
        step = min(2 * step, len(anchors) - done)
        spent = int(every.scratch.clock[WORK] + no_hubs.scratch.clock[WORK])
        next_cost = spent / done * step
    counts, without_hubs = counts[:done], without_hubs[:done]
    scale = n_documents / max(done, 1)
    return PathStatistics(
        documents_with_partner=round(np.count_nonzero(counts) * scale),
        pairs=round(int(counts.sum()) * scale),
        mean_partners=float(counts.mean()) if done else 0.0,
        exact=done == n_documents,
        hub_only_share=1 - float(without_hubs.sum() / counts.sum()) if counts.any() else 0.0,
    )


def renew_stamps(scratch: Scratch) -> None:
    """Forgets all sets before stamps run out."""
    if scratch.clock[STAMP] > LAST_STAMP:
        scratch.stamps.fill(0)
        scratch.state.fill(NONE)
        scratch.clock[[STAMP, LISTED]] = 0


def partners(plan: Plan, anchors: np.ndarray) -> np.ndarray:
    """The number of documents that each anchor reaches."""
    renew_stamps(plan.scratch)
    order = neighbours_together(plan, anchors)
    counts = np.empty(len(anchors), dtype=np.int64)
    count_partners(*plan, anchors[order], counts)
    return counts[np.argsort(order)]
