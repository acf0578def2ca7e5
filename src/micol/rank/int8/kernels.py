"""What happens to each token between two matrix products, in one pass through memory.

Queries, keys, values and scores of attention are float32, or bfloat16 as uint16 holds its bits.
`codes` are a token's values as bytes and `grid` says what they stand for: value = step * code + middle.
A product of codes and weights comes as whole numbers, `sums`; `Outputs` holds what makes them values again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from micol.compiled import kernel
from micol.rank.int8.arithmetic import (
    exp,
    fast,
    float32,
    gelu,
    larger,
    nearest_byte,
    smaller,
    stored,
    wide,
)

LEVELS = float32(255.0)
LOWEST_CODE = float32(-128.0)
# A token whose values are all the same still needs a step to divide by.
SMALLEST_STEP = float32(1e-12)


class Outputs(NamedTuple):
    """Of each output of a linear layer: the scale and the sum of its weights, and its bias; float32."""

    scale: np.ndarray
    total: np.ndarray
    bias: np.ndarray


class Norm(NamedTuple):
    """A layer norm."""

    weight: np.ndarray
    bias: np.ndarray
    epsilon: np.float32


@fast
def value(sums: np.ndarray, output: int, step: float, middle: float, outputs: Outputs) -> float:
    """Output `output` of a linear layer for one token."""
    return (
        step * outputs.scale[output] * float32(sums[output])
        + middle * outputs.total[output]
        + outputs.bias[output]
    )


@fast
def quantise_row(values: np.ndarray, codes: np.ndarray, grid: np.ndarray) -> None:
    lowest = highest = values[0]
    for i in range(values.shape[0]):
        lowest, highest = smaller(lowest, values[i]), larger(highest, values[i])
    step = larger((highest - lowest) / LEVELS, SMALLEST_STEP)
    grid[0], grid[1] = step, lowest - LOWEST_CODE * step
    steps = float32(1.0) / step
    for i in range(values.shape[0]):
        codes[i] = nearest_byte((values[i] - lowest) * steps)


@fast
def rescale_row(sums: np.ndarray, grid: np.ndarray, outputs: Outputs, values: np.ndarray) -> None:
    step, middle = grid[0], grid[1]
    for i in range(sums.shape[0]):
        values[i] = stored(value(sums, i, step, middle, outputs), values[i])


@fast
def activate_row(
    sums: np.ndarray,
    grid: np.ndarray,
    outputs: Outputs,
    values: np.ndarray,
    codes: np.ndarray,
    new_grid: np.ndarray,
) -> None:
    step, middle = grid[0], grid[1]
    for i in range(sums.shape[0]):
        values[i] = gelu(value(sums, i, step, middle, outputs))
    quantise_row(values, codes, new_grid)


@fast
def normalise_row(
    sums: np.ndarray,
    grid: np.ndarray,
    outputs: Outputs,
    norm: Norm,
    state: np.ndarray,
    codes: np.ndarray,
    new_grid: np.ndarray,
) -> None:
    size = float32(sums.shape[0])
    step, middle = grid[0], grid[1]
    total = float32(0.0)
    for i in range(sums.shape[0]):
        added = state[i] + value(sums, i, step, middle, outputs)
        state[i] = added
        total += added
    mean = total / size
    squares = float32(0.0)
    for i in range(sums.shape[0]):
        squares += (state[i] - mean) * (state[i] - mean)
    scale = float32(1.0) / np.sqrt(squares / size + norm.epsilon)
    for i in range(sums.shape[0]):
        state[i] = (state[i] - mean) * scale * norm.weight[i] + norm.bias[i]
    quantise_row(state, codes, new_grid)


@fast
def weigh_row(scores: np.ndarray) -> np.float32:
    highest = wide(scores[0])
    for i in range(scores.shape[0]):
        highest = larger(highest, wide(scores[i]))
    total = float32(0.0)
    for i in range(scores.shape[0]):
        weight = stored(exp(wide(scores[i]) - highest), scores[i])
        scores[i] = weight
        total += wide(weight)
    return float32(1.0) / total


@kernel
def quantise(values: np.ndarray, codes: np.ndarray, grid: np.ndarray) -> None:
    for token in range(values.shape[0]):
        quantise_row(values[token], codes[token], grid[token])


@kernel
def rescale(sums: np.ndarray, grid: np.ndarray, outputs: Outputs, values: np.ndarray) -> None:
    """The outputs of a linear layer."""
    for token in range(sums.shape[0]):
        rescale_row(sums[token], grid[token], outputs, values[token])


@kernel
def activate(
    sums: np.ndarray, grid: np.ndarray, outputs: Outputs, codes: np.ndarray, new_grid: np.ndarray
) -> None:
    """GELU of the outputs of a linear layer, quantised for the next."""
    values = np.empty(sums.shape[1], dtype=np.float32)
    for token in range(sums.shape[0]):
        activate_row(sums[token], grid[token], outputs, values, codes[token], new_grid[token])


@kernel
def normalise(
    sums: np.ndarray,
    grid: np.ndarray,
    outputs: Outputs,
    norm: Norm,
    state: np.ndarray,
    codes: np.ndarray,
    new_grid: np.ndarray,
) -> None:
    """Adds the outputs of a linear layer to the state and normalises it, in place; quantised for the next."""
    for token in range(sums.shape[0]):
        normalise_row(sums[token], grid[token], outputs, norm, state[token], codes[token], new_grid[token])


@kernel
def weigh(scores: np.ndarray, scales: np.ndarray) -> None:
    """Softmax of each row of scores, in place: weights and, apart, the scale that makes their sum one."""
    for row in range(scores.shape[0]):
        scales[row] = weigh_row(scores[row])
