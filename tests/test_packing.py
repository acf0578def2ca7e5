"""Packed sequences against the same sequences padded, through plain transformers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModel, AutoTokenizer, DistilBertConfig, DistilBertModel

import world
from micol.rank.encoder import Encoder, batches_by_length, even_batches
from micol.rank.packing import can_pack, pack, packed_attention, padded_attention, slice_sequences

TEXTS = [f"{record['title']} {record['abstract']}" for record in world.documents(24)[:9]]
LABELS = [label["names"][0] for label in world.label_records()[:9]]


@pytest.fixture(scope="session")
def tiny_distilbert(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An architecture whose batches cannot be packed."""
    config = DistilBertConfig(
        dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=64, initializer_range=0.15
    )
    folder = tmp_path_factory.mktemp("encoders") / "distilbert"
    return world.save_other(folder, tiny_bert, DistilBertModel, config)


@pytest.fixture(params=["tiny_bert", "tiny_roberta", "tiny_distilbert"])
def folder(request: pytest.FixtureRequest) -> Path:
    path: Path = request.getfixturevalue(request.param)
    return path


def padded(folder: Path, *texts: list[str]) -> list[np.ndarray]:
    """The token vectors of each text, or pair of texts, as plain transformers gives them."""
    _, rows = plain(folder, *texts)
    return [row.detach().numpy() for row in rows]


def plain(folder: Path, *texts: list[str]) -> tuple[torch.nn.Module, list[torch.Tensor]]:
    """Plain transformers, and its token vectors of each text or pair of texts."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    inputs = tokenizer(*texts, padding=True, return_tensors="pt")
    if "type_vocab_size" not in model.config.to_dict():
        inputs.pop("token_type_ids", None)
    hidden = model(**inputs).last_hidden_state
    return model, [row[mask.bool()] for row, mask in zip(hidden, inputs["attention_mask"], strict=True)]


def unpacked(encoder: Encoder, batch) -> list[np.ndarray]:
    encoder.model.eval()
    with torch.no_grad():
        hidden = encoder.hidden(batch)
    return [part.numpy() for part in hidden.split(batch.starts.diff().tolist())]


def assert_same(got: list[np.ndarray], expected: list[np.ndarray]) -> None:
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_texts_give_the_vectors_of_plain_transformers(folder: Path) -> None:
    encoder = Encoder.load(folder, 64)
    assert can_pack(encoder.model) == (folder.name != "distilbert")
    batch = encoder.framing.pack(encoder.tokenize(TEXTS))
    assert_same(unpacked(encoder, batch), padded(folder, TEXTS))


def test_pairs_give_the_vectors_of_plain_transformers(folder: Path) -> None:
    encoder = Encoder.load(folder, 64)
    pairs = list(zip(encoder.tokenize(TEXTS), encoder.tokenize(LABELS), strict=True))
    assert_same(unpacked(encoder, encoder.framing.pack_pairs(pairs)), padded(folder, TEXTS, LABELS))


def test_gradients_are_those_of_plain_transformers(folder: Path) -> None:
    encoder = Encoder.load(folder, 64)
    encoder.model.eval()
    encoder.hidden(encoder.framing.pack(encoder.tokenize(TEXTS))).square().mean().backward()
    model, rows = plain(folder, TEXTS)
    torch.cat(rows).square().mean().backward()
    expected = dict(model.named_parameters())
    for name, weight in encoder.model.named_parameters():
        torch.testing.assert_close(weight.grad, expected[name].grad, atol=1e-6, rtol=1e-4)


# Queries, keys and values of three packed sequences.
PROJECTED = torch.randn(9, 3, 2, 4, generator=torch.Generator().manual_seed(0))
STARTS, LONGEST = torch.tensor([0, 2, 7, 9]), 5


def test_padded_attention_is_that_within_each_packed_sequence() -> None:
    found = []
    for attention in (packed_attention, padded_attention):
        projected = PROJECTED.clone().requires_grad_()
        out = attention(projected, STARTS, LONGEST, 0.0)
        found.append([out, *torch.autograd.grad(out.square().sum(), projected)])
    for expected, got in zip(*found, strict=True):
        torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("attention", [packed_attention, padded_attention])
def test_attention_with_dropout_differs_each_time_and_is_the_same_on_average(attention) -> None:
    torch.manual_seed(0)
    drawn = torch.stack([attention(PROJECTED, STARTS, LONGEST, 0.3) for _ in range(4_000)])
    assert (drawn[0] != drawn[1]).any()
    expected = attention(PROJECTED, STARTS, LONGEST, 0.0)
    torch.testing.assert_close(drawn.mean(dim=0), expected, atol=0.08, rtol=0)


def test_a_text_longer_than_the_encoder_is_cut(folder: Path) -> None:
    encoder = Encoder.load(folder, 512)
    assert encoder.max_tokens == 64
    long = encoder.tokenize([" ".join(TEXTS)])
    assert len(long[0]) == 62
    [vectors] = unpacked(encoder, encoder.framing.pack(long))
    assert np.isfinite(vectors).all()


def test_slices_of_a_batch_are_the_batches_of_its_parts() -> None:
    sequences = [np.arange(length) + 10 * length for length in (3, 1, 4, 2)]
    whole, part = pack(sequences, firsts=[1, 1, 2, 2]), pack(sequences[1:3], firsts=[1, 2])
    sliced = slice_sequences(whole, 1, 3)
    for name in ("ids", "types", "positions", "starts"):
        assert getattr(sliced, name).tolist() == getattr(part, name).tolist()


def test_batches_by_length_hold_each_position_once_within_the_budget() -> None:
    lengths = np.random.default_rng(0).integers(1, 90, size=500)
    batches = list(batches_by_length(lengths, 256))
    assert sorted(np.concatenate(batches)) == list(range(500))
    assert max(lengths[batch].sum() for batch in batches) <= 256
    assert next(batches_by_length(np.array([300, 10]), 256)).tolist() == [0]


@given(st.lists(st.integers(2, 300), max_size=60), st.integers(1, 8), st.integers(100, 2_000))
def test_every_core_has_as_much_to_do(lengths: list[int], cores: int, budget: int) -> None:
    texts = np.array(lengths, dtype=np.int64)
    batches = list(even_batches(texts, budget, cores))
    assert sorted(position for batch in batches for position in batch) == list(range(len(texts)))
    tokens = [int(texts[batch].sum()) for batch in batches]
    longest = max(lengths, default=0)
    assert all(count <= budget + longest for count in tokens)
    # Where texts are short against a batch, no core waits for longer than a text takes.
    share = sum(lengths) / (cores * max(1, -(-sum(lengths) // (cores * budget))))
    assert all(abs(count - share) <= longest for count in tokens)
