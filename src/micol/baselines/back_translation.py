"""There and back again: a text through two translation models says the same in other words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import torch

from micol.errors import MicolError
from micol.progress import Progress
from micol.rank.encoder import best_device

# A GPU is idle most of the time with fewer; so many would not fit a small machine's memory.
SENTENCES_A_BATCH = {"cuda": 1024, "cpu": 128}
MAX_TOKENS = 128
# A sampled translation may never end; one that is this much longer than its text is cut off.
LONGER, MORE_TOKENS = 2, 8
# As in UDA: sampling makes translations more various than the best one would be.
TEMPERATURE = 0.9
HOW_TO_READ_ITS_WORDS = 'its tokenizer may need sentencepiece: pip install "micol[baselines]"'
HOW_TO_PROVIDE = "give the folder or hub id of a Marian-style model, such as Helsinki-NLP/opus-mt-en-fr"


class Translator:
    """One sequence-to-sequence model with its tokenizer."""

    def __init__(self, source: str) -> None:
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

        try:
            self.tokenizer: Any = AutoTokenizer.from_pretrained(source)
            self.model: Any = AutoModelForSeq2SeqLM.from_pretrained(source).to(best_device()).eval()
            # The models' own limit would only be warned of: a shorter one is given with each batch.
            self.model.generation_config.max_length = None
            if self.model.device.type == "cuda":
                self.model.bfloat16()
        except Exception as error:  # a foreign or damaged folder fails in a dozen ways
            reason = (str(error) or type(error).__name__).splitlines()[0]
            remedy = HOW_TO_PROVIDE if find_spec("sentencepiece") else HOW_TO_READ_ITS_WORDS
            raise MicolError(
                f"{source}: the translation model cannot be loaded ({reason}); {remedy}"
            ) from error

    @torch.inference_mode()
    def translate(self, sentences: Sequence[str]) -> list[str]:
        inputs = self.tokenizer(
            list(sentences), return_tensors="pt", padding=True, truncation=True, max_length=MAX_TOKENS,
            return_token_type_ids=False,
        ).to(self.model.device)  # fmt: skip
        tokens = self.model.generate(
            **inputs,
            do_sample=True,
            temperature=TEMPERATURE,
            num_beams=1,
            max_new_tokens=min(MAX_TOKENS, LONGER * inputs["input_ids"].shape[1] + MORE_TOKENS),
        )
        translated: list[str] = self.tokenizer.batch_decode(tokens, skip_special_tokens=True)
        return translated


class BackTranslator:
    def __init__(self, there: str, back: str, seed: int) -> None:
        self.models = (Translator(there), Translator(back))
        self.seed = seed

    def translate(self, texts: Sequence[str]) -> list[str]:
        """Sentence by sentence, the longest first, so that a batch holds sentences of like length."""
        torch.manual_seed(self.seed)
        parts = [sentences_of(text) for text in texts]
        flat = [sentence for sentences in parts for sentence in sentences]
        order = sorted(range(len(flat)), key=lambda at: -len(flat[at]))
        size = SENTENCES_A_BATCH[best_device().type]
        with Progress("back-translation", len(flat), "sentences") as progress:
            for start in range(0, len(order), size):
                batch = order[start : start + size]
                sentences = [flat[at] for at in batch]
                for model in self.models:
                    sentences = model.translate(sentences)
                for at, sentence in zip(batch, sentences, strict=True):
                    flat[at] = sentence
                progress.advance(len(batch))
        stream = iter(flat)
        return [" ".join(next(stream) for _ in sentences) for sentences in parts]


def sentences_of(text: str) -> list[str]:
    """Cut after a full stop, question or exclamation mark and at line ends; good enough to translate."""
    return [part for part in re.split(r"(?<=[.!?])\s+|\n+", text.strip()) if part]
