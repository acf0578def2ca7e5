"""Network and meta-path become training pairs (d, d+)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from micol.metapath import MetaPath
from micol.network import Network


class Pairs(NamedTuple):
    """Positions of anchors and of their positives; `exhausted` where no further pair exists."""

    anchor: np.ndarray
    positive: np.ndarray
    exhausted: bool


def draw_pairs(
    network: Network,
    path: MetaPath,
    n: int,
    seed: int = 0,
    method: str = "uniform",
    documents: np.ndarray | None = None,
) -> Pairs:
    """Draws up to n distinct pairs; each positive is uniform over what its anchor reaches."""
    generator = np.random.default_rng(seed)
    positions = np.arange(network.n_documents) if documents is None else np.asarray(documents)
    left: dict[int, list[int]] = {}
    anchors: list[int] = []
    positives: list[int] = []
    order = [int(anchor) for anchor in generator.permutation(positions)]
    while order and len(anchors) < n:
        for anchor in order:
            if len(anchors) == n:
                break
            if anchor not in left:
                left[anchor] = list(generator.permutation(path.reachable_positions(network, anchor)))
            if left[anchor]:
                anchors.append(anchor)
                positives.append(int(left[anchor].pop()))
        order = [anchor for anchor in order if left.get(anchor)]
    exhausted = not any(
        path.reachable_positions(network, a).size if a not in left else left[a] for a in order
    )
    return Pairs(np.array(anchors, dtype=np.int64), np.array(positives, dtype=np.int64), exhausted)
