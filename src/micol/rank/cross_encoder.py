"""Cross-encoder: one pass over document and label together (Eqs. 5 and 6 of the paper)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from micol.errors import MicolError
from micol.progress import Progress
from micol.rank.encoder import Encoder
from micol.ranking import Ranking

HEAD_FILE = "head.safetensors"


class CrossEncoder:
    """score(d, l) = w . e, where e is the [CLS] vector of `[CLS] d [SEP] t_l [SEP]`."""

    architecture = "cross"

    def __init__(self, encoder: Encoder, head: torch.nn.Linear) -> None:
        self.encoder, self.head = encoder, head

    @classmethod
    def untrained(cls, encoder: Encoder, seed: int) -> CrossEncoder:
        generator = torch.Generator().manual_seed(seed)
        head = torch.nn.Linear(encoder.dimension, 1, bias=False)
        with torch.no_grad():
            head.weight.normal_(0.0, 0.02, generator=generator)
        return cls(encoder, head.to(encoder.device))

    @property
    def text_limit(self) -> int:
        """Tokens of either text: half of the encoder's length each, as in the paper."""
        return (self.encoder.max_tokens - 2 - len(self.encoder.framing.between)) // 2

    def tokenize(self, texts: Sequence[str]) -> list[np.ndarray]:
        return self.encoder.tokenize(texts, self.text_limit)

    def rank(
        self,
        documents: Sequence[np.ndarray],
        labels: Sequence[np.ndarray],
        candidates: Ranking,
        what: str | None = None,
    ) -> Ranking:
        """Re-orders the candidates of each document; documents and labels are token sequences."""
        rows = candidates.rows()
        columns = candidates.labels
        document_lengths = np.array([len(document) for document in documents], dtype=np.int64)
        label_lengths = np.array([len(label) for label in labels], dtype=np.int64)
        lengths = document_lengths[rows] + label_lengths[columns] + 2 + len(self.encoder.framing.between)

        def score(batch: np.ndarray) -> torch.Tensor:
            pairs = [(documents[rows[i]], labels[columns[i]]) for i in batch]
            packed = self.encoder.framing.pack_pairs(pairs).to(self.encoder.device)
            cls_vectors = self.encoder.hidden(packed)[packed.starts[:-1].long()]
            return self.head(cls_vectors.to(self.head.weight.dtype))[:, 0].float()

        order, scores = [], []
        with Progress(what, len(rows), "pairs") as progress:
            for batch, found in self.encoder.each(score, lengths):
                # Results stay on the device until all is queued, so that packing goes on while it computes.
                scores.append(found)
                order.append(batch)
                progress.advance(len(batch))
        flat = np.empty(len(rows), dtype=np.float32)
        if order:
            flat[np.concatenate(order)] = torch.cat(scores).cpu().numpy()
        return Ranking.from_entries(rows, columns, flat, len(candidates))

    def save(self, folder: Path) -> None:
        self.encoder.save(folder)
        save_file({"weight": self.head.weight.detach().float().cpu().contiguous()}, folder / HEAD_FILE)

    @classmethod
    def load_head(cls, encoder: Encoder, folder: Path) -> CrossEncoder:
        path = folder / HEAD_FILE
        if not path.is_file():
            raise MicolError(
                f"{path}: missing, so this is no cross-encoder; copy the model folder again, whole"
            )
        weight = load_file(path)["weight"]
        head = torch.nn.Linear(weight.shape[1], 1, bias=False)
        head.load_state_dict({"weight": weight})
        return cls(encoder, head.to(encoder.device))
