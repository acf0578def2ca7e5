"""Trains several encoders at once on a GPU: weights are stacked, and one matrix product serves them all.

A step of the paper's recipe is eight pairs through a small encoder: hundreds of kernels, each of which ends
before the GPU is busy. As many steps of other runs beside it (other meta-paths, other seeds) make the kernels
larger, not more. Each run keeps its own weights, batches, dropout, optimiser and best checkpoint; what one
would have learned alone it learns here (tests/test_stacked.py).

Only what the paper's recipe needs is here: BERT, [CLS], Adam without weight decay, a linear schedule without
warm-up, and the checkpoint with the lowest validation loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.nn.functional import gelu, layer_norm, log_softmax, normalize, scaled_dot_product_attention

from micol.progress import Progress
from micol.rank.dropout import HashDropout
from micol.rank.encoder import Encoder
from micol.rank.examples import ListExamples, PairExamples
from micol.rank.losses import false_negatives
from micol.settings import Settings

BETAS, EPSILON, MOST_NORM = (0.9, 0.999), 1e-8, 1.0
# Sizes of batches are rounded up to these, as each has a recording of its own.
TRAINED_TOKENS, EVALUATED_TOKENS = 256, 4_096
EVALUATED_TOGETHER = 64
HEAD = "head.weight"
# What follows attention in a layer.
AFTER = (
    "attention.output.dense", "attention.output.LayerNorm", "intermediate.dense", "output.dense",
    "output.LayerNorm",
)  # fmt: skip
NONE = -1


@dataclass
class Run:
    """One encoder to train: the examples, and what becomes of the weights."""

    settings: Settings
    train: PairExamples | ListExamples
    validation: PairExamples | ListExamples
    head: torch.Tensor | None = None
    best: dict[str, torch.Tensor] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)
    validation_losses: list[float] = field(default_factory=list)

    @property
    def steps(self) -> int:
        return math.ceil(len(self.train) / self.settings.batch_size) * self.settings.epochs


@dataclass(frozen=True)
class Sequences:
    """Examples of several runs as numbers on the device: S sequences each, of one text or of two."""

    tokens: torch.Tensor  # of all texts, end to end
    offsets: torch.Tensor  # [texts]
    lengths: torch.Tensor  # [texts]
    firsts: torch.Tensor  # [M, E, S] into the texts
    seconds: torch.Tensor  # [M, E, S], NONE where a sequence has one text
    sides: torch.Tensor  # [M, E, 2] documents of pairs (bi-encoder)
    targets: torch.Tensor  # [M, E, S] (cross-encoder)
    sizes: np.ndarray  # [M, E] tokens of an example

    @classmethod
    def of(cls, examples: Sequence[PairExamples | ListExamples], device: torch.device) -> Sequences:
        texts: list[np.ndarray] = []
        parts: list[tuple[np.ndarray, ...]] = []
        for some in examples:
            begin = len(texts)
            if isinstance(some, PairExamples):
                texts += list(some.texts)
                firsts = np.stack([some.anchors, some.positives], axis=1) + begin
                seconds = np.full_like(firsts, NONE)
                sides, targets = some.documents[firsts - begin], np.zeros(firsts.shape, np.float32)
            else:
                texts += [*some.firsts, *some.seconds]
                firsts = np.repeat(some.documents[:, None], some.lists.shape[1], axis=1) + begin
                seconds = some.lists + begin + len(some.firsts)
                sides, targets = np.zeros((len(firsts), 2), np.int64), some.targets
            parts.append((firsts, seconds, sides, targets))
        lengths = np.array([len(text) for text in texts])
        longest = max(len(some) for some in examples)

        def stacked(column: int) -> torch.Tensor:
            rows = (np.pad(part[column], ((0, longest - len(part[column])), (0, 0))) for part in parts)
            return torch.from_numpy(np.stack(list(rows))).to(device)

        firsts, seconds = stacked(0), stacked(1)
        pair = lengths[firsts.cpu().numpy()] + 2
        second = seconds.cpu().numpy()
        pair += np.where(second == NONE, 0, lengths[second] + 1)
        return cls(
            torch.from_numpy(np.concatenate(texts).astype(np.int32)).to(device),
            torch.from_numpy(np.cumsum(lengths) - lengths).to(device),
            torch.from_numpy(lengths).to(device),
            firsts,
            seconds,
            stacked(2),
            stacked(3),
            pair.sum(axis=2),
        )

    def tokens_of(self, numbers: np.ndarray) -> int:
        """The most tokens that a run has in a batch of examples [M, B]; one that is NONE takes two a text."""
        sizes = np.take_along_axis(self.sizes, np.maximum(numbers, 0), axis=1)
        absent = 2 * self.firsts.shape[2]
        return int(np.where(numbers == NONE, absent, sizes).sum(axis=1).max())


@dataclass(frozen=True)
class Batch:
    """The sequences of a batch of each of M runs, laid end to end and filled up to T tokens."""

    ids: torch.Tensor  # [M, T]
    types: torch.Tensor  # [M, T]
    positions: torch.Tensor  # [M, T]
    begins: torch.Tensor  # [M, N] where each sequence begins
    bounds: torch.Tensor  # int32, of all sequences and of what fills up, over all runs
    asked: torch.Tensor  # the same where only the [CLS] tokens are asked for


def packed(
    data: Sequences, numbers: torch.Tensor, tokens: int, longest: int, framing: tuple[int, int]
) -> Batch:
    """[M, B] examples (NONE: an empty text) as one batch, made on the device."""
    runs = torch.arange(len(numbers), device=numbers.device)[:, None]
    present = (numbers != NONE)[..., None]
    firsts = data.firsts[runs, numbers.clamp(min=0)]
    seconds = data.seconds[runs, numbers.clamp(min=0)]
    is_pair = present & (seconds != NONE)
    first_length = torch.where(present, data.lengths[firsts], 0).flatten(1)  # [M, N]
    second_length = torch.where(is_pair, data.lengths[seconds.clamp(min=0)], NONE).flatten(1)
    starts = torch.nn.functional.pad((first_length + second_length + 3).cumsum(1), (1, 0))
    places = torch.arange(tokens, device=numbers.device).expand(len(numbers), -1).contiguous()
    sequence = torch.searchsorted(starts[:, 1:].contiguous(), places, right=True)
    fills = sequence == firsts.flatten(1).shape[1]
    within = places - starts.gather(1, sequence)
    sequence = sequence.clamp(max=first_length.shape[1] - 1)
    first, second = (length.gather(1, sequence) for length in (first_length, second_length))

    def word(texts: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        offsets = data.offsets[texts.clamp(min=0).flatten(1)].gather(1, sequence)
        return data.tokens[(offsets + at).clamp(0, len(data.tokens) - 1)].long()

    cls, sep = framing
    ids = torch.full_like(places, sep)
    in_second = (within > first + 1) & (within < first + second + 2)
    ids = torch.where(in_second, word(seconds, within - first - 2), ids)
    ids = torch.where(within <= first, word(firsts, within - 1), ids)
    ids = torch.where(within == 0, cls, ids)
    # What fills up is a few sequences of its own, no longer than the others may be.
    more = torch.arange(1, math.ceil(tokens / longest) + 1, device=numbers.device) * longest
    bounds = torch.cat([starts, (starts[:, -1:] + more).clamp(max=tokens)], dim=1)
    asked = torch.arange(bounds.shape[1], device=numbers.device).clamp(max=first_length.shape[1])
    return Batch(
        torch.where(fills, 0, ids),
        torch.where(fills, 0, (within >= first + 2).long()),
        within % longest,
        starts[:, :-1],
        joined_bounds(bounds, tokens),
        joined_bounds(asked.expand_as(bounds), first_length.shape[1]),
    )


def joined_bounds(bounds: torch.Tensor, size: int) -> torch.Tensor:
    """Bounds [M, K + 1] of each run as those of all, one after the other."""
    runs = torch.arange(len(bounds), device=bounds.device)[:, None]
    ends = (bounds[:, 1:] + runs * size).flatten()
    return torch.nn.functional.pad(ends, (1, 0)).to(torch.int32)


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
        begin = {name: weight.detach().float() for name, weight in encoder.model.named_parameters()}
        shapes = {name: weight.shape for name, weight in begin.items()}
        if heads[0] is not None:
            shapes[HEAD] = heads[0].shape
        size = sum(shape.numel() for shape in shapes.values())
        # All weights lie in one row a run, so that one kernel updates them.
        self.row = torch.empty(len(heads), size, device=encoder.device)
        self.gradient = torch.empty_like(self.row)
        self.weights = views(self.row, shapes)
        for name, weight in self.weights.items():
            weight.copy_(torch.stack([h for h in heads if h is not None]) if name == HEAD else begin[name])
            weight.requires_grad_()
        self.embed: Callable[..., torch.Tensor] = self.embedded
        self.rest: Callable[..., torch.Tensor] = self.rest_of_layer
        if encoder.device.type == "cuda":
            self.embed, self.rest = (torch.compile(part, dynamic=True) for part in (self.embed, self.rest))

    def embedded(self, batch: Sequence[torch.Tensor], weights: Sequence[torch.Tensor]) -> torch.Tensor:
        ids, types, positions = batch
        words, places, kinds, *norm = weights
        runs = torch.arange(len(ids), device=ids.device)[:, None]
        kind = torch.where(types[..., None] == 0, kinds[:, None, 0], kinds[:, None, 1])
        out = normed(words[runs, ids] + kind + places[runs, positions], *norm, self.epsilon)
        return self.dropout(out.to(self.kind))

    def for_attention(self, hidden: torch.Tensor, *weights: torch.Tensor) -> list[torch.Tensor]:
        """[M * T, heads, dim] for each of the given weights and biases, by one matrix product."""
        count = len(weights) // 2
        both = (torch.cat(some, dim=1) for some in (weights[:count], weights[count:]))
        out = projected(hidden, *both).flatten(0, 1).unflatten(1, (count, self.heads, -1))
        return [out[:, part] for part in range(count)]

    def rest_of_layer(
        self, attended: torch.Tensor, hidden: torch.Tensor, *weights: torch.Tensor
    ) -> torch.Tensor:
        """What follows attention in a layer."""
        out, norm, up, down, last = (weights[at : at + 2] for at in range(0, 10, 2))
        hidden = normed(self.dropout(projected(attended, *out)) + hidden, *norm, self.epsilon)
        wide = gelu(projected(hidden, *up))
        return normed(self.dropout(projected(wide, *down)) + hidden, *last, self.epsilon)

    def cls_vectors(self, batch: Batch) -> torch.Tensor:
        """[M, N, dim]: of each sequence's first token, the only one that the last layer computes."""
        parts = ("word_embeddings", "position_embeddings", "token_type_embeddings", "LayerNorm")
        embedding = [self.weights[f"embeddings.{part}.weight"] for part in parts]
        norm = self.weights["embeddings.LayerNorm.bias"]
        hidden = self.embed((batch.ids, batch.types, batch.positions), (*embedding, norm))
        runs = torch.arange(len(hidden), device=hidden.device)[:, None]
        dropout = self.attention_dropout if self.dropout.training else 0.0
        for number in range(self.layers):
            names = [f"encoder.layer.{number}.attention.self.{part}" for part in ("query", "key", "value")]
            weights, biases = ([self.weights[f"{name}.{of}"] for name in names] for of in ("weight", "bias"))
            asked, bounds, longest = hidden, batch.bounds, self.longest
            if number < self.layers - 1:
                heads = self.for_attention(hidden, *weights, *biases)
            else:
                asked, bounds, longest = hidden[runs, batch.begins], batch.asked, 1
                heads = [*self.for_attention(asked, weights[0], biases[0])]
                heads += self.for_attention(hidden, *weights[1:], *biases[1:])
            attended = attention(*heads, (bounds, batch.bounds), (longest, self.longest), dropout)
            parts = [
                self.weights[f"encoder.layer.{number}.{part}.{of}"]
                for part in AFTER
                for of in ("weight", "bias")
            ]
            hidden = self.rest(attended.reshape(asked.shape), asked, *parts)
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
            scores = torch.bmm(vectors, self.weights[HEAD].to(vectors.dtype).mT).view(*shape, count)
            targets = data.targets[runs, numbers.clamp(min=0)].view(*shape, count)
            return (-(targets * log_softmax(scores.float(), -1)).sum(-1) * present).sum(-1)
        sides = data.sides[runs, numbers.clamp(min=0)].view(*shape, 2)
        sides = torch.where(present[..., None], sides, NONE)
        return contrast(vectors.view(*shape, 2, vectors.shape[-1]), sides, present, temperature)


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


