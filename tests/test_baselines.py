"""The systems of the comparison: each finds labels that chance does not, for what it has learned."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import world
from micol.baselines.contrastive import Micol, together
from micol.baselines.doc2vec import Doc2Vec
from micol.baselines.eda import Eda, Edits
from micol.baselines.entail import Entail, entailment_class
from micol.baselines.match import Match
from micol.baselines.product import Product
from micol.baselines.retrieval import Retrieval
from micol.baselines.uda import Uda, WordReplacement
from micol.baselines.untuned import UntunedEncoder
from micol.baselines.wordnet import WordNet
from micol.benchmark.conditions import Candidates
from micol.benchmark.kept import KeptArrays
from micol.benchmark.task import Task
from micol.corpus import Corpus
from micol.errors import MicolError
from micol.labels import LabelSpace
from micol.pairs import Pairs

TRAINING = {
    "recipe": "paper", "pairs": 600, "batch_size": 16, "epochs": 4, "learning_rate": 3e-3, "keep_best": False,
    "checkpoints": 0, "max_tokens": 48, "attention_dropout": False, "bf16": False, "pooling": "mean",
}  # fmt: skip


@pytest.fixture(scope="module")
def task(
    tmp_path_factory: pytest.TempPathFactory, docs_file: Path, unseen_file: Path, labels_file: Path
) -> Task:
    """The small world, with every label a candidate of every document: chance is right once in 14 times."""
    folder = tmp_path_factory.mktemp("task")
    test, labels = Corpus.read(unseen_file), LabelSpace.read(labels_file)
    with (folder / "candidates.json").open("w") as file:
        for document in test.ids:
            file.write(json.dumps({"paper": document, "predicted_label": labels.ids}) + "\n")
    source = Candidates(file=folder / "candidates.json")
    return Task(Corpus.read(docs_file), test, labels, KeptArrays(folder / "cache"), source)


def precision(task: Task, system: object, seed: int = 0) -> float:
    return task.scores(system.rank(task, seed))["P@1"]  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def untuned(task: Task, tiny_bert: Path) -> float:
    return precision(task, UntunedEncoder(base=str(tiny_bert), pooling="mean", max_tokens=48))


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


WORDNET = {
    "noun": [
        "  1 This line is part of the licence.",
        "00000002 03 n 02 car 0 motor_car 0 000 | a vehicle",
        "00000003 03 n 01 lonely 0 000 | alone",
        "00000004 03 n 0b a 0 b 0 c 0 d 0 e 0 f 0 g 0 h 0 i 0 j 0 k 0 000 | eleven, in hexadecimal",
    ],
    "verb": ["00000005 29 v 02 car 0 Haul 1 000 | carry"],
    "adj": ["00000006 00 s 02 galore(ip) 0 plenty 0 000 | enough"],
    "adv": [],
}


def save_wordnet(folder: Path, lines: dict[str, list[str]]) -> Path:
    for part, entries in lines.items():
        (folder / f"data.{part}").write_text("".join(f"{line}\n" for line in entries))
    return folder


def test_wordnet_gives_the_words_of_all_sets(tmp_path):
    wordnet = WordNet.read(save_wordnet(tmp_path, WORDNET))
    assert wordnet.synonyms("car") == ("haul", "motor car")
    assert wordnet.synonyms("plenty") == ("galore",)
    assert wordnet.synonyms("lonely") == wordnet.synonyms("unknown") == ()
    assert len(wordnet.synonyms("a")) == 10


def test_wordnet_may_be_compressed(tmp_path):
    import gzip

    for path in save_wordnet(tmp_path, WORDNET).iterdir():
        (tmp_path / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert WordNet.read(tmp_path).synonyms("car") == ("haul", "motor car")


def test_wordnet_that_is_missing_or_damaged_is_told(tmp_path):
    with pytest.raises(MicolError, match=r"has no file data\.noun.*wordnet-base"):
        WordNet.read(tmp_path)
    save_wordnet(tmp_path, WORDNET | {"verb": ["00000005 29 v 03 car 0"]})
    with pytest.raises(MicolError, match=r"data\.verb:1: is no line"):
        WordNet.read(tmp_path)


def synonyms_of_the_world(folder: Path) -> Path:
    """Words of a topic are each other's synonyms."""
    lines = []
    for topic in range(world.TOPICS):
        words = " ".join(f"{word} 0" for word in world.words_of(topic))
        lines.append(f"{topic:08} 03 n {world.WORDS_A_TOPIC:02x} {words} 000 | of a topic")
    return save_wordnet(folder, {"noun": lines, "verb": [], "adj": [], "adv": []})


