"""Whether the kernels for a GPU compute what plain torch computes, and how fast; ends with 1 if they do not.

    PYTHONPATH=src:benchmarks python -m stacked.check

(Run as a file, its folder's `kernels` would be taken for a package of that name by transformers.)
Encoders of MiniLM's size with random weights read random words. Gradients are compared with those in float32
on the CPU: those of the kernels must be as near to them as those of plain torch in bfloat16 are. Steps are
timed as they are trained, recorded. Takes a minute.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch.nn.functional import gelu, layer_norm
from transformers import BertConfig, BertModel

from micol.rank.dropout import uniform_bits
from micol.rank.examples import ListExamples, PairExamples
from micol.settings import resolve
from stacked import kernels
from stacked.encoders import views
from stacked.training import TRAINED_TOKENS, Run, Training, rounded_up

GPU = torch.device("cuda")
MINILM = {
    "vocab_size": 30_522, "hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12,
    "intermediate_size": 1_536, "max_position_embeddings": 512,
}  # fmt: skip
# A data set knows some of the vocabulary.
WORDS_USED = 15_000
# Runs of a stack, and texts' lengths: of 16 texts (bi) or 8 pairs of texts (cross) come about 3,900 tokens.
STACKS = {"bi": (12, (230, 254)), "cross": (9, (232, 254))}
STEPS, WARM, TIMED = 40, 5, 30
# A weight whose gradient is smaller, against the largest, has none but noise.
NO_GRADIENT = 1e-4
BEGUN = time.perf_counter()


def say(*parts: object) -> None:
    print(f"[{time.perf_counter() - BEGUN:5.1f} s]", *parts, flush=True)


def encoder_on(device: torch.device, architecture: str) -> Any:
    torch.manual_seed(0)
    model = BertModel(BertConfig(**MINILM), add_pooling_layer=False).to(device)
    framing = SimpleNamespace(first=101, last=102)
    longest = resolve(architecture, "PAP", "paper", {}).max_tokens
    return SimpleNamespace(model=model, device=device, max_tokens=longest, framing=framing)


def runs_of(
    architecture: str, count: int, lengths: tuple[int, int], given: dict[str, Any], steps: int = STEPS
) -> list[Run]:
    """Random examples, some words far more frequent than others."""
    settings = resolve(architecture, "PAP", "paper", {"epochs": 1, **given})
    generator = np.random.default_rng(0)
    examples = settings.batch_size * steps

    def texts(number: int) -> list[np.ndarray]:
        sizes = generator.integers(*lengths, number)
        return [(WORDS_USED * generator.random(size) ** 2).astype(np.int32) + 1_000 for size in sizes]

    runs = []
    for _ in range(count):
        if architecture == "bi":
            halves = np.arange(2 * examples).reshape(2, examples)
            some: Any = PairExamples(None, texts(2 * examples), *halves, np.arange(2 * examples))
        else:
            lists, targets = np.arange(2 * examples).reshape(examples, 2), np.zeros((examples, 2), np.float32)
            targets[:, 0] = 1
            some = ListExamples(
                None, texts(examples), texts(2 * examples), np.arange(examples), lists, targets
            )
        head = torch.from_numpy(0.02 * generator.standard_normal((1, 384))).float()
        runs.append(Run(settings, some, some, head if architecture == "cross" else None))
    return runs


def difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    found, expected = found.detach().double(), expected.detach().double()
    return float((found - expected).norm() / expected.norm())


def held(what: str, error: float, limit: float) -> bool:
    """Says it where it is not so."""
    if not error <= limit:  # what is no number is refused, too
        say(f"WRONG: {what} is off by {error:.2e}, more than {limit:.2e}")
    return error <= limit


def same_kernels() -> bool:
    """Each kernel against plain torch in float32, at full width, with dropout."""
    shape, wide, dropout = (3, 1_000, 384), (3, 1_000, 1_536), 0.1
    vectors = [torch.randn(3, 384, device=GPU, requires_grad=True) for _ in range(3)]
    bias, weight, norm_bias = vectors
    dense, residual, come = (torch.randn(shape, device=GPU).bfloat16() for _ in range(3))
    leaves = [dense.requires_grad_(), residual.requires_grad_(), *vectors]
    seed = torch.randint(-(2**31), 2**31 - 1, (), dtype=torch.int32, device=GPU)
    kept = uniform_bits(dense.numel(), seed).view(shape) >= round(dropout * 2**24)
    summed = (dense.float() + bias[:, None]) * kept / (1 - dropout) + residual.float()
    expected = layer_norm(summed, shape[-1:], eps=1e-12) * weight[:, None] + norm_bias[:, None]
    found = kernels.after_dense(dense * 1, bias, residual, weight, norm_bias, 1e-12, dropout, seed)
    pairs = [("after_dense", found, expected)]
    both = (torch.autograd.grad(out, leaves, come.to(out.dtype)) for out in (found, expected))
    pairs += [(f"after_dense, gradient {at}", *pair) for at, pair in enumerate(zip(*both, strict=True))]

    values, come = (torch.randn(wide, device=GPU).bfloat16() for _ in range(2))
    leaves = [values.requires_grad_(), torch.randn(3, 1_536, device=GPU, requires_grad=True)]
    found, expected = kernels.wide(*leaves), gelu(values.float() + leaves[1][:, None])
    pairs.append(("wide", found, expected))
    both = (torch.autograd.grad(out, leaves, come.to(out.dtype)) for out in (found, expected))
    pairs += [(f"wide, gradient {at}", *pair) for at, pair in enumerate(zip(*both, strict=True))]
    fine = [held(what, difference(found, expected), 6e-3) for what, found, expected in pairs]
    return all(fine)


def same_adam() -> bool:
    """Two steps of Adam, some words unseen, against the plain one."""
    from stacked.training import BETAS, EPSILON, MOST_NORM, adam

    sizes, words = (3_000 * 384, 400_000, 10_000), 3_000
    state = torch.randn(4, sum(sizes), device=GPU)
    states = [state, torch.zeros_like(state), torch.zeros_like(state)]
    plain = [state.clone() for state in states]
    seen = (torch.rand(4, words, device=GPU) < 0.5).byte()
    narrow = torch.zeros(4, sizes[1], dtype=torch.bfloat16, device=GPU)
    given = {"seen": seen, "narrow": narrow, "betas": BETAS, "epsilon": EPSILON, "most_norm": MOST_NORM}
    for step in (1, 2):
        gradients = [torch.randn(4, size, device=GPU) for size in sizes]
        gradients[0] *= seen.repeat_interleave(384, dim=1)
        gradients[1] = gradients[1].bfloat16()
        scalars = [torch.tensor([value], device=GPU) for value in (1e-3, 0.03 * step)]
        adam(plain[0], [gradient.float() for gradient in gradients], *plain[1:], *scalars)
        kernels.adam(states[0], gradients, *states[1:], *scalars, **given)
    copied = states[0].split(sizes, dim=1)[1].bfloat16()
    return all(
        [held(f"Adam, state {at}", difference(*pair), 1e-5) for at, pair in enumerate(zip(states, plain))]
        + [held("Adam's copy", difference(narrow, copied), 1e-4)]
    )


def same_gradients(architecture: str) -> bool:
    """Losses and gradients of a small stack: as near to those in float32 as plain torch comes."""
    given = {"dropout": False, "attention_dropout": False, "batch_size": 4}
    runs = runs_of(architecture, 2, (40, 90), given, steps=1)
    found = []
    for device, fused in ((torch.device("cpu"), False), (GPU, False), (GPU, True)):
        training = Training(encoder_on(device, architecture), runs, fused=fused)
        stack = training.stack
        # Compiled they are when they are timed.
        stack.embed, stack.project, stack.finish = stack.embedded, stack.for_attention, stack.rest_of_layer
        loss, gradients = training.gradients(rounded_up(training.tokens[0], TRAINED_TOKENS))
        row = torch.cat([gradient.detach().cpu().float() for gradient in gradients], dim=1)
        shapes = {name: weight.shape[1:] for name, weight in stack.weights.items()}
        found.append((loss.detach().cpu(), views(row, shapes)))
    losses, (exact, *others) = [loss for loss, _ in found], [gradients for _, gradients in found]
    most = max(float(gradient.norm()) for gradient in exact.values())
    rows = [
        (name, *(difference(other[name], gradient) for other in others))
        for name, gradient in exact.items()
        if gradient.norm() > NO_GRADIENT * most
    ]
    worst = max(rows, key=lambda row: row[2])
    say(f"{architecture}: losses {[loss.tolist() for loss in losses]}")
    say(f"{architecture}: {len(rows)} of {len(exact)} gradients; relative error, plain and with kernels:")
    say(
        f"  on average {np.mean([row[1] for row in rows]):.4f} {np.mean([row[2] for row in rows]):.4f};",
        end(worst),
    )
    return all(
        [held("a loss", float((loss - losses[0]).abs().max()), 0.03) for loss in losses[1:]]
        + [held(f"{architecture}, {name}", fused, 1.5 * plain + 0.01) for name, plain, fused in rows]
    )


def end(row: tuple[Any, ...]) -> str:
    return f"at most {row[1]:.4f} {row[2]:.4f} ({row[0]})"


def drawn_anew() -> bool:
    """A recording that is played again drops other values, where all else is the same."""
    given = {"attention_dropout": False, "learning_rate": 1e-30}
    training = Training(encoder_on(GPU, "bi"), runs_of("bi", 2, (40, 90), given, steps=2), fused=True)
    training.stack.embed = training.stack.embedded
    graph = training.recorded(rounded_up(training.tokens.max(), TRAINED_TOKENS))
    losses = []
    for _ in range(2):
        training.step.zero_()
        graph.replay()
        losses.append(training.losses[0].tolist())
    say(f"losses of a step, played twice: {losses}")
    return losses[0] != losses[1] and bool(np.isfinite(losses).all())


def timed(architecture: str, fused: bool) -> bool:
    """Milliseconds a step, with dropout as in training."""
    begun = time.perf_counter()
    count, lengths = STACKS[architecture]
    training = Training(encoder_on(GPU, architecture), runs_of(architecture, count, lengths, {}), fused=fused)
    tokens = rounded_up(training.tokens.max(), TRAINED_TOKENS)
    graph = training.recorded(tokens)
    for _ in range(WARM):
        graph.replay()
    ends = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    torch.cuda.synchronize()
    made = time.perf_counter() - begun
    ends[0].record()
    for _ in range(TIMED):
        graph.replay()
    ends[1].record()
    torch.cuda.synchronize()
    milliseconds = ends[0].elapsed_time(ends[1]) / TIMED
    real = training.train.sizes_of(training.orders.cpu().numpy()).sum(axis=1).mean()
    say(
        f"{architecture:>6} {count:5} {'kernels' if fused else 'plain':>8} {tokens:7} {milliseconds:8.2f} "
        f"{real / milliseconds * 1000:12,.0f} {made:8.1f} {torch.cuda.max_memory_allocated() / 2**30:6.1f}"
    )
    played = training.losses[: WARM + TIMED]
    return bool(played.isfinite().all() and (played != 0).all())


def main() -> None:
    if not torch.cuda.is_available():
        sys.exit("the kernels are for a GPU with CUDA, and there is none here")
    say(f"torch {torch.__version__}, {torch.cuda.get_device_name()}")
    heading = "  stack  runs     with  tokens  ms/step     tokens/s  seconds    GiB"
    parts: list[tuple[str, Callable[[], bool]]] = [
        ("kernels against plain torch", same_kernels),
        ("Adam against plain torch", same_adam),
        ("gradients of a bi-encoder", lambda: same_gradients("bi")),
        ("gradients of a cross-encoder", lambda: same_gradients("cross")),
        ("dropout", drawn_anew),
        (f"steps\n{' ' * 10}{heading}", lambda: timed("bi", fused=True)),
        ("steps", lambda: timed("cross", fused=True)),
        ("steps, plain", lambda: timed("cross", fused=False)),
        ("steps, plain", lambda: timed("bi", fused=False)),
    ]
    wrong = []
    for what, part in parts:
        say(what)
        if not part():
            wrong.append(what.splitlines()[0])
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    say("WRONG: " + "; ".join(wrong) if wrong else "all as it should be")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
