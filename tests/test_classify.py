"""The classifier: candidates are ranked by the encoder's scores, and labels can change under it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

import numpy as np
import pytest
import torch

import micol
import world
from micol.classify import BATCH, Classifier
from micol.errors import MicolError
from micol.rank.bi_encoder import BiEncoder
from micol.rank.cross_encoder import CrossEncoder
from micol.rank.encoder import Encoder
from micol.ranking import Ranking
from micol.records import Document, Label
from micol.settings import resolve


@pytest.fixture(scope="module")
def corpus() -> micol.Corpus:
    return micol.Corpus.from_records(world.documents(60))


@pytest.fixture(scope="module")
def labels(labels_file: Path) -> micol.LabelSpace:
    return micol.LabelSpace.read(labels_file)


@pytest.fixture
def bi(tiny_bert: Path, corpus: micol.Corpus, labels: micol.LabelSpace) -> Classifier:
    return micol.train(corpus, labels, "P->P", base=str(tiny_bert), init_only=True)


@pytest.fixture
def cross(tiny_bert: Path, corpus: micol.Corpus, labels: micol.LabelSpace) -> Classifier:
    settings = resolve("cross", "P->P", "best", {})
    ranker = CrossEncoder.untrained(Encoder.load(tiny_bert, 64), 0)
    return Classifier.build(labels, ranker, settings, {}, corpus)


@pytest.fixture(params=["bi", "cross"])
def model(request: pytest.FixtureRequest) -> Classifier:
    classifier: Classifier = request.getfixturevalue(request.param)
    return classifier


def test_the_bi_encoder_ranks_by_cosine(bi: Classifier, corpus: micol.Corpus) -> None:
    assert isinstance(bi.ranker, BiEncoder)
    assert bi.label_vectors is not None
    documents = bi.ranker.vectors(corpus.texts())
    candidates = Ranking.from_rows([[(label, 0.0) for label in range(row % 14)] for row in range(60)])
    ranked = bi.ranker.rank(documents, bi.label_vectors, candidates)
    cosines = documents.astype(float) @ bi.label_vectors.astype(float).T
    for row in range(60):
        found, scores = ranked.row(row)
        assert found.tolist() == sorted(range(row % 14), key=lambda label: -cosines[row, label])
        np.testing.assert_allclose(scores, cosines[row, found], atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(documents, axis=1), 1, atol=1e-5)


def test_vectors_do_not_depend_on_what_is_encoded_beside(bi: Classifier, corpus: micol.Corpus) -> None:
    assert isinstance(bi.ranker, BiEncoder)
    together = bi.ranker.vectors(corpus.texts())
    alone = np.concatenate([bi.ranker.vectors([text]) for text in corpus.texts()])
    assert (together * alone).sum(axis=1).min() > 0.999


def test_an_empty_text_has_the_zero_vector(bi: Classifier) -> None:
    assert isinstance(bi.ranker, BiEncoder)
    vectors = bi.ranker.vectors(["", world.word(7), " "])
    assert not vectors[[0, 2]].any()
    assert vectors[1].any()
    assert bi.ranker.vectors([]).shape == (0, 32)


def test_the_cross_encoder_ranks_by_its_score_of_each_pair(cross: Classifier, corpus: micol.Corpus) -> None:
    ranker = cross.ranker
    assert isinstance(ranker, CrossEncoder)
    documents, labels = ranker.tokenize(corpus.texts()[:5]), cross.label_tokens
    candidates = Ranking.from_rows([[(label, 0.0) for label in range(3 + row)] for row in range(5)])
    ranked = ranker.rank(documents, labels, candidates)
    for row in range(5):
        found, scores = ranked.row(row)
        assert sorted(found) == list(range(3 + row))
        assert scores.tolist() == sorted(scores, reverse=True)
        for label, score in zip(found, scores, strict=True):
            packed = ranker.encoder.framing.pack_pairs([(documents[row], labels[label])])
            with ranker.encoder.inference():
                alone = ranker.encoder.hidden(packed)[0].to(ranker.head.weight.dtype)
                assert float(score) == pytest.approx(float(ranker.head(alone)), abs=0.02)


def test_documents_come_in_any_form(model: Classifier, corpus: micol.Corpus) -> None:
    expected = list(model.suggest(corpus))
    assert [tagged.id for tagged in expected] == corpus.ids
    assert list(model.suggest(list(corpus))) == expected
    assert list(model.suggest(world.documents(60))) == expected
    assert list(model.suggest([])) == []
    text_only = [{"id": record["id"], "text": f"{record['title']}\n{record['abstract']}"} for record in
                 world.documents(60)]  # fmt: skip
    assert list(model.suggest(text_only)) == expected


def test_limit_and_threshold(model: Classifier, corpus: micol.Corpus) -> None:
    everything = list(model.suggest(corpus, limit=100))
    threshold = float(np.median([label.score for tagged in everything for label in tagged.labels]))
    for whole, few, high in zip(
        everything,
        model.suggest(corpus, limit=2),
        model.suggest(corpus, limit=100, threshold=threshold),
        strict=True,
    ):
        scores = [label.score for label in whole.labels]
        assert scores == sorted(scores, reverse=True)
        assert few.labels == whole.labels[:2]
        assert high.labels == tuple(label for label in whole.labels if label.score >= threshold)


def test_given_candidates_are_all_that_is_ranked(model: Classifier, corpus: micol.Corpus) -> None:
    candidates = Ranking.from_rows([[(2 + row % 5, 1.0), (9, 0.5)] if row % 3 else [] for row in range(60)])
    for row, tagged in enumerate(model.suggest(corpus, candidates=candidates)):
        expected = {model.labels.ids[2 + row % 5], model.labels.ids[9]} if row % 3 else set()
        assert {label.id for label in tagged.labels} == expected


def test_branches_are_included_and_excluded(model: Classifier, corpus: micol.Corpus) -> None:
    def suggested(**options: object) -> set[str]:
        found = model.suggest(corpus, limit=100, **options)  # type: ignore[arg-type]
        return {label.id for tagged in found for label in tagged.labels}

    odd = {f"t{topic}" for topic in range(1, 12, 2)}
    assert suggested(include=["odd"]) == odd
    assert suggested(exclude=["odd"]) == suggested() - odd - {"odd"}
    assert suggested(include=["odd"], exclude=["t3"]) == odd - {"t3"}
    candidates = Ranking.from_rows([[(label, 1.0) for label in range(14)]] * 60)
    assert suggested(include=["odd"], candidates=candidates) == odd | {"odd"}
    with pytest.raises(MicolError, match="include and exclude leave no label to suggest; widen one of them"):
        suggested(include=["t3"], exclude=["odd"])
    with pytest.raises(MicolError, match="no label has the id 'nowhere'"):
        suggested(include=["nowhere"])


def test_scores_of_a_label_do_not_depend_on_which_others_are_allowed(
    model: Classifier, corpus: micol.Corpus
) -> None:
    whole = [
        {label.id: label.score for label in tagged.labels} for tagged in model.suggest(corpus, limit=100)
    ]
    for tagged, scores in zip(model.suggest(corpus, limit=100, include=["odd"]), whole, strict=True):
        for label in tagged.labels:
            if label.id in scores:
                assert label.score == pytest.approx(scores[label.id], abs=0.01)


def test_dense_retrieval_finds_labels_that_share_no_word(
    tiny_bert: Path, corpus: micol.Corpus, labels: micol.LabelSpace
) -> None:
    foreign = [{"id": "x", "title": "qqqq"}]
    found = [
        next(
            micol.train(corpus, labels, "P->P", base=str(tiny_bert), init_only=True, dense_top=top).suggest(
                foreign
            )
        ).labels
        for top in (0, 4)
    ]
    assert [len(suggestions) for suggestions in found] == [0, 4]


def test_documents_are_taken_a_batch_at_a_time(bi: Classifier) -> None:
    taken = 0

    def endless() -> Iterator[Document]:
        nonlocal taken
        for taken in count(1):
            yield Document(f"d{taken}", title=" ".join(world.words_of(taken % 12)))

    assert len(list(islice(bi.suggest(endless()), 3))) == 3
    assert taken == BATCH


def test_edits_keep_what_has_not_changed_to_the_bit(bi: Classifier, corpus: micol.Corpus) -> None:
    before = {name: vector.tobytes() for name, vector in zip(bi.labels.ids, bi.label_vectors)}
    expected = list(bi.suggest(corpus, limit=100))
    assert bi.add_labels([Label("new", ("brand new",), parents=("odd",))]) == 1
    assert bi.update_labels([Label("t3", ("another name",), parents=("odd",))]) == 1
    bi.remove_labels(["t4"])
    assert bi.labels.ids == [name for name in before if name != "t4"] + ["new"]
    after = {name: vector.tobytes() for name, vector in zip(bi.labels.ids, bi.label_vectors)}
    unchanged = set(before) - {"t3", "t4"}
    assert {name: after[name] for name in unchanged} == {name: before[name] for name in unchanged}
    assert after["t3"] != before["t3"]
    for tagged, earlier in zip(bi.suggest(corpus, limit=100), expected, strict=True):
        others = [label for label in tagged.labels if label.id in unchanged]
        assert others == [label for label in earlier.labels if label.id in unchanged]


def test_a_new_label_is_suggested_at_once(model: Classifier) -> None:
    documents = [{"id": "d", "title": "all about zymurgy"}]
    assert "new" not in {label.id for label in next(model.suggest(documents, limit=100)).labels}
    model.add_labels([Label("new", ("zymurgy",))])
    assert "new" in {label.id for label in next(model.suggest(documents, limit=100)).labels}
    model.update_labels([Label("new", ("brewing",))])
    assert "new" not in {label.id for label in next(model.suggest(documents, limit=100)).labels}
    model.remove_labels(["new"])
    assert len(model.labels) == 14


def test_edits_that_make_no_sense_change_nothing(model: Classifier) -> None:
    before = model.labels
    with pytest.raises(MicolError, match="label 't3' is there already; use update"):
        model.add_labels([Label("new", ("n",)), Label("t3", ("x",))])
    with pytest.raises(MicolError, match="no label has the id 'new'"):
        model.update_labels([Label("new", ("x",))])
    with pytest.raises(MicolError, match="the last label cannot be removed"):
        model.remove_labels(before.ids)
    with pytest.raises(MicolError, match="the id 'new' was already given"):
        model.add_labels([Label("new", ("n",)), Label("new", ("m",))])
    assert model.labels is before


def test_edits_survive_saving(bi: Classifier, corpus: micol.Corpus, tmp_path: Path) -> None:
    bi.save(tmp_path / "model")
    bi.add_labels([Label("new", (" ".join(world.words_of(2)),))])
    bi.save_labels(tmp_path / "model")
    loaded = micol.load(tmp_path / "model")
    assert list(loaded.labels) == list(bi.labels)
    assert loaded.label_vectors is not None
    assert loaded.label_vectors.tobytes() == bi.label_vectors.tobytes()
    for one, other in zip(loaded.suggest(corpus), bi.suggest(corpus), strict=True):
        assert [label.id for label in one.labels] == [label.id for label in other.labels]


def test_a_loaded_cross_encoder_scores_as_before(
    cross: Classifier, corpus: micol.Corpus, tmp_path: Path
) -> None:
    cross.save(tmp_path / "model")
    loaded = micol.load(tmp_path / "model")
    assert isinstance(loaded.ranker, CrossEncoder)
    assert torch.equal(loaded.ranker.head.weight.float(), cross.ranker.head.weight.float())  # type: ignore[union-attr]
    for one, other in zip(loaded.suggest(corpus), cross.suggest(corpus), strict=True):
        assert one == other


def test_a_model_without_labels_is_refused(bi: Classifier) -> None:
    nothing = micol.LabelSpace(bi.labels.table.slice(0, 0), "empty")
    with pytest.raises(MicolError, match="empty: holds no label"):
        Classifier(nothing, bi.ranker, None, bi.config)
