"""A BERT-family encoder and its tokenizer: texts to token sequences to hidden vectors."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from micol.errors import MicolError
from micol.rank.base import HOW_TO_PROVIDE
from micol.rank.packing import (
    PACKABLE,
    PACKED_ATTENTION,
    Framing,
    Packed,
    fuse_projections,
    last_hidden_states,
)
from micol.rank.runtime import cores, float_precision, on_every_core, quantised

if TYPE_CHECKING:
    from micol.rank.int8.model import Int8Model

Result = TypeVar("Result")

# Tokens in one batch of inference: enough to fill the device (or a core), little enough to fit it.
INFERENCE_TOKENS = {"cuda": 65_536, "cpu": 1_024}


def best_device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Encoder:
    """Turns texts into token sequences and runs them through the model, never padding."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, max_tokens: int) -> None:
        limit = getattr(model.config, "max_position_embeddings", max_tokens)
        if model.config.model_type in PACKABLE - {"bert", "electra"}:
            limit -= model.config.pad_token_id + 1
        self.model, self.tokenizer, self.max_tokens = model, tokenizer, min(max_tokens, limit)
        if model.config._attn_implementation == PACKED_ATTENTION:
            fuse_projections(model)
        # The weights as they were trained, where the model computes in a narrower type.
        self.exact_weights: dict[str, torch.Tensor] = {}
        self.settled: torch.dtype | None = None
        self.quantised: Int8Model | None = None
        first, last = _special_tokens(tokenizer)
        # RoBERTa-like models put two separators between the texts of a pair.
        double = model.config.model_type in {"roberta", "xlm-roberta", "camembert", "mpnet"}
        self.framing = Framing(first, last, (last, last) if double else (last,))

    @classmethod
    def load(
        cls,
        source: str | Path,
        max_tokens: int,
        *,
        device: torch.device | None = None,
        dtype: torch.dtype = torch.float32,
        remedy: str = HOW_TO_PROVIDE,
    ) -> Encoder:
        """Loads a folder or hub id."""
        level = transformers_logging.get_verbosity()
        transformers_logging.set_verbosity_error()
        transformers_logging.disable_progress_bar()
        try:
            config = AutoConfig.from_pretrained(str(source))
            options: dict[str, Any] = {"dtype": dtype}
            if config.model_type in PACKABLE:
                options["attn_implementation"] = PACKED_ATTENTION
            if config.model_type in PACKABLE - {"electra"}:
                options["add_pooling_layer"] = False
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model, loading = AutoModel.from_pretrained(
                    str(source), config=config, output_loading_info=True, **options
                )
                tokenizer = AutoTokenizer.from_pretrained(str(source))
        except Exception as error:  # a foreign or damaged folder fails in a dozen ways
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise MicolError(f"{source}: the encoder cannot be loaded ({reason}); {remedy}") from error
        finally:
            transformers_logging.set_verbosity(level)
        if loading["missing_keys"]:  # transformers would fill them with random numbers
            raise MicolError(f"{source}: lacks weights such as {min(loading['missing_keys'])}; {remedy}")
        if 2 * len(tokenizer) < config.vocab_size:  # transformers makes do with an empty one
            raise MicolError(f"{source}: has no tokenizer with the model's vocabulary; {remedy}")
        if not tokenizer.is_fast:
            raise MicolError(f"{source}: has no fast tokenizer (tokenizer.json); {remedy}")
        return cls(model.to(device or best_device()), tokenizer, max_tokens)

    @property
    def device(self) -> torch.device:
        return self.model.device

    @property
    def dimension(self) -> int:
        return int(self.model.config.hidden_size)

    @property
    def inference_dtype(self) -> torch.dtype:
        """The float type of inference."""
        return self.settled or float_precision(self.device)

    def settle(self) -> None:
        """Computes as quickly as this machine can from now on; the exact weights are kept for saving."""
        if self.settled is not None:
            return
        with cores(1) as core:
            self.quantised = core.submit(quantised, self).result()
        self.settled = dtype = torch.float32 if self.quantised else float_precision(self.device)
        if self.model.dtype == torch.float32 != dtype:
            self.exact_weights = {name: weight.cpu() for name, weight in self.model.state_dict().items()}
        torch.nn.Module.to(self.model, dtype)

    def save(self, folder: Path) -> None:
        """Writes the encoder in Hugging Face layout, weights as float32 safetensors."""
        level = transformers_logging.get_verbosity()
        transformers_logging.set_verbosity_error()
        transformers_logging.disable_progress_bar()
        attention, dtype = self.model.config._attn_implementation, self.model.dtype
        try:
            if self.exact_weights:
                self.model.float().load_state_dict(self.exact_weights)
            self.model.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)
        finally:
            torch.nn.Module.to(self.model, dtype)
            self.model.config._attn_implementation = attention
            transformers_logging.set_verbosity(level)

    def tokenize(self, texts: Sequence[str], limit: int | None = None) -> list[np.ndarray]:
        """The texts' tokens without special ones, cut so that they fit the encoder with them."""
        limit = self.max_tokens - 2 if limit is None else limit
        if not texts:
            return []
        encoded = self.tokenizer(
            list(texts), add_special_tokens=False, truncation=True, max_length=limit,
            return_attention_mask=False, return_token_type_ids=False, verbose=False,
        )  # fmt: skip
        return [np.asarray(ids, dtype=np.int32) for ids in encoded["input_ids"]]

    def count_longer(self, texts: Sequence[str], limit: int) -> int:
        """How many texts have more than `limit` tokens."""
        # A token is at least a byte long: most short texts need not be looked at.
        long = [text for text in texts if len(text.encode()) > limit]
        if not long:
            return 0
        encoded = self.tokenizer(long, add_special_tokens=False, truncation=True, max_length=limit + 1)
        return sum(len(ids) > limit for ids in encoded["input_ids"])

    def hidden(self, batch: Packed) -> torch.Tensor:
        return self.quantised.hidden(batch) if self.quantised else last_hidden_states(self.model, batch)

    def each(
        self, work: Callable[[np.ndarray], Result], lengths: np.ndarray
    ) -> Iterator[tuple[np.ndarray, Result]]:
        """Inference in batches: positions among the texts of these lengths, and `work` of them."""

        def infer(batch: np.ndarray) -> tuple[np.ndarray, Result]:
            with self.inference():
                return batch, work(batch)

        most = INFERENCE_TOKENS[self.device.type]
        if self.device.type != "cpu":
            return map(infer, batches_by_length(lengths, most))
        return on_every_core(infer, even_batches(lengths, most, torch.get_num_threads()))

    @contextmanager
    def inference(self) -> Iterator[None]:
        """No gradients, no dropout, and the precision of inference whatever that of the weights."""
        self.model.eval()
        dtype = self.inference_dtype
        with (
            torch.inference_mode(),
            torch.autocast(self.device.type, dtype, enabled=self.model.dtype != dtype != torch.float32),
        ):
            yield


