"""Which meta-path to train on, and whether training has helped, judged without labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, diags_array

from micol.corpus import Corpus
from micol.evidence.fusion import SURE
from micol.evidence.mentions import NameMatcher
from micol.evidence.sentences import spans
from micol.inspection import default_paths
from micol.labels import LabelSpace
from micol.pairs import draw_pairs
from micol.progress import track
from micol.ranking import row_numbers

if TYPE_CHECKING:
    from micol.rank.bi_encoder import BiEncoder

# Pairs by which a path is judged; fewer than LEAST_PAIRS are no ground to judge on, nor to train on.
JUDGED_PAIRS = 20_000
LEAST_PAIRS = 500
# Documents whose titles are hidden to see whether training has helped.
HIDDEN_TITLES = 2_000


@dataclass(frozen=True)
class PathJudgement:
    """How alike the documents are that a path joins, and for how many documents it has a partner."""

    path: str
    pairs: int
    # Mean cosine of what the two documents of a pair name, above that of random pairs; rare names weigh more.
    likeness: float
    coverage: float

    @property
    def score(self) -> float:
        """Likeness, less where few documents are reached: the encoder sees those again and again."""
        return float(self.likeness * np.sqrt(self.coverage)) if self.pairs >= LEAST_PAIRS else 0.0

    def sentence(self) -> str:
        if self.pairs < LEAST_PAIRS:
            return f"{self.path}: only {self.pairs:,} pairs"
        return (
            f"{self.path}: likeness {self.likeness:.3f}, coverage {self.coverage:.0%}, score {self.score:.3f}"
        )


def judge_paths(corpus: Corpus, labels: LabelSpace, seed: int) -> list[PathJudgement]:
    """The paths of the corpus' network, best first. No document's labels are read.

    Two documents that name the same rare labels are about the same thing. A path whose pairs do so more than
    random ones teaches the encoder what the labels are about; one through hubs (a journal, a paper that all
    cite) does not.
    """
    network = corpus.network()
    named = named_labels(corpus.texts(), labels)
    generator = np.random.default_rng((seed, 6))
    random = likeness(named, *generator.integers(len(corpus), size=(2, JUDGED_PAIRS)))
    judged = []
    for path in track(default_paths(network), "judging meta-paths", unit="paths"):
        pairs = draw_pairs(network, path, JUDGED_PAIRS, seed=seed)
        found = len(pairs.anchor)
        alike = likeness(named, pairs.anchor, pairs.positive) - random if found else 0.0
        coverage = len(np.unique(pairs.anchor)) / min(len(corpus), JUDGED_PAIRS)
        judged.append(PathJudgement(str(path), found, float(alike), float(coverage)))
    return sorted(judged, key=lambda judgement: -judgement.score)


def named_labels(texts: Sequence[str], labels: LabelSpace) -> csr_array:
    """For each document a unit vector of what it names, weighed by rarity, number and title."""
    found = NameMatcher(labels.names).match(texts)
    frequency = np.bincount(found.labels, minlength=len(labels))
    rarity = np.log(np.maximum(len(texts) / (frequency + 1), 1))
    weights = (1 + found.in_title(texts)) * np.log1p(found.counts) * rarity[found.labels]
    shape = (len(texts), len(labels))
    named = csr_array((weights.astype(np.float32), found.labels, found.indptr), shape=shape)
    lengths = np.sqrt(np.bincount(row_numbers(found.indptr), weights**2, len(texts)))
    return csr_array(diags_array((1 / np.maximum(lengths, 1e-9)).astype(np.float32)) @ named)


def likeness(named: csr_array, first: np.ndarray, second: np.ndarray) -> float:
    return float(named[first].multiply(named[second]).sum() / max(len(first), 1))


@dataclass(frozen=True)
class HiddenTitles:
    """Documents without their titles, and the labels that the titles name.

    Where there is no title, the first sentence stands for it.
    """

    abstracts: list[str]
    labels: np.ndarray  # positions of the labels that any of the titles names
    texts: list[str]  # what stands for each of them
    rows: np.ndarray  # of a document and a label that its title names:
    columns: np.ndarray

    @classmethod
    def of(cls, corpus: Corpus, labels: LabelSpace, seed: int) -> HiddenTitles | None:
        """None where too few documents have a title that names a label, or an abstract."""
        some = np.random.default_rng((seed, 7)).permutation(len(corpus))[: 5 * HIDDEN_TITLES]
        table = corpus.table.select(["title", "abstract"]).take(some)
        both = zip(table["title"].to_pylist(), table["abstract"].to_pylist(), strict=True)
        titles, abstracts = zip(*(headed(title, abstract) for title, abstract in both), strict=True)
        found = NameMatcher(labels.names).match(titles)
        named = np.diff(found.indptr) > 0
        fit = [i for i in np.flatnonzero(named) if abstracts[i]][:HIDDEN_TITLES]
        if len(fit) < 50:
            return None
        rows = np.repeat(np.arange(len(fit)), np.diff(found.indptr)[fit])
        columns = np.concatenate([found.labels[found.indptr[i] : found.indptr[i + 1]] for i in fit])
        positions, columns = np.unique(columns, return_inverse=True)
        texts = labels.texts()
        return cls([abstracts[i] for i in fit], positions, [texts[i] for i in positions], rows, columns)

    def gain(self, encoder: BiEncoder) -> np.ndarray:
        """For each document how high the labels of its title come by the meaning of its abstract alone.

        The reciprocal rank of each, rare labels weighing more, as a share of the best attainable.
        """
        scores = encoder.vectors(self.abstracts) @ encoder.vectors(self.texts).T
        # What is usual for a label tells nothing about a document.
        scores -= scores.mean(axis=0)
        own = scores[self.rows, self.columns]
        # Of those with an equal score half are taken to stand above.
        above = np.array(
            [
                (scores[row] > score).sum() + ((scores[row] == score).sum() - 1) / 2
                for row, score in zip(self.rows, own, strict=True)
            ]
        )
        weights = 1 / np.log(2 + np.bincount(self.columns)[self.columns])
        reached = np.bincount(self.rows, weights / np.log2(2 + above), len(self.abstracts))
        total: np.ndarray = reached / np.bincount(self.rows, weights, len(self.abstracts))
        return total


def headed(title: str, abstract: str) -> tuple[str, str]:
    """What stands at the head of a document, and the rest."""
    if title or not abstract:
        return title, abstract
    end = spans(abstract)[0][1]
    return abstract[:end], abstract[end:].strip()


@dataclass(frozen=True)
class TrainingVerdict:
    """Whether the trained encoder surely finds the labels of hidden titles better than the untrained one.

    What hardly helps the encoder alone may cost where all evidence is fused.
    """

    before: float
    after: float
    error: float  # the standard error of the difference
    documents: int

    @property
    def helped(self) -> bool:
        return self.after - self.before > SURE * self.error

    def sentence(self) -> str:
        if self.helped:
            change = "helped, so it is used"
        else:
            change = "did not surely help, so the untrained encoder is used"
        return (
            f"training {change}: labels of {self.documents:,} hidden titles found by the abstract alone, "
            f"{self.before:.4f} before and {self.after:.4f} after (standard error {self.error:.4f})"
        )


def verdict(hidden: HiddenTitles, untrained: BiEncoder, trained: BiEncoder) -> TrainingVerdict:
    before, after = hidden.gain(untrained), hidden.gain(trained)
    error = (after - before).std(ddof=1) / np.sqrt(len(before))
    return TrainingVerdict(float(before.mean()), float(after.mean()), float(error), len(before))
