"""Which documents a document reaches."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from micol.metapath import Hop, MetaPath, Shared
from micol.network import Network


def matrix(network: Network, hop: Hop) -> csr_array:
    relation = network.relations[hop.letter]
    return relation.forward if hop.forward else relation.backward


def neighbours(rows: csr_array, nodes: np.ndarray) -> np.ndarray:
    """All nodes that the given nodes lead to, as often as they do."""
    nodes = nodes[nodes < rows.shape[0]]
    parts = [rows.indices[rows.indptr[node] : rows.indptr[node + 1]] for node in nodes]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)


def meeting(network: Network, branches: tuple[Shared, ...], node: int) -> np.ndarray:
    """Documents that hold every branch of a meta-graph with one node."""
    found = None
    for branch in branches:
        shared = np.unique(neighbours(matrix(network, branch.into), np.array([node])))
        ends, counts = np.unique(neighbours(matrix(network, branch.out_of), shared), return_counts=True)
        enough = ends[counts >= branch.count]
        found = enough if found is None else np.intersect1d(found, enough)
    assert found is not None
    return found


def reachable_positions(network: Network, path: MetaPath, position: int) -> np.ndarray:
    reached = [np.empty(0, dtype=np.int64)]
    for steps in path.bind(network.schema):
        frontier = np.array([position])
        for step in steps:
            if isinstance(step, Hop):
                frontier = np.unique(neighbours(matrix(network, step), frontier))
            else:
                parts = [meeting(network, step, node) for node in frontier]
                frontier = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *parts]))
        reached.append(frontier)
    found = np.unique(np.concatenate(reached)).astype(np.int64)
    return found[(found < network.n_documents) & (found != position)]
