"""What a corpus has to offer: the paper's two data tables, and what each meta-path joins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from micol.corpus import Corpus
from micol.counts import LinkCounts, NodeCounts, TextCounts, count_links, count_nodes, count_texts
from micol.labels import LabelSpace
from micol.metapath import PAPER_PATHS, MetaPath
from micol.misfits import misfits
from micol.network import Network
from micol.pairs import draw_pairs
from micol.progress import track
from micol.purity import Divergence, LabelledDocuments, Share, mean_divergence
from micol.reach import PathStatistics, coverage
from micol.schema import DEFAULT_SCHEMA, Schema

PURITY_PAIRS = 5_000
DIVERGENCE_DOCUMENTS = 300


class PathReport(NamedTuple):
    """What one meta-path joins."""

    path: str
    reach: PathStatistics
    common_label: Share | None  # of the pairs, those with a label in common; None where labels are not known
    divergence: Divergence | None  # a mean over documents with labels and partners
    divergence_documents: int
    divergence_exact: bool  # over all such documents, not a sample


@dataclass(frozen=True)
class Inspection:
    """All that there is to see."""

    texts: TextCounts
    nodes: Sequence[NodeCounts]
    links: Sequence[LinkCounts]
    paths: Sequence[PathReport]
    random_common_label: Share | None
    warnings: Sequence[str]


def inspect(
    corpus: Corpus,
    space: LabelSpace | None = None,
    paths: Sequence[MetaPath | str] | None = None,
    seed: int = 0,
    record_keys: Sequence[str] = (),
) -> Inspection:
    """Counts what a corpus holds and follows meta-paths through it; samples are decided by the seed.

    record_keys: the fields that records have, to name them where the schema asks for one that none has.
    """
    network = corpus.network()
    labelled = LabelledDocuments(corpus)
    wanted = default_paths(network) if paths is None else [MetaPath(str(path)) for path in paths]
    # A path that does not fit the schema is told before any of them is followed.
    for path in wanted:
        path.bind(corpus.schema)
    texts = count_texts(corpus, labelled, space, seed)
    nodes = [count_nodes(corpus, network, letter) for letter in corpus.schema.nodes]
    links = [count_links(network, letter) for letter in corpus.schema.links]
    reports = [
        follow(network, path, labelled, seed)
        for path in track(wanted, "following meta-paths", len(wanted), "paths")
    ]
    warnings = misfits(corpus, texts, nodes, links, labelled, space, record_keys)
    return Inspection(texts, nodes, links, reports, labelled.random_share(seed), warnings)


def default_paths(network: Network) -> list[MetaPath]:
    """The ten of the paper, or what corresponds to them under another schema."""
    schema = network.schema
    if schema == DEFAULT_SCHEMA:
        return list(PAPER_PATHS)
    return [MetaPath(path) for path in corresponding_paths(schema, multiple_nodes(network))]


def multiple_nodes(network: Network) -> list[str]:
    """Node letters of which some document has two values or more."""
    rows = {letter: np.diff(network.relations[letter].forward.indptr) for letter in network.schema.nodes}
    return [letter for letter, sizes in rows.items() if sizes.max(initial=0) > 1]


def corresponding_paths(schema: Schema, multiple: Sequence[str]) -> list[str]:
    d, nodes, links = schema.document, list(schema.nodes), list(schema.links)
    return [
        *(path for link in links for path in (f"{d}->{link}", f"{d}<-{link}")),
        *(f"{d}{node}{d}" for node in nodes),
        *(path for link in links for path in (f"{d}->{link}<-{d}", f"{d}<-{link}->{d}")),
        *(f"{d}({node}{node}){d}" for node in multiple),
        *(f"{d}({one}{other}){d}" for one, other in combinations(nodes, 2)),
        *(path for link in links for path in (f"{d}->({link}{link})<-{d}", f"{d}<-({link}{link})->{d}")),
    ]


def follow(network: Network, path: MetaPath, labelled: LabelledDocuments, seed: int) -> PathReport:
    """Coverage of a path; and, where labels are known, how often it joins documents that are alike."""
    reach = coverage(network, path, seed=seed)
    if not len(labelled.positions) or not reach.pairs:
        return PathReport(str(path), reach, None, None, 0, True)
    pairs = draw_pairs(network, path, PURITY_PAIRS, seed, documents=labelled.positions)
    common = labelled.common_share(pairs.anchor, pairs.positive, pairs.exhausted)
    # Anchors come in random order, each once before any comes again.
    anchors = list(dict.fromkeys(pairs.anchor.tolist()))
    found = labelled.divergences(
        anchors[:DIVERGENCE_DOCUMENTS], lambda anchor: path.reachable_positions(network, anchor)
    )
    exact = pairs.exhausted and len(anchors) <= DIVERGENCE_DOCUMENTS
    return PathReport(str(path), reach, common, mean_divergence(found), len(found), exact)
