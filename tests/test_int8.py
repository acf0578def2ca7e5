"""8-bit kernels against the same arithmetic in float64."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erf
from scipy.special import softmax as exact_softmax

from micol.rank.encoder import Encoder
from micol.rank.int8.kernels import Norm, Outputs, activate, normalise, quantise, rescale, weigh
from micol.rank.int8.model import BFLOAT16_PAYS, Int8Model
from micol.rank.packing import last_hidden_states

shapes = st.tuples(st.integers(1, 5), st.integers(1, 140))
seeds = st.integers(0, 2**32 - 1)
scales = st.sampled_from([1e-3, 1.0, 50.0])

# Prints whether a kernel had to be compiled, and in a second line checksums of what each makes of numbers.
APPLY_KERNELS = """
import zlib
import numpy as np
from micol.rank.int8.kernels import Norm, Outputs, activate, normalise, quantise, rescale, weigh

generator = np.random.default_rng(0)

def normal(*shape):
    return generator.standard_normal(shape, dtype=np.float32)

tokens, width = 40, 300
shape = tokens, width
sums = generator.integers(-9999, 9999, shape, dtype=np.int32)
grid, state, scores, scales = normal(tokens, 2), normal(*shape), normal(*shape), normal(tokens)
half_scores, half_scales = (normal(*shape).view(np.uint32) >> 16).astype(np.uint16), normal(tokens)
values, half_values = normal(*shape), np.zeros(shape, np.uint16)
outputs = Outputs(normal(width) / 1000, normal(width), normal(width))
norm = Norm(normal(width), normal(width), np.float32(1e-3))
grids = normal(3, tokens, 2)
codes = np.zeros((3, *shape), np.int8)

quantise(state, codes[0], grids[0])
rescale(sums, grid, outputs, values)
rescale(sums, grid, outputs, half_values)
weigh(scores, scales)
weigh(half_scores, half_scales)
normalise(sums, grid, outputs, norm, state, codes[1], grids[1])
activate(sums, grid, outputs, codes[2], grids[2])

print(any(kernel.stats.cache_misses for kernel in (quantise, rescale, weigh, normalise, activate)))
made = {
    "quantise": (codes[0], grids[0]),
    "rescale": (values, half_values),
    "weigh": (scores, scales, half_scores, half_scales),
    "normalise": (state, codes[1], grids[1]),
    "activate": (codes[2], grids[2]),
}
print({name: [zlib.crc32(array) for array in arrays] for name, arrays in made.items()})
"""


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def quantised(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    codes, grid = np.empty(values.shape, np.int8), np.empty((len(values), 2), np.float32)
    quantise(values, codes, grid)
    return codes, grid


def meant(codes: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """The values that codes stand for."""
    return grid[:, :1].astype(np.float64) * codes + grid[:, 1:]


def gelu(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * (1 + erf(x / np.sqrt(2)))


def assert_within_half_a_step(codes: np.ndarray, grid: np.ndarray, values: np.ndarray) -> None:
    rounding = 1e-5 * np.abs(values).max(axis=1, keepdims=True) + 1e-6
    assert (np.abs(meant(codes, grid) - values) <= 0.501 * grid[:, :1] + rounding).all()
    widths = values.max(axis=1) - values.min(axis=1)
    assert (grid[:, 0] <= widths / 254 + 1e-6 * np.abs(values).max(axis=1) + 1e-8).all()


def linear(seed: int, tokens: int, width: int) -> tuple[np.ndarray, np.ndarray, Outputs, np.ndarray]:
    """A linear layer: sums of codes and weights, the codes' grid, what makes them values, and the values."""
    codes, grid = quantised(normal(seed, tokens, 16))
    weights = np.random.default_rng(seed).integers(-127, 128, (16, width))
    scale = np.abs(normal(seed + 1, width)) / 1000
    outputs = Outputs(scale, (weights.sum(axis=0) * scale).astype(np.float32), normal(seed + 2, width))
    exact = meant(codes, grid) @ (weights * scale) + outputs.bias
    return (codes @ weights).astype(np.int32), grid, outputs, exact


@settings(deadline=None)
@given(shapes, seeds, scales)
def test_codes_are_within_half_a_step_and_use_the_whole_range(shape, seed, scale):
    values = normal(seed, *shape) * np.float32(scale) + np.float32(scale)
    codes, grid = quantised(values)
    assert_within_half_a_step(codes, grid, values)
    if shape[1] > 1:
        assert (codes.min(axis=1) == -128).all()
        assert (codes.max(axis=1) == 127).all()


@pytest.mark.parametrize("constant", [0.0, 3.5, -1e6])
def test_equal_values_stay_as_they_are(constant):
    values = np.full((2, 9), constant, np.float32)
    np.testing.assert_allclose(meant(*quantised(values)), values, rtol=1e-6, atol=1e-9)


@settings(deadline=None)
@given(shapes, seeds)
def test_sums_become_the_outputs_of_the_linear_layer(shape, seed):
    sums, grid, outputs, exact = linear(seed, *shape)
    values = np.empty(sums.shape, np.float32)
    rescale(sums, grid, outputs, values)
    np.testing.assert_allclose(values, exact, rtol=1e-4, atol=1e-4)


