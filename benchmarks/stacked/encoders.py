"""Encoders with stacked weights: their passes and their losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch.nn.functional import gelu, layer_norm, log_softmax, normalize, scaled_dot_product_attention

from micol.rank.dropout import HashDropout
from micol.rank.encoder import Encoder
from micol.rank.losses import false_negatives
from micol.rank.trainer import compiler_options
from micol.settings import Settings
from stacked.batches import NONE, Batch, Sequences, packed

HEAD = "head.weight"
WORDS = "embeddings.word_embeddings.weight"
# Weights lie in a row by part: the words (half of all), what enters matrix products, and all others.
MATRICES = 1
# What follows attention in a layer.
AFTER = (
    "attention.output.dense", "attention.output.LayerNorm", "intermediate.dense", "output.dense",
    "output.LayerNorm",
)  # fmt: skip


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    bounds: tuple[torch.Tensor, torch.Tensor],
    longest: tuple[int, int],
    dropout: float,
) -> torch.Tensor:
    """[tokens, heads, dim]: within each sequence; `bounds` and `longest` of the queries and of the keys."""
    if query.is_cuda:
        out = torch.ops.aten._flash_attention_forward(
            query, key, value, *bounds, *longest, dropout, False, False
        )
        attended: torch.Tensor = out[0]
        return attended
    sides = [
        part.split(bound.diff().tolist())
        for part, bound in zip((query, key, value), (bounds[0], bounds[1], bounds[1]), strict=True)
    ]
    rows = [
        scaled_dot_product_attention(*(part.transpose(0, 1)[None] for part in row), dropout_p=dropout)[0]
        for row in zip(*sides, strict=True)
    ]
    return torch.cat([row.transpose(0, 1) for row in rows])


def projected(hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """A linear layer of each run: [M, T, in] by [M, out, in]."""
    kind = hidden.dtype
    return torch.bmm(hidden, weight.to(kind).mT) + bias.to(kind)[:, None]


def normed(hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, epsilon: float) -> torch.Tensor:
    out = layer_norm(hidden.float(), hidden.shape[-1:], eps=epsilon)
    return (out * weight[:, None] + bias[:, None]).to(hidden.dtype)


def of_any_length(tensor: torch.Tensor) -> torch.Tensor:
    """To be compiled once for all numbers of tokens [M, tokens, …], which alone change."""
    torch._dynamo.maybe_mark_dynamic(tensor, 1)
    return tensor


class Stack:
    """The weights of M encoders with one architecture, and their passes."""

    def __init__(self, encoder: Encoder, heads: Sequence[torch.Tensor | None], settings: Settings) -> None:
        config = encoder.model.config
        self.layers, self.heads = int(config.num_hidden_layers), int(config.num_attention_heads)
        self.epsilon, self.longest = float(config.layer_norm_eps), encoder.max_tokens
        self.framing = (encoder.framing.first, encoder.framing.last)
        self.dropout = HashDropout(config.hidden_dropout_prob if settings.dropout else 0.0)
        self.attention_dropout = config.attention_probs_dropout_prob if settings.attention_dropout else 0.0
        self.kind = torch.bfloat16 if settings.bf16 and encoder.device.type == "cuda" else torch.float32
        named = sorted(encoder.model.named_parameters(), key=lambda item: part_of(item[0]))
        begin = {name: weight.detach().float() for name, weight in named}
        shapes = {name: weight.shape for name, weight in begin.items()}
        if heads[0] is not None:
            shapes[HEAD] = heads[0].shape
        size = sum(shape.numel() for shape in shapes.values())
        # All weights lie in one row a run, so that one kernel updates them.
        self.row = torch.empty(len(heads), size, device=encoder.device)
        self.weights = views(self.row, shapes)
        # A weight with a history would be joined to what no recording may touch.
        own_heads = [head.detach() for head in heads if head is not None]
        for name, weight in self.weights.items():
            weight.copy_(torch.stack(own_heads) if name == HEAD else begin[name]).requires_grad_()
        self.embed: Callable[..., torch.Tensor] = self.embedded
        self.project: Callable[..., list[torch.Tensor]] = self.for_attention
        self.finish: Callable[..., torch.Tensor] = self.rest_of_layer
        if encoder.device.type == "cuda":
            # Of an earlier stack nothing must be remembered, or the number of runs would be taken for
            # something that changes from call to call, too.
            torch._dynamo.reset()
            compiled = partial(torch.compile, options=compiler_options())
            self.embed, self.project, self.finish = map(compiled, (self.embed, self.project, self.finish))

    @property
    def states(self) -> list[torch.Tensor]:
        """What a step changes."""
        return [self.row]

    def embedded(self, batch: Sequence[torch.Tensor], weights: Sequence[torch.Tensor]) -> torch.Tensor:
        ids, types, positions = batch
        words, places, kinds, *norm = weights
        runs = torch.arange(len(ids), device=ids.device)[:, None]
        kind = torch.where(types[..., None] == 0, kinds[:, None, 0], kinds[:, None, 1])
        out = normed(words[runs, ids] + kind + places[runs, positions], *norm, self.epsilon)
        return self.dropout(out.to(self.kind))

    def for_attention(self, hidden: torch.Tensor, *weights: torch.Tensor) -> list[torch.Tensor]:
        """[M * T, heads, dim] for each of the given weights and biases.

        Each by a product of its own: attention copies what lies between others, forward and backward.
        """
        count = len(weights) // 2
        return [
            projected(hidden, weight, bias).flatten(0, 1).unflatten(1, (self.heads, -1))
            for weight, bias in zip(weights[:count], weights[count:], strict=True)
        ]

    def rest_of_layer(
        self, attended: torch.Tensor, hidden: torch.Tensor, *weights: torch.Tensor
    ) -> torch.Tensor:
        out, norm, up, down, last = (weights[at : at + 2] for at in range(0, 10, 2))
        hidden = normed(self.dropout(projected(attended, *out)) + hidden, *norm, self.epsilon)
        wide = gelu(projected(hidden, *up))
        return normed(self.dropout(projected(wide, *down)) + hidden, *last, self.epsilon)

    def projections(
        self, hidden: torch.Tensor, names: Sequence[str]
    ) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """The hidden vectors, to be used instead of those given, and what attention needs of them."""
        weights, biases = ([self.weights[f"{name}.{of}"] for name in names] for of in ("weight", "bias"))
        return hidden, self.project(of_any_length(hidden), *weights, *biases)

    def rest(self, number: int, attended: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """What follows attention in a layer."""
        names = [f"encoder.layer.{number}.{part}.{of}" for part in AFTER for of in ("weight", "bias")]
        return self.finish(
            of_any_length(attended), of_any_length(hidden), *(self.weights[name] for name in names)
        )

    def cls_vectors(self, batch: Batch) -> torch.Tensor:
        """[M, N, dim]: of each sequence's first token, the only one that the last layer computes."""
        parts = ("word_embeddings", "position_embeddings", "token_type_embeddings", "LayerNorm")
        embedding = [self.weights[f"embeddings.{part}.weight"] for part in parts]
        norm = self.weights["embeddings.LayerNorm.bias"]
        inputs = [of_any_length(tensor) for tensor in (batch.ids, batch.types, batch.positions)]
        hidden = self.embed(inputs, (*embedding, norm))
        runs = torch.arange(len(hidden), device=hidden.device)[:, None]
        dropout = self.attention_dropout if self.dropout.training else 0.0
        for number in range(self.layers):
            names = [f"encoder.layer.{number}.attention.self.{part}" for part in ("query", "key", "value")]
            bounds, longest = batch.bounds, self.longest
            if number < self.layers - 1:
                hidden, heads = self.projections(hidden, names)
            else:
                hidden, heads = self.projections(hidden, names[1:])
                hidden, query = self.projections(hidden[runs, batch.begins], names[:1])
                heads, bounds, longest = query + heads, batch.asked, 1
            attended = attention(*heads, (bounds, batch.bounds), (longest, self.longest), dropout)
            hidden = self.rest(number, attended.reshape(hidden.shape), hidden)
        return hidden

    def losses(
        self, data: Sequences, numbers: torch.Tensor, tokens: int, size: int, temperature: float
    ) -> torch.Tensor:
        """[M, K]: the summed loss of each of K batches of `size` examples, given as [M, K * size]."""
        batch = packed(data, numbers, tokens, self.longest, self.framing)
        vectors = self.cls_vectors(batch)
        count = data.firsts.shape[2]
        shape = (len(numbers), -1, size)
        present = (numbers != NONE).view(shape)
        runs = torch.arange(len(numbers), device=numbers.device)[:, None]
        if HEAD in self.weights:
            scores = (vectors.float() * self.weights[HEAD]).sum(-1).view(*shape, count)
            targets = data.targets[runs, numbers.clamp(min=0)].view(*shape, count)
            return (-(targets * log_softmax(scores, -1)).sum(-1) * present).sum(-1)
        sides = data.sides[runs, numbers.clamp(min=0)].view(*shape, 2)
        sides = torch.where(present[..., None], sides, NONE)
        return contrast(vectors.view(*shape, 2, vectors.shape[-1]), sides, present, temperature)

    def gradients(self, loss: torch.Tensor) -> list[torch.Tensor]:
        """Of the weights [M, …], in parts of a row."""
        # Half of all weights are those of the words: they are not copied to stand beside the others.
        words, *others = (
            gradient.flatten(1) for gradient in torch.autograd.grad(loss, list(self.weights.values()))
        )
        return [words, torch.cat(others, dim=1)]


