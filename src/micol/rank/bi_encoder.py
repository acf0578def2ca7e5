"""Bi-encoder: a vector for each text, cosine for each pair (Eqs. 3 and 4 of the paper)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import normalize

from micol.progress import Progress
from micol.rank.encoder import Encoder
from micol.rank.packing import Packed
from micol.ranking import Ranking, rank_by_cosine

POOLINGS = ("cls", "mean")


def pool(hidden: torch.Tensor, batch: Packed, pooling: str) -> torch.Tensor:
    """One vector a sequence, [N, dim], from the token vectors [T, dim]: the [CLS] vector or their mean."""
    if pooling == "cls":
        return hidden[batch.starts[:-1].long()]
    lengths = batch.starts.diff().long()
    numbers = torch.arange(len(lengths), device=hidden.device)
    # The number of tokens is known: asking a GPU for it would mean to wait for it.
    sequence = torch.repeat_interleave(numbers, lengths, output_size=len(hidden))
    sums = torch.zeros(len(lengths), hidden.shape[1], device=hidden.device, dtype=torch.float32)
    return sums.index_add(0, sequence, hidden.float()) / lengths[:, None]


class BiEncoder:
    """Encodes each document and each label once; a score is a dot product."""

    architecture = "bi"

    def __init__(self, encoder: Encoder, pooling: str) -> None:
        self.encoder, self.pooling = encoder, pooling

    @property
    def text_limit(self) -> int:
        """Tokens of a text that are read."""
        return self.encoder.max_tokens - 2

    def vectors(self, texts: Sequence[str], what: str | None = None) -> np.ndarray:
        """Unit vectors of the texts, float32 [N, dim]; an empty text gets the zero vector."""
        return self.vectors_of(self.encoder.tokenize(texts), what)

    def vectors_of(self, tokens: Sequence[np.ndarray], what: str | None = None) -> np.ndarray:
        """The same for texts that are tokens already."""
        encoder = self.encoder
        lengths = np.array([len(text) + 2 for text in tokens], dtype=np.int64)
        filled = np.flatnonzero(lengths > 2)

        def encode(batch: np.ndarray) -> torch.Tensor:
            packed = encoder.framing.pack([tokens[row] for row in filled[batch]]).to(encoder.device)
            return normalize(pool(encoder.hidden(packed), packed, self.pooling).float(), dim=1)

        rows, vectors = [], []
        with Progress(what, len(filled), "texts") as progress:
            for batch, found in encoder.each(encode, lengths[filled]):
                # Results stay on the device until all is queued, so that packing goes on while it computes.
                vectors.append(found)
                rows.append(filled[batch])
                progress.advance(len(batch))
        out = np.zeros((len(tokens), encoder.dimension), dtype=np.float32)
        if rows:
            out[np.concatenate(rows)] = torch.cat(vectors).cpu().numpy()
        return out

    def rank(self, documents: np.ndarray, labels: np.ndarray, candidates: Ranking) -> Ranking:
        """Re-orders the candidates of each document by cosine."""
        return rank_by_cosine(documents, labels, candidates)

    def save(self, folder: Path) -> None:
        """Writes the encoder so that sentence-transformers loads it as it is."""
        self.encoder.save(folder)
        for name, content in sentence_transformers_files(self.encoder, self.pooling).items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def sentence_transformers_files(encoder: Encoder, pooling: str) -> dict[str, Any]:
    """The files that tell sentence-transformers how to pool and where to cut."""
    return {
        "modules.json": [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
            {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
        ],
        "sentence_bert_config.json": {"max_seq_length": encoder.max_tokens, "do_lower_case": False},
        "1_Pooling/config.json": {
            "word_embedding_dimension": encoder.dimension,
            "pooling_mode_cls_token": pooling == "cls",
            "pooling_mode_mean_tokens": pooling == "mean",
        },
    }
