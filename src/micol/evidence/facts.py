"""What is known of each label on its own: the facts of one do not change with the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from scipy.sparse import csr_array, hstack

from micol.evidence.memory import Memory
from micol.evidence.mentions import Mentions, NameMatcher, mentions_of
from micol.evidence.near import NearMatcher

# Topicality of a label that few documents name is taken to be this much like that of a usual one.
PRIOR_DOCUMENTS = 5
USUAL_TOPICALITY = 0.2
# Added to the spread of a label's scores, so that one that hardly varies is not blown up.
LEAST_SPREAD = 0.3
# What a mention is worth before weights are learned: as published for the first three, one for the others.
MENTION = {
    "rarity": 2.5, "in_title": 1.5, "count": 0.5, "nested": -1.0, "miswritten": -1.0, "topicality": 1.0,
}  # fmt: skip


@dataclass(frozen=True)
class Standard:
    """How the scores of a document spread over the background: what is usual for it."""

    mean: np.ndarray
    spread: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray) -> Standard:
        """scores [documents, background]"""
        return cls(scores.mean(axis=1), scores.std(axis=1) + 1e-6)

    def apply(self, scores: np.ndarray, rows: np.ndarray | slice | int) -> np.ndarray:
        standard: np.ndarray = (scores - self.mean[rows]) / self.spread[rows]
        return standard


@dataclass(frozen=True)
class NameFacts:
    """What the remembered documents tell of the names of labels, an entry for each label."""

    rarity: np.ndarray  # 1: no document names it, 0: all do
    topicality: np.ndarray  # how alike the documents are that name it; 1 is usual
    seldom_titled: np.ndarray  # 0: as often in a title as usual or more, 1: never

    @classmethod
    def of(cls, memory: Memory, names: Sequence[Sequence[str]]) -> tuple[NameFacts, Mentions]:
        """With the mentions in the remembered documents that they were found by."""
        matcher, known = NameMatcher(names), memory.labels.names
        covering = matcher if names == known else NameMatcher(known)
        found = mentions_of(memory.texts, memory.title_lengths, matcher, names, covering)
        frequency = np.bincount(found.labels, minlength=len(names))
        facts = cls(
            rarity_of(frequency, len(memory.texts)),
            topicality_of(memory, found, frequency),
            seldom_titled(memory, found, frequency),
        )
        return facts, found


@dataclass(frozen=True)
class LabelFacts:
    """An entry for each label."""

    rarity: np.ndarray
    topicality: np.ndarray
    seldom_titled: np.ndarray
    near_rarity: np.ndarray  # 1: no document has all words of a name, 0: all do
    specificity: np.ndarray  # how deep it stands in the hierarchy; 0 is usual
    # Mean and spread over the sample of the label's standardised scores: its name, its text, best sentence.
    name_mean: np.ndarray
    name_spread: np.ndarray
    text_mean: np.ndarray
    text_spread: np.ndarray
    sentence_mean: np.ndarray
    sentence_spread: np.ndarray
    mentions: csr_array  # [labels, documents]: what each document's mention is worth
    mention_mean: np.ndarray
    tagged: np.ndarray  # whether remembered documents have been tagged with it
    tags: csr_array  # [labels, documents]: the odds that a document's tag is right
    tag_mean: np.ndarray

    @classmethod
    def of(
        cls,
        memory: Memory,
        names: Sequence[Sequence[str]],
        near: NearMatcher,
        name_vectors: np.ndarray,
        text_vectors: np.ndarray,
        specificity: np.ndarray,
        places: np.ndarray,
    ) -> LabelFacts:
        """The facts of these labels. Vectors are float16 [labels, dim]; places are those among the labels
        that training knew, or -1.
        """
        known, found = NameFacts.of(memory, names)
        documents, labels = len(memory.texts), len(names)
        worth = mention_worth(found, known.rarity, known.topicality)
        mentions = csr_array((worth, (found.labels, found.rows)), shape=(labels, documents))
        name, text, sentence = spreads(
            memory, name_vectors.astype(np.float32), text_vectors.astype(np.float32)
        )
        tags = memory.tags_at(places)
        return cls(
            known.rarity,
            known.topicality,
            known.seldom_titled,
            rarity_of(near.frequency(memory.counted_stems), len(memory.counted_stems)),
            specificity,
            *name,
            *text,
            *sentence,
            mentions,
            mean_of_rows(mentions),
            (places >= 0) & (memory.tags is not None),
            tags,
            mean_of_rows(tags),
        )

    def with_tags(self, tags: csr_array) -> LabelFacts:
        return replace(self, tagged=np.ones(len(self.tagged), bool), tags=tags, tag_mean=mean_of_rows(tags))

    def taken(self, positions: np.ndarray) -> LabelFacts:
        return LabelFacts(*(getattr(self, field.name)[positions] for field in fields(self)))

    def joined(self, other: LabelFacts) -> LabelFacts:
        """These labels, then the others."""
        columns = []
        for field in fields(self):
            both = [getattr(self, field.name), getattr(other, field.name)]
            if isinstance(both[0], csr_array):
                columns.append(csr_array(hstack([part.T for part in both]).T))
            else:
                columns.append(np.concatenate(both))
        return LabelFacts(*columns)


def mean_of_rows(values: csr_array) -> np.ndarray:
    mean: np.ndarray = np.asarray(values.sum(axis=1)).ravel() / values.shape[1]
    return mean


def rarity_of(frequency: np.ndarray, documents: int) -> np.ndarray:
    """From 1 for what none of the documents has to 0 for what all of them have."""
    rarity: np.ndarray = np.log((documents + 1) / (frequency + 1)) / np.log(documents + 1)
    return rarity.astype(np.float32)


def topicality_of(memory: Memory, found: Mentions, frequency: np.ndarray) -> np.ndarray:
    """Whether the documents that name a label are about one thing: mean cosine between any two of them, as a
    multiple of what is usual.

    The name of a topic gathers documents that are alike; a common word ("association") does not.
    """
    named = csr_array(
        (np.ones(len(found.rows), np.float32), (found.labels, found.rows)),
        shape=(len(frequency), len(memory.texts)),
    )
    sums = named @ memory.directions
    pairs = np.maximum(frequency * (frequency - 1.0), 1.0)
    mean = (np.einsum("ij,ij->i", sums, sums) - frequency) / pairs
    shrunk: np.ndarray = (frequency * mean + PRIOR_DOCUMENTS * USUAL_TOPICALITY) / (
        frequency + PRIOR_DOCUMENTS
    )
    return (shrunk / USUAL_TOPICALITY).astype(np.float32)


def seldom_titled(memory: Memory, found: Mentions, frequency: np.ndarray) -> np.ndarray:
    """How much less often than other names a label's stands in the title of a document that has it.

    What a document is about, its title tells; a common word ("method") stays in the text.
    """
    in_titles = np.bincount(found.labels, found.in_title, len(frequency))
    seldom: np.ndarray = np.maximum(1 - memory.titled.times_usual(in_titles, frequency), 0)
    return seldom.astype(np.float32)


def mention_worth(found: Mentions, rarity: np.ndarray, topicality: np.ndarray) -> np.ndarray:
    worth = (
        MENTION["rarity"] * rarity[found.labels]
        + MENTION["in_title"] * found.in_title
        + MENTION["count"] * found.count
        + MENTION["nested"] * found.nested
        + MENTION["miswritten"] * found.miswritten
        + MENTION["topicality"] * topicality[found.labels]
    )
    return np.maximum(worth, 0).astype(np.float32)


Moments = tuple[np.ndarray, np.ndarray]


def spreads(memory: Memory, names: np.ndarray, texts: np.ndarray) -> tuple[Moments, Moments, Moments]:
    """Mean and spread of each label's scores over the sample, for name, text and best sentence."""
    documents = memory.wide[memory.sample]
    background_names = memory.background_names.astype(np.float32)
    background_texts = memory.background_texts.astype(np.float32)
    by_name, by_text = (
        moments(Standard.of(documents @ background.T).apply((documents @ vectors.T).T, slice(None)).T)
        for vectors, background in ((names, background_names), (texts, background_texts))
    )
    sentences = memory.sentence_vectors.astype(np.float32)
    total, squares = np.zeros(len(names)), np.zeros(len(names))
    for start, end in zip(memory.sentence_bounds, memory.sentence_bounds[1:], strict=False):
        if start == end:
            continue
        usual = Standard.of((sentences[start:end] @ background_names.T).max(axis=0)[None])
        scores = usual.apply((sentences[start:end] @ names.T).max(axis=0), 0)
        total += scores
        squares += scores**2
    count = max(int((np.diff(memory.sentence_bounds) > 0).sum()), 1)
    mean = total / count
    spread = np.sqrt(np.maximum(squares / count - mean**2, 0)) + LEAST_SPREAD
    return by_name, by_text, (mean.astype(np.float32), spread.astype(np.float32))


def moments(scores: np.ndarray) -> Moments:
    """Mean and spread of each column."""
    return scores.mean(axis=0), scores.std(axis=0) + LEAST_SPREAD