def contrast(
    vectors: torch.Tensor, sides: torch.Tensor, present: torch.Tensor, temperature: float
) -> torch.Tensor:
    """Eq. 9 summed over the pairs [..., B, 2, dim] that are present."""
    anchors, positives = normalize(vectors.float(), dim=-1).unbind(-2)
    left_out = false_negatives(sides[..., 0], sides[..., 0], sides[..., 1]) | ~present[..., None, :]
    left_out &= ~torch.eye(present.shape[-1], dtype=torch.bool, device=present.device)
    cosines = (anchors @ positives.mT).masked_fill(left_out, -torch.inf)
    rows = -log_softmax(cosines / temperature, dim=-1).diagonal(dim1=-2, dim2=-1)
    return (rows * present).sum(-1)


def part_of(name: str) -> int:
    """Where in a row a weight lies."""
    if name == WORDS:
        return 0
    matrix = name.startswith("encoder.") and name.endswith(".weight") and "LayerNorm" not in name
    return MATRICES if matrix else 2


def views(row: torch.Tensor, shapes: dict[str, torch.Size]) -> dict[str, torch.Tensor]:
    """The weights [M, …] that lie one after the other in each run's row."""
    parts = row.split([shape.numel() for shape in shapes.values()], dim=1)
    return {
        name: part.unflatten(1, shape).detach()
        for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }
