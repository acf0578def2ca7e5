"""Triton kernels for what is bound by memory in a step: each tensor is read once and written once.

Tensors are [M, tokens, width] for M runs, vectors of weights [M, width], which may be parts of longer rows.
Programs walk over many rows each, and sums over tokens stay in registers till the end. Nothing here waits for
the device or depends on what it holds, so all of it can be recorded.
"""

# ruff: noqa: N803  (constants of a kernel are written in capitals)

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl

# Programs of a launch: as many as the multiprocessors of an H100 or H200 can hold at once, fewer on the way
# back, which needs more registers. A norm is taken by one warp, so that no warp waits for others.
PROCESSORS = 132
NORMING, NORMING_BACK = 20 * PROCESSORS, 12 * PROCESSORS
BIASING, BIASING_BACK = 12 * PROCESSORS, 6 * PROCESSORS
SQUARING = 8 * PROCESSORS
# Elements that a program holds at once, elsewhere, and the most columns of them.
HELD, COLUMNS = 2_048, 128
# Whether kernels run on the CPU, to be tested.
INTERPRETED = tl.constexpr(triton.knobs.runtime.interpret)


@triton.jit
def _kept(numbers, seed, DROPPED: tl.constexpr):
    """Which of the numbered elements stay: as micol.rank.dropout.uniform_bits has it."""
    mixed = numbers.to(tl.uint32, bitcast=True) ^ seed.to(tl.uint32, bitcast=True)
    mixed = (mixed ^ (mixed >> 15)) * 0x7FEB352D
    mixed = (mixed ^ (mixed >> 16)) * 0x846CA68B
    return (mixed >> 8) >= DROPPED


