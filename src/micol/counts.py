"""The paper's two data tables of a corpus: its texts and labels, and its metadata."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from micol.corpus import Corpus
from micol.labels import LabelSpace
from micol.network import Network
from micol.purity import LabelledDocuments

WORD = r"\S+"
# The words of more documents than this are not all counted: the mean would not change.
WORDS_COUNTED = 50_000


class TextCounts(NamedTuple):
    """The paper's first table: documents, labels and words."""

    documents: int
    labelled_documents: int
    labels: int  # of the label space where one is given, else those that documents carry
    labels_used: int  # those that documents carry
    labels_per_document: float  # over the documents that have any
    words_per_document: float
    words_exact: bool  # all texts were counted, not a sample
    empty_texts: int


class NodeCounts(NamedTuple):
    """One node letter in the paper's second table."""

    letter: str
    field: str
    values: int
    edges: int
    documents: int  # those that have a value
    largest: str  # the value that most documents have
    largest_documents: int


class LinkCounts(NamedTuple):
    """One link letter in the paper's second table."""

    letter: str
    field: str
    edges: int
    edges_inside: int  # from a document to a document
    outside: int  # distinct linked ids that are no documents
    linking: int  # documents that link to anything
    linked: int  # documents that are linked to


def count_texts(
    corpus: Corpus, labelled: LabelledDocuments, space: LabelSpace | None, seed: int
) -> TextCounts:
    texts = [corpus.table[name] for name in ("title", "abstract")]
    with_words = pc.or_(*(pc.match_substring_regex(column, WORD) for column in texts))
    positions = np.arange(len(corpus))
    if len(corpus) > WORDS_COUNTED:
        positions = np.random.default_rng(seed).choice(positions, WORDS_COUNTED, replace=False)
    words = [pc.sum(pc.count_substring_regex(column.take(positions), WORD)).as_py() for column in texts]
    return TextCounts(
        documents=len(corpus),
        labelled_documents=len(labelled.positions),
        labels=len(labelled.labels) if space is None else len(space),
        labels_used=len(labelled.labels),
        labels_per_document=labelled.of_document.nnz / max(len(labelled.positions), 1),
        words_per_document=sum(words) / len(positions),
        words_exact=len(positions) == len(corpus),
        empty_texts=len(corpus) - pc.sum(with_words).as_py(),
    )


def count_nodes(corpus: Corpus, network: Network, letter: str) -> NodeCounts:
    matrix, backward = network.relations[letter]
    name = corpus.schema.nodes[letter]
    # The network numbers values in the order in which they first occur.
    values = pc.unique(corpus.lists(name)[1])
    documents_of = np.diff(backward.indptr)
    return NodeCounts(
        letter,
        name,
        len(values),
        matrix.nnz,
        int(np.count_nonzero(np.diff(matrix.indptr))),
        values[int(np.argmax(documents_of))].as_py() if len(values) else "",
        int(documents_of.max(initial=0)),
    )


def count_links(network: Network, letter: str) -> LinkCounts:
    forward, backward = network.relations[letter]
    n = network.n_documents
    # Documents come first among the nodes, so the others are those from n on.
    inside_targets = forward.indices[: forward.indptr[n]] < n
    return LinkCounts(
        letter,
        network.schema.links[letter],
        forward.nnz,
        int(np.count_nonzero(inside_targets)),
        int(np.count_nonzero((np.diff(forward.indptr) + np.diff(backward.indptr))[n:])),
        int(np.count_nonzero(np.diff(forward.indptr)[:n])),
        int(np.count_nonzero(np.diff(backward.indptr)[:n])),
    )
