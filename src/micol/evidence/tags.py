"""Tags of remembered documents: a document that is about a label need not name it.

So weights are learned once without any tags, by which all that is remembered is tagged; then they are learned
again, with the tags of neighbours as evidence. No document's own labels are read.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from micol.evidence.fusion import Fusion, learn
from micol.evidence.gather import Gathered, LabelSide, Read, gather
from micol.evidence.memory import Memory
from micol.progress import track
from micol.settings import AUTO

# Unlabelled documents from which weights are learned, so many at a time.
PRACTICE = 5_000
PORTION = 250
# The odds of what is all but certain: one neighbour does not outvote all others.
MOST_ODDS = 100.0


def tags_of(memory: Memory, side: LabelSide, seed: int, hierarchy: str = AUTO) -> csr_array:
    """[labels, documents]: the odds of the best tags, as many as are likely to be right."""
    practice = [evidence(memory, side, portion) for portion in portions_of(practised(memory, seed))]
    fusion = learn(Gathered.joined(practice), without=["best sentence"], hierarchy=hierarchy)
    odds = odds_of_candidates(fusion, memory, side)
    likely_right = int((odds.data / (1 + odds.data)).sum())
    least = -np.partition(-odds.data, likely_right)[likely_right] if odds.nnz else 0.0
    kept = odds.data >= least
    labels, rows = odds.tocoo().coords
    return csr_array((odds.data[kept], (labels[kept], rows[kept])), shape=odds.shape)


def evidence(memory: Memory, side: LabelSide, portion: np.ndarray) -> Gathered:
    """Documents are known by their own vectors here: to read all their sentences would take many times as
    long.
    """
    documents = [memory.documents[int(position)] for position in portion]
    return gather(documents, Read.whole(memory.wide[portion]), memory, side)


def odds_of_candidates(fusion: Fusion, memory: Memory, side: LabelSide) -> csr_array:
    """[labels, documents], for all candidates of all that is remembered."""
    labels, rows, odds = [], [], []
    portions = portions_of(np.arange(len(memory.documents)))
    for portion in track(portions, "tagging what is remembered", unit="portions"):
        found = evidence(memory, side, portion)
        probable = fusion.probabilities(found.values).astype(np.float64)
        labels.append(found.keys % found.labels)
        rows.append(portion[0] + found.rows)
        odds.append(np.minimum(probable / np.maximum(1 - probable, 1e-9), MOST_ODDS).astype(np.float32))
    places = np.concatenate(labels), np.concatenate(rows)
    return csr_array((np.concatenate(odds), places), shape=(len(side.space), len(memory.documents)))


def practised(memory: Memory, seed: int, most: int = PRACTICE) -> np.ndarray:
    """Positions of the documents that weights are learned from."""
    some: np.ndarray = np.random.default_rng((seed, 8)).permutation(len(memory.documents))[:most]
    return some


def portions_of(positions: np.ndarray) -> list[np.ndarray]:
    return [positions[start : start + PORTION] for start in range(0, len(positions), PORTION)]
