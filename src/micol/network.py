"""Corpus and schema become a heterogeneous information network: one sparse incidence matrix a relation.

A node letter (`A`, `V`) joins documents with the distinct values of its field. A link letter (`P`) joins
documents with documents: its nodes are the documents of the corpus, at the same positions, followed by the
linked ids that lie outside the corpus. Those serve as shared nodes and are never returned as documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array

from micol.errors import MicolError
from micol.schema import Schema

if TYPE_CHECKING:
    from micol.corpus import Corpus

CITATIONS = "citations"  # incoming links, where the records carry them


class Relation(NamedTuple):
    """An incidence matrix and its transpose, both with sorted indices and no duplicates."""

    forward: csr_array
    backward: csr_array


class Network:
    """The documents of a corpus and what joins them; `relations` maps each letter of the schema."""

    def __init__(self, ids: Sequence[str], schema: Schema, incidence: Mapping[str, csr_array]) -> None:
        self.ids = ids
        self.schema = schema
        self.n_documents = len(ids)
        self.relations = {letter: both_ways(matrix) for letter, matrix in incidence.items()}

    @classmethod
    def of(cls, corpus: Corpus) -> Network:
        """The network of a corpus under its schema."""
        incidence = {letter: node_incidence(corpus, name) for letter, name in corpus.schema.nodes.items()}
        return cls(corpus.ids, corpus.schema, incidence | link_incidence(corpus))

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {id: position for position, id in enumerate(self.ids)}

    def position(self, id: str) -> int:
        """Where a document stands in the corpus."""
        try:
            return self._positions[id]
        except KeyError:
            raise MicolError(
                f"document {id!r} is not in the corpus of {self.n_documents:,} documents"
            ) from None


def both_ways(matrix: csr_array) -> Relation:
    """Sorts, takes duplicates out, and adds the transpose."""
    matrix.sum_duplicates()
    # One byte an edge: only the pattern of the matrix matters.
    matrix.data = np.ones(matrix.nnz, dtype=np.int8)
    backward = matrix.T.tocsr()
    backward.sort_indices()
    return Relation(matrix, backward)


def node_incidence(corpus: Corpus, field: str) -> csr_array:
    """Documents x distinct values of a field."""
    indptr, values = corpus.lists(field)
    encoded = values.dictionary_encode()
    columns = encoded.indices.to_numpy(zero_copy_only=False)
    return incidence(indptr, columns, (len(indptr) - 1, len(encoded.dictionary)))


def link_incidence(corpus: Corpus) -> dict[str, csr_array]:
    """For each link letter nodes x nodes: an edge a -> b where b is in a's field or a in b's citations."""
    if not corpus.schema.links:
        return {}
    fields = list(corpus.schema.links.values())
    if CITATIONS in corpus.table.column_names:
        fields.append(CITATIONS)
    lists = [corpus.lists(name) for name in fields]
    # One node space for all link fields, so that a path may go from one to another through any node.
    encoded = (
        pa.chunked_array([values for _, values in lists], pa.string())
        .dictionary_encode()
        .unify_dictionaries()
    )
    dictionary = encoded.chunk(0).dictionary if encoded.num_chunks else pa.array([], pa.string())
    nodes, n_nodes = link_nodes(pa.array(corpus.ids, pa.string()), dictionary)
    edges = {}
    for name, (indptr, _), chunk in zip(fields, lists, encoded.chunks):
        sources = np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))
        targets = nodes[chunk.indices.to_numpy(zero_copy_only=False)]
        edges[name] = (sources, targets)
    matrices = {}
    for order, (letter, name) in enumerate(corpus.schema.links.items()):
        sources, targets = edges[name]
        if order == 0 and CITATIONS in edges:
            cited, citing = edges[CITATIONS]
            sources, targets = np.concatenate([sources, citing]), np.concatenate([targets, cited])
        proper = sources != targets
        sources, targets = sources[proper], targets[proper]
        ones = np.ones(len(sources), dtype=np.int8)
        matrices[letter] = csr_array((ones, (sources, targets)), shape=(n_nodes, n_nodes))
    return matrices


def link_nodes(ids: pa.Array, linked: pa.Array) -> tuple[np.ndarray, int]:
    """The node of each linked id: its document's position, or a number after the last document."""
    positions = pc.index_in(linked, value_set=ids)
    outside = pc.is_null(positions).to_numpy(zero_copy_only=False)
    nodes = pc.fill_null(positions, 0).to_numpy(zero_copy_only=False).astype(np.int32)
    nodes[outside] = len(ids) + np.arange(outside.sum(), dtype=np.int32)
    return nodes, len(ids) + int(outside.sum())


def incidence(indptr: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> csr_array:
    return csr_array((np.ones(len(columns), dtype=np.int8), columns, indptr), shape=shape)
