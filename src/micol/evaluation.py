"""The paper's measures: P@k, NDCG@k, PSP@k, PSN@k and recall at k, each as gained against attainable."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from micol.corpus import Corpus
from micol.errors import MicolError
from micol.predictions import Predictions, first_in_row, flatten
from micol.ranking import row_numbers
from micol.records import Tagged

PRECISION_AT, NDCG_AT, RECALL_AT = (1, 3, 5), (3, 5), (10, 50, 100)
PLAIN_METRICS = (
    *(f"P@{k}" for k in PRECISION_AT),
    *(f"NDCG@{k}" for k in NDCG_AT),
    *(f"R@{k}" for k in RECALL_AT),
)
PROPENSITY_METRICS = (*(f"PSP@{k}" for k in PRECISION_AT), *(f"PSN@{k}" for k in NDCG_AT))
# Jain et al. 2016 and the paper: 1/p_l = 1 + C (N_l + B)^-A, C = (log |D| - 1)(B + 1)^A.
A, B = 0.55, 1.5

GoldLabels = Corpus | Mapping[str, Collection[str]]
TrainLabels = Corpus | Iterable[Collection[str]] | Mapping[str, Collection[str]] | Mapping[str, int]


class Gains(NamedTuple):
    """What each document earned and could have earned; a score is the one sum divided by the other."""

    gained: np.ndarray  # float64 [documents]
    attainable: np.ndarray  # float64 [documents]

    @property
    def score(self) -> float:
        return float(self.gained.sum() / self.attainable.sum())


@dataclass(frozen=True)
class Gold:
    """The right labels of the documents that have any: row i is `labels[codes[indptr[i]:indptr[i + 1]]]`."""

    ids: list[str]
    indptr: np.ndarray  # int64 [documents + 1]
    codes: np.ndarray  # int64 [entries]
    labels: pa.StringArray  # distinct label ids
    without_labels: frozenset[str]  # documents that no measure can judge

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def sizes(self) -> np.ndarray:
        """How many right labels each document has."""
        return np.diff(self.indptr)

    @classmethod
    def of(cls, gold: GoldLabels | Gold, only: Collection[str] | None = None) -> Gold:
        """From a corpus or a mapping of document id to label ids; `only` names the documents to judge."""
        if isinstance(gold, Gold):
            return gold
        if isinstance(gold, Corpus):
            ids, (indptr, flat) = gold.ids, gold.lists("labels")
        else:
            ids, (indptr, flat) = list(gold), flatten(gold.values(), "gold")
        encoded = flat.dictionary_encode()
        codes = encoded.indices.to_numpy().astype(np.int64)
        rows = row_numbers(indptr)
        judged = np.ones(len(ids), bool)
        if only is not None:
            wanted = frozenset(only)
            judged = np.fromiter((document in wanted for document in ids), bool, len(ids))
        keep = judged[rows] & first_in_row(rows, codes, len(encoded.dictionary))
        sizes = np.bincount(rows[keep], minlength=len(ids))
        labelled = np.flatnonzero(sizes)
        if not len(labelled):
            raise MicolError(
                "no document to judge has gold labels; check that the documents carry `labels`"
                + ("" if only is None else " and that the ids are theirs")
            )
        # Labels of documents that are not judged drop out; the others are numbered anew.
        used = np.bincount(codes[keep], minlength=len(encoded.dictionary)) > 0
        codes = (np.cumsum(used) - 1)[codes[keep]]
        return cls(
            [ids[row] for row in labelled],
            np.concatenate([[0], np.cumsum(sizes[labelled])]),
            codes,
            encoded.dictionary.filter(pa.array(used)),
            frozenset(ids[row] for row in np.flatnonzero(judged & (sizes == 0))),
        )


@dataclass(frozen=True)
class Judged:
    """The predictions for the documents of `gold`, row by row, and which of them are right."""

    predictions: Predictions
    gold: Gold
    indptr: np.ndarray  # int64 [documents + 1]
    predicted: np.ndarray  # int64 [entries], positions in predictions.labels
    codes: np.ndarray  # int64 [entries], the same as positions in gold.labels; -1: nobody's gold label
    right: np.ndarray  # bool [entries]
    missing: list[str]  # documents that no prediction was made for; each counts as zero
    unknown: list[str]  # documents that were predicted but are not among the gold documents

    def first(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Codes and rightness of the first k predictions, [documents, k]; -1 and False beyond a row's end."""
        entries = self.indptr[:-1, None] + np.arange(k)
        inside = entries < self.indptr[1:, None]
        entries[~inside] = 0
        if not len(self.codes):
            return np.full(entries.shape, -1), inside
        return np.where(inside, self.codes[entries], -1), inside & self.right[entries]

    def hits(self, k: int) -> np.ndarray:
        """How many of the first k predictions of each document are right."""
        before = np.concatenate([[0], np.cumsum(self.right)])
        return before[np.minimum(self.indptr[:-1] + k, self.indptr[1:])] - before[self.indptr[:-1]]


