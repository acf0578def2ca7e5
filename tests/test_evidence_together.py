"""Read together: a cross-encoder as one source of the fused evidence, and what a model of both promises."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import micol
import world
from conftest import write_lines
from micol.cli import cli
from micol.errors import MicolError, UsageError
from micol.evidence import together
from micol.evidence.fused import Fused, practice
from micol.evidence.fusion import ROUGH, Fusion, learn
from micol.evidence.gather import FEATURES, SOURCES, TOGETHER, Gathered, Read, gather
from micol.explain import Explainer
from micol.folder import ModelFolder
from micol.rank.bi_encoder import BiEncoder
from micol.ranking import Ranking
from micol.records import Document, Label
from micol.settings import resolve
from serving import Start

FEW = 10
SETTINGS = {"pairs": 128, "batch_size": 32, "learning_rate": 1e-3, "negatives": 3}


@pytest.fixture(scope="module", autouse=True)
def few_are_read() -> Iterator[None]:
    """The small world has 14 labels; 5 of them are read with each document."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(together, "READ", FEW)
        yield


@pytest.fixture(scope="module")
def folder(
    corpus: micol.Corpus, labels: micol.LabelSpace, tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    output = tmp_path_factory.mktemp("together") / "model"
    micol.train(
        corpus, labels, "P->P", "cross", evidence=True, base=str(tiny_bert), output=output, **SETTINGS
    )
    return output


@pytest.fixture
def model(folder: Path) -> micol.Classifier:
    return micol.load(folder)


def fused_of(model: micol.Classifier) -> Fused:
    assert model.fused is not None
    return model.fused


def encoder_of(model: micol.Classifier) -> BiEncoder:
    assert isinstance(model.ranker, BiEncoder)
    return model.ranker


def scores_of(model: micol.Classifier, documents: micol.Corpus) -> dict[tuple[str, str], float]:
    return {
        (tagged.id, label.id): label.score
        for tagged in model.suggest(documents, limit=1000)
        for label in tagged.labels
    }


def test_the_column_is_that_of_a_plain_computation(model: micol.Classifier, unseen: micol.Corpus) -> None:
    fused, cross, n = fused_of(model), model.reader, len(model.labels)
    assert cross is not None
    documents = [*list(unseen)[:6], Document("empty", "", "")]
    before = gather(documents, Read.by(encoder_of(model), documents), fused.memory, fused.side)
    after = fused.gather(documents, encoder_of(model))
    assert before.features == FEATURES[:-1]
    assert after.features == FEATURES
    assert np.array_equal(after.values[:, :-1], before.values)
    texts = fused.memory.labels.texts()
    usual = sorted({int(place) for place in np.linspace(0, n - 1, together.USUAL)})

    def score(document: str, label: str) -> float:
        tokens, other = cross.tokenize([document]), cross.tokenize([label])
        packed = cross.encoder.framing.pack_pairs([(tokens[0], other[0])])
        with cross.encoder.inference():
            return float(cross.head(cross.encoder.hidden(packed)[:1].float())[0, 0])

    for row, document in enumerate(documents):
        pairs = np.flatnonzero(after.rows == row)
        rough = {
            int(pair): sum(
                ROUGH.get(name, 0) * value
                for name, value in zip(FEATURES, before.values[pair])
                if name not in SOURCES["place in the hierarchy"]
            )
            for pair in pairs
        }
        read = sorted(rough, key=lambda pair: -rough[pair])[:FEW]
        if not document.text:
            assert not read
            continue
        background = [score(document.text, texts[position]) for position in usual]
        own = [score(document.text, model.labels.texts()[after.keys[pair] % n]) for pair in read]
        standard = (np.array(own) - np.mean(background)) / np.std(background)
        expected = dict(zip(read, standard.tolist(), strict=True))
        plain = [expected.get(pair, min(standard)) for pair in pairs.tolist()]
        assert len(read) == FEW < len(pairs)
        assert after.values[pairs, -1].tolist() == pytest.approx(plain, abs=1e-3)


def test_it_is_trained_and_told_of(folder: Path, corpus: micol.Corpus, unseen: micol.Corpus) -> None:
    config = ModelFolder(folder).read_config()
    report = "\n".join(config["report"])
    for source in SOURCES:
        assert re.search(rf"(evidence|left out|silent): {source}", report)
    assert re.search(r"evidence: read together \(together \+\d", report)
    assert "hidden titles" in report or "too few titles" in report
    assert (config["settings"]["architecture"], config["settings"]["evidence"]) == ("cross", True)
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "bi-encoder with a cross-encoder" in card
    assert "`cross_encoder/`" in card
    predictions = {
        tagged.id: [label.id for label in tagged.labels] for tagged in micol.load(folder).suggest(unseen)
    }
    assert micol.evaluate(predictions, unseen)["P@1"] > 0.5


def test_the_bi_encoder_beside_it_is_the_one_that_would_be_trained_alone(
    model: micol.Classifier,
    corpus: micol.Corpus,
    labels: micol.LabelSpace,
    tiny_bert: Path,
    unseen: micol.Corpus,
) -> None:
    """And what it is fused with, but for what is read, is the same evidence."""
    given = {name: value for name, value in SETTINGS.items() if name != "negatives"}
    alone = micol.train(corpus, labels, "P->P", base=str(tiny_bert), **given)
    texts = unseen.texts()
    assert np.array_equal(encoder_of(alone).vectors(texts), encoder_of(model).vectors(texts))
    assert model.reader is not None
    assert not np.allclose(
        BiEncoder(model.reader.encoder, encoder_of(model).pooling).vectors(texts),
        encoder_of(model).vectors(texts),
    )
    fused, plain = fused_of(model), fused_of(alone)
    without = learn(
        practice(fused.memory, fused.side, encoder_of(model), 0, fused.reader), without=["read together"]
    )
    assert without.weights[:-1] == pytest.approx(plain.fusion.weights, abs=1e-4)
    assert without.weight(TOGETHER) == 0


def test_a_saved_model_says_the_same_again(folder: Path, unseen: micol.Corpus, tmp_path: Path) -> None:
    first = micol.load(folder)
    first.save(tmp_path / "again")
    second = micol.load(tmp_path / "again")
    assert scores_of(second, unseen) == scores_of(first, unseen)
    assert ModelFolder(tmp_path / "again").fingerprint() == ModelFolder(folder).fingerprint()


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json", "head.safetensors"])
def test_a_missing_file_of_the_cross_encoder_is_named(folder: Path, name: str, tmp_path: Path) -> None:
    broken = shutil.copytree(folder, tmp_path / "model")
    (broken / "cross_encoder" / name).unlink()
    with pytest.raises(
        MicolError, match=rf"cross_encoder/{name}: missing, so the model folder is not whole; copy it again"
    ):
        micol.load(broken)


def test_the_head_decides_what_the_model_is(folder: Path, tmp_path: Path) -> None:
    """A model with another cross-encoder is another model."""
    other = shutil.copytree(folder, tmp_path / "model")
    head = other / "cross_encoder" / "head.safetensors"
    head.write_bytes(head.read_bytes()[:-1] + b"\x00")
    assert ModelFolder(other).fingerprint() != ModelFolder(folder).fingerprint()


def test_explained_like_any_other_source(model: micol.Classifier, unseen: micol.Corpus) -> None:
    explainer, fusion = Explainer(model), fused_of(model).fusion
    said = set()
    for document, tagged in zip(list(unseen)[:20], model.suggest(list(unseen)[:20], limit=3), strict=True):
        for label, why in zip(tagged.labels, explainer.explain(document, tagged.labels), strict=True):
            assert set(why.contributions) == set(SOURCES)
            odds = fusion.slope * (sum(why.contributions.values()) + fusion.intercept) + fusion.shift
            assert 1 / (1 + np.exp(-odds)) == pytest.approx(label.score, abs=2e-3)
            said.add(why.contributions["read together"])
    assert len(said) > 20


def test_edits_of_labels(folder: Path, unseen: micol.Corpus, tmp_path: Path) -> None:
    """What is read of others stays, and a new label is read as those of training are."""
    edited = shutil.copytree(folder, tmp_path / "model")
    before = scores_of(micol.load(edited), unseen)
    words = world.words_of(0)
    record = {"id": "new", "names": [f"{words[2]} {words[3]}"], "description": f"the study of {words[4]}"}
    done = CliRunner().invoke(
        cli, ["labels", str(edited), "add", str(write_lines(tmp_path / "new.jsonl", [record]))]
    )
    assert "1 added, 1 embedded" in done.output
    assert CliRunner().invoke(cli, ["labels", str(edited), "remove", "t11"]).exit_code == 0
    after = scores_of(micol.load(edited), unseen)
    assert any(label == "new" for _, label in after)
    assert not any(label == "t11" for _, label in after)
    live = micol.load(folder)
    live.add_labels([Label("new", tuple(record["names"]), str(record["description"]))])
    live.remove_labels(["t11"])
    assert scores_of(live, unseen) == pytest.approx(after, abs=1e-5)
    # Only which labels are read depends on others.
    same = [abs(after[pair] - before[pair]) < 1e-5 for pair in before.keys() & after.keys()]
    assert np.mean(same) > 0.7
    first = {tagged.id: tagged.labels[0] for tagged in micol.load(folder).suggest(unseen)}
    for name, label in first.items():
        if label.id != "t11":
            assert after[name, label.id] == pytest.approx(label.score, abs=1e-5)


def test_candidates_and_branches_are_kept_to(model: micol.Classifier, unseen: micol.Corpus) -> None:
    documents = list(unseen)[:4]
    allowed = {model.labels.ids[position] for position in model.labels.branch("odd")}
    for tagged in model.suggest(documents, include=["odd"]):
        assert {label.id for label in tagged.labels} <= allowed
    best = [tagged.labels[0] for tagged in model.suggest(documents)]
    candidates = Ranking.from_rows([[(model.labels.position(label.id), 0.0)] for label in best])
    # A label has the score that it has among others.
    for label, tagged in zip(best, model.suggest(documents, candidates=candidates), strict=True):
        assert [(found.id, found.score) for found in tagged.labels] == [
            (label.id, pytest.approx(label.score, abs=1e-5))
        ]
    nothing = model.suggest(documents, candidates=Ranking.empty(4))
    assert not any(tagged.labels for tagged in nothing)


def test_the_command_trains_tags_and_explains(
    docs_file: Path, unseen_file: Path, labels_file: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    output = tmp_path / "model"
    arguments = [
        "train", docs_file, "--labels", labels_file, "--path", "P->P", "--architecture", "cross",
        "--evidence", "--base", tiny_bert, "--pairs", 64, "--batch-size", 16, "--negatives", 3, "-o", output,
    ]  # fmt: skip
    done = CliRunner().invoke(cli, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0
    assert "read together" in done.output
    tagged = CliRunner().invoke(cli, ["suggest", str(output), str(unseen_file), "--explain"])
    why = json.loads(tagged.stdout.splitlines()[0])["labels"][0]["why"]
    assert "read together" in why["contributions"]


def test_served(folder: Path, start: Start, unseen: micol.Corpus, tmp_path: Path) -> None:
    server = start(folder=shutil.copytree(folder, tmp_path / "model"))
    document = {"title": unseen[0].title, "abstract": unseen[0].abstract}
    (answer,) = server.suggest(document, explain=True)
    assert "read together" in answer["labels"][0]["explanation"]["contributions"]
    assert 0 <= answer["labels"][0]["score"] <= 1
    assert server.client.get("/v1/model").json()["architecture"] == "cross"
    new = {"id": "new", "names": ["entirely new"], "description": document["abstract"]}
    server.client.post("/v1/labels", json={"labels": [new]}).raise_for_status()
    (answer,) = server.suggest(document, limit=20)
    assert "new" in {label["id"] for label in answer["labels"]}


def test_without_a_teacher_there_is_no_bi_encoder_to_fuse_around() -> None:
    with pytest.raises(UsageError, match="a cross-encoder without a teacher has none; set teacher to bi"):
        resolve("cross", "P->P", "paper", {"evidence": True})
    assert resolve("cross", "P->P", "best", {"evidence": True}).evidence
    assert not resolve("cross", "P->P", "best", {}).evidence


def read_by(reader: np.ndarray, rough: np.ndarray) -> Gathered:
    """Evidence of names, which reads the best five of twenty labels, and of a cross-encoder."""
    documents, n = rough.shape
    values = np.zeros((rough.size, len(FEATURES)), np.float32)
    values[:, FEATURES.index("named_rarity")] = rough.ravel()
    for name in ("name", "similar"):
        values[:, FEATURES.index(name)] = rough.ravel() + np.random.default_rng(2).normal(size=rough.size) / 2
    unread = np.argsort(np.argsort(-rough, axis=1), axis=1) >= FEW
    lowest = np.where(unread, np.inf, reader).min(axis=1, keepdims=True)
    values[:, -1] = np.where(unread, lowest, reader).ravel()
    return Gathered.without_texts(np.arange(rough.size), values, documents, n)


def test_a_cross_encoder_at_odds_with_the_rest_is_left_out_and_not_asked(
    model: micol.Classifier, unseen: micol.Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it speaks for what was read, which the rest had chosen, against what was not."""
    rng = np.random.default_rng(0)
    rough = rng.normal(size=(500, 20))
    fusion = learn(read_by(-rough + rng.normal(size=rough.shape) / 2, rough))
    assert fusion.rejected == ("read together",)
    assert "left out: read together, which spoke against what the rest agrees on" in fusion.told()
    assert learn(read_by(rough + rng.normal(size=rough.shape), rough)).weight(TOGETHER) > 0
    fused = fused_of(model)
    deaf = Fused(fused.memory, fused.side, Fusion(fusion.weights, 0, 1, 0), fused.reader)
    assert model.reader is not None
    monkeypatch.setattr(model.reader, "rank", None)
    assert not deaf.gather(list(unseen)[:3], encoder_of(model)).values[:, -1].any()
