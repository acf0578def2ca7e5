"""A small world whose documents have topics, and tiny real encoders that know its words.

Documents cite documents of their own topic, and a label describes its topic with words of that topic: whoever
learns from the citations which words belong together finds the label.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

TOPICS = 12
WORDS_A_TOPIC = 6
SYLLABLES = [a + b for a, b in zip("bcdfghjklmnprstvwxyz", "aeiouaeiouaeiouaeiou", strict=True)]
COMMON = ("the", "of", "and", "results", "method", "we", "show", "study", "with", "using", "on", "in")


def word(number: int) -> str:
    return "".join(SYLLABLES[number // len(SYLLABLES) ** place % len(SYLLABLES)] for place in range(3))


def words_of(topic: int) -> list[str]:
    return [word(7 + 37 * (topic * WORDS_A_TOPIC + place)) for place in range(WORDS_A_TOPIC)]


def label_records(topics: int = TOPICS) -> list[dict[str, Any]]:
    """Labels in two levels: even topics under `even`, odd ones under `odd`."""
    groups = [{"id": name, "names": [f"{name} group"]} for name in ("even", "odd")]
    labels = []
    for topic in range(topics):
        words = words_of(topic)
        labels.append(
            {
                "id": f"t{topic}",
                "names": [f"{words[0]} {words[1]}", words[0]],
                "description": f"the study of {' '.join(words[2:6])} and results with using it",
                "parents": ["odd" if topic % 2 else "even"],
            }
        )
    return groups + labels


def documents(number: int, topics: int = TOPICS, seed: int = 0, first: int = 0) -> list[dict[str, Any]]:
    """Documents in turn of each topic, citing three others of it, with the topic's label as gold."""
    generator = random.Random(seed)
    records = []
    for position in range(first, first + number):
        topic = position % topics
        words = words_of(topic)

        def some(count: int, words: Sequence[str] = words) -> str:
            return " ".join(
                generator.choice(words if generator.random() < 0.5 else COMMON) for _ in range(count)
            )

        cited = [generator.randrange(number // topics) * topics + topic + first for _ in range(3)]
        records.append(
            {
                "id": f"d{position}",
                "title": some(4),
                "abstract": some(generator.randint(6, 20)),
                "authors": [f"a{topic}-{generator.randrange(4)}"],
                "venue": f"v{topic % 3}",
                "references": sorted({f"d{target}" for target in cited if target != position}),
                "labels": [f"t{topic}"],
            }
        )
    return records


def vocabulary_texts() -> list[str]:
    texts = [record["title"] + " " + record["abstract"] for record in documents(200)]
    return texts + [" ".join([*label["names"], label.get("description", "")]) for label in label_records()]


def save_bert(folder: Path, seed: int = 0) -> Path:
    """A BERT of two layers with a WordPiece tokenizer, in Hugging Face layout."""
    import torch
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(
        vocabulary_texts(),
        trainers.WordPieceTrainer(vocab_size=600, special_tokens=special, show_progress=False),
    )
    ids = {token: tokenizer.token_to_id(token) for token in special}
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    names = dict(
        zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True)
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=64,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **names,
    ).save_pretrained(folder)
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=64, pad_token_id=ids["[PAD]"], initializer_range=0.15,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    return folder


def save_other(folder: Path, bert: Path, model: type[PreTrainedModel], config: PreTrainedConfig) -> Path:
    """Another architecture with the tokenizer of a BERT that was saved."""
    import torch
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(bert)
    tokenizer.save_pretrained(folder)
    config.vocab_size = len(tokenizer)
    torch.manual_seed(0)
    model(config).save_pretrained(folder)
    return folder


def save_roberta(folder: Path, seed: int = 0) -> Path:
    """A RoBERTa of two layers with a byte-level BPE tokenizer."""
    import torch
    from transformers import PreTrainedTokenizerFast, RobertaConfig, RobertaModel

    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=special,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(vocabulary_texts(), trainer)
    tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=64,
        model_input_names=["input_ids", "attention_mask"],
        bos_token="<s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>", mask_token="<mask>",
        cls_token="<s>", sep_token="</s>",
    ).save_pretrained(folder)  # fmt: skip
    torch.manual_seed(seed)
    config = RobertaConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=66, type_vocab_size=1, pad_token_id=1, bos_token_id=0,
        eos_token_id=2,
    )  # fmt: skip
    RobertaModel(config).save_pretrained(folder)
    return folder