def judge(predictions: Predictions, gold: Gold, known: Collection[str] = ()) -> Judged:
    """Sets predictions beside the gold labels; predictions for `known` documents are not called unknown."""
    row_of = {document: row for row, document in enumerate(predictions.ids)}
    rows = np.array([row_of.pop(document, -1) for document in gold.ids])
    unknown = [
        document for document in row_of if document not in gold.without_labels and document not in known
    ]
    found = rows >= 0
    if not found.any():
        raise MicolError(
            f"{predictions.source}: none of its {len(predictions):,} documents (such as "
            f"{predictions.ids[0]!r}) has gold labels here (documents such as {gold.ids[0]!r}); "
            "check that both files speak of the same documents"
        )
    sizes = np.where(found, np.diff(predictions.indptr)[rows], 0)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    entries = np.repeat(predictions.indptr[rows] - indptr[:-1], sizes) + np.arange(indptr[-1])
    in_gold = pc.index_in(predictions.labels, value_set=gold.labels).fill_null(-1).to_numpy()
    predicted = predictions.codes[entries]
    codes = in_gold[predicted].astype(np.int64)
    # One number for each (document, label): those of the gold labels are sorted and looked up in.
    gold_keys = np.sort(row_numbers(gold.indptr) * len(gold.labels) + gold.codes)
    keys = row_numbers(indptr) * len(gold.labels) + codes
    nearest = np.minimum(np.searchsorted(gold_keys, keys), len(gold_keys) - 1)
    right = (gold_keys[nearest] == keys) & (codes >= 0)
    missing = [gold.ids[row] for row in np.flatnonzero(~found)]
    return Judged(predictions, gold, indptr, predicted, codes, right, missing, unknown)


class LabelCounts(NamedTuple):
    """How many training documents carry each label, and how many training documents there are."""

    of_label: Mapping[str, int]
    documents: int

    @classmethod
    def of(cls, train_labels: TrainLabels, n_train: int | None = None) -> LabelCounts:
        """From a label collection for each training document, or from counts and `n_train`."""
        if isinstance(train_labels, Corpus):
            indptr, flat = train_labels.lists("labels")
            encoded = flat.dictionary_encode()
            rows, codes = row_numbers(indptr), encoded.indices.to_numpy().astype(np.int64)
            counts = np.bincount(codes[first_in_row(rows, codes, len(encoded.dictionary))])
            return cls(dict(zip(encoded.dictionary.to_pylist(), counts.tolist())), len(train_labels))
        if isinstance(train_labels, Mapping):
            if all(isinstance(value, int) for value in train_labels.values()):
                if n_train is None:
                    raise MicolError(
                        "train_labels are counts, from which the number of training documents cannot be "
                        "known; give it as n_train, or give the labels of each training document"
                    )
                return cls(dict(train_labels), n_train)  # type: ignore[arg-type]
            train_labels = train_labels.values()  # type: ignore[assignment]
        documents: Sequence[Collection[str]] = list(train_labels)  # type: ignore[arg-type]
        return cls(Counter(chain.from_iterable(map(frozenset, documents))), len(documents))

    def inverse_propensities(self, labels: Iterable[str]) -> np.ndarray:
        """1/p_l of each label: the reward for finding it, the higher the rarer it is in training."""
        if self.documents < 2:
            raise MicolError(
                f"propensities need the labels of at least two training documents, got {self.documents}"
            )
        counts = np.array([self.of_label.get(label, 0) for label in labels], np.float64)
        c = (np.log(self.documents) - 1) * (B + 1) ** A
        return 1 + c * (counts + B) ** -A


