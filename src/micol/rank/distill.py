"""What a cross-encoder learns from: candidate labels, weighed by a bi-encoder and by exact matches.

Random documents are too easy a contrast for a cross-encoder, and documents are not what it will rank. So it
is set in front of its later task: a document and its candidate labels. Which of them to prefer says a
teacher, the bi-encoder's cosine plus a bonus for labels whose name the document contains. No label
of any document is read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from micol.errors import MicolError
from micol.labels import LabelSpace
from micol.rank.bi_encoder import BiEncoder
from micol.ranking import Ranking
from micol.retrieve import BM25, ExactMatcher, retrieve
from micol.settings import Settings

EXACT_MATCH_BONUS = 2.0
TEACHER_TEMPERATURE = 0.5


def teacher_lists(
    teacher: BiEncoder, texts: Sequence[str], labels: LabelSpace, settings: Settings
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Document numbers, for each a list of candidate labels, and how much of the preference each gets."""
    found = retrieve(
        texts, exact=ExactMatcher(labels.names), bm25=BM25(labels.texts()), bm25_top=settings.bm25_top
    )
    cosines = teacher.rank(
        teacher.vectors(texts, "teacher reads documents"), teacher.vectors(labels.texts()), found.candidates
    )
    assert found.exact is not None
    scored = with_exact_bonus(cosines, found.exact.ranking())
    generator = np.random.default_rng((settings.seed, 4))
    size = min(settings.negatives + 1, int(np.diff(scored.indptr).max(initial=0)))
    if size < 2:
        raise MicolError(
            "no document has two candidate labels, so there is nothing to rank; check the labels' names and "
            "descriptions, or train with --teacher none"
        )
    documents, lists, targets = [], [], []
    for document in range(len(scored)):
        positions, scores = scored.row(document)
        if len(positions) < size:
            continue
        # Half of a list are the teacher's favourites, whose order matters most, half come from the rest.
        favourites = np.arange(size // 2)
        rest = size // 2 + generator.choice(len(positions) - size // 2, size - size // 2, replace=False)
        chosen = np.concatenate([favourites, rest])
        weights = np.exp((scores[chosen] - scores[0]) / TEACHER_TEMPERATURE)
        documents.append(document)
        lists.append(positions[chosen])
        targets.append(weights / weights.sum())
    return np.array(documents), np.array(lists), np.array(targets, dtype=np.float32)


def with_exact_bonus(cosines: Ranking, exact: Ranking) -> Ranking:
    """Cosines standardised within each document, plus a bonus for the labels that it names."""
    rows = cosines.rows()
    counts = np.maximum(np.diff(cosines.indptr), 1)
    means = np.bincount(rows, cosines.scores, len(cosines)) / counts
    variances = np.bincount(rows, cosines.scores.astype(float) ** 2, len(cosines)) / counts - means**2
    scores = (cosines.scores - means[rows]) / np.sqrt(np.maximum(variances, 1e-8))[rows]
    labels = int(max(cosines.labels.max(initial=0), exact.labels.max(initial=0))) + 1
    named = np.isin(rows * labels + cosines.labels, exact.rows() * labels + exact.labels)
    return Ranking.from_entries(rows, cosines.labels, scores + EXACT_MATCH_BONUS * named, len(cosines))
