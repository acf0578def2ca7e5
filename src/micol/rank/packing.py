"""Transformers without padding: the sequences of a batch laid end to end in one row.

Documents differ in length, so a padded batch spends a third or more of its arithmetic on padding. Here a
batch is one long row of tokens; attention alone needs to know where each sequence begins and ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.functional import linear, scaled_dot_product_attention
from transformers import AttentionInterface, PreTrainedModel

# Architectures whose positions are an input and whose attention goes through transformers' interface.
PACKABLE = frozenset({"bert", "roberta", "xlm-roberta", "camembert", "electra"})
PACKED_ATTENTION = "micol_packed"


@dataclass(frozen=True)
class Packed:
    """Token sequences laid end to end. T tokens in all, N sequences."""

    ids: torch.Tensor  # [T]
    types: torch.Tensor  # [T] 0 for the first text, 1 for the second
    positions: torch.Tensor  # [T] from 0 in each sequence
    starts: torch.Tensor  # [N + 1] int32, where each sequence begins
    longest: int

    def to(self, device: torch.device) -> Packed:
        return Packed(
            self.ids.to(device, non_blocking=True),
            self.types.to(device, non_blocking=True),
            self.positions.to(device, non_blocking=True),
            self.starts.to(device, non_blocking=True),
            self.longest,
        )


def pack(sequences: Sequence[np.ndarray], firsts: Sequence[int] | None = None) -> Packed:
    """Packs token sequences; `firsts[i]` is the length of the first text where sequence i holds a pair."""
    lengths = np.fromiter((len(sequence) for sequence in sequences), dtype=np.int64, count=len(sequences))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    positions = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
    if firsts is None:
        types = np.zeros(starts[-1], dtype=np.int64)
    else:
        types = (positions >= np.repeat(np.asarray(firsts), lengths)).astype(np.int64)
    return Packed(
        ids=torch.from_numpy(np.concatenate(sequences).astype(np.int64)),
        types=torch.from_numpy(types),
        positions=torch.from_numpy(positions),
        starts=torch.from_numpy(starts.astype(np.int32)),
        longest=int(lengths.max()),
    )


@dataclass(frozen=True)
class Framing:
    """The special tokens around texts. Small, so that the processes that load data can have a copy."""

    first: int  # [CLS]
    last: int  # [SEP]
    between: tuple[int, ...]

    def pack(self, texts: Sequence[np.ndarray]) -> Packed:
        """`[CLS] d [SEP]` for every text."""
        return pack([np.concatenate([[self.first], text, [self.last]]) for text in texts])

    def pack_pairs(self, pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> Packed:
        """`[CLS] d [SEP] t [SEP]` for every pair; the first text ends with its separator."""
        sequences = [
            np.concatenate([[self.first], first, self.between, second, [self.last]])
            for first, second in pairs
        ]
        return pack(sequences, firsts=[len(first) + 2 for first, _ in pairs])


def slice_sequences(batch: Packed, start: int, end: int) -> Packed:
    """Sequences start to end of a batch."""
    starts = batch.starts[start : end + 1]
    tokens = slice(int(starts[0]), int(starts[-1]))
    return Packed(
        batch.ids[tokens], batch.types[tokens], batch.positions[tokens], starts - starts[0], batch.longest
    )


def packed_attention(
    projected: torch.Tensor, starts: torch.Tensor, longest: int, dropout: float
) -> torch.Tensor:
    """[T, heads, dim]: attention of queries, keys and values, [T, 3, heads, dim], within each sequence."""
    if projected.is_cuda and dropout:  # which attention of packed sequences does not have there
        return padded_attention(projected, starts, longest, dropout)
    if projected.is_cuda:
        from torch.nn.attention.varlen import varlen_attn

        query, key, value = projected.unbind(1)
        out = varlen_attn(query, key, value, starts, starts, longest, longest)
        assert isinstance(out, torch.Tensor)
        return out
    sequences = projected.permute(1, 2, 0, 3).split(starts.diff().tolist(), dim=2)
    attended = [
        scaled_dot_product_attention(query, key, value, dropout_p=dropout)[0]
        for query, key, value in (sequence[:, None] for sequence in sequences)  # [1, heads, length, dim]
    ]
    return torch.cat(attended, dim=1).transpose(0, 1)


def padded_attention(
    projected: torch.Tensor, starts: torch.Tensor, longest: int, dropout: float
) -> torch.Tensor:
    """The same, each sequence in a row of its own, padded to the longest."""
    lengths = starts.diff()
    places = places_in_rows(starts, longest, len(projected))
    spread = projected.new_zeros(len(lengths) * longest, *projected.shape[1:])
    spread[places] = projected
    query, key, value = spread.view(len(lengths), longest, *projected.shape[1:]).permute(2, 0, 3, 1, 4)
    attended = scaled_dot_product_attention(
        query, key, value, within(lengths, longest)[:, None, None], dropout
    )  # [N, heads, longest, dim]
    return attended.transpose(1, 2).flatten(0, 1).index_select(0, places)


def places_in_rows(starts: torch.Tensor, longest: int, tokens: int) -> torch.Tensor:
    """Where each packed token stands when every sequence has a row of its own, counted through the rows.

    The caller knows the number of tokens: asking a GPU for it would mean to wait for it.
    """
    rows = torch.arange(len(starts) - 1, device=starts.device)
    gaps = rows * longest - starts[:-1]
    gap = torch.repeat_interleave(gaps, starts.diff(), output_size=tokens)
    return torch.arange(tokens, device=starts.device) + gap


def within(lengths: torch.Tensor, longest: int) -> torch.Tensor:
    """[N, longest]: which places of the rows hold a token."""
    return torch.arange(longest, device=lengths.device)[None] < lengths[:, None]


def no_attention(*_: Any, **__: Any) -> None:
    """Stands for the name of packed attention, which is in the layers themselves: see fuse_projections."""
    raise AssertionError("a packed encoder without fused layers")


# A name of our own: for it transformers builds no attention mask.
AttentionInterface.register(PACKED_ATTENTION, no_attention)


class FusedSelfAttention(torch.nn.Module):
    """Packed self-attention with queries, keys and values of one matrix product: a GPU likes it large.

    Takes the place of a layer's own and keeps the names of its weights.
    """

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.query, self.key, self.value = layer.query, layer.key, layer.value
        self.heads = int(layer.num_attention_heads)
        self.dropout = layer.dropout

    def forward(
        self, hidden: torch.Tensor, *_: Any, packed_starts: torch.Tensor, packed_longest: int, **__: Any
    ) -> tuple[torch.Tensor, None]:
        parts = (self.query, self.key, self.value)
        weight, bias = torch.cat([p.weight for p in parts]), torch.cat([p.bias for p in parts])
        tokens = hidden.shape[1]
        projected = linear(hidden[0], weight, bias).view(tokens, 3, self.heads, -1)
        dropout = float(self.dropout.p) if self.training else 0.0
        out = packed_attention(projected, packed_starts, packed_longest, dropout)
        return out.reshape(1, tokens, -1), None


def fuse_projections(model: torch.nn.Module) -> None:
    """Gives every layer the fused self-attention in the place of its own."""
    layers: list[Any] = [part for part in model.modules() if hasattr(part, "self")]
    for layer in layers:
        if not isinstance(layer.self, FusedSelfAttention):
            layer.self = FusedSelfAttention(layer.self)


def can_pack(model: PreTrainedModel) -> bool:
    return model.config.model_type in PACKABLE


def last_hidden_states(model: PreTrainedModel, batch: Packed) -> torch.Tensor:
    """The last layer's vectors of every token of the batch, [T, dim]."""
    if not can_pack(model) or model.config._attn_implementation != PACKED_ATTENTION:
        return _padded_hidden_states(model, batch)
    out = model(**packed_inputs(model, batch), packed_starts=batch.starts, packed_longest=batch.longest)
    hidden: torch.Tensor = out.last_hidden_state[0]
    return hidden