def views(row: torch.Tensor, shapes: dict[str, torch.Size]) -> dict[str, torch.Tensor]:
    """The weights [M, …] that lie one after the other in each run's row."""
    parts = row.split([shape.numel() for shape in shapes.values()], dim=1)
    return {
        name: part.unflatten(1, shape).detach()
        for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }


class Training:
    """The steps of a stack of runs that have as many each."""

    def __init__(self, encoder: Encoder, runs: Sequence[Run]) -> None:
        check(runs, encoder)
        self.runs, self.device = runs, encoder.device
        self.settings = runs[0].settings
        self.stack = Stack(encoder, [run.head for run in runs], self.settings)
        self.train, self.validation = (
            Sequences.of([getattr(run, part) for run in runs], encoder.device)
            for part in ("train", "validation")
        )
        self.steps = runs[0].steps
        self.order = np.stack([training_order(run) for run in runs], axis=1)  # [steps, M, B]
        self.orders = torch.from_numpy(self.order).to(encoder.device)
        self.step = torch.zeros(1, dtype=torch.int64, device=encoder.device)
        row = self.stack.row
        self.mean, self.variance = torch.zeros_like(row), torch.zeros_like(row)
        self.losses = torch.zeros(self.steps, len(runs), device=encoder.device)
        self.update = torch.compile(adam) if encoder.device.type == "cuda" else adam
        self.recordings: dict[int, torch.cuda.CUDAGraph] = {}

    def run_step(self, tokens: int) -> None:
        """One step of every run; nothing of it waits for the device."""
        numbers = self.orders.index_select(0, self.step)[0]
        size = self.settings.batch_size
        summed = self.stack.losses(self.train, numbers, tokens, size, self.settings.temperature)[:, 0]
        loss = summed / (numbers != NONE).sum(1)
        gradients = torch.autograd.grad(loss.sum(), list(self.stack.weights.values()))
        with torch.no_grad():
            torch.cat([gradient.flatten(1) for gradient in gradients], dim=1, out=self.stack.gradient)
            self.losses.index_copy_(0, self.step, loss[None])
            self.step += 1
            done = self.step.double()
            rate = self.settings.learning_rate * (1 - (done - 1) / self.steps)
            correction = [1 - beta**done for beta in BETAS]
            self.update(
                self.stack.row, self.stack.gradient, self.mean, self.variance,
                (rate / correction[0]).float(), correction[1].sqrt().float(),
            )  # fmt: skip

    def play_step(self, number: int) -> None:
        wanted = self.train.tokens_of(self.order[number])
        tokens = math.ceil(wanted / TRAINED_TOKENS) * TRAINED_TOKENS
        if self.device.type != "cuda":
            self.run_step(tokens)
            return
        if tokens not in self.recordings:
            self.recordings[tokens] = self.recorded(tokens)
        self.recordings[tokens].replay()

    def recorded(self, tokens: int) -> torch.cuda.CUDAGraph:
        """A step on batches of this size, recorded; what was tried for it is undone."""
        states = (self.stack.row, self.mean, self.variance, self.step)
        before = [state.detach().clone() for state in states]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                self.run_step(tokens)
                # The next batch may be larger.
                self.step.copy_(before[-1])
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        pool = next(iter(self.recordings.values())).pool() if self.recordings else None
        with torch.cuda.graph(graph, pool=pool):
            self.run_step(tokens)
        with torch.no_grad():
            for state, value in zip(states, before, strict=True):
                state.copy_(value)
        return graph

    def evaluate(self) -> np.ndarray:
        """The mean validation loss of every run."""
        size = self.settings.batch_size
        total = torch.zeros(len(self.runs), device=self.device)
        orders = [run.validation.order(0, size, run.settings.seed) for run in self.runs]
        at_once = size * max(1, EVALUATED_TOGETHER // size)
        padded = math.ceil(max(map(len, orders)) / at_once) * at_once
        order = np.stack([filled_up(numbers, padded) for numbers in orders])
        self.stack.dropout.eval()
        with torch.no_grad():
            for at in range(0, padded, at_once):
                numbers = order[:, at : at + at_once]
                tokens = math.ceil(self.validation.tokens_of(numbers) / EVALUATED_TOKENS) * EVALUATED_TOKENS
                some = torch.from_numpy(numbers).to(self.device)
                total += self.stack.losses(
                    self.validation, some, tokens, size, self.settings.temperature
                ).sum(1)
        self.stack.dropout.train()
        return total.double().cpu().numpy() / [len(numbers) for numbers in orders]

    def fit(self) -> None:
        """Trains all runs and leaves each with the weights of its best checkpoint."""
        every = max(1, math.ceil(self.steps / self.settings.checkpoints))
        lowest = np.full(len(self.runs), np.inf)
        best = self.stack.row.detach().clone()
        told = f"training {len(self.runs)} {self.settings.architecture}-encoders"
        with Progress(told, self.steps, "steps") as progress:
            for number in range(self.steps):
                self.play_step(number)
                progress.advance()
                if (number + 1) % every == 0 or number + 1 == self.steps:
                    found = self.evaluate()
                    for at in np.flatnonzero(found < lowest):
                        best[at] = self.stack.row[at]
                    lowest = np.minimum(lowest, found)
                    for run, loss in zip(self.runs, found, strict=True):
                        run.validation_losses.append(float(loss))
                    progress.note(f"validation loss {found.mean():.3f}")
        losses = self.losses.cpu().numpy()
        if not np.isfinite(losses).all():
            raise FloatingPointError("a training loss is no number")
        shapes = {name: weight.shape[1:] for name, weight in self.stack.weights.items()}
        kept = {name: weight.cpu() for name, weight in views(best, shapes).items()}
        for at, run in enumerate(self.runs):
            run.losses = losses[:, at].tolist()
            run.best = {name: weight[at] for name, weight in kept.items()}


def adam(
    row: torch.Tensor,
    gradient: torch.Tensor,
    mean: torch.Tensor,
    variance: torch.Tensor,
    rate: torch.Tensor,
    correction: torch.Tensor,
) -> None:
    """Adam with gradients clipped to a norm of one, for each run's row of weights."""
    norm = gradient.norm(dim=1, keepdim=True)
    gradient = gradient * (MOST_NORM / (norm + 1e-6)).clamp(max=1.0)
    mean.lerp_(gradient, 1 - BETAS[0])
    variance.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
    row.sub_(rate * mean / (variance.sqrt() / correction + EPSILON))


def training_order(run: Run) -> np.ndarray:
    """[steps, B]: the examples of every step, NONE where the last batch of an epoch is short."""
    size = run.settings.batch_size
    a_epoch = math.ceil(len(run.train) / size) * size
    orders = (run.train.order(epoch, size, run.settings.seed) for epoch in range(run.settings.epochs))
    return np.concatenate([filled_up(order, a_epoch).reshape(-1, size) for order in orders])


def filled_up(numbers: np.ndarray, size: int) -> np.ndarray:
    return np.pad(numbers, (0, size - len(numbers)), constant_values=NONE)


def check(runs: Sequence[Run], encoder: Encoder) -> None:
    """Stops where the runs are not alike, or want what is not here."""
    settings: Any = runs[0].settings
    if encoder.model.config.model_type != "bert":
        raise ValueError(f"only BERT is stacked here, not {encoder.model.config.model_type}")
    if len({(run.settings.architecture, run.settings.batch_size, run.steps) for run in runs}) > 1:
        raise ValueError("runs that are stacked must have one architecture, batch size and number of steps")
    if settings.weight_decay or settings.warmup or settings.pooling == "mean" or not settings.keep_best:
        raise ValueError("only the paper's recipe is stacked: [CLS], no warm-up, no decay, the best kept")
