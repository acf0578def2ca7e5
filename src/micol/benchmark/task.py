"""What every system works on: training and test documents, labels, candidates, and what systems share."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow.compute as pc

from micol.benchmark.conditions import Candidates, DataFiles
from micol.benchmark.kept import KeptArrays
from micol.corpus import TEXTS, Corpus
from micol.errors import MicolError
from micol.evaluation import Gold, LabelCounts, gains, judge
from micol.files import read_ids
from micol.labels import LabelSpace
from micol.predictions import Predictions
from micol.progress import say, say_left_out
from micol.ranking import Ranking
from micol.retrieve import BM25, ExactMatcher, retrieve
from micol.retrieve.candidates import read_candidates
from micol.schema import Schema
from micol.scoreboard import with_ratio

# As deep as the deepest measure looks.
DEPTH = 100


class Task:
    """A data set split into training and test documents, and how systems are judged on it."""

    def __init__(
        self,
        train: Corpus,
        test: Corpus,
        labels: LabelSpace,
        kept: KeptArrays,
        candidates: Candidates | None = None,
        weights: Mapping[str, str] | None = None,
    ) -> None:
        self.train, self.test, self.labels, self.kept = train, test, labels, kept
        self.candidate_source = candidates or Candidates()
        # Where the models of these hub ids lie on this machine.
        self.weights = dict(weights or {})

    @classmethod
    def read(
        cls,
        data: DataFiles,
        candidates: Candidates,
        kept: KeptArrays,
        weights: Mapping[str, str] | None = None,
    ) -> Task:
        schema = Schema.read(data.schema)
        labels = LabelSpace.read(data.labels, skip_bad=data.skip_bad)
        train = Corpus.read(data.docs, schema, skip_bad=data.skip_bad)
        left_out = [*labels.skipped, *train.skipped]
        if data.test:
            test = Corpus.read(data.test, schema, skip_bad=data.skip_bad)
            left_out += test.skipped
            tested = set(test.ids)
        else:
            assert data.test_ids is not None
            tested = read_ids(data.test_ids)
            test = train.select([at for at, name in enumerate(train.ids) if name in tested])
        train = train.select([at for at, name in enumerate(train.ids) if name not in tested])
        say_left_out(left_out, most=3)
        for corpus, what in ((train, "training"), (test, "test")):
            if not len(corpus):
                raise MicolError(
                    f"{corpus.source}: no {what} document is left; check [data] of the conditions"
                )
        if data.spaces:
            train, test = (with_spaces(corpus, data.spaces) for corpus in (train, test))
        return cls(train, test, labels, kept, candidates, weights)

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        """What results of the same data have in common."""
        return {
            "train": self.train.fingerprint[:16],
            "test": self.test.fingerprint[:16],
            "labels": self.labels.fingerprint[:16],
            "candidates": self.candidate_source.as_dict(),
        }

    @cached_property
    def test_texts(self) -> list[str]:
        return self.test.texts()

    @cached_property
    def label_texts(self) -> list[str]:
        return self.labels.texts()

    @cached_property
    def candidates(self) -> Ranking:
        """The retrieval stage, the same for every system: as the file has it, or exact names and BM25."""
        found = self.kept.get("candidates", self.fingerprint, self._retrieved)
        return Ranking(found["indptr"], found["labels"], found["scores"])

    def _retrieved(self) -> dict[str, np.ndarray]:
        source = self.candidate_source
        if source.file:
            return vars(read_candidates(source.file, self.test, self.labels))
        say(f"finding candidates of {len(self.test):,} documents among {len(self.labels):,} labels")
        ranking = retrieve(
            self.test_texts,
            exact=ExactMatcher(self.labels.names) if source.exact else None,
            bm25=BM25(self.label_texts),
            bm25_top=source.bm25_top,
            bm25_threshold=source.bm25_threshold,
        ).candidates
        return vars(ranking)

    def model(self, wanted: str | None) -> str | None:
        """Where a model lies: a hub id that this machine has a folder for becomes that folder."""
        from micol.rank.base import DEFAULT_BASE

        return self.weights.get(wanted or DEFAULT_BASE, wanted)

    @cached_property
    def _gold(self) -> Gold:
        return Gold.of(self.test)

    @cached_property
    def _rewards(self) -> np.ndarray | None:
        """For PSP and PSN; without labels of training documents no label is rarer than another."""
        counts = LabelCounts.of(self.train)
        if not counts.of_label:
            say(f"{self.train.source}: no training document has labels, so there is no PSP and no PSN")
            return None
        return counts.inverse_propensities(self._gold.labels.to_pylist())

    def scores(self, ranking: Ranking) -> dict[str, float]:
        """Every measure of `micol evaluate`, and the paper's ratio."""
        predictions = Predictions.from_ranking(ranking.top(DEPTH), self.test.ids, self.labels.ids)
        judged = judge(predictions, self._gold, known=frozenset(self.test.ids))
        return with_ratio({name: gain.score for name, gain in gains(judged, self._rewards).items()})

    def statistics(self) -> dict[str, float]:
        """The paper's tables of its data sets, and what retrieval leaves to be ranked."""
        gold = self._gold
        found = judge(
            Predictions.from_ranking(self.candidates, self.test.ids, self.labels.ids),
            gold,
            known=frozenset(self.test.ids),
        )
        hits = found.hits(int(np.diff(found.indptr).max(initial=0)))
        figures: dict[str, float] = {
            "training documents": len(self.train),
            "test documents": len(self.test),
            "test documents without labels": len(gold.without_labels),
            "labels": len(self.labels),
            "labels a test document": float(gold.sizes.mean()),
            "words a test document": float(np.mean([len(text.split()) for text in self.test_texts])),
            "candidates a test document": len(self.candidates.labels) / len(self.candidates),
            "recall of the candidates": float((hits / gold.sizes).mean()),
        }
        for field in self.train.schema.fields:
            _, values = self.train.lists(field)
            figures[f"{field}: different ones"] = len(pc.unique(values))
            figures[f"{field}: edges to training documents"] = len(values)
        return figures


def with_spaces(corpus: Corpus, characters: str) -> Corpus:
    """Texts in which some characters stand for spaces: the release joins the words of phrases with `_`."""
    table = corpus.table
    for name in TEXTS:
        column = table[name]
        for character in characters:
            column = pc.replace_substring(column, character, " ")
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return Corpus(table, corpus.schema, corpus.source, corpus.skipped)
