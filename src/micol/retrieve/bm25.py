"""BM25 over label texts, with documents as queries."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from micol.errors import MicolError
from micol.ranking import Ranking
from micol.retrieve.tokens import words


class BM25:
    """score(d, l) = sum over the distinct words w of d and t_l of
    IDF(w) TF(w, t_l) (k1 + 1) / (TF(w, t_l) + k1 (1 - b + b |t_l| / avgdl)).
    """

    def __init__(self, texts: Sequence[str], k1: float = 1.5, b: float = 0.75) -> None:
        if not len(texts):
            raise MicolError("the label space has no label, so nothing can be retrieved; add labels first")
        self.n_labels = len(texts)
        frequencies = [Counter(words(text)) for text in texts]
        lengths = np.array([row.total() for row in frequencies], float)
        average = lengths.mean() or 1.0
        postings = defaultdict(list)
        for label, row in enumerate(frequencies):
            for word, frequency in row.items():
                postings[word].append((label, frequency))
        self.postings: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        for word, pairs in postings.items():
            labels, tf = np.array(pairs, np.int64).T
            idf = np.log(1 + (self.n_labels - len(labels) + 0.5) / (len(labels) + 0.5))
            weights = idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * lengths[labels] / average))
            self.postings[word] = labels, weights

    def search(
        self,
        texts: Sequence[str],
        top: int | None = 50,
        threshold: float | None = None,
        allowed: np.ndarray | None = None,
    ) -> Ranking:
        """The `top` labels for each text, or all that score above `threshold`, or both limits at once."""
        rankings = []
        for text in texts:
            scores = np.zeros(self.n_labels)
            for word in set(words(text)):
                if word in self.postings:
                    labels, weights = self.postings[word]
                    scores[labels] += weights
            if allowed is not None:
                scores[~allowed] = 0.0
            found = np.flatnonzero(scores > max(threshold or 0.0, 0.0))
            ranking = Ranking.from_entries(np.zeros(len(found), np.int64), found, scores[found], 1)
            rankings.append(ranking if top is None else ranking.top(top))
        return Ranking.concatenate(rankings)
