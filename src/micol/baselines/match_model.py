"""MATCH's two steps: embeddings of words and metadata in one space, then a Transformer over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

from micol.baselines.match_vocabulary import Sequences, Vocabulary
from micol.progress import Progress
from micol.rank.encoder import best_device
from micol.rank.runtime import has_bfloat16
from micol.ranking import Ranking

if TYPE_CHECKING:
    from micol.baselines.match import Match

# Embedding pre-training: neighbours of a word, steps, false partners of each pair, and pairs of a step.
WINDOW, STEPS_AN_EPOCH, NEGATIVES = 5, 100, 5
FEWEST_PAIRS_A_STEP, MOST_PAIRS_A_STEP = 512, 65_536
PRETRAINING_RATE = 5e-3


class MatchModel(nn.Module):
    """[CLS] x C, metadata, words -> Transformer -> the C vectors side by side -> a logit for every label."""

    def __init__(self, options: Match, embeddings: torch.Tensor, labels: int) -> None:
        super().__init__()
        size, dimension = embeddings.shape
        self.options = options
        self.padding = size
        self.tokens = nn.Embedding(size + 1, dimension, padding_idx=size)
        with torch.no_grad():
            self.tokens.weight[:size] = embeddings
        self.cls = nn.Parameter(torch.randn(options.cls_tokens, dimension) * 0.1)
        # Words stand in an order; metadata does not.
        self.places = nn.Parameter(torch.randn(options.max_words, dimension) * 0.02)
        layer = nn.TransformerEncoderLayer(
            dimension,
            options.heads,
            4 * dimension,
            options.dropout,
            "gelu",
            batch_first=True,
            norm_first=True,
        )
        self.transformer = nn.TransformerEncoder(layer, options.layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dimension)
        self.output = nn.Linear(options.cls_tokens * dimension, labels)

    def forward(self, metadata: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        documents = len(words)
        parts = (
            self.cls.expand(documents, -1, -1),
            self.tokens(metadata),
            self.tokens(words) + self.places[: words.shape[1]],
        )
        cls_is_padding = torch.zeros(documents, len(self.cls), dtype=torch.bool, device=words.device)
        is_padding = torch.cat([cls_is_padding, metadata == self.padding, words == self.padding], dim=1)
        hidden = self.transformer(torch.cat(parts, dim=1), src_key_padding_mask=is_padding)
        return self.output(self.norm(hidden[:, : len(self.cls)]).flatten(1))

    def batch(self, sequences: Sequences, rows: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        return tuple(  # type: ignore[return-value]
            padded([side[row] for row in rows], self.padding).to(self.cls.device) for side in sequences
        )

    def ranking(self, sequences: Sequences, depth: int) -> Ranking:
        """The best labels of each document."""
        self.eval()
        count = len(sequences.words)
        depth = min(depth, self.output.out_features)
        labels, scores = [], []
        with torch.inference_mode():
            for start in range(0, count, 256):
                rows = np.arange(start, min(start + 256, count))
                best = self(*self.batch(sequences, rows)).float().topk(depth)
                labels.append(best.indices.cpu().numpy())
                scores.append(best.values.cpu().numpy())
        rows = np.repeat(np.arange(count), depth)
        return Ranking.from_entries(
            rows, np.concatenate(labels).ravel(), np.concatenate(scores).ravel(), count
        )


def padded(rows: Sequence[np.ndarray], padding: int) -> torch.Tensor:
    """[N, longest], at least one column wide."""
    width = max(1, *(len(row) for row in rows))
    out = torch.full((len(rows), width), padding, dtype=torch.int64)
    for at, row in enumerate(rows):
        out[at, : len(row)] = torch.from_numpy(row)
    return out


def trained(
    options: Match,
    vocabulary: Vocabulary,
    sequences: Sequences,
    targets: Sequence[np.ndarray],
    labels: int,
    seed: int,
) -> MatchModel:
    torch.manual_seed(seed)
    device = best_device()
    generator = np.random.default_rng((seed, 8))
    embeddings = joint_embeddings(options, len(vocabulary), sequences, targets, labels, generator, device)
    model = MatchModel(options, embeddings, labels).to(device)
    steps_an_epoch = -(-len(targets) // options.batch_size)
    epochs = max(options.epochs, -(-options.least_steps // steps_an_epoch))
    steps = steps_an_epoch * epochs
    optimizer = torch.optim.AdamW(model.parameters(), options.learning_rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, options.learning_rate, total_steps=steps + 1, pct_start=0.1
    )
    model.train()
    with Progress("training MATCH", steps, "steps") as progress:
        for _ in range(epochs):
            order = generator.permutation(len(targets))
            for start in range(0, len(order), options.batch_size):
                rows = order[start : start + options.batch_size]
                right = [targets[row] for row in rows]
                at = np.repeat(np.arange(len(rows)), [len(found) for found in right])
                wanted = torch.zeros(len(rows), labels, device=device)
                wanted[torch.from_numpy(at), torch.from_numpy(np.concatenate(right))] = 1.0
                with torch.autocast(device.type, torch.bfloat16, enabled=has_bfloat16(device)):
                    logits = model(*model.batch(sequences, rows))
                # Summed over labels: most are wrong for a document, and a mean would hide the right ones.
                loss = binary_cross_entropy_with_logits(logits.float(), wanted, reduction="sum") / len(rows)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 5.0)
                optimizer.step()
                schedule.step()
                progress.advance()
    return model


def joint_embeddings(
    options: Match,
    size: int,
    sequences: Sequences,
    targets: Sequence[np.ndarray],
    labels: int,
    generator: np.random.Generator,
    device: torch.device,
) -> torch.Tensor:
    """Vectors of words and metadata, [vocabulary, dimension]: near what they occur with.

    A document is to be near its words, its metadata and its labels, a word near its neighbours: all of them
    are points of one space, learned with negative sampling.
    """
    documents, first_label = len(targets), size
    first_document = size + labels
    points = nn.Embedding(first_document + documents, options.dimension).to(device)
    with torch.no_grad():
        points.weight.uniform_(-0.5 / options.dimension, 0.5 / options.dimension)
    optimizer = torch.optim.Adam(points.parameters(), PRETRAINING_RATE)
    members = [
        np.concatenate([metadata, words, first_label + wanted])
        for metadata, words, wanted in zip(sequences.metadata, sequences.words, targets, strict=True)
    ]
    of_documents = np.concatenate(
        [[0], *(np.full(len(m), first_document + d) for d, m in enumerate(members))]
    )[1:]
    in_documents = np.concatenate([np.empty(0, np.int64), *members])
    if not len(in_documents):
        return points.weight.detach()[:size]
    with Progress("MATCH embeds words and metadata", options.pretraining_epochs, "epochs") as progress:
        for _ in range(options.pretraining_epochs):
            near, far = neighbours(sequences.words, generator)
            one = np.concatenate([of_documents, near])
            other = np.concatenate([in_documents, far])
            order = generator.permutation(len(one))
            size_of_step = min(max(len(one) // STEPS_AN_EPOCH, FEWEST_PAIRS_A_STEP), MOST_PAIRS_A_STEP)
            for start in range(0, len(order), size_of_step):
                chosen = order[start : start + size_of_step]
                # False partners are drawn as often as they occur.
                false = in_documents[generator.integers(len(in_documents), size=(len(chosen), NEGATIVES))]
                centre = points(torch.from_numpy(one[chosen]).to(device))
                true_scores = (centre * points(torch.from_numpy(other[chosen]).to(device))).sum(-1)
                false_scores = (points(torch.from_numpy(false).to(device)) @ centre[:, :, None])[:, :, 0]
                loss = -(logsigmoid(true_scores).sum() + logsigmoid(-false_scores).sum()) / len(chosen)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            progress.advance()
    return points.weight.detach()[:size]


def neighbours(texts: Sequence[np.ndarray], generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Each word with one of its neighbours in the window, drawn anew in each epoch."""
    flat = np.concatenate([np.empty(0, np.int64), *texts])
    text_of = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    step = generator.integers(1, WINDOW + 1, size=len(flat)) * generator.choice((-1, 1), size=len(flat))
    partner = np.arange(len(flat)) + step
    inside = (partner >= 0) & (partner < len(flat))
    inside[inside] = text_of[partner[inside]] == text_of[inside]
    return flat[inside], flat[partner[inside]]
