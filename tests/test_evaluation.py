"""Measures equal a slow computation from their definitions; odd input is told, never averaged away."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import micol
from micol import Corpus, MicolError, Suggestion, Tagged
from micol.evaluation import Gold, LabelCounts, evaluate, gains, judge
from micol.predictions import Predictions
from micol.ranking import Ranking

PLAIN = ["P@1", "P@3", "P@5", "NDCG@3", "NDCG@5", "R@10", "R@50", "R@100"]
PROPENSITY = ["PSP@1", "PSP@3", "PSP@5", "PSN@3", "PSN@5"]


def slow_scores(predictions, gold, train):
    """From the formulas of the paper's sections 4.1 and 4.3, one document and one rank at a time."""
    scores = {}
    judged = {document: set(labels) for document, labels in gold.items() if labels}
    ranked = {document: list(predictions.get(document, [])) for document in judged}

    def mean(per_document):
        return sum(per_document) / len(judged)

    for k in (1, 3, 5):
        scores[f"P@{k}"] = mean(
            sum(1 for label in ranked[d][:k] if label in labels) / k for d, labels in judged.items()
        )
    for k in (3, 5):
        ndcg = []
        for d, labels in judged.items():
            dcg = sum(1 / math.log2(i + 1) for i, label in enumerate(ranked[d][:k], 1) if label in labels)
            ndcg.append(dcg / sum(1 / math.log2(i + 1) for i in range(1, min(k, len(labels)) + 1)))
        scores[f"NDCG@{k}"] = mean(ndcg)
    if train is not None:

        def reward(label):
            n_label = sum(1 for labels in train if label in labels)
            c = (math.log(len(train)) - 1) * (1.5 + 1) ** 0.55
            propensity = 1 / (1 + c * math.exp(-0.55 * math.log(n_label + 1.5)))
            return 1 / propensity

        for k in (1, 3, 5):
            got = sum(
                reward(label) for d, labels in judged.items() for label in ranked[d][:k] if label in labels
            )
            best = sum(sum(sorted(map(reward, labels), reverse=True)[:k]) for labels in judged.values())
            scores[f"PSP@{k}"] = got / best
        for k in (3, 5):
            got = best = 0.0
            for d, labels in judged.items():
                for i, label in enumerate(ranked[d][:k], 1):
                    got += reward(label) / math.log2(i + 1) if label in labels else 0
                for i, value in enumerate(sorted(map(reward, labels), reverse=True)[:k], 1):
                    best += value / math.log2(i + 1)
            scores[f"PSN@{k}"] = got / best
    for k in (10, 50, 100):
        scores[f"R@{k}"] = mean(
            sum(1 for label in set(ranked[d][:k]) if label in labels) / len(labels)
            for d, labels in judged.items()
        )
    return scores


