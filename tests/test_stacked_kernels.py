"""The kernels for stacked encoders compute what plain torch computes.

They are written in Triton, which torch for the CPU does not bring and has no use for: without it these tests
are left out. Where it is installed they run on the GPU or, without one, in Triton's interpreter:
`pip install triton && TRITON_INTERPRET=1 pytest tests/test_stacked_kernels.py`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import gelu, layer_norm

import micol
import world
from micol.rank.dropout import uniform_bits
from micol.settings import resolve
from micol.training import pairs_for

pytest.importorskip("triton")
if not torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("without a GPU, Triton needs TRITON_INTERPRET=1", allow_module_level=True)

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
RUNS, TOKENS, WIDTH, EPSILON = 2, 7, 48, 1e-12
on_cpu = pytest.mark.skipif(
    DEVICE.type == "cuda", reason="attention has no float32 there; benchmarks/stacked/check.py compares"
)


def drawn(*shape: int, kind: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, device=DEVICE).to(kind)


def in_longer_rows(*widths: int) -> list[torch.Tensor]:
    """Vectors of weights as parts of a longer row a run, as they lie in a stack."""
    *parts, _ = drawn(RUNS, sum(widths) + 16).split([*widths, 16], dim=1)
    return [part.detach().requires_grad_() for part in parts]


def compare(found: Any, expected: Any, kind: torch.dtype = torch.float32) -> None:
    within = {"rtol": 1e-5, "atol": 1e-5} if kind == torch.float32 else {"rtol": 2e-2, "atol": 4e-2}
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.float(), other.float(), **within)


@pytest.fixture(autouse=True)
def _few_programs(monkeypatch: pytest.MonkeyPatch, benchmarks_can_be_imported: None) -> None:
    """So that each has several rows, not all as many; and the interpreter ends soon."""
    from stacked import kernels, training

    torch.manual_seed(0)
    monkeypatch.setattr(training, "TRAINED_TOKENS", 32)
    monkeypatch.setattr(training, "EVALUATED_TOKENS", 32)
    for name in ("NORMING", "NORMING_BACK", "BIASING", "BIASING_BACK", "SQUARING"):
        monkeypatch.setattr(kernels, name, 3 * RUNS)


@pytest.fixture(autouse=True)
def _numbers_for_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of Triton 3.6 takes an array of one number for a number, as NumPy 2.4 no longer does."""
    from triton.runtime import interpreter

    original = interpreter._patch_lang_tensor

    def patch(tensor: Any, scope: Any) -> None:
        original(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

    monkeypatch.setattr(interpreter, "_patch_lang_tensor", patch)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_after_dense(dropout: float, kind: torch.dtype) -> None:
    from stacked import kernels

    dense, residual = (drawn(RUNS, TOKENS, WIDTH, kind=kind).requires_grad_() for _ in range(2))
    bias, weight, norm_bias = in_longer_rows(WIDTH, WIDTH, WIDTH)
    come = drawn(RUNS, TOKENS, WIDTH, kind=kind)
    seed = torch.tensor(-1234567, dtype=torch.int32, device=DEVICE)
    kept = uniform_bits(dense.numel(), seed).view(dense.shape) >= round(dropout * 2**24)
    leaves = (dense, bias, residual, weight, norm_bias)
    summed = (dense + bias[:, None]) * kept / (1 - dropout) + residual
    expected = layer_norm(summed, (WIDTH,), eps=EPSILON) * weight[:, None] + norm_bias[:, None]
    of_expected = torch.autograd.grad(expected, leaves, come.to(expected.dtype))
    product = dense * 1  # whose memory is taken
    found = kernels.after_dense(product, bias, residual, weight, norm_bias, EPSILON, dropout, seed)
    of_found = torch.autograd.grad(found, leaves, come)
    assert found.dtype == of_found[0].dtype == kind
    assert of_found[1].dtype == torch.float32
    compare([found, *of_found], [expected, *of_expected], kind)
    if dropout:
        assert (of_found[0] == 0).equal(~kept)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("width", [WIDTH, 192])
def test_wide(width: int, kind: torch.dtype) -> None:
    from stacked import kernels

    tokens = 37
    values, come = drawn(RUNS, tokens, width, kind=kind), drawn(RUNS, tokens, width, kind=kind)
    values[0, 0, :3] = torch.tensor([-9.0, 9.0, 0.0])
    values = (2 * values).requires_grad_()
    (bias,) = in_longer_rows(width)
    expected = gelu(values + bias[:, None])
    of_expected = torch.autograd.grad(expected, (values, bias), come.to(expected.dtype))
    found = kernels.wide(values, bias)
    of_found = torch.autograd.grad(found, (values, bias), come)
    assert found.dtype == of_found[0].dtype == kind
    compare([found, *of_found], [expected, *of_expected], kind)


def test_gelu_is_exact_in_the_tails() -> None:
    from stacked import kernels

    values = torch.linspace(-8, 8, 4096, device=DEVICE).view(1, 32, 128).requires_grad_()
    exact = values.detach().double().requires_grad_()
    found, expected = kernels.wide(values, torch.zeros(1, 128, device=DEVICE)), gelu(exact)
    torch.testing.assert_close(found.double(), expected, rtol=1e-3, atol=1e-6)
    slopes = [torch.autograd.grad(out.sum(), of)[0] for out, of in ((found, values), (expected, exact))]
    torch.testing.assert_close(slopes[0].double(), slopes[1], rtol=1e-3, atol=1e-6)


def test_biases() -> None:
    from stacked import kernels

    values = [drawn(RUNS, 37, WIDTH) for _ in range(3)]
    (bias,) = in_longer_rows(WIDTH)
    compare([kernels.add_bias(values[0].clone(), bias.detach())], [values[0] + bias[:, None]])
    compare(kernels.sums_over_tokens(values), [value.sum(1) for value in values])


@pytest.mark.parametrize("large", [1.0, 1e-3])
def test_adam(large: float) -> None:
    """Over three steps, with words that come late or never."""
    from stacked import kernels, training

    words, width, sizes = 20, 48, (20 * 48, 3_000, 77)
    states = [drawn(RUNS, sum(sizes)), *torch.zeros(2, RUNS, sum(sizes), device=DEVICE)]
    expected = [state.clone() for state in states]
    narrow = torch.zeros(RUNS, sizes[1], dtype=torch.bfloat16, device=DEVICE)
    seen = torch.zeros(RUNS, words, dtype=torch.uint8, device=DEVICE)
    constants = {"betas": training.BETAS, "epsilon": training.EPSILON, "most_norm": training.MOST_NORM}
    for step, known in enumerate((4, 9, 9), 1):
        gradients = [large * drawn(RUNS, size) for size in sizes]
        seen[0, :known], seen[1, known:12] = 1, 1
        gradients[0].view(RUNS, words, width)[seen == 0] = 0
        gradients[1] = gradients[1].bfloat16()
        rate, correction = (torch.tensor([value], device=DEVICE) for value in (0.01, 0.1 * step))
        training.adam(expected[0], [g.float() for g in gradients], *expected[1:], rate, correction)
        kernels.adam(
            states[0], gradients, *states[1:], rate, correction, seen=seen, narrow=narrow, **constants
        )
        for state, other in zip(states, expected, strict=True):
            torch.testing.assert_close(state, other, rtol=1e-5, atol=1e-7)
    # The interpreter cuts off where a GPU rounds.
    torch.testing.assert_close(narrow.float(), states[0].split(sizes, dim=1)[1], rtol=2**-7, atol=0)


@pytest.mark.slow
@on_cpu
@pytest.mark.parametrize("architecture", ["bi", "cross"])
def test_a_fused_stack_learns_the_same(architecture: str, tiny_bert: Path) -> None:
    import side_by_side
    from stacked.training import Training

    given = {
        "pairs": 18, "validation_pairs": 2, "epochs": 1, "learning_rate": 1e-3, "max_tokens": 16,
        "dropout": False, "attention_dropout": False, "bf16": False,
    }  # fmt: skip
    corpus = micol.Corpus.from_records(world.documents(60))
    settings = [resolve(architecture, path, "paper", {**given, "seed": 1}) for path in ("P->P", "PAP")]
    encoder = side_by_side.Rememberer.load(tiny_bert, settings[0].max_tokens)
    runs = [side_by_side.prepared(corpus, encoder, one, pairs_for(corpus, one)) for one in settings]
    plain, fused = (Training(encoder, runs, fused=fused) for fused in (False, True))
    for number in range(2):
        for one in (plain, fused):
            one.play_step(number)
    torch.testing.assert_close(fused.losses, plain.losses, rtol=1e-4, atol=1e-5)
    for name, weight in plain.stack.weights.items():
        # What adds the same to all that is compared has no gradient but noise, which Adam enlarges.
        if not name.endswith(("key.bias", "layer.1.output.LayerNorm.bias")):
            found = fused.stack.weights[name]
            torch.testing.assert_close(found, weight, rtol=1e-3, atol=1e-4, msg=name)
    for name, weight in fused.stack.matrices.items():
        assert weight.equal(fused.stack.weights[name])
    assert 0 < fused.stack.seen.float().mean() < 1
    torch.testing.assert_close(fused.evaluate(), plain.evaluate(), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@on_cpu
def test_dropout_is_drawn_anew(tiny_bert: Path) -> None:
    import side_by_side
    from stacked.training import Training

    given = {"pairs": 10, "validation_pairs": 2, "max_tokens": 16, "attention_dropout": False, "bf16": False}
    corpus = micol.Corpus.from_records(world.documents(60))
    settings = resolve("bi", "PAP", "paper", {**given, "learning_rate": 1e-30})
    encoder = side_by_side.Rememberer.load(tiny_bert, settings.max_tokens)
    runs = [side_by_side.prepared(corpus, encoder, settings, pairs_for(corpus, settings))]
    training = Training(encoder, runs, fused=True)
    losses = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        training.step.zero_()
        training.play_step(0)
        losses.append(float(training.losses[0, 0]))
    assert losses[0] == losses[1] != losses[2]
