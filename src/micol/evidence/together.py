"""Document and label read together: what a cross-encoder adds to the evidence, for the likeliest labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from micol.evidence.facts import Standard
from micol.evidence.fusion import rough_weights
from micol.evidence.gather import SOURCES, Gathered
from micol.labels import LabelSpace
from micol.ranking import Ranking
from micol.records import Document
from micol.sparse import Entries

if TYPE_CHECKING:
    from micol.rank.cross_encoder import CrossEncoder

# Labels of each document that are read with it, the best by all other evidence: every one takes a pass.
READ = 20
# Further labels, the same for every document, that tell what is usual for it.
USUAL = 20


@dataclass(frozen=True)
class Reader:
    """A cross-encoder, and the labels as it reads them."""

    encoder: CrossEncoder
    labels: list[np.ndarray]  # tokens of each
    usual: list[np.ndarray]  # of some that training knew: labels that come and go must not change the usual

    @classmethod
    def of(cls, encoder: CrossEncoder, labels: LabelSpace, known: LabelSpace) -> Reader:
        """For the labels as they are now; `known` are those of training."""
        texts = known.texts()
        some = np.unique(np.linspace(0, len(texts) - 1, USUAL).astype(int))
        usual = encoder.tokenize([texts[position] for position in some])
        return cls(encoder, encoder.tokenize(labels.texts()), usual)

    def edited(self, labels: LabelSpace) -> Reader:
        return replace(self, labels=self.encoder.tokenize(labels.texts()))

    def read(self, documents: Sequence[Document], gathered: Gathered) -> Gathered:
        """With a further column: how far above what is usual for the document the score of each pair is.

        A label that was not read has the lowest score of those that were: the rest spoke against it.
        """
        # Which place in the hierarchy counts is not known before weights are learned.
        rough = gathered.values @ rough_weights(gathered.features, SOURCES["place in the hierarchy"])
        read = self.standardised(documents, gathered.ranking(rough).top(READ))
        found = Entries.of(read.rows(), read.labels, read.scores, gathered.documents, gathered.labels)
        lowest = read.scores[read.indptr[gathered.rows + 1] - 1]
        together = np.where(np.isin(gathered.keys, found.keys), found.at(gathered.keys), lowest)
        return gathered.with_together(together)

    def standardised(self, documents: Sequence[Document], pairs: Ranking) -> Ranking:
        """The scores of the pairs against those of the usual labels, which are read on the way."""
        n = len(self.labels)
        asked = np.flatnonzero(np.diff(pairs.indptr))
        rows = np.concatenate([pairs.rows(), np.repeat(asked, len(self.usual))])
        columns = np.concatenate([pairs.labels, n + np.tile(np.arange(len(self.usual)), len(asked))])
        both = Ranking.from_entries(rows, columns, np.zeros(len(rows)), len(pairs))
        tokens = self.encoder.tokenize([document.text for document in documents])
        scored = self.encoder.rank(tokens, [*self.labels, *self.usual], both)
        rows, of_pair = scored.rows(), scored.labels < n
        usual = np.zeros((len(pairs), len(self.usual)), np.float32)
        usual[rows[~of_pair], scored.labels[~of_pair] - n] = scored.scores[~of_pair]
        scores = Standard.of(usual).apply(scored.scores[of_pair], rows[of_pair])
        return Ranking.from_entries(rows[of_pair], scored.labels[of_pair], scores, len(pairs))