def quietly(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return evaluate(*arguments, **options)


documents = st.sampled_from([f"d{i}" for i in range(6)])
labels = st.sampled_from([f"l{i}" for i in range(9)])
rankings = st.dictionaries(documents, st.lists(labels, unique=True, max_size=8), min_size=1)
gold_labels = st.dictionaries(documents, st.sets(labels, max_size=8), min_size=1).filter(
    lambda gold: any(gold.values())
)


@settings(max_examples=300, deadline=None)
@given(rankings, gold_labels, st.none() | st.lists(st.sets(labels, max_size=4), min_size=3, max_size=8))
def test_equals_the_definitions(predictions, gold, train):
    if not set(predictions) & {document for document in gold if gold[document]}:
        with pytest.raises(MicolError, match="none of its"):
            quietly(predictions, gold, train)
        return
    expected = slow_scores(predictions, gold, train)
    measured = quietly(predictions, gold, train)
    assert list(measured) == [
        name for name in [*PLAIN[:5], *PROPENSITY, *PLAIN[5:]] if train is not None or name not in PROPENSITY
    ]
    for name, value in expected.items():
        assert measured[name] == pytest.approx(value, abs=1e-9), name


def test_equals_the_definitions_on_long_lists():
    random = np.random.default_rng(0)
    label_ids = [f"l{i}" for i in range(400)]
    predictions = {
        f"d{i}": random.permutation(label_ids)[: random.integers(0, 150)].tolist() for i in range(60)
    }
    gold = {f"d{i}": random.permutation(label_ids)[: random.integers(0, 30)].tolist() for i in range(60)}
    train = [random.permutation(label_ids)[: random.integers(0, 20)].tolist() for _ in range(200)]
    expected = slow_scores(predictions, gold, [set(row) for row in train])
    assert quietly(predictions, gold, train) == pytest.approx(expected, abs=1e-9)


def test_a_worked_example():
    # One right label in second place; 2 gold labels; every label equally frequent in training.
    scores = evaluate({"d": ["wrong", "a"]}, {"d": ["a", "b"]}, [["a", "b"], ["a", "b"], ["x"]])
    assert scores["P@1"] == scores["PSP@1"] == 0
    assert scores["P@3"] == pytest.approx(1 / 3)
    assert scores["P@5"] == pytest.approx(1 / 5)
    assert scores["NDCG@3"] == pytest.approx((1 / math.log2(3)) / (1 + 1 / math.log2(3)))
    assert scores["PSP@3"] == scores["PSP@5"] == scores["R@10"] == 0.5


def test_a_perfect_ranking_scores_one_where_it_can():
    gold = {"d": ["rare", "common"]}
    scores = evaluate({"d": ["rare", "common"]}, gold, [["common"]] * 5)
    assert all(scores[name] == pytest.approx(1) for name in [*PROPENSITY, "P@1", "NDCG@3", "NDCG@5", "R@10"])
    # The wrong order of two right labels costs propensity-scored measures only.
    swapped = evaluate({"d": ["common", "rare"]}, gold, [["common"]] * 5)
    assert swapped["NDCG@3"] == pytest.approx(1)
    assert swapped["PSP@1"] < 1
    assert swapped["PSN@3"] < 1


def test_tagged_values_corpus_and_mapping_agree():
    corpus = Corpus.from_records(
        [{"id": "a", "title": "t", "labels": ["x", "y", "x"]}, {"id": "b", "title": "t", "labels": ["z"]}]
    )
    train = Corpus.from_records([{"id": f"t{i}", "title": "t", "labels": ["x"] * (i % 2)} for i in range(9)])
    tagged = [
        Tagged("a", (Suggestion("y", "Y", 0.9), Suggestion("q", "Q", 0.1))),
        Tagged("b", (Suggestion("z", "Z", 0.5),)),
    ]
    from_values = evaluate(iter(tagged), corpus, train)
    from_mappings = evaluate(
        {"a": ["y", "q"], "b": ["z"]}, {"a": {"x", "y"}, "b": ["z"]}, dict(zip(train.ids, train.gold))
    )
    assert from_values == pytest.approx(from_mappings, abs=1e-12)
    assert from_values == pytest.approx(evaluate(tagged, corpus, {"x": 4}, n_train=9), abs=1e-12)


def test_a_ranking_is_scored_without_going_through_strings():
    ranking = Ranking.from_rows([[(0, 0.9), (2, 0.5)], [(1, 0.2)]])
    predictions = Predictions.from_ranking(ranking, ["a", "b"], ["x", "y", "z"])
    gold = {"a": ["z"], "b": ["y"]}
    assert evaluate(predictions, gold) == evaluate({"a": ["x", "z"], "b": ["y"]}, gold)
    with pytest.raises(MicolError, match="2 documents was given 1"):
        Predictions.from_ranking(ranking, ["a"], ["x", "y", "z"])


def test_propensities_count_training_labels_only():
    counts = LabelCounts.of([["a", "a"], ["a"], []])
    assert counts.of_label == {"a": 2}
    assert counts.documents == 3
    rewards = counts.inverse_propensities(["a", "never seen"])
    c = (math.log(3) - 1) * 2.5**0.55
    assert rewards == pytest.approx([1 + c * 3.5**-0.55, 1 + c * 1.5**-0.55])


def test_the_package_exports_the_function():
    assert micol.evaluate is evaluate


@pytest.mark.parametrize(
    ("predictions", "gold", "sentence"),
    [
        ({"a": ["x"]}, {"a": ["x"], "b": ["y"]}, "without predictions: 1 of 2, such as 'b'"),
        ({"a": ["x"], "q": ["x"]}, {"a": ["x"]}, "not among those to judge: 1, such as 'q'"),
        ({"a": ["x", "x"]}, {"a": ["x"]}, "labels repeated in the list of their document: 1"),
        ({"a": ["x"]}, {"a": ["x"], "b": []}, "documents without gold labels, left out: 1"),
    ],
)
def test_warns_of(predictions, gold, sentence):
    with pytest.warns(UserWarning, match=sentence):
        evaluate(predictions, gold)


def test_a_repeated_label_counts_once_and_those_behind_it_move_up():
    assert quietly({"a": ["x", "x", "y"]}, {"a": ["x", "y"]}) == evaluate(
        {"a": ["x", "y"]}, {"a": ["x", "y"]}
    )


def test_rising_scores_are_told():
    tagged = [Tagged("a", (Suggestion("x", "X", 0.1), Suggestion("y", "Y", 0.9)))]
    with pytest.warns(UserWarning, match="higher score than the one before it: 1"):
        evaluate(tagged, {"a": ["x"]})


def test_documents_without_gold_labels_are_known_documents():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        evaluate({"a": ["x"], "b": ["x"]}, {"a": ["x"], "b": []})
    assert [str(warning.message) for warning in told] == ["documents without gold labels, left out: 1"]


@pytest.mark.parametrize(
    ("predictions", "gold", "train", "sentence"),
    [
        ({}, {"a": ["x"]}, None, "holds no predictions"),
        ({"a": ["x"]}, {"a": []}, None, "no document to judge has gold labels"),
        ({"b": ["x"]}, {"a": ["x"]}, None, "none of its 1 documents .such as 'b'"),
        ({"a": "xyz"}, {"a": ["x"]}, None, "expected a list of label ids for each document, got 'xyz'"),
        ({"a": [3]}, {"a": ["x"]}, None, "label ids must be strings"),
        ({"a": ["x"]}, {"a": "xyz"}, None, "gold: expected a list of label ids"),
        ([{"id": "a"}], {"a": ["x"]}, None, "expected micol.Tagged values"),
        ([Tagged("a", ()), Tagged("a", ())], {"a": ["x"]}, None, "document 'a' has 2 rows"),
        ({"a": ["x"]}, {"a": ["x"]}, {"x": 3}, "give it as n_train"),
        ({"a": ["x"]}, {"a": ["x"]}, [], "at least two training documents, got 0"),
    ],
)
def test_stops_with_a_sentence(predictions, gold, train, sentence):
    with pytest.raises(MicolError, match=sentence):
        evaluate(predictions, gold, train)


def test_gold_of_some_documents_only():
    gold = Gold.of({"a": ["x"], "b": ["y"], "c": []}, only={"b", "c"})
    assert gold.ids == ["b"]
    assert gold.labels.to_pylist() == ["y"]
    assert gold.without_labels == {"c"}
    judged = judge(Predictions.of({"a": ["x"], "b": ["y"]}), gold, known={"a"})
    assert judged.unknown == judged.missing == []
    assert gains(judged)["P@1"].score == 1
