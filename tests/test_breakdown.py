"""Slices, the report of each label, and Annif's measures against scikit-learn, which Annif uses."""

import csv

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, ndcg_score, precision_score, recall_score
from sklearn.preprocessing import MultiLabelBinarizer

from micol.breakdown import annif_measures, per_label, slices, write_per_label
from micol.evaluation import Gold, judge
from micol.predictions import Predictions


def judged(predictions, gold):
    return judge(Predictions.of(predictions), Gold.of(gold))


def test_slices_hold_a_third_of_the_gold_assignments_each():
    # 6 documents with the common label, 3 + 3 with two middling ones, 6 with one rare label each.
    gold = {f"d{i}": ["common", "mid1" if i < 3 else "mid2", f"rare{i}"] for i in range(6)}
    run = judged({f"d{i}": ["common", f"rare{i}"][: 1 + (i < 2)] for i in range(6)}, gold)
    labels = run.gold.labels.to_pylist()
    frequency = np.array([{"c": 100, "m": 50, "r": 1}[label[0]] for label in labels])
    head, middle, tail = slices([run], frequency)
    assert [head.name, middle.name, tail.name] == ["head", "middle", "tail"]
    assert [part.labels for part in (head, middle, tail)] == [1, 2, 6]
    assert [part.assignments for part in (head, middle, tail)] == [6, 6, 6]
    assert [(part.rarest, part.commonest) for part in (head, middle, tail)] == [(100, 100), (50, 50), (1, 1)]
    assert head.recall == {1: 1.0, 5: 1.0, 10: 1.0, 100: 1.0}
    assert set(middle.recall.values()) == {0.0}
    assert tail.recall == {1: 0.0, 5: 2 / 6, 10: 2 / 6, 100: 2 / 6}


def test_labels_of_one_frequency_stay_in_one_slice():
    run = judged({"a": ["x"]}, {"a": ["x", "y", "z"]})
    (only,) = slices([run], np.zeros(3, int))
    assert (only.name, only.labels, only.assignments) == ("head", 3, 3)


def test_per_label_report(tmp_path):
    gold = {"a": ["x", "y"], "b": ["x"]}
    runs = [judged({"a": ["x", "w"], "b": ["y", "x"]}, gold), judged({"a": ["x"], "b": ["w", "z"]}, gold)]
    rows = {row.label: row for row in per_label(runs, {"x": "Ex"}, {"x": 5})}
    assert list(rows) == ["x", "y", "w", "z"]
    assert (rows["x"].name, rows["x"].training_documents, rows["x"].gold) == ("Ex", 5, 2)
    assert (rows["x"].suggested, rows["x"].right) == (1.5, 1.5)
    assert (rows["x"].precision, rows["x"].recall) == (1.0, 0.75)
    assert (rows["w"].gold, rows["w"].suggested, rows["w"].f1) == (0, 1.0, 0.0)
    path = tmp_path / "labels.csv"
    write_per_label(list(rows.values()), path)
    with path.open(newline="") as file:
        read = list(csv.DictReader(file))
    assert read[0] == {
        "label": "x",
        "name": "Ex",
        "training_documents": "5",
        "gold": "2",
        "suggested@5": "1.5",
        "right@5": "1.5",
        "precision@5": "1.0000",
        "recall@5": "0.7500",
        "f1@5": "0.8571",
    }


labels = st.sampled_from([f"l{i}" for i in range(8)])
ranked = st.lists(labels, unique=True, max_size=7)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(ranked, st.sets(labels, min_size=1)), min_size=2, max_size=6))
def test_annif_measures_equal_scikit_learn(rows):
    predictions = {f"d{i}": ranking for i, (ranking, _) in enumerate(rows)}
    gold = {f"d{i}": wanted for i, (_, wanted) in enumerate(rows)}
    measured = annif_measures(judged(predictions, gold))
    binarizer = MultiLabelBinarizer(classes=[f"l{i}" for i in range(8)])
    truth = binarizer.fit_transform(gold.values())

    def first(k):
        return binarizer.transform([ranking[:k] for ranking in predictions.values()])

    options = {"average": "samples", "zero_division": 0}
    expected = {
        "Precision (doc avg)": precision_score(truth, first(99), **options),
        "Recall (doc avg)": recall_score(truth, first(99), **options),
        "F1 score (doc avg)": f1_score(truth, first(99), **options),
        "Precision (microavg)": precision_score(truth, first(99), average="micro", zero_division=0),
        "Recall (microavg)": recall_score(truth, first(99), average="micro", zero_division=0),
        "F1 score (microavg)": f1_score(truth, first(99), average="micro", zero_division=0),
        "F1@5": f1_score(truth, first(5), **options),
        "Precision@1": precision_score(truth, first(1), **options),
        "Precision@3": precision_score(truth, first(3), **options),
        "Precision@5": precision_score(truth, first(5), **options),
        "True positives": (truth & first(99)).sum(),
        "False positives": (first(99) & ~truth & 1).sum(),
        "False negatives": (truth & ~first(99) & 1).sum(),
        "Documents evaluated": len(rows),
    }
    for name, value in expected.items():
        assert measured[name] == pytest.approx(value), name
    assert list(measured) == [*list(expected)[:7], "NDCG", "NDCG@5", "NDCG@10", *list(expected)[7:]]


def test_annif_ndcg_by_hand():
    measured = annif_measures(judged({"a": ["x", "w", "y"], "b": []}, {"a": ["x", "y"], "b": ["x"]}))
    ideal = 1 + 1 / np.log2(3)
    for name in ("NDCG", "NDCG@5", "NDCG@10"):
        assert measured[name] == pytest.approx((1 + 1 / 2) / ideal / 2)


def test_annif_ndcg_equals_scikit_learn_where_every_label_is_ranked():
    random = np.random.default_rng(0)
    names = [f"l{i}" for i in range(12)]
    predictions = {f"d{i}": random.permutation(names).tolist() for i in range(20)}
    gold = {f"d{i}": random.permutation(names)[: random.integers(1, 8)].tolist() for i in range(20)}
    truth = np.array([[label in gold[d] for label in names] for d in predictions], int)
    scores = np.array([[-ranking.index(label) for label in names] for ranking in predictions.values()])
    measured = annif_measures(judged(predictions, gold))
    assert measured["NDCG"] == pytest.approx(ndcg_score(truth, scores))
    assert measured["NDCG@5"] == pytest.approx(ndcg_score(truth, scores, k=5))
    assert measured["NDCG@10"] == pytest.approx(ndcg_score(truth, scores, k=10))