def embed_tokens(model: PreTrainedModel, batch: Packed) -> torch.Tensor:
    """What goes into the first layer for every token of the batch, float32 [T, dim]."""
    embedded: torch.Tensor = model.embeddings(**packed_inputs(model, batch))[0]  # type: ignore[operator]
    if hasattr(model, "embeddings_project"):  # ELECTRA's embeddings may be narrower than its layers
        embedded = model.embeddings_project(embedded)  # type: ignore[operator]
    return embedded.float()


def packed_inputs(model: PreTrainedModel, batch: Packed) -> dict[str, torch.Tensor]:
    # RoBERTa-like models count positions from after the padding index.
    first_position = 0 if model.config.model_type in {"bert", "electra"} else model.config.pad_token_id + 1
    types = batch.types if model.config.type_vocab_size > 1 else torch.zeros_like(batch.types)
    return {
        "input_ids": batch.ids[None],
        "token_type_ids": types[None],
        "position_ids": batch.positions[None] + first_position,
    }


def _padded_hidden_states(model: PreTrainedModel, batch: Packed) -> torch.Tensor:
    """The same through an ordinary padded batch, for other architectures."""
    lengths = batch.starts.diff()
    places = places_in_rows(batch.starts, batch.longest, len(batch.ids))

    def spread(tokens: torch.Tensor, padding: int) -> torch.Tensor:
        rows = tokens.new_full((len(lengths) * batch.longest,), padding)
        rows[places] = tokens
        return rows.view(len(lengths), batch.longest)

    inputs = {
        "input_ids": spread(batch.ids, model.config.pad_token_id or 0),
        "attention_mask": within(lengths, batch.longest).long(),
    }
    if getattr(model.config, "type_vocab_size", 0) > 1:
        inputs["token_type_ids"] = spread(batch.types, 0)
    hidden: torch.Tensor = model(**inputs).last_hidden_state
    return hidden.flatten(0, 1).index_select(0, places)
