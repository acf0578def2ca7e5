"""Gathers the evidence for each pair of a document and a candidate label, from every source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from micol.evidence.facts import LabelFacts, NameFacts, Standard, mention_worth
from micol.evidence.hierarchy import parents_then, specificity
from micol.evidence.memory import Memory
from micol.evidence.mentions import Mentions, NameMatcher, mentions_of
from micol.evidence.near import WHOLE, NearMatcher
from micol.evidence.sentences import sentences_of
from micol.labels import LabelSpace
from micol.ranking import Ranking
from micol.records import Document
from micol.retrieve.dense import search
from micol.sparse import Entries

if TYPE_CHECKING:
    from micol.rank.bi_encoder import BiEncoder

# What is known of a pair, in the order of the columns. A model without a cross-encoder has no last column.
FEATURES = (
    "named", "named_rarity", "in_title", "count", "early", "nested", "miswritten", "topicality",
    "seldom_titled",
    "near", "near_rarity", "share",
    "depth", "below",
    "name", "text", "sentence",
    "similar", "linked",
    "together",
)  # fmt: skip
TOGETHER = FEATURES[-1]
# The sources, as people are told of them.
SOURCES = {
    "named in the text": FEATURES[:9],
    "nearly named": FEATURES[9:12],
    "place in the hierarchy": ("depth", "below"),
    "meaning of the whole": ("name", "text"),
    "best sentence": ("sentence",),
    "similar documents": ("similar",),
    "linked documents": ("linked",),
    "read together": (TOGETHER,),
}
NEARBY = [FEATURES.index(name) for name in ("similar", "linked")]
BY_MEANING, BY_NEIGHBOURS = 60, 30
# Added to what is borrowed before the logarithm: a trace is as good as nothing.
TRACE, TAG_TRACE = 0.05, 0.001
# What neighbours would be tagged with counts as much as what they name.
SHARE_OF_TAGS = 0.5


@dataclass(frozen=True)
class Gathered:
    """Pairs by document and label, and for each a row of features."""

    keys: np.ndarray
    values: np.ndarray  # float32 [pairs, features]
    named_nearby: np.ndarray  # float32 [pairs, 2]: what similar and linked documents name, their tags aside
    documents: int
    labels: int
    mentions: Mentions
    vectors: np.ndarray
    sentence_vectors: np.ndarray
    sentence_bounds: np.ndarray

    @classmethod
    def without_texts(cls, keys: np.ndarray, values: np.ndarray, documents: int, labels: int) -> Gathered:
        """What weights are learned from, before any document is tagged; where texts say so is left out."""
        nothing = np.empty(0, np.float32)
        mentions = Mentions(*[nothing] * len(fields(Mentions)))
        return cls(keys, values, values[:, NEARBY], documents, labels, mentions, *[nothing] * 3)

    @classmethod
    def joined(cls, parts: Sequence[Gathered]) -> Gathered:
        """Several batches as one, for learning: where things stand in the texts is left out."""
        documents = np.cumsum([0, *(part.documents for part in parts)])
        keys = [part.keys + start * part.labels for part, start in zip(parts, documents, strict=False)]
        last = parts[-1]
        return replace(
            last,
            keys=np.concatenate(keys),
            values=np.concatenate([part.values for part in parts]),
            named_nearby=np.concatenate([part.named_nearby for part in parts]),
            documents=int(documents[-1]),
        )

    @property
    def rows(self) -> np.ndarray:
        rows: np.ndarray = self.keys // self.labels
        return rows

    @property
    def features(self) -> tuple[str, ...]:
        return FEATURES[: self.values.shape[1]]

    @cached_property
    def untagged(self) -> Gathered:
        """As if no document had been tagged yet: tags follow from all other evidence, so what is to be told
        by how sources agree must do without.
        """
        values = self.values.copy()
        values[:, NEARBY] = self.named_nearby
        return replace(self, values=values)

    def with_together(self, values: np.ndarray) -> Gathered:
        """With the column of what a cross-encoder says of each pair."""
        column = values.astype(np.float32)[:, None]
        return replace(self, values=np.concatenate([self.values, column], axis=1))

    def ranking(self, scores: np.ndarray) -> Ranking:
        labels = (self.keys % self.labels).astype(np.int32)
        return Ranking.from_entries(self.rows, labels, scores.astype(np.float32), self.documents)


@dataclass(frozen=True)
class Read:
    """What an encoder makes of documents and of their sentences."""

    vectors: np.ndarray
    sentence_vectors: np.ndarray
    bounds: np.ndarray  # of each document's sentences

    @classmethod
    def by(cls, encoder: BiEncoder, documents: Sequence[Document]) -> Read:
        sentences, bounds = sentences_of(documents)
        both = encoder.vectors([*(document.text for document in documents), *sentences])
        return cls(both[: len(documents)], both[len(documents) :], np.array(bounds))

    @classmethod
    def whole(cls, vectors: np.ndarray) -> Read:
        """Of documents that are known by their own vectors alone: their sentences are silent."""
        return cls(vectors, vectors[:0], np.zeros(len(vectors) + 1, np.int64))


@dataclass(frozen=True)
class LabelSide:
    """The labels as evidence sees them: their vectors, matchers and facts."""

    space: LabelSpace
    name_vectors: np.ndarray  # float16
    text_vectors: np.ndarray  # float16
    exact: NameMatcher
    covering: NameMatcher
    near: NearMatcher
    facts: LabelFacts
    # Of the labels that training knew, whatever became of them since: an edit of one moves no other.
    trained: NameFacts
    parents: csr_array  # [trained labels, labels]

    @classmethod
    def of(
        cls,
        memory: Memory,
        space: LabelSpace,
        name_vectors: np.ndarray,
        text_vectors: np.ndarray,
        facts: LabelFacts | None = None,
        trained: NameFacts | None = None,
    ) -> LabelSide:
        exact, near = NameMatcher(space.names), memory.near_matcher(space.names)
        same = space.names == memory.labels.names
        facts = facts or LabelFacts.of(
            memory,
            space.names,
            near,
            name_vectors,
            text_vectors,
            specificity(space, memory.labels),
            places_in(memory.labels, space),
        )
        if trained is None and same:
            trained = NameFacts(facts.rarity, facts.topicality, facts.seldom_titled)
        return cls(
            space,
            name_vectors,
            text_vectors,
            exact,
            exact if same else NameMatcher(memory.labels.names),
            near,
            facts,
            trained or NameFacts.of(memory, memory.labels.names)[0],
            parents_then(space, memory.labels),
        )

    def tagged(self, tags: csr_array) -> LabelSide:
        """The same labels, now that the remembered documents have been tagged with them."""
        return replace(self, facts=self.facts.with_tags(tags))

    def edited(
        self, memory: Memory, space: LabelSpace, name_vectors: np.ndarray, text_vectors: np.ndarray
    ) -> LabelSide:
        """After a change of labels: what is known of those that stay as they are is kept."""
        places = places_in(self.space, space)
        new = np.flatnonzero(places < 0)
        facts = self.facts.taken(places[places >= 0])
        if len(new):
            names = [space.names[position] for position in new]
            added = LabelFacts.of(
                memory,
                names,
                memory.near_matcher(names),
                name_vectors[new],
                text_vectors[new],
                specificity(space, memory.labels)[new],
                places_in(memory.labels, space)[new],
            )
            facts = facts.joined(added)
        order = np.empty(len(space), np.int64)
        order[np.concatenate([np.flatnonzero(places >= 0), new])] = np.arange(len(space))
        return LabelSide.of(memory, space, name_vectors, text_vectors, facts.taken(order), self.trained)

    @cached_property
    def both_vectors(self) -> np.ndarray:
        """Whose product with a document is that with the name plus that with the text."""
        return self.name_vectors.astype(np.float32) + self.text_vectors.astype(np.float32)


def places_in(known: LabelSpace, space: LabelSpace) -> np.ndarray:
    """Where each label of a space is among known ones, just as it is; -1: it is not."""
    if space.table.equals(known.table):
        return np.arange(len(space))
    places = {(label.id, label.names, label.text): position for position, label in enumerate(known)}
    return np.array([places.get((label.id, label.names, label.text), -1) for label in space])


def sources_among(features: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The sources that have these features."""
    return {source: names for source, names in SOURCES.items() if set(names) <= set(features)}