def test_eda_edits_are_what_they_are_called(tmp_path):
    wordnet = WordNet.read(synonyms_of_the_world(tmp_path))
    edits = Edits(wordnet, 0.2, np.random.default_rng(0))
    topic = world.words_of(3)
    words = [*topic[:4], "the", "of", topic[0], "results", "we", "show"]
    replaced = edits.replace_synonyms(words)
    assert len(replaced) == len(words)
    changed = [(old, new) for old, new in zip(words, replaced, strict=True) if old != new]
    # Two of the words, one of which may stand twice, each by one of its topic.
    assert 2 <= len(changed) <= 3
    assert all(old in topic and new in topic for old, new in changed)
    inserted = edits.insert(words)
    assert len(inserted) == len(words) + 2
    assert sorted(edits.swap(words)) == sorted(words)
    assert set(edits.delete(words)) <= set(words)
    assert edits.delete(["one"]) == ["one"]
    lengths = {len(edits.one_of_four(" ".join(words)).split()) for _ in range(60)}
    assert min(lengths) < len(words) < max(lengths)


def test_eda_pairs_teach_the_encoder(task, tiny_bert, untuned, tmp_path):
    wordnet = synonyms_of_the_world(tmp_path)
    system = Eda(strength=0.4, wordnet=str(wordnet), base=str(tiny_bert), settings=TRAINING)
    assert precision(task, system) > untuned + 0.1


def test_eda_without_wordnet_says_what_to_install(task, tiny_bert, tmp_path):
    with pytest.raises(MicolError, match="wordnet-base"):
        Eda(wordnet=str(tmp_path), base=str(tiny_bert), settings=TRAINING).rank(task, 0)


def test_word_replacement_spares_words_that_say_much():
    generator = np.random.default_rng(0)
    texts = [["the", "of", "and", f"topic{number % 20}", f"only{number}"] for number in range(200)]
    replacement = WordReplacement(texts, 0.5, generator)
    goes: dict[str, int] = {}
    comes: dict[str, int] = {}
    for text in texts * 5:
        for old, new in zip(text, replacement.replace(text), strict=True):
            if old != new:
                kind = old.rstrip("0123456789")
                goes[kind] = goes.get(kind, 0) + 1
                comes[new] = comes.get(new, 0) + 1
    # The word with the highest TF-IDF stays; those of every text go most often.
    assert "only" not in goes
    assert goes["the"] > 1.5 * goes["topic"]
    # Half of the words go; a few are replaced by themselves.
    assert 0.4 < sum(goes.values()) / (5 * 5 * len(texts)) < 0.55
    # idf("the") is 0, so S is: what says least comes most.
    assert comes["the"] > comes.get("topic3", 0)


def test_word_replacement_where_all_words_are_alike():
    replacement = WordReplacement([["a", "b"], ["a", "b"]], 1.0, np.random.default_rng(0))
    assert set(replacement.replace(["a", "b"])) <= {"a", "b"}
    assert replacement.replace([]) == []


def test_uda_pairs_teach_the_encoder(task, tiny_bert, untuned):
    system = Uda(strength=0.5, base=str(tiny_bert), settings=TRAINING)
    assert system.title == "UDA (Bi-Encoder, TF-IDF replacement only)"
    assert precision(task, system) > untuned + 0.1


def save_translator(folder: Path, source: Sequence[str], target: Sequence[str]) -> str:
    """A tiny Marian model that has learned to say each source word as the target word."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from tokenizers.processors import TemplateProcessing
    from transformers import MarianConfig, MarianMTModel, PreTrainedTokenizerFast

    tokens = ["<pad>", "</s>", "<unk>", *dict.fromkeys([*source, *target])]
    tokenizer = Tokenizer(models.WordLevel({token: at for at, token in enumerate(tokens)}, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    model = MarianMTModel(
        MarianConfig(
            vocab_size=len(tokens), d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=32,
            pad_token_id=0, eos_token_id=1, decoder_start_token_id=0, forced_eos_token_id=1, dropout=0.0,
            init_std=0.3,
        )
    )  # fmt: skip
    inputs = fast(list(source), return_tensors="pt", return_token_type_ids=False)
    labels = fast(list(target), return_tensors="pt")["input_ids"]
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(80):
        loss = model(**inputs, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.save_pretrained(folder)
    return str(folder)


def test_uda_translates_there_and_back(tmp_path):
    english, french = ["cat", "dog", "house", "tree"], ["chat", "chien", "maison", "arbre"]
    there = save_translator(tmp_path / "there", english, french)
    back = save_translator(tmp_path / "back", french, ["kitty", "hound", "home", "oak"])
    system = Uda(there=there, back=back, translated=1.0)
    texts = ["cat\ndog\n", "house", "tree\n\ncat"]
    assert system.augment(texts, np.random.default_rng(0)) == ["kitty hound", "home", "oak kitty"]
    assert system.title == "UDA (Bi-Encoder)"


def test_uda_needs_both_ways():
    with pytest.raises(MicolError, match="there and back"):
        Uda(there="Helsinki-NLP/opus-mt-en-fr")
    with pytest.raises(MicolError, match="the translation model cannot be loaded"):
        Uda(there="no/such-model", back="no/such-model").augment(["a", "b"], np.random.default_rng(0))


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
