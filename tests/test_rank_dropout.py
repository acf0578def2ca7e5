"""Hashed dropout behaves as dropout: share, scale, independence, and a gradient that is dropped alike."""

import numpy as np
import torch

from micol.rank.dropout import HashDropout, hash_dropout, uniform_bits


def test_share_and_scale_are_those_of_dropout():
    torch.manual_seed(0)
    dropped = HashDropout(0.1).train()(torch.ones(1_000_000))
    assert abs((dropped == 0).float().mean() - 0.1) < 0.002
    assert torch.allclose(dropped[dropped != 0], torch.tensor(1 / 0.9))


def test_numbers_are_uniform_and_neighbours_independent():
    bits = uniform_bits(1 << 20, torch.tensor(12345, dtype=torch.int32)).numpy()
    assert bits.min() >= 0
    assert bits.max() < 2**24
    counts = np.bincount(bits >> 16, minlength=256)
    expected = len(bits) / 256
    assert ((counts - expected) ** 2 / expected).sum() < 350  # chi-square, 255 degrees of freedom
    for distance in (1, 2, 384, 768):
        assert abs(np.corrcoef(bits[:-distance], bits[distance:])[0, 1]) < 0.005


def test_two_calls_drop_different_values():
    layer, ones = HashDropout(0.5).train(), torch.ones(10_000)
    torch.manual_seed(1)
    first, second = layer(ones), layer(ones)
    assert 0.45 < (first == second).float().mean() < 0.55
    torch.manual_seed(1)
    assert torch.equal(layer(ones), first)


def test_gradient_is_dropped_where_the_value_was():
    values = torch.ones(1000, requires_grad=True)
    out = HashDropout(0.3).train()(values)
    out.sum().backward()
    assert torch.equal(values.grad, out.detach())


def test_nothing_is_dropped_outside_training():
    layer = HashDropout(0.5).eval()
    assert torch.equal(layer(torch.ones(10)), torch.ones(10))


def test_every_dropout_of_a_model_is_replaced():
    model = torch.nn.Sequential(torch.nn.Dropout(0.2), torch.nn.Sequential(torch.nn.Dropout(0.1)))
    hash_dropout(model)
    assert [part.p for part in model.modules() if isinstance(part, HashDropout)] == [0.2, 0.1]
    assert not any(isinstance(part, torch.nn.Dropout) for part in model.modules())
