"""Training: that it learns, resumes to the same weights after a kill, and fails in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import micol
import world
from conftest import write_lines
from micol.classify import Classifier
from micol.errors import MicolError
from micol.labels import LabelSpace
from micol.pairs import Pairs
from micol.rank.bi_encoder import BiEncoder
from micol.rank.checkpoints import newest_checkpoint
from micol.rank.cross_encoder import CrossEncoder
from micol.rank.distill import teacher_lists
from micol.rank.encoder import Encoder
from micol.rank.packing import FusedSelfAttention
from micol.rank.trainer import choose_dropout
from micol.ranking import Ranking
from micol.records import Label
from micol.settings import resolve
from processes import Command

# What the recipes are brought down to for an encoder of two layers.
BI = {
    "paper": {"pairs": 600, "validation_pairs": 60, "learning_rate": 3e-3},
    "best": {"batch_size": 32, "learning_rate": 4e-3, "epochs": 2},
}
CROSS = {
    "paper": {
        "pairs": 600, "validation_pairs": 60, "learning_rate": 5e-3, "batch_size": 16, "dropout": False,
        "bf16": False,
    },
    "best": {
        "pairs": 240, "learning_rate": 3e-3, "batch_size": 8, "epochs": 6, "negatives": 3, "bf16": False,
    },
}  # fmt: skip
FEW = {"bi": 12, "cross": 4}  # topics


@pytest.fixture(scope="module")
def corpora() -> dict[str, micol.Corpus]:
    return {name: micol.Corpus.from_records(world.documents(240, topics)) for name, topics in FEW.items()}


@pytest.fixture(scope="module")
def unseen() -> dict[str, micol.Corpus]:
    return {
        name: micol.Corpus.from_records(world.documents(96, topics, seed=1, first=240))
        for name, topics in FEW.items()
    }


@pytest.fixture(scope="module")
def label_spaces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, LabelSpace]:
    folder = tmp_path_factory.mktemp("labels")
    return {
        name: LabelSpace.read(write_lines(folder / f"{name}.jsonl", world.label_records(topics)))
        for name, topics in FEW.items()
    }


def precision(model: Classifier, documents: micol.Corpus) -> float:
    """The share of documents whose first label is right, all topics being candidates."""
    topics = [(position, 0.0) for position, label in enumerate(model.labels) if label.id.startswith("t")]
    candidates = Ranking.from_rows([topics] * len(documents))
    suggested = model.suggest(documents, limit=1, candidates=candidates)
    return float(np.mean([tagged.labels[0].id in gold for tagged, gold in zip(suggested, documents.gold)]))


@pytest.mark.parametrize(("recipe", "pooling"), [("paper", "cls"), ("best", "mean")])
def test_a_bi_encoder_learns_from_metadata(
    recipe: str,
    pooling: str,
    tiny_bert: Path,
    corpora: dict[str, micol.Corpus],
    unseen: dict[str, micol.Corpus],
    label_spaces: dict[str, LabelSpace],
) -> None:
    corpus, labels, base = corpora["bi"], label_spaces["bi"], str(tiny_bert)
    untrained = micol.train(corpus, labels, "P->P", base=base, init_only=True, pooling=pooling)
    model = micol.train(corpus, labels, "P->P", "bi", recipe=recipe, base=base, **BI[recipe])
    assert model.config["pooling"] == pooling
    assert precision(model, unseen["bi"]) > precision(untrained, unseen["bi"]) + 0.2


@pytest.fixture(scope="module")
def warm_base(
    tiny_bert: Path,
    corpora: dict[str, micol.Corpus],
    label_spaces: dict[str, LabelSpace],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """An encoder that knows something, as those that people begin with do."""
    folder = tmp_path_factory.mktemp("warm") / "model"
    micol.train(
        corpora["cross"], label_spaces["cross"], "P->P", base=str(tiny_bert), output=folder, bf16=False,
        hard_negatives=0, **BI["best"],
    )  # fmt: skip
    return folder / "encoder"


@pytest.mark.parametrize("recipe", ["paper", "best"])
def test_a_cross_encoder_learns_from_metadata(
    recipe: str,
    warm_base: Path,
    corpora: dict[str, micol.Corpus],
    unseen: dict[str, micol.Corpus],
    label_spaces: dict[str, LabelSpace],
) -> None:
    corpus, labels = corpora["cross"], label_spaces["cross"]
    settings = resolve("cross", "P->P", recipe, CROSS[recipe])
    beginning = CrossEncoder.untrained(Encoder.load(warm_base, 64), 0)
    untrained = Classifier.build(labels, beginning, settings, {}, corpus)
    model = micol.train(corpus, labels, "P->P", "cross", recipe=recipe, base=str(warm_base), **CROSS[recipe])
    assert precision(model, unseen["cross"]) > max(0.6, precision(untrained, unseen["cross"]) + 0.3)


def test_the_teacher_is_the_bi_encoder_of_the_same_request(
    tiny_bert: Path,
    corpora: dict[str, micol.Corpus],
    label_spaces: dict[str, LabelSpace],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taught: dict[str, torch.Tensor] = {}

    def seen(teacher: BiEncoder, *rest: Any) -> Any:
        taught.update({name: weight.clone() for name, weight in teacher.encoder.model.state_dict().items()})
        assert teacher.encoder.max_tokens == given["max_tokens"]
        assert teacher.pooling == given["pooling"]
        return teacher_lists(teacher, *rest)

    monkeypatch.setattr("micol.training.teacher_lists", seen)
    given: dict[str, Any] = {
        "pairs": 96, "batch_size": 24, "max_tokens": 24, "temperature": 0.2, "learning_rate": 1e-3,
        "pooling": "cls", "interpolate": 0.8, "seed": 3,
    }  # fmt: skip
    request = (corpora["cross"], label_spaces["cross"], "P->P")
    cross = micol.train(*request, "cross", base=str(tiny_bert), negatives=3, **given)
    bi = micol.train(*request, "bi", base=str(tiny_bert), output=tmp_path / "bi", evidence=False, **given)
    alone = load_file(tmp_path / "bi" / "encoder" / "model.safetensors")
    assert alone.keys() <= taught.keys()
    for name, weight in alone.items():
        assert torch.equal(weight, taught[name]), name
    training = cross.config["training"]
    assert training["teacher_settings"] == bi.config["settings"]
    assert training["pairs_used"] == bi.config["training"]["pairs_used"] == 96


def test_given_pairs_need_no_path(
    tiny_bert: Path, corpora: dict[str, micol.Corpus], label_spaces: dict[str, LabelSpace]
) -> None:
    pairs = Pairs(np.arange(32), np.arange(32) + 48, exhausted=True)
    model = micol.train(
        corpora["bi"],
        label_spaces["bi"],
        base=str(tiny_bert),
        ready_pairs=pairs,
        batch_size=16,
        evidence=False,
    )
    assert model.config["training"]["pairs_used"] == 32


# Interruptions


# Failures


def test_a_loss_that_is_no_number_is_a_sentence(
    tiny_bert: Path, corpora: dict[str, micol.Corpus], label_spaces: dict[str, LabelSpace], tmp_path: Path
) -> None:
    with pytest.raises(MicolError, match=r"the training loss became nan at step .*; lower the learning rate"):
        micol.train(
            corpora["bi"], label_spaces["bi"], "P->P", base=str(tiny_bert), output=tmp_path / "model",
            learning_rate=1e30, batch_size=16, epochs=3, bf16=False,
        )  # fmt: skip
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("architecture", ["bi", "cross"])
def test_a_last_step_that_ruins_the_weights_is_a_sentence(
    architecture: str,
    tiny_bert: Path,
    corpora: dict[str, micol.Corpus],
    label_spaces: dict[str, LabelSpace],
    tmp_path: Path,
) -> None:
    with pytest.raises(MicolError, match=r"training has diverged.*lower the learning rate \(now 1e\+30\)"):
        micol.train(
            corpora["cross"], label_spaces["cross"], "P->P", architecture, base=str(tiny_bert), pairs=16,
            learning_rate=1e30, batch_size=16, bf16=False, warmup=0.0, teacher="none",
            output=tmp_path / "model",
        )  # fmt: skip
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("largest_file", "checkpoints"),
    # In turn: no checkpoint at all, its weights alone, no checkpoint wanted but the model itself too large.
    [(20_000, 4), (200_000, 4), (20_000, 0)],
)
def test_a_full_disk_is_a_sentence_and_leaves_no_half_model(
    largest_file: int, checkpoints: int, tiny_bert: Path, docs_file: Path, labels_file: Path, tmp_path: Path
) -> None:
    arguments = [
        *("train", docs_file, "--labels", labels_file, "--path", "P->P", "--base", tiny_bert),
        *("--pairs", 32, "--batch-size", 8, "--checkpoints", checkpoints, "-o", tmp_path / "model"),
    ]
    command = Command(arguments, tmp_path, largest_file)
    assert command.wait() == 1
    assert "could not be written" in command.output
    assert "free disk space" in command.output
    assert "Traceback" not in command.output
    left = {path.name for path in tmp_path.iterdir() if not path.name.startswith("command-")}
    assert left <= {"model.training"}
    assert newest_checkpoint(tmp_path / "model.training" / "bi") is None
    # With space again, the same command succeeds.
    assert Command([*arguments, "--resume"], tmp_path).wait() == 0


def test_nothing_to_train_on_is_a_sentence(
    tiny_bert: Path, label_spaces: dict[str, LabelSpace], tmp_path: Path
) -> None:
    alone = micol.Corpus.from_records([{"id": f"d{n}", "title": "web graph"} for n in range(5)])
    with pytest.raises(MicolError, match=r"no document reaches another by P->P.*no document has .refer"):
        micol.train(alone, label_spaces["bi"], "P->P", base=str(tiny_bert), output=tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_more_labels_a_document_than_there_are_is_a_sentence(
    tiny_bert: Path, corpora: dict[str, micol.Corpus]
) -> None:
    two = LabelSpace.from_labels([Label("a", ("Web",)), Label("b", ("Graph",))])
    with pytest.raises(MicolError, match=r"must be fewer than there are labels \(2 in .*\), got 2\.5"):
        micol.train(corpora["bi"], two, base=str(tiny_bert), labels_per_document=2.5)


def test_too_few_pairs_to_judge_by_is_a_sentence(
    tiny_bert: Path, label_spaces: dict[str, LabelSpace]
) -> None:
    two = micol.Corpus.from_records(
        [{"id": "a", "title": "web", "references": ["b"]}, {"id": "b", "title": "graph"}]
    )
    with pytest.raises(MicolError, match=r"1 pair\(s\) are too few to hold any back for validation"):
        micol.train(two, label_spaces["bi"], "P->P", base=str(tiny_bert), recipe="paper")


def test_an_untrained_cross_encoder_is_refused(
    tiny_bert: Path, corpora: dict[str, micol.Corpus], label_spaces: dict[str, LabelSpace], tmp_path: Path
) -> None:
    with pytest.raises(MicolError, match="an untrained cross-encoder has no score"):
        micol.train(
            corpora["bi"], label_spaces["bi"], "P->P", "cross", base=str(tiny_bert), init_only=True,
            output=tmp_path / "model",
        )  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def test_labels_that_no_document_mentions_cannot_teach(
    tiny_bert: Path, corpora: dict[str, micol.Corpus]
) -> None:
    strange = LabelSpace.from_labels([micol.Label("x", ("qqq",)), micol.Label("y", ("qqqq",))])
    with pytest.raises(MicolError, match="no document has two candidate labels"):
        micol.train(corpora["bi"], strange, "P->P", "cross", base=str(tiny_bert), pairs=32)


# Settings


@pytest.mark.parametrize(
    ("settings", "elsewhere", "in_attention"),
    [({}, 0.1, 0.0), ({"attention_dropout": True}, 0.1, 0.1), ({"dropout": False}, 0.0, 0.0)],
)
def test_dropout_is_where_the_settings_want_it(
    tiny_bert: Path, settings: dict[str, bool], elsewhere: float, in_attention: float
) -> None:
    model = Encoder.load(tiny_bert, 64).model
    choose_dropout(model, resolve("bi", "P->P", "best", settings))
    attention = [part.dropout for part in model.modules() if isinstance(part, FusedSelfAttention)]
    others = [
        part for part in model.modules() if isinstance(part, torch.nn.Dropout) and part not in attention
    ]
    assert {part.p for part in attention} == {in_attention}
    assert {part.p for part in others} == {elsewhere}


def test_the_saved_weights_lie_between_the_untrained_and_the_trained_ones(
    tiny_bert: Path, corpora: dict[str, micol.Corpus], label_spaces: dict[str, LabelSpace], tmp_path: Path
) -> None:
    for share in (1.0, 0.25):
        micol.train(
            corpora["bi"], label_spaces["bi"], "P->P", base=str(tiny_bert), pairs=64, batch_size=16,
            learning_rate=1e-3, interpolate=share, evidence=False, output=tmp_path / str(share),
        )  # fmt: skip
    before = load_file(tiny_bert / "model.safetensors")
    after, between = (
        load_file(tmp_path / name / "encoder" / "model.safetensors") for name in ("1.0", "0.25")
    )
    for name, weight in between.items():
        torch.testing.assert_close(weight, before[name] + 0.25 * (after[name] - before[name]))
    assert not torch.equal(
        before["embeddings.word_embeddings.weight"], after["embeddings.word_embeddings.weight"]
    )


def test_the_best_checkpoint_is_kept_not_the_last(
    tiny_bert: Path, corpora: dict[str, micol.Corpus], label_spaces: dict[str, LabelSpace], tmp_path: Path
) -> None:
    """Pairs at random cannot be learned: the more one trains, the worse the validation loss."""
    generator = np.random.default_rng(0)
    pairs = Pairs(generator.integers(0, 120, 200), generator.integers(120, 240, 200), exhausted=True)
    options = {
        "recipe": "paper",
        "learning_rate": 3e-3,
        "validation_pairs": 20,
        "batch_size": 20,
        "epochs": 6,
    }
    kept = micol.train(
        corpora["bi"], label_spaces["bi"], "random", base=str(tiny_bert), ready_pairs=pairs,
        output=tmp_path / "best", **options,
    )  # fmt: skip
    last = micol.train(
        corpora["bi"], label_spaces["bi"], "random", base=str(tiny_bert), ready_pairs=pairs, keep_best=False,
        output=tmp_path / "last", **options,
    )  # fmt: skip
    before = load_file(tiny_bert / "model.safetensors")

    def moved(model: str) -> float:
        weights = load_file(tmp_path / model / "encoder" / "model.safetensors")
        return sum(float((weight - before[name]).norm()) for name, weight in weights.items())

    assert 0 < moved("best") < moved("last")
    assert kept.config["training"]["pairs_used"] == last.config["training"]["pairs_used"] == 200


def test_titles_and_abstracts_can_take_the_place_of_pairs(
    tiny_bert: Path, corpora: dict[str, micol.Corpus]
) -> None:
    from micol.training import pair_examples

    corpus, encoder = corpora["bi"], Encoder.load(tiny_bert, 64)
    pairs = Pairs(np.arange(0, 100), np.arange(100, 200), exhausted=True)
    settings = resolve("bi", "P->P", "best", {"title_pairs": 0.3})
    examples = pair_examples(encoder, corpus, pairs, settings)
    replaced = 0
    for number, (anchor, positive) in enumerate(zip(examples.anchors, examples.positives)):
        texts = [examples.texts[anchor].tolist(), examples.texts[positive].tolist()]
        document = corpus[int(pairs.anchor[number])]
        whole = [encoder.tokenize([corpus[int(side[number])].text])[0].tolist() for side in pairs[:2]]
        if texts != whole:
            replaced += 1
            assert texts == [ids.tolist() for ids in encoder.tokenize([document.title, document.abstract])]
            assert examples.documents[anchor] == examples.documents[positive] == pairs.anchor[number]
        else:
            assert examples.documents[anchor] == pairs.anchor[number]
    assert 15 < replaced < 45


# Several processes