def gather(
    documents: Sequence[Document],
    read: Read,
    memory: Memory,
    side: LabelSide,
    *,
    candidates: Ranking | None = None,
    allowed: np.ndarray | None = None,
) -> Gathered:
    """All evidence about the documents' candidate labels, or about those given; nothing is read together."""
    texts = [document.text for document in documents]
    n, labels = len(documents), len(side.space)
    title_lengths = np.array([len(document.title) for document in documents])
    mentions = mentions_of(texts, title_lengths, side.exact, side.space.names, side.covering)
    near = side.near.match(texts)
    neighbours = memory.similar(read.vectors, memory.own_positions(documents)), memory.linked(documents)
    similar, linked = (borrowed(some, side.facts.mentions) for some in neighbours)
    mention_keys = mentions.rows.astype(np.int64) * labels + mentions.labels
    if candidates is not None:
        keys = np.unique(candidates.rows().astype(np.int64) * labels + candidates.labels)
    else:
        nearest = search(read.vectors, side.both_vectors, min(BY_MEANING, labels), allowed)
        keys = np.unique(
            np.concatenate(
                [
                    mention_keys,
                    near.keys[near.values >= WHOLE],
                    nearest.rows().astype(np.int64) * labels + nearest.labels,
                    similar.top(BY_NEIGHBOURS),
                ]
            )
        )
    if allowed is not None:
        keys = keys[allowed[keys % labels]]
    filled = np.array([bool(text) for text in texts], bool)
    keys = keys[filled[keys // labels]]
    rows, columns = keys // labels, keys % labels
    facts = side.facts

    def mentioned(values: np.ndarray) -> np.ndarray:
        return Entries(mention_keys, values.astype(np.float32), n, labels).at(keys)

    named = mentioned(np.ones(len(mention_keys)))
    share = near.at(keys) * (named == 0)
    by_similar = lift(similar.at(keys), facts.mention_mean[columns])
    by_linked = np.where(linked_rows(linked, n)[rows], lift(linked.at(keys), facts.mention_mean[columns]), 0)
    named_nearby = np.stack([by_similar, by_linked], axis=1).astype(np.float32)
    whole = (share >= WHOLE).astype(np.float32)
    values = [
        named,
        named * facts.rarity[columns],
        mentioned(mentions.in_title),
        mentioned(mentions.count),
        mentioned(mentions.early),
        mentioned(mentions.nested),
        mentioned(mentions.miswritten),
        named * facts.topicality[columns],
        named * facts.seldom_titled[columns],
        whole,
        whole * facts.near_rarity[columns],
        share,
        named * facts.specificity[columns],
        named_below(texts, title_lengths, mentions, memory, side).at(keys),
        *by_meaning(rows, columns, read, memory, side),
        *(
            with_tags(keys, some, facts, named)
            for some, named in zip(neighbours, named_nearby.T, strict=True)
        ),
    ]
    return Gathered(
        keys,
        np.stack(values, axis=1).astype(np.float32),
        named_nearby,
        n,
        labels,
        mentions,
        read.vectors,
        read.sentence_vectors,
        read.bounds,
    )


def named_below(
    texts: Sequence[str], title_lengths: np.ndarray, mentions: Mentions, memory: Memory, side: LabelSide
) -> Entries:
    """For each label what the best mention of a label below it is worth."""
    if not side.parents.nnz:
        nothing = np.empty(0, np.int64)
        return Entries.of(nothing, nothing, nothing, len(texts), len(side.space))
    if side.covering is not side.exact:
        names = memory.labels.names
        mentions = mentions_of(texts, title_lengths, side.covering, names, side.covering)
    worth = mention_worth(mentions, side.trained.rarity, side.trained.topicality)
    above = side.parents[mentions.labels].tocoo()  # [mentions, labels]
    return Entries.greatest(
        mentions.rows[above.row], above.col, worth[above.row], len(texts), len(side.space)
    )


def by_meaning(
    rows: np.ndarray, columns: np.ndarray, read: Read, memory: Memory, side: LabelSide
) -> list[np.ndarray]:
    """Cosines with the label's name and text and of the best sentence with its name: how far above what is
    usual for the document, and then for the label.
    """
    facts, vectors = side.facts, read.vectors
    names = side.name_vectors[columns].astype(np.float32)
    texts = side.text_vectors[columns].astype(np.float32)
    background_names = memory.background_names.astype(np.float32)
    background_texts = memory.background_texts.astype(np.float32)
    name = Standard.of(vectors @ background_names.T).apply(np.einsum("ij,ij->i", vectors[rows], names), rows)
    text = Standard.of(vectors @ background_texts.T).apply(np.einsum("ij,ij->i", vectors[rows], texts), rows)
    best = np.zeros(len(rows), np.float32)
    usual = np.zeros((len(vectors), len(background_names)), np.float32)
    places = np.searchsorted(rows, np.arange(len(vectors) + 1))
    for row, (start, end) in enumerate(pairwise(read.bounds)):
        some = read.sentence_vectors[start:end]
        if len(some):
            pairs = slice(places[row], places[row + 1])
            best[pairs] = (some @ names[pairs].T).max(axis=0)
            usual[row] = (some @ background_names.T).max(axis=0)
    sentence = Standard.of(usual).apply(best, rows)
    sentence = (sentence - facts.sentence_mean[columns]) / facts.sentence_spread[columns]
    has_sentences = np.diff(read.bounds) > 0
    return [
        (name - facts.name_mean[columns]) / facts.name_spread[columns],
        (text - facts.text_mean[columns]) / facts.text_spread[columns],
        np.where(has_sentences[rows], sentence, 0),
    ]


def borrowed(neighbours: csr_array, said: csr_array) -> Entries:
    """What the neighbours say of each label, by their weights; said is [labels, documents]."""
    found = (neighbours @ said.T).tocoo()
    return Entries.of(found.row, found.col, found.data, neighbours.shape[0], said.shape[0])


def with_tags(keys: np.ndarray, neighbours: csr_array, facts: LabelFacts, named: np.ndarray) -> np.ndarray:
    """What neighbours name, and how much more than usual they are tagged with a label, where they are."""
    rows, labels = keys // len(facts.tagged), keys % len(facts.tagged)
    odds = borrowed(neighbours, facts.tags).at(keys)
    tagged = np.where(np.diff(neighbours.indptr)[rows] > 0, lift(odds, facts.tag_mean[labels], TAG_TRACE), 0)
    both: np.ndarray = (1 - SHARE_OF_TAGS) * named + SHARE_OF_TAGS * tagged
    return np.where(facts.tagged[labels], both, named)


def linked_rows(linked: Entries, documents: int) -> np.ndarray:
    """Which documents have a linked document that names anything."""
    has = np.zeros(documents, bool)
    has[linked.keys // linked.labels] = True
    return has


def lift(found: np.ndarray, usual: np.ndarray, trace: float = TRACE) -> np.ndarray:
    """How much more than usual, as a logarithm."""
    lifted: np.ndarray = np.log((found + trace) / (usual + trace))
    return lifted
