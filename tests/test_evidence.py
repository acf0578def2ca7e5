"""Fused evidence: each source against a plain computation, the weights, and what a user is promised of it."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import micol
import world
from micol.evidence.choice import HiddenTitles, TrainingVerdict, headed, judge_paths, verdict
from micol.evidence.facts import LabelFacts, NameFacts
from micol.evidence.fusion import ROUGH, Fusion, agreement, learn, logistic, on_top
from micol.evidence.gather import FEATURES, SOURCES, Gathered
from micol.evidence.hierarchy import specificity
from micol.evidence.sentences import FEWEST_CHARACTERS, MOST_SENTENCES, spans
from micol.evidence.shares import Share
from micol.explain import Explainer, occurrences
from micol.rank.bi_encoder import BiEncoder
from micol.rank.encoder import Encoder
from micol.records import Label
from micol.sparse import Entries

OF_A_BI_ENCODER = set(SOURCES) - {"read together"}


@given(st.text(alphabet="ab .!?;\n", max_size=400))
def test_sentences_lie_in_the_text_one_after_the_other(text: str) -> None:
    found = spans(text)
    assert len(found) <= MOST_SENTENCES
    assert bool(found) == bool(text)
    for start, end in found:
        assert 0 <= start <= end <= len(text)
    assert all(before[1] <= after[0] for before, after in pairwise(found))
    if len(found) > 1:
        assert all(end - start >= FEWEST_CHARACTERS for start, end in found[1:])


def test_the_title_is_a_sentence_however_short() -> None:
    text = "A title\nThe first sentence of the text. Short. And then another sentence follows."
    assert [text[start:end] for start, end in spans(text)] == [
        "A title",
        "The first sentence of the text.",
        "And then another sentence follows.",
    ]


def test_entries_are_looked_up_by_pair() -> None:
    rows, labels, values = np.array([1, 0, 1]), np.array([2, 1, 2]), np.array([3.0, 1.0, 5.0])
    entries = Entries.greatest(rows, labels, values, 2, 4)
    assert entries.at(np.array([1, 6, 0, 7])).tolist() == [1, 5, 0, 0]
    assert entries.top(1).tolist() == [1, 6]


def test_logistic_regression_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(500, 4))
    right = rng.random(500) < 1 / (1 + np.exp(-(features @ [1.0, -2.0, 0.5, 0.0] - 1)))
    ours = logistic(features, right.astype(float), 0.01)
    theirs = LogisticRegression(C=1 / (0.01 * 500), tol=1e-10, max_iter=1000).fit(features, right)
    assert ours == pytest.approx([*theirs.coef_[0], theirs.intercept_[0]], abs=1e-4)


def made_up(values: np.ndarray, documents: int, labels: int) -> Gathered:
    keys = np.arange(documents * labels)
    return Gathered.without_texts(keys, values.astype(np.float32), documents, labels)


def witnessed(right: np.ndarray, rng: np.random.Generator, together: float = 0.0) -> np.ndarray:
    """Evidence of three sources, each with errors of its own and errors that they make together."""
    values = np.zeros((len(right), len(FEATURES)))
    shared = together * rng.normal(size=len(right))
    for name in ("named_rarity", "name", "similar"):
        own = right * rng.normal(2.0, 1, len(right)) + rng.normal(size=len(right))
        values[:, FEATURES.index(name)] = own + shared
    return values


def test_agreement_tells_how_often_the_witnesses_are_right() -> None:
    rng = np.random.default_rng(0)
    documents, labels = 3000, 12
    right = rng.random(documents * labels) < 0.15
    gathered = made_up(witnessed(right, rng, together=0.5), documents, labels)
    rough = np.ones(len(FEATURES), np.float32)
    found = agreement(gathered, rough)
    for low, high in ((0.0, 0.1), (0.4, 0.7), (0.7, 1.01)):
        some = (found >= low) & (found < high)
        assert some.sum() > 100
        assert right[some].mean() == pytest.approx(found[some].mean(), abs=0.1)


def test_what_speaks_against_the_rest_is_left_out() -> None:
    rng = np.random.default_rng(1)
    right = rng.random(20_000) < 0.15
    values = witnessed(right, rng)
    values[:, FEATURES.index("linked")] = rng.normal(size=len(right)) - 3 * right
    for name in ("named_rarity", "name", "similar", "linked"):
        values[:, FEATURES.index(name)] /= ROUGH[name]  # so that each is as loud as the others
    fusion = learn(made_up(values, 1000, 20))
    assert fusion.rejected == ("linked documents",)
    assert fusion.weights[FEATURES.index("linked")] == 0
    ranked = fusion.logits(values.astype(np.float32)).reshape(1000, 20).argmax(axis=1)
    alone = values[:, FEATURES.index("name")].reshape(1000, 20).argmax(axis=1)
    assert (
        right.reshape(1000, 20)[np.arange(1000), ranked].mean()
        > right.reshape(1000, 20)[np.arange(1000), alone].mean()
    )


def test_scores_add_up_to_what_the_user_says_and_keep_their_order() -> None:
    rng = np.random.default_rng(2)
    right = rng.random(12_000) < 0.15
    values = witnessed(right, rng).astype(np.float32)
    found = made_up(values, 1000, 12)
    by_agreement, told = learn(found), learn(found, labels_per_document=4)
    for fusion in (by_agreement, told):
        sums = fusion.probabilities(values).reshape(1000, 12).sum(axis=1)
        assert sums.mean() == pytest.approx(fusion.labels_per_document, abs=1e-3)
        assert fusion.told()[-1] == f"scores of a document's labels add up to {sums.mean():.1f}"
    assert told.labels_per_document == pytest.approx(4, abs=1e-3)
    assert by_agreement.labels_per_document < 3
    assert (told.weights == by_agreement.weights).all()
    assert (told.intercept, told.slope) == (by_agreement.intercept, by_agreement.slope)


def test_a_model_of_an_earlier_version_does_not_say_what_scores_add_up_to() -> None:
    fusion = Fusion(np.zeros(len(FEATURES), np.float32), 0.5, 2.0, -1.0, ("linked",), 3.5)
    stored = fusion.as_dict()
    assert Fusion.from_dict(stored).labels_per_document == 3.5
    del stored["labels_per_document"]
    assert "add up" not in "".join(Fusion.from_dict(stored).told())


@pytest.fixture(scope="module")
def corpus() -> micol.Corpus:
    return micol.Corpus.from_records(world.documents(240))


@pytest.fixture(scope="module")
def labels() -> micol.LabelSpace:
    return micol.LabelSpace.from_labels(
        Label(record["id"], tuple(record["names"]), record.get("description", ""))
        for record in world.label_records()
    )


@pytest.fixture(scope="module")
def unseen() -> micol.Corpus:
    return micol.Corpus.from_records(world.documents(60, seed=1, first=240))


@pytest.fixture(scope="module")
def model(corpus: micol.Corpus, labels: micol.LabelSpace, tiny_bert: Path) -> micol.Classifier:
    return micol.train(corpus, labels, base=str(tiny_bert), pairs=128, batch_size=32, learning_rate=1e-3)


def test_a_model_of_nothing_but_documents_and_labels(model: micol.Classifier, unseen: micol.Corpus) -> None:
    assert model.config["settings"]["path"] != "auto"
    report = "\n".join(model.config["report"])
    assert re.search(r"trained on P.*, the highest of 10", report)
    assert "hidden titles" in report or "too few titles" in report
    for source in OF_A_BI_ENCODER:
        assert re.search(rf"(evidence|left out|silent): {source}", report)
    assert "together" not in report
    assert "together" not in model.config["evidence"]["weights"]
    assert "evidence: named in the text (named" in report
    assert "silent: place in the hierarchy" in report
    scores = micol.evaluate(list(model.suggest(unseen)), unseen)
    encoder_alone = model.rank_texts(unseen.texts()).top(5)
    by_encoder = {
        identifier: [model.labels.ids[label] for label in encoder_alone.row(row)[0]]
        for row, identifier in enumerate(unseen.ids)
    }
    assert scores["P@1"] >= micol.evaluate(by_encoder, unseen)["P@1"]
    assert scores["P@1"] > 0.5


def test_labels_of_documents_are_never_read(
    model: micol.Classifier, labels: micol.LabelSpace, tiny_bert: Path, unseen: micol.Corpus
) -> None:
    bare = micol.Corpus.from_records({**record, "labels": []} for record in world.documents(240))
    again = micol.train(bare, labels, base=str(tiny_bert), pairs=128, batch_size=32, learning_rate=1e-3)
    assert list(again.suggest(unseen)) == list(model.suggest(unseen))
    assert model.fused is not None
    assert not any(model.fused.memory.documents.gold)


def test_scores_are_probabilities_and_a_threshold_abstains(
    model: micol.Classifier, unseen: micol.Corpus
) -> None:
    scores = [label.score for tagged in model.suggest(unseen, limit=50) for label in tagged.labels]
    assert min(scores) >= 0
    assert max(scores) <= 1
    high = list(model.suggest(unseen, threshold=max(scores)))
    assert sum(bool(tagged.labels) for tagged in high) < len(unseen)


def test_a_saved_model_says_the_same(model: micol.Classifier, unseen: micol.Corpus, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    loaded = micol.load(tmp_path / "model")
    for before, after in zip(model.suggest(unseen), loaded.suggest(unseen), strict=True):
        assert [label.id for label in before.labels] == [label.id for label in after.labels]
        assert [x.score for x in before.labels] == pytest.approx([x.score for x in after.labels], abs=1e-3)
    (tmp_path / "model" / "memory" / "arrays.safetensors").unlink()
    with pytest.raises(
        micol.MicolError, match=r"arrays\.safetensors: missing, so the model folder is not whole"
    ):
        list(micol.load(tmp_path / "model").suggest(unseen))


def test_label_edits_leave_what_is_said_of_others(
    model: micol.Classifier, unseen: micol.Corpus, tmp_path: Path
) -> None:
    model.save(tmp_path / "model")
    edited = micol.load(tmp_path / "model")
    before = scores_of(edited, unseen)
    first = edited.labels[0]
    longer = Label("longer", (f"{first.name} {edited.labels[1].name}", "brand new"), "Something new.")
    assert edited.add_labels([longer]) == 1
    edited.remove_labels([edited.labels[2].id])
    after = scores_of(edited, unseen)
    common = before.keys() & after.keys()
    assert len(common) > len(unseen)
    assert [after[pair] for pair in common] == pytest.approx([before[pair] for pair in common], abs=1e-5)
    edited.save_labels(tmp_path / "model")
    assert scores_of(micol.load(tmp_path / "model"), unseen) == pytest.approx(after, abs=1e-5)


def scores_of(model: micol.Classifier, documents: micol.Corpus) -> dict[tuple[str, str], float]:
    return {
        (tagged.id, label.id): label.score
        for tagged in model.suggest(documents, limit=1000)
        for label in tagged.labels
    }


def test_facts_of_some_labels_are_those_of_all(model: micol.Classifier) -> None:
    fused = model.fused
    assert fused is not None
    some = np.array([3, 0])
    names = [fused.side.space.names[position] for position in some]
    taken = fused.side.facts.taken(some)
    alone = LabelFacts.of(
        fused.memory,
        names,
        fused.memory.near_matcher(names),
        fused.side.name_vectors[some],
        fused.side.text_vectors[some],
        specificity(fused.side.space, fused.memory.labels)[some],
        some,
    )
    assert alone.tagged.all()
    assert abs(alone.tags - taken.tags).max() == 0
    assert alone.specificity == pytest.approx(taken.specificity)
    assert alone.rarity == pytest.approx(taken.rarity)
    assert alone.near_rarity == pytest.approx(taken.near_rarity)
    assert alone.topicality == pytest.approx(taken.topicality, abs=1e-5)
    assert alone.seldom_titled == pytest.approx(taken.seldom_titled)
    assert alone.sentence_mean == pytest.approx(taken.sentence_mean, abs=1e-4)
    assert abs(alone.mentions - taken.mentions).max() < 1e-5


def test_a_name_that_keeps_out_of_titles_is_told_by_counting(model: micol.Classifier) -> None:
    fused = model.fused
    assert fused is not None
    names = fused.memory.labels.names
    topic, common, rest = (names[label][0] for label in range(3))
    records = [
        {"id": f"d{n}", "title": topic if n % 3 else rest, "abstract": f"{topic}, {common} and {rest}"}
        for n in range(len(fused.memory.documents))
    ]
    memory = replace(fused.memory, documents=micol.Corpus.from_records(records))
    facts, _ = NameFacts.of(memory, names)
    texts = len(records)
    titled = Share.of(np.array([texts - (texts + 2) // 3, 0, (texts + 2) // 3]), np.full(3, texts))
    assert memory.titled == titled
    assert titled.usual == pytest.approx(1 / 3)
    never = 1 - titled.prior / (texts + titled.prior)
    assert facts.seldom_titled[:3] == pytest.approx([0, never, 0], abs=1e-6)
    assert never > 0.9
    assert not facts.seldom_titled[3:].any()


def test_a_reason_for_every_suggestion(model: micol.Classifier, unseen: micol.Corpus) -> None:
    explainer = Explainer(model)
    kinds = set()
    for document, tagged in zip(unseen, model.suggest(unseen), strict=True):
        for label, why in zip(tagged.labels, explainer.explain(document, tagged.labels), strict=True):
            assert set(why.contributions) == OF_A_BI_ENCODER
            fused = model.fused
            assert fused is not None
            odds = sum(why.contributions.values()) + fused.fusion.intercept
            odds = fused.fusion.slope * odds + fused.fusion.shift
            assert 1 / (1 + np.exp(-odds)) == pytest.approx(label.score, abs=2e-3)
            for start, end in why.named_at:
                kinds.add("named")
                names = model.labels.names[model.labels.position(label.id)]
                assert document.text[start:end].casefold() in {name.casefold() for name in names}
            assert why.best_sentence is not None
            kinds |= {neighbour.via for neighbour in why.neighbours}
            assert all(neighbour.id != document.id for neighbour in why.neighbours)
            assert why.sentence(document.text)
            assert set(why.as_dict()) == {
                "named_at", "shared_words", "best_sentence", "contributions", "neighbours",
            }  # fmt: skip
    assert {"named", "linked"} <= kinds
    alone = [replace(document, metadata={}) for document in unseen]
    for document, tagged in zip(alone, model.suggest(alone), strict=True):
        for why in explainer.explain(document, tagged.labels):
            assert {neighbour.via for neighbour in why.neighbours} <= {"similar"}


def test_every_occurrence_of_a_name_is_shown() -> None:
    text = "Chess\nPlay chess, not chessboards; CHESS!"
    assert [text[start:end] for start, end in occurrences(text, (0, 5))] == ["Chess", "chess", "CHESS"]
    assert occurrences(text, None) == ()


def test_a_path_that_joins_documents_that_are_alike_is_preferred(labels: micol.LabelSpace) -> None:
    """Authors stay with their topic; venues are drawn at random."""
    rng = np.random.default_rng(0)
    records = world.documents(900)
    for number, record in enumerate(records):
        topic = record["labels"][0]
        record |= {
            "authors": [f"{topic}-{number % 7}"], "venue": f"v{rng.integers(4)}", "references": [],
        }  # fmt: skip
    judged = judge_paths(micol.Corpus.from_records(records), labels, 0)
    assert [judgement.path for judgement in judged][:1] in (["PAP"], ["P(AV)P"])
    by_path = {judgement.path: judgement for judgement in judged}
    assert by_path["PAP"].likeness > 5 * abs(by_path["PVP"].likeness)
    assert by_path["P->P"].score == 0
    assert "only 0 pairs" in by_path["P->P"].sentence()


def test_documents_without_metadata_get_an_untrained_encoder_and_a_report(
    labels: micol.LabelSpace, tiny_bert: Path
) -> None:
    bare = [{key: record[key] for key in ("id", "title", "abstract")} for record in world.documents(60)]
    model = micol.train(micol.Corpus.from_records(bare), labels, base=str(tiny_bert))
    assert model.config["report"][0].startswith("no meta-path joins documents that are alike")
    assert all(tagged.labels for tagged in model.suggest(bare[:5]))
    with pytest.raises(micol.MicolError, match="nothing to train a cross-encoder on"):
        micol.train(micol.Corpus.from_records(bare), labels, architecture="cross", base=str(tiny_bert))


def test_training_that_did_harm_is_found_out(
    corpus: micol.Corpus, labels: micol.LabelSpace, tiny_bert: Path
) -> None:
    hidden = HiddenTitles.of(corpus, labels, 0)
    assert hidden is not None
    usual, harmed = (BiEncoder(Encoder.load(tiny_bert, 64), "mean") for _ in range(2))
    for weight in harmed.encoder.model.parameters():
        weight.data = 0 * weight.data + 0.01
    found = verdict(hidden, usual, harmed)
    assert not found.helped
    assert "did not surely help, so the untrained encoder is used" in found.sentence()
    assert verdict(hidden, harmed, usual).helped
    level = verdict(hidden, usual, usual)
    assert (level.after - level.before, level.error, level.helped) == (0, 0, False)


def test_without_titles_first_sentences_are_hidden(
    corpus: micol.Corpus, labels: micol.LabelSpace, tiny_bert: Path
) -> None:
    records = [{"id": one.id, "text": f"{one.title} {one.id}.\n{one.abstract}"} for one in corpus]
    bare = micol.Corpus.from_records(records)
    titled, hidden = HiddenTitles.of(corpus, labels, 0), HiddenTitles.of(bare, labels, 0)
    assert titled is not None
    assert hidden is not None
    assert hidden.abstracts == titled.abstracts
    assert (hidden.rows.tolist(), hidden.columns.tolist()) == (titled.rows.tolist(), titled.columns.tolist())
    assert headed("", "") == ("", "")
    assert headed("", "One sentence and no more") == ("One sentence and no more", "")
    assert HiddenTitles.of(bare.select(np.arange(40)), labels, 0) is None


def test_a_gain_that_may_be_chance_is_none() -> None:
    sure, unsure = (TrainingVerdict(0.4, 0.4 + gain, 0.002, 2000) for gain in (0.0061, 0.0059))
    assert sure.helped
    assert sure.sentence().startswith("training helped, so it is used: labels of 2,000 hidden titles")
    assert not unsure.helped
    assert unsure.sentence().endswith("0.4000 before and 0.4059 after (standard error 0.0020)")


@given(st.lists(st.lists(st.integers(-2, 2), max_size=12), max_size=6), st.integers(1, 3))
def test_the_best_of_each_document_are_those_that_sorting_puts_first(
    documents: list[list[int]], most: int
) -> None:
    rows = np.repeat(np.arange(len(documents)), [len(scores) for scores in documents])
    scores = np.array([score for some in documents for score in some], np.float32)
    nothing = np.empty((len(rows), len(FEATURES)), np.float32)
    gathered = Gathered.without_texts(rows * 100, nothing, len(documents), 100)
    expected = []
    for some in documents:
        best = sorted(range(len(some)), key=lambda pair: -some[pair])[: min(max(len(some) // 3, 1), most)]
        expected += [pair in best for pair in range(len(some))]
    assert on_top(gathered, scores, most).tolist() == expected
