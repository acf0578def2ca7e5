"""Where the scores come from: head, middle and tail labels, each label by itself, and Annif's measures."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from micol.evaluation import Judged
from micol.files import replacing
from micol.ranking import row_numbers

SLICES = ("head", "middle", "tail")
SLICE_RECALL_AT = (1, 5, 10, 100)
REPORT_AT = 5


class Slice(NamedTuple):
    """Labels of like frequency, and which share of their gold assignments stands among the first k."""

    name: str
    labels: int
    rarest: int  # frequency of the rarest and of the most frequent label
    commonest: int
    assignments: int  # (document, gold label) pairs
    recall: dict[int, float]  # k -> share found among the first k suggestions


def slices(runs: Sequence[Judged], frequency: np.ndarray) -> list[Slice]:
    """Cuts the gold labels into thirds of equal weight, by falling frequency.

    Each slice holds about a third of all gold assignments: few labels at the head, many at the tail. Labels
    of one frequency stay together, so a slice may come out larger, and the last ones empty.
    """
    gold = runs[0].gold
    support = np.bincount(gold.codes, minlength=len(gold.labels))
    frequencies, group = np.unique(-frequency, return_inverse=True)
    weight = np.bincount(group, weights=support, minlength=len(frequencies))
    before = np.cumsum(weight) - weight
    third = np.minimum((before * len(SLICES) / weight.sum()).astype(int), len(SLICES) - 1)[group]
    found = {k: np.mean([_found(run, k) for run in runs], axis=0) for k in SLICE_RECALL_AT}
    cut = []
    for number, name in enumerate(SLICES):
        inside = third == number
        if inside.any():
            assignments = int(support[inside].sum())
            recall = {k: float(found[k][inside].sum() / assignments) for k in SLICE_RECALL_AT}
            rarest, commonest = int(frequency[inside].min()), int(frequency[inside].max())
            cut.append(Slice(name, int(inside.sum()), rarest, commonest, assignments, recall))
    return cut


def _among_first(judged: Judged, k: int) -> np.ndarray:
    return np.arange(len(judged.codes)) - judged.indptr[row_numbers(judged.indptr)] < k


def _found(judged: Judged, k: int) -> np.ndarray:
    """How often each gold label was found among the first k suggestions."""
    counted = judged.codes[judged.right & _among_first(judged, k)]
    return np.bincount(counted, minlength=len(judged.gold.labels))


class LabelRow(NamedTuple):
    """How one label fared among the first `REPORT_AT` suggestions; a mean where there are several runs."""

    label: str
    name: str
    training_documents: int | None
    gold: int
    suggested: float
    right: float

    @property
    def precision(self) -> float:
        return self.right / self.suggested if self.suggested else 0.0

    @property
    def recall(self) -> float:
        return self.right / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        return 2 * self.right / (self.suggested + self.gold)


def per_label(
    runs: Sequence[Judged], names: Mapping[str, str], training: Mapping[str, int] | None
) -> list[LabelRow]:
    """Every label that is somebody's gold label or was suggested; the most frequent gold labels first."""
    gold = runs[0].gold
    labels = gold.labels.to_pylist()
    support = dict(zip(labels, np.bincount(gold.codes, minlength=len(labels)).tolist()))
    right = dict(zip(labels, np.mean([_found(run, REPORT_AT) for run in runs], axis=0).tolist()))
    suggested: dict[str, float] = {}
    for run in runs:
        counted = run.predicted[_among_first(run, REPORT_AT)]
        times = np.bincount(counted, minlength=len(run.predictions.labels))
        for code in np.flatnonzero(times):
            label = run.predictions.labels[code].as_py()
            suggested[label] = suggested.get(label, 0.0) + float(times[code]) / len(runs)
    rows = [
        LabelRow(
            label,
            names.get(label, ""),
            None if training is None else training.get(label, 0),
            support.get(label, 0),
            suggested.get(label, 0.0),
            right.get(label, 0.0),
        )
        for label in {**support, **suggested}
    ]
    return sorted(rows, key=lambda row: (-row.gold, -row.suggested, row.label))


def write_per_label(rows: Sequence[LabelRow], path: str | Path) -> None:
    """Writes the report as CSV."""
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["label", "name", "training_documents", "gold", f"suggested@{REPORT_AT}", f"right@{REPORT_AT}"]
            + [f"{measure}@{REPORT_AT}" for measure in ("precision", "recall", "f1")]
        )
        for row in rows:
            training = "" if row.training_documents is None else row.training_documents
            shares = [f"{share:.4f}" for share in (row.precision, row.recall, row.f1)]
            counts = [f"{count:g}" for count in (row.suggested, row.right)]
            writer.writerow([row.label, row.name, training, row.gold, *counts, *shares])


def annif_measures(judged: Judged) -> dict[str, float]:
    """The measures that Annif has as well, under its names and by its definitions.

    They differ from the paper's in one point: where fewer than k labels are suggested, Precision@k divides by
    the number suggested, not by k.
    """
    gold_sizes, sizes = judged.gold.sizes, np.diff(judged.indptr)
    hits = judged.hits(judged.predictions.depth)
    true_positives, suggested, wanted = int(hits.sum()), int(sizes.sum()), int(gold_sizes.sum())
    measures = {
        "Precision (doc avg)": _mean_share(hits, sizes),
        "Recall (doc avg)": _mean_share(hits, gold_sizes),
        "F1 score (doc avg)": _mean_share(2 * hits, sizes + gold_sizes),
        "Precision (microavg)": true_positives / max(suggested, 1),
        "Recall (microavg)": true_positives / wanted,
        "F1 score (microavg)": 2 * true_positives / (suggested + wanted),
        "F1@5": _mean_share(2 * judged.hits(5), np.minimum(sizes, 5) + gold_sizes),
        "NDCG": _mean_ndcg(judged, judged.predictions.depth + int(gold_sizes.max())),
        "NDCG@5": _mean_ndcg(judged, 5),
        "NDCG@10": _mean_ndcg(judged, 10),
    }
    for k in (1, 3, 5):
        measures[f"Precision@{k}"] = _mean_share(judged.hits(k), np.minimum(sizes, k))
    measures["True positives"] = true_positives
    measures["False positives"] = suggested - true_positives
    measures["False negatives"] = wanted - true_positives
    measures["Documents evaluated"] = len(judged.gold)
    return measures


def _mean_share(parts: np.ndarray, wholes: np.ndarray) -> float:
    return float(np.mean(parts / np.maximum(wholes, 1)))


def _mean_ndcg(judged: Judged, k: int) -> float:
    rows = row_numbers(judged.indptr)
    rank = np.arange(len(judged.codes)) - judged.indptr[rows]
    gain = np.where(judged.right & (rank < k), 1 / np.log2(rank + 2), 0)
    dcg = np.bincount(rows, weights=gain, minlength=len(judged.gold))
    ideal = np.concatenate([[0], np.cumsum(1 / np.log2(np.arange(k) + 2))])
    return float(np.mean(dcg / ideal[np.minimum(judged.gold.sizes, k)]))
