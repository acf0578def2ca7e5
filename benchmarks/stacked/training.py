"""Steps, checkpoints and Adam of several runs at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from micol.progress import Progress
from micol.rank.encoder import Encoder
from micol.rank.examples import ListExamples, PairExamples
from micol.rank.trainer import compiler_options
from micol.settings import Settings
from stacked.batches import NONE, Sequences
from stacked.encoders import Stack, views

BETAS, EPSILON, MOST_NORM = (0.9, 0.999), 1e-8, 1.0
# Sizes of batches are rounded up to these, as each has a recording of its own.
TRAINED_TOKENS, EVALUATED_TOKENS = 128, 4_096
EVALUATED_TOGETHER = 64


@dataclass
class Run:
    """One encoder to train: the examples, and what becomes of the weights."""

    settings: Settings
    train: PairExamples | ListExamples
    validation: PairExamples | ListExamples
    head: torch.Tensor | None = None
    best: dict[str, torch.Tensor] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)

    @property
    def steps(self) -> int:
        return math.ceil(len(self.train) / self.settings.batch_size) * self.settings.epochs


class Training:
    """The steps of a stack of runs that have as many each."""

    def __init__(self, encoder: Encoder, runs: Sequence[Run], fused: bool | None = None) -> None:
        """`fused`: with kernels of our own; None: on a GPU."""
        check(runs, encoder)
        self.runs, self.device = runs, encoder.device
        self.settings = runs[0].settings
        heads = [run.head for run in runs]
        on_gpu = encoder.device.type == "cuda"
        self.stack: Stack
        self.update: Callable[..., None] = adam
        if on_gpu if fused is None else fused:
            from stacked.fused import FusedStack  # needs Triton, which comes with torch for CUDA

            stack = FusedStack(encoder, heads, self.settings)
            self.stack, self.update = stack, stack.update
        else:
            self.stack = Stack(encoder, heads, self.settings)
            if on_gpu:
                self.update = torch.compile(adam, options=compiler_options())
        self.train, self.validation = (
            Sequences.of([getattr(run, part) for run in runs], encoder.device)
            for part in ("train", "validation")
        )
        self.steps = runs[0].steps
        epochs = [
            alike_in_size(batches, self.train)
            for batches in zip(*(training_order(run) for run in runs), strict=True)
        ]
        order = np.concatenate(epochs)  # [steps, M, B]
        self.tokens = self.train.sizes_of(order).max(axis=1)
        self.orders = torch.from_numpy(order).to(encoder.device)
        self.step = torch.zeros(1, dtype=torch.int64, device=encoder.device)
        row = self.stack.row
        self.mean, self.variance = torch.zeros_like(row), torch.zeros_like(row)
        self.losses = torch.zeros(self.steps, len(runs), device=encoder.device)
        self.recordings: dict[int, torch.cuda.CUDAGraph] = {}

    def gradients(self, tokens: int) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """The loss of every run on its batch of this step; the gradients of weights, in parts of a row."""
        numbers = self.orders.index_select(0, self.step)[0]
        size = self.settings.batch_size
        summed = self.stack.losses(self.train, numbers, tokens, size, self.settings.temperature)[:, 0]
        loss = summed / (numbers != NONE).sum(1)
        return loss, self.stack.gradients(loss.sum())

    def run_step(self, tokens: int) -> None:
        """One step of every run; nothing of it waits for the device."""
        loss, gradients = self.gradients(tokens)
        with torch.no_grad():
            self.losses.index_copy_(0, self.step, loss[None])
            self.step += 1
            done = self.step.double()
            rate = self.settings.learning_rate * (1 - (done - 1) / self.steps)
            correction = [1 - beta**done for beta in BETAS]
            self.update(
                self.stack.row, gradients, self.mean, self.variance,
                (rate / correction[0]).float(), correction[1].sqrt().float(),
            )  # fmt: skip

    def play_step(self, number: int) -> None:
        tokens = rounded_up(self.tokens[number], TRAINED_TOKENS)
        if self.device.type != "cuda":
            self.run_step(tokens)
            return
        if tokens not in self.recordings:
            self.recordings[tokens] = self.recorded(tokens)
        self.recordings[tokens].replay()

    def recorded(self, tokens: int) -> torch.cuda.CUDAGraph:
        """A step on batches of this size, recorded; what was tried for it is undone."""
        states = (*self.stack.states, self.mean, self.variance, self.step)
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
        padded = rounded_up(max(map(len, orders)), at_once)
        order = np.stack([filled_up(numbers, padded) for numbers in orders])
        self.stack.dropout.eval()
        with torch.no_grad():
            for at in range(0, padded, at_once):
                numbers = order[:, at : at + at_once]
                tokens = rounded_up(self.validation.sizes_of(numbers).max(), EVALUATED_TOKENS)
                some = torch.from_numpy(numbers).to(self.device)
                total += self.stack.losses(
                    self.validation, some, tokens, size, self.settings.temperature
                ).sum(1)
        self.stack.dropout.train()
        return total.double().cpu().numpy() / [len(numbers) for numbers in orders]

    def fit(self) -> None:
        """Trains all runs and leaves each with the weights of its best checkpoint."""
        torch.manual_seed(self.settings.seed)  # of the dropout; all else comes from each run's own seed
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
    gradients: Sequence[torch.Tensor],
    mean: torch.Tensor,
    variance: torch.Tensor,
    rate: torch.Tensor,
    correction: torch.Tensor,
) -> None:
    """Adam with gradients clipped to a norm of one, for each run's row of weights; gradients lie in parts."""
    norm = torch.stack([gradient.norm(dim=1) for gradient in gradients]).norm(dim=0)[:, None]
    scale = (MOST_NORM / (norm + 1e-6)).clamp(max=1.0)
    sizes = [gradient.shape[1] for gradient in gradients]
    states = (state.split(sizes, dim=1) for state in (row, mean, variance))
    for gradient, weights, first, second in zip(gradients, *states, strict=True):
        clipped = gradient * scale
        first.lerp_(clipped, 1 - BETAS[0])
        second.mul_(BETAS[1]).addcmul_(clipped, clipped, value=1 - BETAS[1])
        weights.sub_(rate * first / (second.sqrt() / correction + EPSILON))


def training_order(run: Run) -> Iterator[np.ndarray]:
    """[batches, B] for every epoch: the examples, NONE where the last batch is short."""
    size = run.settings.batch_size
    an_epoch = rounded_up(len(run.train), size)
    for epoch in range(run.settings.epochs):
        yield filled_up(run.train.order(epoch, size, run.settings.seed), an_epoch).reshape(-1, size)


def alike_in_size(orders: Sequence[np.ndarray], examples: Sequences) -> np.ndarray:
    """An epoch's batches [batches, M, B], those of a step as alike in size as can be: all take the largest's.

    The first run's stay where they are, the n-th largest of each other run comes where its n-th largest is.
    Every run has the batches that it would have alone, in an order as random as the first one's.
    """
    order = np.stack(orders, axis=1)
    ranks = examples.sizes_of(order).argsort(axis=0, kind="stable")
    places = ranks[:, 0].argsort()
    return np.take_along_axis(order, ranks[places][..., None], axis=0)


def rounded_up(number: int, step: int) -> int:
    return math.ceil(number / step) * step


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