def _special_tokens(tokenizer: PreTrainedTokenizerBase) -> tuple[int, int]:
    first = tokenizer.cls_token_id if tokenizer.cls_token_id is not None else tokenizer.bos_token_id
    last = tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id
    if first is None or last is None:
        raise MicolError("the encoder's tokenizer has no [CLS] and [SEP]; a BERT-family encoder is needed")
    return int(first), int(last)


def batches_by_length(lengths: np.ndarray, budget: int) -> Iterator[np.ndarray]:
    """Positions in batches of at most `budget` tokens, longest first, so that memory peaks at once."""
    order = np.argsort(-lengths, kind="stable")
    start = tokens = 0
    for end, position in enumerate(order):
        if tokens + lengths[position] > budget and end > start:
            yield order[start:end]
            start, tokens = end, 0
        tokens += lengths[position]
    if start < len(order):
        yield order[start:]


def even_batches(lengths: np.ndarray, budget: int, cores: int) -> Iterator[np.ndarray]:
    """Positions in batches of about as many tokens each, longest first, as many batches for every core.

    The last text of a batch may exceed the budget: an odd one left over would keep the other cores waiting.
    """
    order = np.argsort(-lengths, kind="stable")
    ends = np.cumsum(lengths[order])
    total = int(ends[-1]) if len(ends) else 0
    count = cores * math.ceil(total / (cores * budget))
    middles = ends - lengths[order] / 2
    cuts = np.searchsorted(middles, total * np.arange(1, count) / max(count, 1))
    return (batch for batch in np.split(order, cuts) if len(batch))


def saved_pooling(source: str | Path) -> str | None:
    """How a sentence-transformers folder pools (`cls` or `mean`), or None where it does not say."""
    path = Path(source) / "1_Pooling" / "config.json"
    if not path.is_file():
        return None
    config = json.loads(path.read_text(encoding="utf-8"))
    if config.get("pooling_mode") in ("cls", "mean"):
        return str(config["pooling_mode"])
    return "cls" if config.get("pooling_mode_cls_token") else "mean"
