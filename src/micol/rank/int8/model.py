"""The forward pass of a BERT-family encoder over packed sequences, its linear layers in 8-bit arithmetic."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from micol.rank.int8.kernels import Norm, Outputs, activate, normalise, quantise, rescale, weigh
from micol.rank.packing import Packed, can_pack, embed_tokens

LARGEST_CODE = 127
# Tokens of a sequence from which on attention in bfloat16 is quicker: preparing its products takes longer.
BFLOAT16_PAYS = 56


def is_quantisable(model: PreTrainedModel) -> bool:
    """Whether the layers are BERT's own: the packable architectures, with exact GELU."""
    return can_pack(model) and model.config.hidden_act == "gelu"


class Linear:
    """A linear layer whose weights are bytes, with a scale for each output."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        scale = weight.abs().amax(dim=1).clamp_min(torch.finfo(torch.float32).tiny) / LARGEST_CODE
        codes = (weight / scale[:, None]).round()
        self.codes = codes.to(torch.int8).t().contiguous()
        self.outputs = Outputs(scale.numpy(), (codes.sum(dim=1) * scale).numpy(), bias.numpy().copy())

    @classmethod
    def of(cls, *layers: torch.nn.Linear, factors: tuple[float, ...] = (1.0,)) -> Linear:
        """The given layers as one, each with its weights times a factor."""
        parts = [
            (layer.weight.detach().float() * factor, layer.bias.detach().float() * factor)
            for layer, factor in zip(layers, factors, strict=True)
        ]
        return cls(torch.cat([weight for weight, _ in parts]), torch.cat([bias for _, bias in parts]))

    @property
    def width(self) -> int:
        return int(self.codes.shape[1])

    def sums(self, codes: np.ndarray, out: np.ndarray) -> np.ndarray:
        torch._int_mm(torch.from_numpy(codes), self.codes, out=torch.from_numpy(out))
        return out


def norm_of(layer: torch.nn.LayerNorm) -> Norm:
    return Norm(
        layer.weight.detach().float().numpy().copy(),
        layer.bias.detach().float().numpy().copy(),
        np.float32(layer.eps),
    )


class Layer:
    """One transformer layer."""

    def __init__(self, layer: Any, head_size: int) -> None:
        attention, out = layer.attention.self, layer.attention.output
        # Scores are divided by the root of the head's size: the queries may as well be.
        self.query_key_value = Linear.of(
            attention.query, attention.key, attention.value, factors=(head_size**-0.5, 1.0, 1.0)
        )
        self.attended, self.attended_norm = Linear.of(out.dense), norm_of(out.LayerNorm)
        self.wide = Linear.of(layer.intermediate.dense)
        self.narrow, self.narrow_norm = Linear.of(layer.output.dense), norm_of(layer.output.LayerNorm)


class Scratch:
    """Memory that all layers use in turn, for T tokens; what attention reads is in its own type."""

    def __init__(self, tokens: int, size: int, wide: int, attention: torch.dtype) -> None:
        self.codes, self.grid = np.empty((tokens, size), np.int8), np.empty((tokens, 2), np.float32)
        self.wide_codes, self.wide_grid = np.empty((tokens, wide), np.int8), np.empty_like(self.grid)
        self.sums = np.empty((tokens, size), np.int32)
        self.triple_sums = np.empty((tokens, 3 * size), np.int32)
        self.wide_sums = np.empty((tokens, wide), np.int32)
        self.query_key_value = torch.empty(tokens, 3 * size, dtype=attention)
        self.attended = np.empty((tokens, size), np.float32)


class Int8Model:
    """The encoder as 8-bit layers after the float32 embeddings; it holds copies of the weights.

    With `bfloat16`, for processors that have it, the products of attention in long sequences are in that
    type: in float32 they take a third of all time.
    """

    def __init__(self, model: PreTrainedModel, *, bfloat16: bool) -> None:
        self.attention = torch.bfloat16 if bfloat16 else torch.float32
        self.model, self.heads = model, model.config.num_attention_heads
        self.head_size = model.config.hidden_size // self.heads
        layers: Any = model.encoder.layer  # type: ignore[union-attr]
        self.layers = [Layer(layer, self.head_size) for layer in layers]

    def hidden(self, batch: Packed) -> torch.Tensor:
        """The last layer's vectors of every token, float32 [T, dim]."""
        state = embed_tokens(self.model, batch).numpy()
        scratch = Scratch(len(state), state.shape[1], self.layers[0].wide.width, self.attention)
        quantise(state, scratch.codes, scratch.grid)
        for layer in self.layers:
            self.run(layer, state, scratch, batch.starts.tolist())
        return torch.from_numpy(state)

    def run(self, layer: Layer, state: np.ndarray, scratch: Scratch, starts: list[int]) -> None:
        """One layer, in place: `state` and its quantised copy in `scratch` go in and come out."""
        codes, grid = scratch.codes, scratch.grid
        sums = layer.query_key_value.sums(codes, scratch.triple_sums)
        rescale(sums, grid, layer.query_key_value.outputs, as_kernels_see(scratch.query_key_value))
        self.attend(scratch.query_key_value, scratch.attended, starts)
        quantise(scratch.attended, codes, grid)
        sums = layer.attended.sums(codes, scratch.sums)
        normalise(sums, grid, layer.attended.outputs, layer.attended_norm, state, codes, grid)
        sums = layer.wide.sums(codes, scratch.wide_sums)
        activate(sums, grid, layer.wide.outputs, scratch.wide_codes, scratch.wide_grid)
        sums = layer.narrow.sums(scratch.wide_codes, scratch.sums)
        normalise(sums, scratch.wide_grid, layer.narrow.outputs, layer.narrow_norm, state, codes, grid)

    def attend(self, query_key_value: torch.Tensor, attended: np.ndarray, starts: list[int]) -> None:
        """Attention within each sequence, all heads at once."""
        parts = query_key_value.unflatten(1, (3, self.heads, self.head_size))
        parts = parts.permute(1, 2, 0, 3)  # [3, heads, T, head size]
        out = torch.from_numpy(attended).unflatten(1, (self.heads, self.head_size)).transpose(0, 1)
        for start, end in pairwise(starts):
            dtype = parts.dtype if end - start >= BFLOAT16_PAYS else torch.float32
            query, key, value = parts[:, :, start:end].to(
                dtype, copy=True, memory_format=torch.contiguous_format
            )
            weights = torch.bmm(query, key.transpose(1, 2))
            scales = torch.empty(self.heads, end - start, 1)
            weigh(as_kernels_see(weights.flatten(0, 1)), scales.flatten().numpy())
            torch.mul(torch.bmm(weights, value), scales, out=out[:, start:end])


def as_kernels_see(values: torch.Tensor) -> np.ndarray:
    """float32 as it is, bfloat16 as its bits."""
    return (values.view(torch.uint16) if values.dtype == torch.bfloat16 else values).numpy()
