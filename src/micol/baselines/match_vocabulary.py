"""What MATCH reads: the words and metadata of documents as numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from micol.columns import strings
from micol.corpus import Corpus
from micol.labels import LabelSpace
from micol.retrieve.tokens import words

if TYPE_CHECKING:
    from micol.baselines.match import Match


class Sequences(NamedTuple):
    """For each document its metadata and its words, as numbers of the vocabulary."""

    metadata: list[np.ndarray]
    words: list[np.ndarray]


@dataclass(frozen=True)
class Vocabulary:
    """Words, and metadata as `field: value`, that several training documents have."""

    numbers: dict[str, int]
    fields: Sequence[str]

    @classmethod
    def of(cls, corpus: Corpus, min_count: int) -> Vocabulary:
        counts: Counter[str] = Counter()
        for text in corpus.texts():
            counts.update(set(words(text)))
        for tokens in metadata_tokens(corpus):
            counts.update(set(tokens))
        kept = sorted(token for token, count in counts.items() if count >= min_count)
        return cls({token: number for number, token in enumerate(kept)}, corpus.schema.fields)

    def __len__(self) -> int:
        return len(self.numbers)

    def sequences(self, corpus: Corpus, limits: Match) -> Sequences:
        return Sequences(
            [self.known(tokens)[: limits.max_metadata] for tokens in metadata_tokens(corpus)],
            [self.known(words(text))[: limits.max_words] for text in corpus.texts()],
        )

    def known(self, tokens: Sequence[str]) -> np.ndarray:
        return np.array([self.numbers[token] for token in tokens if token in self.numbers], dtype=np.int64)


def metadata_tokens(corpus: Corpus) -> list[list[str]]:
    """Of each document; no word looks like `field: value`, for words have no spaces."""
    tokens: list[list[str]] = [[] for _ in range(len(corpus))]
    for field in corpus.schema.fields:
        indptr, values = corpus.lists(field)
        flat = strings(values)
        for document, (start, stop) in enumerate(pairwise(indptr.tolist())):
            tokens[document] += [f"{field}: {value}" for value in flat[start:stop]]
    return tokens


def label_targets(corpus: Corpus, labels: LabelSpace) -> list[np.ndarray]:
    """The positions of each document's labels, those that the label space has."""
    position_of = {identifier: position for position, identifier in enumerate(labels.ids)}
    return [
        np.array(sorted({position_of[label] for label in gold if label in position_of}), dtype=np.int64)
        for gold in corpus.gold
    ]