@triton.jit(do_not_specialize=["tokens"])
def _after_dense(
    dense, bias, residual, weight, norm_bias, out, statistics, seed, tokens, stride, epsilon,
    DROPPED: tl.constexpr, GROWN: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(1)
    columns = tl.arange(0, BLOCK)
    inside = columns < WIDTH
    own = run.to(tl.int64) * stride
    added = tl.load(bias + own + columns, mask=inside, other=0.0)
    factor = tl.load(weight + own + columns, mask=inside, other=0.0)
    shift = tl.load(norm_bias + own + columns, mask=inside, other=0.0)
    begin = run.to(tl.int64) * tokens * WIDTH
    for row in range(tl.program_id(0), tokens, tl.num_programs(0)):
        places = row * WIDTH + columns
        z = tl.load(dense + begin + places, mask=inside, other=0.0).to(tl.float32) + added
        if DROPPED > 0:
            kept = _kept(run * tokens * WIDTH + places, tl.load(seed), DROPPED)
            z = tl.where(kept, z * GROWN, 0.0)
        z += tl.load(residual + begin + places, mask=inside, other=0.0).to(tl.float32)
        # What is kept for the way back is what is normed.
        z = z.to(dense.dtype.element_ty)
        tl.store(dense + begin + places, z, mask=inside)
        z = z.to(tl.float32)
        mean = tl.sum(z, 0) / WIDTH
        centred = tl.where(inside, z - mean, 0.0)
        steepness = tl.rsqrt(tl.sum(centred * centred, 0) / WIDTH + epsilon)
        normed = centred * steepness * factor + shift
        tl.store(out + begin + places, normed.to(out.dtype.element_ty), mask=inside)
        at = statistics + 2 * (run * tokens + row)
        tl.store(at, mean)
        tl.store(at + 1, steepness)


@triton.jit(do_not_specialize=["tokens"])
def _after_dense_backward(
    gradient, z, weight, statistics, to_residual, to_dense, partial, seed, tokens, stride,
    DROPPED: tl.constexpr, GROWN: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(1)
    columns = tl.arange(0, BLOCK)
    inside = columns < WIDTH
    factor = tl.load(weight + run.to(tl.int64) * stride + columns, mask=inside, other=0.0)
    to_bias = tl.zeros((BLOCK,), tl.float32)
    to_weight = tl.zeros((BLOCK,), tl.float32)
    to_norm_bias = tl.zeros((BLOCK,), tl.float32)
    begin = run.to(tl.int64) * tokens * WIDTH
    for row in range(tl.program_id(0), tokens, tl.num_programs(0)):
        places = row * WIDTH + columns
        come = tl.load(gradient + begin + places, mask=inside, other=0.0).to(tl.float32)
        summed = tl.load(z + begin + places, mask=inside, other=0.0).to(tl.float32)
        at = statistics + 2 * (run * tokens + row)
        steepness = tl.load(at + 1)
        standard = (summed - tl.load(at)) * steepness
        to_weight += come * standard
        to_norm_bias += come
        scaled = come * factor
        along = tl.sum(scaled * standard, 0) / WIDTH
        back = (scaled - tl.sum(scaled, 0) / WIDTH - standard * along) * steepness
        tl.store(to_residual + begin + places, back.to(to_residual.dtype.element_ty), mask=inside)
        if DROPPED > 0:
            kept = _kept(run * tokens * WIDTH + places, tl.load(seed), DROPPED)
            back = tl.where(kept, back * GROWN, 0.0)
            tl.store(to_dense + begin + places, back.to(to_dense.dtype.element_ty), mask=inside)
        to_bias += back
    # [3, M, programs, WIDTH]
    part = tl.num_programs(1) * tl.num_programs(0) * WIDTH
    at = partial + (run * tl.num_programs(0) + tl.program_id(0)) * WIDTH + columns
    tl.store(at, to_bias, mask=inside)
    tl.store(at + part, to_weight, mask=inside)
    tl.store(at + 2 * part, to_norm_bias, mask=inside)


@triton.jit
def _quick(x, CALLED: tl.constexpr):
    """One instruction, without care for numbers below 1e-38: that care would take longer than the memory."""
    return tl.inline_asm_elementwise(CALLED, "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def _normal(x):
    """Above |x|, the share of the normal distribution, to 1e-7 (Abramowitz and Stegun, 7.1.26); the density.

    One exponential serves both, where the library's error function has one of its own and branches.
    """
    exponent, below = -0.7213475204 * x * x, 1.0 + 0.2316418885 * tl.abs(x)
    if INTERPRETED:
        density, t = tl.exp2(exponent), 1.0 / below
    else:
        density, t = (
            _quick(exponent, "ex2.approx.ftz.f32 $0, $1;"),
            _quick(below, "rcp.approx.ftz.f32 $0, $1;"),
        )
    tail = 0.5307027145 * t - 0.7265760135
    tail = tail * t + 0.7107068705
    tail = tail * t - 0.142248368
    tail = (tail * t + 0.127414796) * t * density
    return tail, density * 0.3989422804


@triton.jit(do_not_specialize=["tokens"])
def _biased(
    values, bias, out, tokens, stride,
    GELU: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(2)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = columns < WIDTH
    added = tl.load(bias + run.to(tl.int64) * stride + columns, mask=inside, other=0.0)
    begin = run.to(tl.int64) * tokens * WIDTH
    for first in range(tl.program_id(0) * ROWS, tokens, tl.num_programs(0) * ROWS):
        rows = first + tl.arange(0, ROWS)[:, None]
        mask = (rows < tokens) & inside
        places = rows * WIDTH + columns
        x = tl.load(values + begin + places, mask=mask, other=0.0).to(tl.float32) + added
        if GELU:
            tail, _ = _normal(x)
            x = tl.maximum(x, 0.0) - tl.abs(x) * tail
        tl.store(out + begin + places, x.to(out.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["tokens"])
def _biased_backward(
    gradient, values, bias, to_values, partial, tokens, stride,
    GELU: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(2)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (columns < WIDTH)[None, :]
    if GELU:
        added = tl.load(bias + run.to(tl.int64) * stride + columns[None, :], mask=inside, other=0.0)
    to_bias = tl.zeros((ROWS, BLOCK), tl.float32)
    begin = run.to(tl.int64) * tokens * WIDTH
    for first in range(tl.program_id(0) * ROWS, tokens, tl.num_programs(0) * ROWS):
        rows = first + tl.arange(0, ROWS)[:, None]
        mask = (rows < tokens) & inside
        places = rows * WIDTH + columns[None, :]
        back = tl.load(gradient + begin + places, mask=mask, other=0.0).to(tl.float32)
        if GELU:
            x = tl.load(values + begin + places, mask=mask, other=0.0).to(tl.float32) + added
            tail, density = _normal(x)
            back *= tl.where(x < 0, tail, 1.0 - tail) + x * density
            tl.store(to_values + begin + places, back.to(to_values.dtype.element_ty), mask=mask)
        to_bias += back
    at = partial + (run * tl.num_programs(0) + tl.program_id(0)) * WIDTH + columns
    tl.store(at, tl.sum(to_bias, 0), mask=columns < WIDTH)


@triton.jit
def _tile(first, seen, size, PARTS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Places of weights, in rows of BLOCK, and which of them are there and not of words never seen.

    The vector of a word is PARTS such rows; 0 where the weights are not those of words.
    """
    rows = first + tl.arange(0, ROWS)
    places = rows[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = places < size
    if PARTS > 0:
        known = tl.load(seen + rows // PARTS, mask=rows * BLOCK < size, other=0)
        mask = mask & (known != 0)[:, None]
    return places, mask


@triton.jit
def _squares(
    gradient, seen, partial, size, words, spread,
    PARTS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(1).to(tl.int64)
    summed = tl.zeros((ROWS, BLOCK), tl.float32)
    for first in range(tl.program_id(0) * ROWS, tl.cdiv(size, BLOCK), tl.num_programs(0) * ROWS):
        places, mask = _tile(first, seen + run * words, size, PARTS, ROWS, BLOCK)
        come = tl.load(gradient + run * size + places, mask=mask, other=0.0).to(tl.float32)
        summed += come * come
    tl.store(partial + run * spread + tl.program_id(0), tl.sum(tl.sum(summed, 1), 0))


@triton.jit
def _adam(
    weights, mean, variance, gradient, narrow, seen, scale, rate, correction, size, stride, words,
    BETA: tl.constexpr, SLOW_BETA: tl.constexpr, EPSILON: tl.constexpr,
    COPIED: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(1).to(tl.int64)
    places, mask = _tile(tl.program_id(0) * ROWS, seen + run * words, size, PARTS, ROWS, BLOCK)
    own = run * stride
    come = tl.load(gradient + run * size + places, mask=mask, other=0.0).to(tl.float32)
    first = tl.load(mean + own + places, mask=mask, other=0.0)
    second = tl.load(variance + own + places, mask=mask, other=0.0)
    weight = tl.load(weights + own + places, mask=mask, other=0.0)
    come *= tl.load(scale + run)
    first += (1 - BETA) * (come - first)
    second = second * SLOW_BETA + (1 - SLOW_BETA) * come * come
    weight -= tl.load(rate) * first / (tl.sqrt(second) / tl.load(correction) + EPSILON)
    tl.store(mean + own + places, first, mask=mask)
    tl.store(variance + own + places, second, mask=mask)
    tl.store(weights + own + places, weight, mask=mask)
    if COPIED:
        tl.store(narrow + run * size + places, weight.to(narrow.dtype.element_ty), mask=mask)


class AfterDense(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, dense: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor,
        norm_bias: torch.Tensor, epsilon: float, dropout: float, seed: torch.Tensor | None,
    ) -> torch.Tensor:  # fmt: skip
        runs, tokens, width = dense.shape
        assert all(tensor.is_contiguous() for tensor in (dense, residual))
        assert bias.stride() == weight.stride() == norm_bias.stride() == (bias.stride(0), 1)
        ctx.constants = {
            "DROPPED": round(dropout * 2**24), "GROWN": 1.0 / (1.0 - dropout), "WIDTH": width,
            "BLOCK": triton.next_power_of_2(width), "num_warps": 1,
        }  # fmt: skip
        out = torch.empty_like(dense)
        statistics = torch.empty(runs, tokens, 2, device=dense.device)
        _after_dense[(min(tokens, NORMING // runs), runs)](
            dense, bias, residual, weight, norm_bias, out, statistics, seed, tokens, bias.stride(0), epsilon,
            **ctx.constants,
        )  # fmt: skip
        ctx.save_for_backward(dense, weight, statistics, seed)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        z, weight, statistics, seed = ctx.saved_tensors
        runs, tokens, width = z.shape
        gradient = gradient.contiguous()
        to_residual = torch.empty_like(z)
        to_dense = torch.empty_like(z) if ctx.constants["DROPPED"] else to_residual
        programs = min(tokens, NORMING_BACK // runs)
        partial = torch.empty(3, runs, programs, width, device=z.device)
        _after_dense_backward[(programs, runs)](
            gradient, z, weight, statistics, to_residual, to_dense, partial, seed, tokens, weight.stride(0),
            **ctx.constants,
        )  # fmt: skip
        to_bias, to_weight, to_norm_bias = partial.sum(2)
        return to_dense, to_bias, to_residual, to_weight, to_norm_bias, None, None, None


def after_dense(
    dense: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor,
    norm_bias: torch.Tensor, epsilon: float, dropout: float = 0.0, seed: torch.Tensor | None = None,
) -> torch.Tensor:  # fmt: skip
    """LayerNorm(dropout(dense + bias) + residual). Takes the memory of `dense`, a product without its bias.

    The seed is a number on the device, int32; what is dropped is what HashDropout would drop with it.
    """
    out: torch.Tensor = AfterDense.apply(dense, bias, residual, weight, norm_bias, epsilon, dropout, seed)
    return out


class Wide(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(values, bias)
        out = torch.empty_like(values)
        launch_biased(values, bias, out, gelu=True)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values, bias = ctx.saved_tensors
        to_values = torch.empty_like(values)
        partial = launch_backward(gradient, values, bias, to_values)
        return to_values, partial.sum(1)


def wide(values: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """gelu(values + bias) of products without their bias, which are kept as they are."""
    out: torch.Tensor = Wide.apply(values, bias)
    return out


def add_bias(values: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """In place, and without a gradient."""
    launch_biased(values, bias, values, gelu=False)
    return values


def sums_over_tokens(gradients: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The gradients of biases, given those of what they were added to, all of one shape."""
    return torch.stack([launch_backward(gradient) for gradient in gradients]).sum(2).unbind()


def over_columns(values: torch.Tensor, programs: int) -> tuple[int, int, int]:
    """Programs, so many in all, each for some rows and some columns of a run."""
    runs, tokens, width = values.shape
    blocks = triton.cdiv(width, COLUMNS)
    return min(triton.cdiv(tokens, HELD // COLUMNS), max(1, programs // (runs * blocks))), blocks, runs


def launch_biased(values: torch.Tensor, bias: torch.Tensor, out: torch.Tensor, gelu: bool) -> None:
    _, tokens, width = values.shape
    assert all(tensor.is_contiguous() for tensor in (values, out, bias[0]))
    _biased[over_columns(values, BIASING)](
        values, bias, out, tokens, bias.stride(0),
        GELU=gelu, WIDTH=width, ROWS=HELD // COLUMNS, BLOCK=COLUMNS, num_warps=4,
    )  # fmt: skip


def launch_backward(
    gradient: torch.Tensor,
    values: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    to_values: torch.Tensor | None = None,
) -> torch.Tensor:
    """Partial sums [M, programs, width] of the gradient of a bias; by way of GELU where the bias is given."""
    runs, tokens, width = gradient.shape
    gradient = gradient.contiguous()
    grid = over_columns(gradient, BIASING_BACK)
    partial = torch.empty(runs, grid[0], width, device=gradient.device)
    _biased_backward[grid](
        gradient, values, bias, to_values, partial, tokens, 0 if bias is None else bias.stride(0),
        GELU=bias is not None, WIDTH=width, ROWS=HELD // COLUMNS, BLOCK=COLUMNS, num_warps=4,
    )  # fmt: skip
    return partial


def adam(
    row: torch.Tensor,
    gradients: Sequence[torch.Tensor],
    mean: torch.Tensor,
    variance: torch.Tensor,
    rate: torch.Tensor,
    correction: torch.Tensor,
    *,
    seen: torch.Tensor,
    narrow: torch.Tensor,
    betas: tuple[float, float],
    epsilon: float,
    most_norm: float,
) -> None:
    """As stacked.training.adam, for gradients [M, …] of three parts of a row.

    The first are those of words: a word never `seen` [M, words] has no gradient and no moments, so nothing of
    it is read or written. The second are of weights that have a copy in `narrow`, which is renewed, too.
    """
    runs = len(row)
    sizes = [gradient.shape[1] for gradient in gradients]
    assert all(gradient.is_contiguous() for gradient in (*gradients, narrow, seen))
    assert row.stride() == mean.stride() == variance.stride()
    vector = sizes[0] // seen.shape[1]
    # The largest power of two that divides the vector of a word.
    block = min(vector & -vector, COLUMNS)
    tile: dict[str, Any] = {"ROWS": HELD // block, "BLOCK": block, "num_warps": 8}
    parts = [vector // block, 0, 0]
    programs = max(1, SQUARING // runs)
    squares = torch.empty(runs, len(sizes), programs, device=row.device)
    for at, gradient in enumerate(gradients):
        _squares[(programs, runs)](
            gradient, seen, squares[:, at], sizes[at], seen.shape[1], squares.stride(0), PARTS=parts[at],
            **tile,
        )  # fmt: skip
    scale = (most_norm / (squares.sum((1, 2)).sqrt() + 1e-6)).clamp(max=1.0)
    states = (state.split(sizes, dim=1) for state in (row, mean, variance))
    for at, (gradient, *state) in enumerate(zip(gradients, *states, strict=True)):
        _adam[(triton.cdiv(sizes[at], HELD), runs)](
            *state, gradient, narrow, seen, scale, rate, correction, sizes[at], row.stride(0), seen.shape[1],
            BETA=betas[0], SLOW_BETA=betas[1], EPSILON=epsilon, COPIED=at == 1, PARTS=parts[at], **tile,
        )  # fmt: skip