@settings(deadline=None)
@given(shapes, seeds)
def test_activation_is_gelu_with_the_error_function(shape, seed):
    sums, grid, outputs, exact = linear(seed, *shape)
    codes, new_grid = np.empty(sums.shape, np.int8), np.empty((shape[0], 2), np.float32)
    activate(sums, grid, outputs, codes, new_grid)
    assert_within_half_a_step(codes, new_grid, gelu(exact))


def test_gelu_is_exact_to_the_sixth_digit():
    """Two values a token: with a step between them, the coarse codes give both back nearly as they were."""
    x = np.linspace(-12, 12, 4001)
    outputs = Outputs(np.zeros(2, np.float32), np.array([1, 0], np.float32), np.zeros(2, np.float32))
    grid = np.stack([np.zeros_like(x), x], axis=1).astype(np.float32)
    codes, new_grid = np.empty((len(x), 2), np.int8), np.empty_like(grid)
    activate(np.zeros((len(x), 2), np.int32), grid, outputs, codes, new_grid)
    expected = gelu(grid[:, 1].astype(np.float64))
    np.testing.assert_allclose(meant(codes, new_grid)[:, 0], expected, rtol=1e-6, atol=2e-6)


@settings(deadline=None)
@given(st.tuples(st.integers(1, 5), st.integers(2, 140)), seeds)
def test_normalisation_adds_to_the_state_and_centres_it(shape, seed):
    sums, grid, outputs, exact = linear(seed, *shape)
    norm = Norm(normal(seed + 3, shape[1]), normal(seed + 4, shape[1]), np.float32(1e-3))
    state = normal(seed + 5, *shape)
    added = state + exact
    centred = added - added.mean(axis=1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-3) * norm.weight + norm.bias
    codes, new_grid = np.empty(sums.shape, np.int8), np.empty((shape[0], 2), np.float32)
    normalise(sums, grid, outputs, norm, state, codes, new_grid)
    np.testing.assert_allclose(state, expected, rtol=1e-3, atol=1e-3)
    assert_within_half_a_step(codes, new_grid, state)


@settings(deadline=None)
@given(shapes, seeds, st.sampled_from([0.1, 3.0, 100.0]))
def test_weights_and_scales_make_a_softmax(shape, seed, scale):
    scores = normal(seed, *shape) * np.float32(scale)
    expected = exact_softmax(scores.astype(np.float64), axis=1)
    scales = np.empty(shape[0], np.float32)
    weigh(scores, scales)
    np.testing.assert_allclose(scores * scales[:, None], expected, rtol=1e-4, atol=1e-7)


@settings(deadline=None)
@given(shapes, seeds, st.sampled_from([0.1, 3.0, 100.0]))
def test_weights_in_bfloat16_still_add_up_to_one(shape, seed, scale):
    scores = torch.from_numpy(normal(seed, *shape) * np.float32(scale)).bfloat16()
    expected = exact_softmax(scores.double().numpy(), axis=1)
    scales = np.empty(shape[0], np.float32)
    weigh(scores.view(torch.uint16).numpy(), scales)
    weights = scores.double().numpy() * scales[:, None]
    np.testing.assert_allclose(weights, expected, rtol=2**-7, atol=1e-7)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-5)


@settings(deadline=None)
@given(shapes, seeds)
def test_outputs_can_be_bfloat16(shape, seed):
    sums, grid, outputs, _ = linear(seed, *shape)
    exact, values = np.empty(sums.shape, np.float32), torch.empty(sums.shape, dtype=torch.bfloat16)
    rescale(sums, grid, outputs, exact)
    rescale(sums, grid, outputs, values.view(torch.uint16).numpy())
    np.testing.assert_allclose(values.float().numpy(), exact, rtol=2**-8, atol=1e-30)


def test_a_process_that_compiles_computes_as_those_that_load_what_it_compiled(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", APPLY_KERNELS]
    first, second = (
        subprocess.check_output(command, env=environment, text=True).splitlines() for _ in range(2)
    )
    assert (first[0], second[0]) == ("True", "False")
    assert first[1] == second[1]


@pytest.mark.parametrize("bfloat16", [False, True])
def test_attention_of_either_type_leaves_vectors_where_they_were(bfloat16, tiny_bert):
    """In bfloat16 only the longer sequence is attended to in that type."""
    encoder = Encoder.load(tiny_bert, 64)
    lengths = (9, BFLOAT16_PAYS + 4)
    generator = np.random.default_rng(0)
    batch = encoder.framing.pack([generator.integers(5, 100, length - 2) for length in lengths])
    encoder.model.eval()
    with torch.inference_mode():
        quick = Int8Model(encoder.model, bfloat16=bfloat16).hidden(batch)
        exact = last_hidden_states(encoder.model, batch)
    for start, end in pairwise(batch.starts.tolist()):
        cosine = torch.cosine_similarity(quick[start:end].mean(dim=0), exact[start:end].mean(dim=0), dim=0)
        assert cosine > 0.998
