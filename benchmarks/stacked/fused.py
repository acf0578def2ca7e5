"""The stack with the kernels of `kernels`: for a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from micol.rank.encoder import Encoder
from micol.settings import Settings
from stacked import kernels
from stacked.batches import Batch
from stacked.encoders import AFTER, MATRICES, WORDS, Stack, part_of, views
from stacked.training import BETAS, EPSILON, MOST_NORM


class Products(torch.autograd.Function):
    """Hidden vectors [M, T, in] by matrices [M, out, in], whose gradients are written where they belong.

    The hidden vectors come out, too, for what else needs them: the gradient of that comes back here, and the
    products add to it in place, so that no kernel only adds.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden: torch.Tensor, matrices: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor],
        *biases: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:  # fmt: skip
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(hidden)
        ctx.matrices, ctx.gradients, ctx.biased = matrices, gradients, bool(biases)
        products = [torch.bmm(hidden, matrix.mT) for matrix in matrices]
        for product, bias in zip(products, biases, strict=bool(biases)):
            kernels.add_bias(product, bias)
        return hidden, *products

    @staticmethod
    def backward(ctx: Any, *come: Any) -> tuple[torch.Tensor | None, ...]:
        (hidden,) = ctx.saved_tensors
        back, *products = come
        for product, matrix, gradient in zip(products, ctx.matrices, ctx.gradients, strict=True):
            torch.bmm(product.mT, hidden, out=gradient)
            back = torch.bmm(product, matrix) if back is None else back.baddbmm_(product, matrix)
        return back, None, None, *(kernels.sums_over_tokens(products) if ctx.biased else ())


class FusedStack(Stack):
    """As Stack. What enters matrix products is kept in their arithmetic, too, and Adam renews it."""

    def __init__(self, encoder: Encoder, heads: Sequence[torch.Tensor | None], settings: Settings) -> None:
        super().__init__(encoder, heads, settings)
        matrices = {name: weight for name, weight in self.weights.items() if part_of(name) == MATRICES}
        shapes = {name: weight.shape[1:] for name, weight in matrices.items()}
        self.narrow = torch.cat([weight.detach().flatten(1) for weight in matrices.values()], 1).to(self.kind)
        self.narrow_gradient = torch.zeros_like(self.narrow)
        self.matrices, self.into = views(self.narrow, shapes), views(self.narrow_gradient, shapes)
        # Words that had a gradient: the others stay as they are.
        self.seen = torch.zeros(self.weights[WORDS].shape[:2], dtype=torch.uint8, device=encoder.device)

    @property
    def states(self) -> list[torch.Tensor]:
        return [*super().states, self.narrow]

    def projections(
        self, hidden: torch.Tensor, names: Sequence[str]
    ) -> tuple[torch.Tensor, list[torch.Tensor]]:
        hidden, *heads = self.products(hidden, names, [self.weights[f"{name}.bias"] for name in names])
        return hidden, [head.flatten(0, 1).unflatten(1, (self.heads, -1)) for head in heads]

    def products(
        self, hidden: torch.Tensor, names: Sequence[str], biases: Sequence[torch.Tensor] = ()
    ) -> tuple[torch.Tensor, ...]:
        matrices, into = ([of[f"{name}.weight"] for name in names] for of in (self.matrices, self.into))
        found: tuple[torch.Tensor, ...] = Products.apply(hidden, matrices, into, *biases)
        return found

    def rest(self, number: int, attended: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        out, norm, up, down, last = (f"encoder.layer.{number}.{part}" for part in AFTER)
        hidden = self.normed_sum(self.products(attended, [out])[1], out, hidden, norm)
        hidden, wide = self.products(hidden, [up])
        wide = kernels.wide(wide, self.weights[f"{up}.bias"])
        return self.normed_sum(self.products(wide, [down])[1], down, hidden, last)

    def normed_sum(self, dense: torch.Tensor, layer: str, residual: torch.Tensor, norm: str) -> torch.Tensor:
        bias, *of_norm = (self.weights[name] for name in (f"{layer}.bias", f"{norm}.weight", f"{norm}.bias"))
        dropout = self.dropout.p if self.dropout.training else 0.0
        seed = None
        if dropout:
            seed = torch.randint(-(2**31), 2**31 - 1, (), dtype=torch.int32, device=dense.device)
        return kernels.after_dense(dense, bias, residual, *of_norm, self.epsilon, dropout, seed)

    def cls_vectors(self, batch: Batch) -> torch.Tensor:
        if torch.is_grad_enabled():
            self.seen.scatter_(1, batch.ids, 1)
        return super().cls_vectors(batch)

    def gradients(self, loss: torch.Tensor) -> list[torch.Tensor]:
        leaves = [weight for name, weight in self.weights.items() if part_of(name) != MATRICES]
        words, *others = (gradient.flatten(1) for gradient in torch.autograd.grad(loss, leaves))
        return [words.contiguous(), self.narrow_gradient, torch.cat(others, dim=1)]

    def update(self, *given: Any) -> None:
        """As stacked.training.adam."""
        kernels.adam(
            *given, seen=self.seen, narrow=self.narrow, betas=BETAS, epsilon=EPSILON, most_norm=MOST_NORM
        )