def gains(judged: Judged, inverse_propensities: np.ndarray | None = None) -> dict[str, Gains]:
    """Every measure, document by document; PSP and PSN where the rewards of the gold labels are given."""
    gold, each = judged.gold, np.ones(len(judged.gold))
    deepest = max(*PRECISION_AT, *NDCG_AT)
    discount = 1 / np.log2(np.arange(deepest) + 2)
    ideal = np.concatenate([[0], np.cumsum(discount)])
    codes, right = judged.first(deepest)
    measures = {f"P@{k}": Gains(right[:, :k].sum(1) / k, each) for k in PRECISION_AT}
    for k in NDCG_AT:
        dcg = right[:, :k] @ discount[:k]
        measures[f"NDCG@{k}"] = Gains(dcg / ideal[np.minimum(k, gold.sizes)], each)
    if inverse_propensities is not None:
        reward = np.where(right, inverse_propensities[codes], 0)
        best = _largest_rewards(gold, inverse_propensities, deepest)
        for k in PRECISION_AT:
            measures[f"PSP@{k}"] = Gains(reward[:, :k].sum(1), best[:, :k].sum(1))
        for k in NDCG_AT:
            measures[f"PSN@{k}"] = Gains(reward[:, :k] @ discount[:k], best[:, :k] @ discount[:k])
    for k in RECALL_AT:
        measures[f"R@{k}"] = Gains(judged.hits(k) / gold.sizes, each)
    return measures


def _largest_rewards(gold: Gold, rewards: np.ndarray, k: int) -> np.ndarray:
    """The k largest rewards that each document offers, falling, [documents, k]; zeros where it has fewer."""
    by_reward = np.argsort(-rewards)
    place = np.empty(len(rewards), np.int64)
    place[by_reward] = np.arange(len(rewards))
    # Sorting (document, place) as one number orders each document's labels by falling reward.
    rows = row_numbers(gold.indptr)
    places = np.sort(rows * len(rewards) + place[gold.codes]) % len(rewards)
    rank = np.arange(len(rows)) - gold.indptr[rows]
    first = rank < k
    largest = np.zeros((len(gold), k))
    largest[rows[first], rank[first]] = rewards[by_reward[places[first]]]
    return largest


def troubles(judged: Judged) -> list[str]:
    """What a reader of the scores must know, in sentences; empty where all is as it should be."""
    predictions, gold = judged.predictions, judged.gold
    source = predictions.source
    found = []
    if judged.missing:
        found.append(
            f"{source}: documents with gold labels but without predictions: {len(judged.missing):,} of "
            f"{len(gold):,}, such as {judged.missing[0]!r}; each counts as zero in every measure"
        )
    if judged.unknown:
        found.append(
            f"{source}: predicted documents that are not among those to judge: {len(judged.unknown):,}, "
            f"such as {judged.unknown[0]!r}; they were left out"
        )
    if predictions.repeated_labels:
        found.append(
            f"{source}: labels repeated in the list of their document: {predictions.repeated_labels:,}; "
            "only the first place counts, and the labels behind a repeated one move up"
        )
    if predictions.rising_rows:
        found.append(
            f"{source}: documents in which a label has a higher score than the one before it: "
            f"{predictions.rising_rows:,}; the order of the list was used, not the scores"
        )
    return found


def evaluate(
    predictions: Predictions | Iterable[Tagged] | Mapping[str, Sequence[str]],
    gold: GoldLabels,
    train_labels: TrainLabels | None = None,
    *,
    n_train: int | None = None,
) -> dict[str, float]:
    """Scores ranked labels against gold labels.

    predictions: `Tagged` values, or document id -> label ids, best first.
    gold: a corpus, or document id -> label ids. A document without gold labels cannot be judged and is left
        out; a document without predictions counts as zero. Both are told by a warning.
    train_labels: the labels of each training document (or label -> count, with `n_train` documents);
        with them, and only then, the propensity-scored measures are given.
    """
    predictions, judged_gold = Predictions.of(predictions), Gold.of(gold)
    judged = judge(predictions, judged_gold)
    rewards = None
    if train_labels is not None:
        counts = LabelCounts.of(train_labels, n_train)
        rewards = counts.inverse_propensities(judged_gold.labels.to_pylist())
    if judged_gold.without_labels:
        count = len(judged_gold.without_labels)
        warnings.warn(f"documents without gold labels, left out: {count:,}", stacklevel=2)
    for trouble in troubles(judged):
        warnings.warn(trouble, stacklevel=2)
    return {name: gain.score for name, gain in gains(judged, rewards).items()}
