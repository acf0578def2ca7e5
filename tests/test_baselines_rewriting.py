"""Pairs from rewritten texts: WordNet, EDA, UDA and back-translation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import world
from micol.baselines.eda import Eda, Edits
from micol.baselines.uda import Uda, WordReplacement
from micol.baselines.wordnet import WordNet
from micol.errors import MicolError
from systems import TRAINING, precision

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
