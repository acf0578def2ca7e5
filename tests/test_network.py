"""From a corpus to matrices: values, links in and out of the corpus, citations, several link fields."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from scipy.sparse import csr_array

from brute_force import PlainNetwork
from micol.corpus import Corpus
from micol.errors import MicolError
from micol.network import Network
from micol.schema import DEFAULT_SCHEMA, Schema
from random_networks import SCHEMA, network_of, records


def edges(matrix):
    return set(zip(*(part.tolist() for part in matrix.nonzero())))


@settings(max_examples=100, deadline=None)
@given(records())
def test_relations_have_every_edge_once(made):
    network, plain = network_of(made), PlainNetwork(made)
    assert list(network.relations) == ["A", "V", "P", "R"]
    for letter in ("A", "V"):
        relation = network.relations[letter]
        assert relation.forward.shape[0] == len(made)
        for one, other in zip(range(len(made)), made):
            assert len(plain.values[other["id"], letter]) == relation.forward[[one]].nnz
        together = (relation.forward.astype(int) @ relation.backward.astype(int)).toarray()
        for a, row in zip(network.ids, together):
            for b, shared in zip(network.ids, row):
                assert shared == len(plain.values[a, letter] & plain.values[b, letter])
    for letter in ("P", "R"):
        relation = network.relations[letter]
        assert relation.forward.shape == relation.backward.shape == (len(plain.nodes), len(plain.nodes))
        assert relation.forward.nnz == len(plain.edges[letter])
        within = {
            (a, b) for a, b in edges(relation.forward) if a < network.n_documents and b < network.n_documents
        }
        documents = set(network.ids)
        expected = {(a, b) for a, b in plain.edges[letter] if {a, b} <= documents}
        assert {(network.ids[a], network.ids[b]) for a, b in within} == expected


@settings(max_examples=50, deadline=None)
@given(records())
def test_matrices_are_sorted_narrow_and_views_of_one_graph(made):
    network = network_of(made)
    for letter, relation in network.relations.items():
        assert edges(relation.backward) == {(b, a) for a, b in edges(relation.forward)}
        for forward, matrix in zip((True, False), relation):
            assert (matrix.data == 1).all()
            assert matrix.data.dtype == np.int8
            assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
            assert matrix.nnz == 0 or np.shares_memory(matrix.indices, network.graph.indices)
            number = network.matrix(letter, forward)
            first, rows = network.graph.first[number], network.graph.rows[number]
            assert rows == matrix.shape[0]
            for row in range(rows):
                begin, end = network.graph.indptr[first + row : first + row + 2]
                ours = network.graph.indices[begin:end]
                assert list(ours) == sorted(set(ours))
                assert list(ours) == matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]].tolist()


def test_a_link_to_itself_is_dropped():
    lists = pa.list_(pa.string())
    table = pa.table(
        {
            "id": ["a", "b"],
            "title": ["", ""],
            "abstract": ["", ""],
            "authors": pa.array([[], []], lists),
            "venue": pa.array([[], []], lists),
            "references": pa.array([["a", "b"], ["b"]], lists),
            "citations": pa.array([[], ["b"]], lists),
            "labels": pa.array([[], []], lists),
        }
    )
    network = Corpus(table, DEFAULT_SCHEMA, "by hand").network()
    assert edges(network.relations["P"].forward) == {(0, 1)}


def test_citations_join_the_first_link_field_only():
    network = network_of([{"id": "a", "title": "t", "citations": ["b", "x"]}, {"id": "b", "title": "u"}])
    assert edges(network.relations["P"].forward) == {(1, 0), (2, 0)}
    assert network.relations["R"].forward.nnz == 0


def test_ids_outside_the_corpus_are_the_same_node_for_every_link_field():
    network = network_of([{"id": "a", "title": "t", "references": ["x"], "replies": ["x", "y"]}])
    assert edges(network.relations["P"].forward) == {(0, 1)}
    assert edges(network.relations["R"].forward) == {(0, 1), (0, 2)}


def test_a_schema_without_links_or_without_nodes():
    authors_only = Schema({"A": "authors"}, {}, "P")
    network = network_of([{"id": "a", "title": "t", "authors": ["x"]}], authors_only)
    assert list(network.relations) == ["A"]
    links_only = Schema({}, {"P": "references"})
    network = network_of([{"id": "a", "title": "t", "references": ["x"]}], links_only)
    assert list(network.relations) == ["P"]


def test_fields_that_no_document_has():
    network = network_of([{"id": "a", "title": "t"}, {"id": "b", "title": "u"}])
    assert [relation.forward.nnz for relation in network.relations.values()] == [0, 0, 0, 0]
    assert network.relations["A"].forward.shape == (2, 0)
    assert network.relations["P"].forward.shape == (2, 2)


def test_positions():
    network = network_of([{"id": "a", "title": "t"}, {"id": "b", "title": "u"}])
    assert network.position("b") == 1
    assert network.n_documents == 2
    with pytest.raises(MicolError, match="'c' is not the id of one of the 2 documents"):
        network.position("c")


def test_a_network_from_matrices():
    authors = csr_array(np.array([[1, 1], [0, 1]]))
    network = Network(["a", "b"], Schema({"A": "authors"}, {}), {"A": authors})
    assert edges(network.relations["A"].backward) == {(0, 0), (1, 0), (1, 1)}


def test_the_schema_of_these_tests_has_two_link_fields():
    assert list(SCHEMA.links) == ["P", "R"]
