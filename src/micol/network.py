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


class Graph(NamedTuple):
    """All matrices of a network end to end, so that one compiled kernel serves every meta-path.

    Row r of matrix m is indices[indptr[first[m] + r] : indptr[first[m] + r + 1]]. Matrix 2k is the k-th
    relation and 2k + 1 its transpose: the way back along matrix m is m ^ 1. Where every row has one entry, as
    with venues, row r is indices[single[m] + r], which spares a look at indptr; elsewhere single[m] is -1.
    """

    indptr: np.ndarray
    indices: np.ndarray
    first: np.ndarray
    rows: np.ndarray
    single: np.ndarray


class Network:
    """The documents of a corpus and what joins them; `relations` has every letter of the schema."""

    def __init__(
        self,
        ids: Sequence[str],
        schema: Schema,
        incidence: Mapping[str, csr_array],
        names: Mapping[str, pa.Array] | None = None,
    ) -> None:
        """names: of the nodes of each letter; of link letters, of the nodes outside the corpus."""
        self.ids = ids
        self.names = names or {}
        self.schema = schema
        self.n_documents = len(ids)
        self.relations = {letter: both_ways(matrix) for letter, matrix in incidence.items()}
        self.graph = pool(self.relations)

    @classmethod
    def of(cls, corpus: Corpus) -> Network:
        """The network of a corpus under its schema."""
        nodes = {letter: node_incidence(corpus, name) for letter, name in corpus.schema.nodes.items()}
        incidence = {letter: matrix for letter, (matrix, _) in nodes.items()}
        links, outside = link_incidence(corpus)
        names = {letter: values for letter, (_, values) in nodes.items()} | dict.fromkeys(links, outside)
        return cls(corpus.ids, corpus.schema, incidence | links, names)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {id: position for position, id in enumerate(self.ids)}

    def position(self, id: str) -> int:
        """Where a document stands in the corpus."""
        try:
            return self._positions[id]
        except KeyError:
            raise MicolError(f"{id!r} is not the id of one of the {self.n_documents:,} documents") from None

    def matrix(self, letter: str, forward: bool) -> int:
        """The number that `graph` knows a relation, or its transpose, by."""
        return 2 * list(self.relations).index(letter) + (not forward)


def both_ways(matrix: csr_array) -> Relation:
    """Sorts, takes duplicates out, and adds the transpose."""
    matrix.sum_duplicates()
    # One byte an edge: only the pattern of the matrix matters.
    matrix.data = np.ones(matrix.nnz, dtype=np.int8)
    backward = matrix.T.tocsr()
    backward.sort_indices()
    return Relation(matrix, backward)


def pool(relations: Mapping[str, Relation]) -> Graph:
    """Lays the matrices end to end; theirs become views, so that nothing is kept twice."""
    matrices = [matrix for relation in relations.values() for matrix in relation]
    sizes = np.cumsum([0, *(matrix.nnz for matrix in matrices)], dtype=np.int64)
    rows = np.array([matrix.shape[0] for matrix in matrices], dtype=np.int64)
    first = np.cumsum([0, *(rows + 1)], dtype=np.int64)
    indices = np.empty(sizes[-1], dtype=np.int32)
    indptr = np.empty(first[-1], dtype=np.int64)
    for matrix, begin, end, row in zip(matrices, sizes, sizes[1:], first):
        indices[begin:end] = matrix.indices
        indptr[row : row + len(matrix.indptr)] = matrix.indptr
        indptr[row : row + len(matrix.indptr)] += begin
        if matrix.indices.dtype == indices.dtype:
            matrix.indices = indices[begin:end]
    one_each = [bool((np.diff(matrix.indptr) == 1).all()) for matrix in matrices]
    return Graph(indptr, indices, first[:-1], rows, np.where(one_each, sizes[:-1], -1))


def node_incidence(corpus: Corpus, field: str) -> tuple[csr_array, pa.Array]:
    """Documents x distinct values of a field, and those values."""
    indptr, values = corpus.lists(field)
    encoded = values.dictionary_encode()
    columns = np.array(encoded.indices, dtype=np.int32)  # a copy: scipy sorts in place
    ones = np.ones(len(columns), dtype=np.int8)
    # scipy keeps indices as wide as indptr: four bytes each, unless there are over two billion edges.
    narrow = indptr.astype(np.int32) if len(columns) <= np.iinfo(np.int32).max else indptr
    shape = (len(indptr) - 1, len(encoded.dictionary))
    return csr_array((ones, columns, narrow), shape=shape), encoded.dictionary


def link_incidence(corpus: Corpus) -> tuple[dict[str, csr_array], pa.Array]:
    """For each link letter nodes x nodes: an edge a -> b where b is in a's field or a in b's citations.

    And the ids of those nodes that lie outside the corpus.
    """
    links = corpus.schema.links
    if not links:
        return {}, pa.array([], pa.string())
    fields = list(dict.fromkeys(links.values()))
    if CITATIONS in corpus.table.column_names:
        fields.append(CITATIONS)
    edges, outside = link_edges(corpus, fields)
    n_nodes = len(corpus.ids) + len(outside)
    matrices = {}
    for order, (letter, field) in enumerate(links.items()):
        sources, targets = edges[field]
        if order == 0 and CITATIONS in edges:
            cited, citing = edges[CITATIONS]
            sources, targets = np.concatenate([sources, citing]), np.concatenate([targets, cited])
        proper = sources != targets
        sources, targets = sources[proper], targets[proper]
        ones = np.ones(len(sources), dtype=np.int8)
        matrices[letter] = csr_array((ones, (sources, targets)), shape=(n_nodes, n_nodes))
    return matrices, outside


def link_edges(
    corpus: Corpus, fields: list[str]
) -> tuple[dict[str, tuple[np.ndarray, np.ndarray]], pa.Array]:
    """The documents and the listed nodes of each field, and the ids of nodes outside the corpus.

    All fields share one node space, so that a path may go from one link field to another through any node.
    """
    lists = [corpus.lists(field) for field in fields]
    joined = pa.chunked_array([values for _, values in lists], pa.string())
    # Encoded chunk by chunk: joining the strings first would copy them all. Empty chunks vanish on the way.
    chunks = joined.dictionary_encode().unify_dictionaries().chunks
    dictionary = chunks[0].dictionary if chunks else pa.array([], pa.string())
    nodes, outside = link_nodes(pa.array(corpus.ids, pa.string()), dictionary)
    codes = [np.empty(0, np.int32), *(chunk.indices.to_numpy(zero_copy_only=False) for chunk in chunks)]
    listed = nodes[np.concatenate(codes)]
    edges, begin = {}, 0
    for field, (indptr, values) in zip(fields, lists):
        documents = np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))
        edges[field] = (documents, listed[begin : begin + len(values)])
        begin += len(values)
    return edges, outside


def link_nodes(ids: pa.Array, linked: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """The node of each linked id: its document's position, or a number after the last document; those ids."""
    positions = pc.index_in(linked, value_set=ids)
    is_outside = pc.is_null(positions)
    outside = is_outside.to_numpy(zero_copy_only=False)
    nodes = pc.fill_null(positions, 0).to_numpy(zero_copy_only=False).astype(np.int32)
    n_outside = int(outside.sum())
    nodes[outside] = len(ids) + np.arange(n_outside, dtype=np.int32)
    return nodes, linked.filter(is_outside)
