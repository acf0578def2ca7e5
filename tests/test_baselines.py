"""The systems of the comparison: each finds labels that chance does not, for what it has learned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import world
from micol.baselines.contrastive import Micol, together
from micol.baselines.doc2vec import Doc2Vec
from micol.baselines.entail import Entail, entailment_class
from micol.baselines.match import Match
from micol.baselines.product import Product
from micol.baselines.retrieval import Retrieval
from micol.baselines.untuned import UntunedEncoder
from micol.benchmark.conditions import Candidates
from micol.benchmark.task import Task
from micol.corpus import Corpus
from micol.errors import MicolError
from micol.pairs import Pairs
from systems import TRAINING, precision


def test_propensities_need_labels_of_training_documents(task, capsys):
    records = [{"id": document.id, "text": document.text} for document in task.train]
    unlabelled = Task(Corpus.from_records(records), task.test, task.labels, task.kept, task.candidate_source)
    scores = unlabelled.scores(task.candidates)
    assert "P@1" in scores
    assert "PSP@1" not in scores
    assert "no training document has labels" in capsys.readouterr().err


def test_retrieval_ranks_nothing_anew(task):
    assert Retrieval().rank(task, 0) is task.candidates


def test_untuned_encoder_reads_its_vectors_once(task, tiny_bert, untuned):
    system = UntunedEncoder(base=str(tiny_bert), pooling="mean", max_tokens=48)
    kept = system.vectors(task)
    assert kept["documents"].shape == (len(task.test), 32)
    assert kept["labels"].shape == (len(task.labels), 32)
    # From the cache, without a model.
    gone = UntunedEncoder(base=str(tiny_bert), pooling="mean", max_tokens=48)
    assert np.array_equal(gone.vectors(task)["documents"], kept["documents"])
    assert 0.05 < untuned < 0.9


def test_untuned_encoder_that_cannot_be_had_says_how_to_give_it(task):
    with pytest.raises(MicolError, match=r"allenai/specter.*--weights ID=FOLDER"):
        UntunedEncoder(base="allenai/specter").rank(task, 0)


def test_weights_of_a_hub_id_can_lie_in_a_folder(task, tiny_bert):
    elsewhere = Task(
        task.train,
        task.test,
        task.labels,
        task.kept,
        task.candidate_source,
        {"allenai/specter": str(tiny_bert)},
    )
    ranking = UntunedEncoder(base="allenai/specter", max_tokens=48).rank(elsewhere, 0)
    assert len(ranking) == len(task.test)


def test_doc2vec_learns_which_words_go_together(task):
    system = Doc2Vec(dimension=24, sample=0.0)
    assert precision(task, system) > 0.7
    assert np.array_equal(system.rank(task, 1).labels, system.rank(task, 1).labels)


def test_micol_learns_from_citations(task, tiny_bert, untuned):
    system = Micol(path="P->P", base=str(tiny_bert), settings=TRAINING)
    assert system.title == "MICoL (Bi-Encoder, P->P)"
    assert precision(task, system) > untuned + 0.2


def test_micol_puts_the_pairs_of_several_paths_together(task, tiny_bert, untuned):
    system = Micol(combine=("P->P", "PAP"), base=str(tiny_bert), settings=TRAINING)
    assert precision(task, system) > untuned + 0.2
    one = Pairs(np.arange(5), np.arange(5) + 10, True)
    other = Pairs(np.arange(5) + 20, np.arange(5) + 30, False)
    both = together([one, other], 0)
    assert sorted(zip(both.anchor, both.positive)) == sorted(
        [*zip(one.anchor, one.positive), *zip(other.anchor, other.positive)]
    )
    assert not both.exhausted


def test_the_product_finds_its_own_candidates(task, tiny_bert):
    settings = {"batch_size": 32, "learning_rate": 4e-3, "epochs": 2, "bf16": False, "checkpoints": 0}
    none = Task(task.train, task.test, task.labels, task.kept, Candidates(exact=False, bm25_top=1))
    system = Product(path="P->P", base=str(tiny_bert), settings=settings)
    assert precision(none, system) > 0.6
    assert np.diff(system.rank(none, 0).indptr).max() > 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "P->P", "combine": 3}, "either a path or combine"),
        ({}, "either a path or combine"),
        ({"path": "P->"}, "P->"),
        ({"path": "P->P", "architecture": "tri"}, "architecture must be one of bi, cross"),
    ],
)
def test_micol_refuses_what_it_cannot_do(options, message):
    with pytest.raises(MicolError, match=message):
        Micol(**options)


def save_nli(folder: Path, tiny_bert: Path, task: Task, names: Sequence[str]) -> str:
    """A tiny BERT that has learned entailment from training documents and their labels."""
    import torch
    from transformers import AutoTokenizer, BertForSequenceClassification

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    model = BertForSequenceClassification.from_pretrained(
        tiny_bert,
        num_labels=len(names),
        id2label=dict(enumerate(names)),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    entails = [name.lower() for name in names].index("entailment")
    generator = np.random.default_rng(0)
    texts = task.train.texts()
    right = [task.labels.position(gold[0]) for gold in task.train.gold]
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(250):
        premises, hypotheses = [], []
        for row in generator.integers(len(texts), size=12):
            wrong = generator.choice(np.delete(np.arange(len(task.labels)), right[row]), 5, replace=False)
            premises += 6 * [texts[row]]
            labels = [right[row], *wrong]
            hypotheses += [f"this document is about {task.labels.names[label][0]}" for label in labels]
        inputs = tokenizer(
            premises, hypotheses, truncation="only_first", max_length=64, padding=True, return_tensors="pt"
        )
        scores = model(**inputs).logits.log_softmax(-1)[:, entails].view(12, 6)
        loss = -scores.log_softmax(-1)[:, 0].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def test_entailment_ranks_what_documents_are_about(task, tiny_bert, tmp_path):
    model = save_nli(tmp_path / "nli", tiny_bert, task, ["CONTRADICTION", "NEUTRAL", "ENTAILMENT"])
    assert precision(task, Entail(model=model, max_tokens=64)) > 0.5


def test_entailment_is_found_by_its_name():
    assert entailment_class({0: "entailment", 1: "not_entailment"}, "m") == 0
    assert entailment_class({0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}, "m") == 2
    with pytest.raises(MicolError, match=r"m: none of its classes \(LABEL_0, LABEL_1\) is entailment"):
        entailment_class({0: "LABEL_0", 1: "LABEL_1"}, "m")
    with pytest.raises(MicolError, match="template must hold"):
        Entail(template="about it")


def test_entailment_model_that_cannot_be_had_is_told(task):
    with pytest.raises(MicolError, match="the NLI model cannot be loaded"):
        Entail(model="no/such-model").rank(task, 0)


MATCH = {
    "least_steps": 1, "dimension": 24, "layers": 1, "cls_tokens": 2, "batch_size": 32, "learning_rate": 5e-3,
}  # fmt: skip


def test_match_learns_from_labelled_documents(task):
    few = precision(task, Match(training=12, epochs=20, **MATCH))
    many = precision(task, Match(epochs=10, **MATCH))
    assert many > 0.8
    assert many > few


def test_match_reads_metadata(task):
    """Without a word that tells topics apart, the authors do."""
    records = [
        {
            "id": document.id,
            "text": "the of and",
            "authors": document.metadata["authors"],
            "labels": document.labels,
        }
        for corpus in (task.train, task.test)
        for document in corpus
    ]
    corpus = Corpus.from_records(records)
    train, test = corpus.select(range(len(task.train))), corpus.select(range(len(task.train), len(corpus)))
    blind = Task(train, test, task.labels, task.kept, task.candidate_source)
    assert precision(blind, Match(epochs=10, **MATCH)) > 0.8


def test_match_ranks_every_label_not_only_candidates(task):
    few = Task(task.train, task.test, task.labels, task.kept, Candidates(bm25_top=1))
    ranking = Match(epochs=1, pretraining_epochs=1, **MATCH).rank(few, 0)
    assert (np.diff(ranking.indptr) == len(task.labels)).all()


def test_match_says_how_many_labelled_documents_there_are(task):
    assert Match(training=50_000).title == "MATCH (50K training documents)"
    with pytest.raises(
        MicolError, match="50,000 labelled training documents are asked for, and there are 240"
    ):
        Match(training=50_000).rank(task, 0)
    with pytest.raises(MicolError, match="multiple of heads"):
        Match(dimension=25)
    with pytest.raises(MicolError, match='or "all"'):
        Match(training="most")


def test_match_embeds_words_and_metadata_of_a_topic_near_each_other(task):
    import torch

    from micol.baselines.match_model import joint_embeddings
    from micol.baselines.match_vocabulary import Vocabulary, label_targets

    options = Match(dimension=16, pretraining_epochs=25)
    vocabulary = Vocabulary.of(task.train, options.min_count)
    torch.manual_seed(0)
    vectors = joint_embeddings(
        options, len(vocabulary), vocabulary.sequences(task.train, options),
        label_targets(task.train, task.labels), len(task.labels), np.random.default_rng(0),
        torch.device("cpu"),
    ).numpy()  # fmt: skip
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    words = np.array([vocabulary.known(world.words_of(topic)).tolist() for topic in range(world.TOPICS)])
    authors = [
        vocabulary.known([f"authors: a{topic}-{n}" for n in range(4)]) for topic in range(world.TOPICS)
    ]
    centres = vectors[words].mean(axis=1)
    # An author is nearest to the words of the topic that he writes about.
    nearest = [(vectors[known] @ centres.T).argmax(axis=1) == topic for topic, known in enumerate(authors)]
    assert np.mean(np.concatenate(nearest)) > 0.85


def test_match_draws_neighbours_from_the_window_of_their_own_text():
    from micol.baselines.match_model import WINDOW, neighbours

    texts = [np.arange(0, 12), np.arange(100, 101), np.empty(0, np.int64), np.arange(200, 203)]
    seen = set()
    for seed in range(200):
        one, other = neighbours(texts, np.random.default_rng(seed))
        seen |= set(zip(one.tolist(), other.tolist()))
    possible = {
        (a, b)
        for text in texts
        for i, a in enumerate(text.tolist())
        for j, b in enumerate(text.tolist())
        if 0 < abs(i - j) <= WINDOW
    }
    assert seen == possible
