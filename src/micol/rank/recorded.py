"""Small batches on a GPU: a training step is recorded once and played back.

A step of eight pairs is some hundred small kernels, and launching them one by one takes the CPU several times
as long as they run. A recording (a CUDA graph) launches all of them at once. It wants inputs of one size, so
batches are filled up to one of a few sizes, and there is a recording for each size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Batch = dict[str, Any]


def filled(batch: Batch, longest: int) -> Batch:
    """The packed batch with a last sequence of padding, which brings it to a multiple of the longest."""
    tokens = len(batch["ids"])
    more = longest - tokens % longest
    return {
        **batch,
        **{
            name: torch.cat([batch[name], batch[name].new_zeros(more)])
            for name in ("ids", "types", "positions")
        },
        "starts": torch.cat([batch["starts"], batch["starts"].new_tensor([tokens + more])]),
        "longest": longest,
    }


class RecordedSteps:
    """Plays forward and backward passes back, a recording for each size of batch."""

    def __init__(self, module: torch.nn.Module, loss_of: Callable[[Batch], torch.Tensor]) -> None:
        self.loss_of = loss_of
        self.weights = [weight for weight in module.parameters() if weight.requires_grad]
        self.gradients = [torch.zeros_like(weight) for weight in self.weights]
        self.pool = torch.cuda.graph_pool_handle()
        self.recordings: dict[tuple[int, int], Recording] = {}

    def __call__(self, batch: Batch) -> torch.Tensor:
        size = (len(batch["ids"]), len(batch["starts"]))
        if size not in self.recordings:
            self.recordings[size] = Recording(self, batch)
        return self.recordings[size].play(batch)

    def hand_over_gradients(self) -> None:
        """Playing writes to the memory that was recorded, whatever became of the weights' own since."""
        for weight, gradient in zip(self.weights, self.gradients, strict=True):
            weight.grad = gradient


class Recording:
    """One step of batches of one size."""

    def __init__(self, steps: RecordedSteps, batch: Batch) -> None:
        self.steps = steps
        self.inputs = {
            name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in batch.items()
        }
        device = steps.weights[0].device
        # Libraries set themselves up on first use, which must not be recorded; the random numbers that they
        # draw meanwhile must not be missing from the next step.
        state = torch.cuda.get_rng_state(device)
        side = torch.cuda.Stream(device)
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            for _ in range(2):
                self.run()
        torch.cuda.current_stream(device).wait_stream(side)
        torch.cuda.set_rng_state(state, device)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, pool=steps.pool):
            self.loss = self.run()

    def run(self) -> torch.Tensor:
        self.steps.hand_over_gradients()
        torch._foreach_zero_(self.steps.gradients)
        loss = self.steps.loss_of(dict(self.inputs))
        loss.backward()
        return loss.detach()

    def play(self, batch: Batch) -> torch.Tensor:
        for name, value in self.inputs.items():
            if isinstance(value, torch.Tensor):
                value.copy_(batch[name], non_blocking=True)
        self.graph.replay()
        self.steps.hand_over_gradients()
        return self.loss.clone()
