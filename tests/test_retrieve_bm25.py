"""BM25 against the formula written out, and against bm25s."""

import math

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from micol.errors import MicolError, UsageError
from micol.ranking import Ranking
from micol.retrieve import BM25
from micol.retrieve.tokens import words

WORDS = ["graph", "tree", "cell", "Cell", "rna", "the", "of", "C++", "数据"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


def naive_scores(
    label_texts: list[str],
    document: str,
    k1: float = 1.5,
    b: float = 0.75,
    repeats: str = "once",
    stop_words: frozenset[str] = frozenset(),
) -> list[float]:
    """The formula of docs/retrieval.md, label by label and word by word."""
    labels = [[word for word in words(text) if word not in stop_words] for text in label_texts]
    average = sum(map(len, labels)) / len(labels)
    in_document = words(document)
    scores = []
    for label in labels:
        score = 0.0
        for word in set(in_document) & set(label):
            times = math.log2(1 + in_document.count(word)) if repeats == "log" else 1
            having = sum(word in other for other in labels)
            idf = math.log(1 + (len(labels) - having + 0.5) / (having + 0.5))
            tf = label.count(word)
            score += times * idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * len(label) / average))
        scores.append(score)
    return scores


def check_row(ranking: Ranking, row: int, scores: list[float], top: int, threshold: float) -> None:
    """Right scores, none better left out, in order; scores a rounding apart may change places."""
    labels, found = ranking.row(row)
    wanted = sorted((score for score in scores if score > threshold), reverse=True)[:top]
    assert found == pytest.approx(wanted, rel=1e-6)
    assert [scores[label] for label in labels] == pytest.approx(wanted, rel=1e-6)
    assert len(set(labels.tolist())) == len(labels)
    pairs = list(zip((-found).tolist(), labels.tolist()))
    assert pairs == sorted(pairs)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(TEXTS, min_size=1, max_size=12),
    st.lists(TEXTS, max_size=4),
    st.integers(1, 13),
    st.sampled_from([0.5, 1.5]),
    st.sampled_from([0.0, 0.75, 1.0]),
)
def test_equals_the_formula(label_texts, documents, top, k1, b):
    ranking = BM25(label_texts, k1, b).search(documents, top)
    assert len(ranking) == len(documents)
    for row, document in enumerate(documents):
        check_row(ranking, row, naive_scores(label_texts, document, k1, b), top, 0.0)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(TEXTS, min_size=1, max_size=12),
    TEXTS,
    st.sampled_from(["once", "log"]),
    st.sampled_from([frozenset(), frozenset({"the", "of", "cell"})]),
)
def test_variants_equal_the_formula(label_texts, document, repeats, stop_words):
    ranking = BM25(label_texts, repeats=repeats, stop_words=stop_words).search([document])
    scores = naive_scores(label_texts, document, repeats=repeats, stop_words=stop_words)
    check_row(ranking, 0, scores, 50, 0.0)


@pytest.fixture(scope="module")
def many() -> tuple[list[str], list[str]]:
    """1,500 label texts and 60 documents of words as rare and common as in real text."""
    rng = np.random.default_rng(7)
    frequency = 1 / np.arange(1, 4001)
    frequency /= frequency.sum()

    def text(length: int) -> str:
        return " ".join(f"w{word}" for word in rng.choice(4000, size=length, p=frequency))

    return [text(int(n)) for n in rng.integers(1, 50, 1500)], [text(200) for _ in range(60)]


def test_equals_bm25s(many):
    label_texts, documents = many
    k1, b, top = 1.5, 0.75, 100
    theirs = bm25s.BM25(method="lucene", k1=k1, b=b, dtype="float64")
    theirs.index([words(text) for text in label_texts], show_progress=False)
    queries = [sorted(set(words(text))) for text in documents]
    _, scores = theirs.retrieve(queries, k=top, show_progress=False)
    ranking = BM25(label_texts, k1, b).search(documents, top)
    for row in range(len(documents)):
        labels, found = ranking.row(row)
        # bm25s leaves out the constant factor k1 + 1.
        assert found == pytest.approx(scores[row] * (k1 + 1), rel=1e-6)
        everything = theirs.get_scores(queries[row])
        assert found == pytest.approx(everything[labels] * (k1 + 1), rel=1e-6)


def test_threshold_top_and_both(many):
    label_texts, documents = many
    bm25 = BM25(label_texts)
    for document in documents[:10]:
        scores = naive_scores(label_texts[:200], document)
        eta = sum(sorted(scores)[-21:-19]) / 2
        small = BM25(label_texts[:200])
        check_row(small.search([document], top=None, threshold=eta), 0, scores, 200, eta)
        check_row(small.search([document], top=5, threshold=eta), 0, scores, 5, eta)
        assert len(small.search([document], top=None).labels) == sum(score > 0 for score in scores)
    assert np.diff(bm25.search(documents, top=7).indptr).tolist() == [7] * len(documents)


def test_a_score_does_not_depend_on_what_else_is_asked(many):
    label_texts, documents = many
    bm25 = BM25(label_texts)
    together = bm25.search(documents, 50)
    alone = Ranking.concatenate([bm25.search([document], 10) for document in documents])
    assert np.array_equal(together.top(10).labels, alone.labels)
    assert np.array_equal(together.top(10).scores, alone.scores)


def test_ties_by_label_position():
    ranking = BM25(["cell"] * 200).search(["a cell"], top=3)
    assert ranking.labels.tolist() == [0, 1, 2]


def test_allowed_limits_labels(many):
    label_texts, documents = many
    allowed = np.arange(len(label_texts)) % 3 == 0
    ranking = BM25(label_texts).search(documents, top=10, allowed=allowed)
    unlimited = BM25(label_texts).search(documents, top=None)
    assert allowed[ranking.labels].all()
    assert np.array_equal(ranking.labels, unlimited.restrict(allowed).top(10).labels)


def test_nothing_shared_nothing_found():
    ranking = BM25(["graph", "", "tree"]).search(["", "cell", "+++"])
    assert ranking.indptr.tolist() == [0, 0, 0, 0]
    assert len(BM25(["++", ""]).search(["graph"]).labels) == 0
    assert len(BM25(["graph"]).search([])) == 0


def test_repeated_words_of_a_document_count_once():
    bm25 = BM25(["graph", "tree"])
    assert bm25.search(["graph graph graph"]).scores.tolist() == bm25.search(["graph"]).scores.tolist()


def test_an_unknown_variant_is_an_error():
    with pytest.raises(UsageError, match="repeats"):
        BM25(["graph"], repeats="twice")


def test_no_label_is_an_error():
    with pytest.raises(MicolError, match="no label"):
        BM25([])
