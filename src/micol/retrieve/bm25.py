"""BM25 over label texts, with documents as queries."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

import numpy as np

from micol.compiled import kernel
from micol.errors import MicolError, UsageError
from micol.ranking import Ranking, row_numbers
from micol.retrieve.keytable import HASH_START, NOT_FOUND, KeyTable, add, find, hash_on
from micol.retrieve.portions import in_portions, portions
from micol.retrieve.select import choose_best, in_chunks, unpack_best_first
from micol.retrieve.tokens import fold, next_word

# Texts are searched in portions that can give no more results than this.
ENTRIES_AT_ONCE = 1 << 22


class Index(NamedTuple):
    """The labels that have a word and what it weighs in them, word by word."""

    bounds: np.ndarray  # int64 [words + 1]
    labels: np.ndarray  # uint32, for numba asks of other whole numbers whether they count from the end
    weights: np.ndarray  # float32


class Frequencies(NamedTuple):
    """TF(w, t_l) for the distinct words of each label, and |t_l|."""

    bounds: np.ndarray  # int64 [labels + 1]
    words: np.ndarray  # int32
    counts: np.ndarray  # int32
    lengths: np.ndarray  # int64 [labels]

    @classmethod
    def of(cls, words: np.ndarray, lengths: np.ndarray, n_words: int) -> Frequencies:
        distinct, counts, bounds = count_each(words, np.concatenate([[0], np.cumsum(lengths)]), n_words)
        return cls(bounds, distinct, counts, lengths)


class BM25:
    """score(d, l) = sum over the distinct words w that d and t_l share of
    IDF(w) TF(w, t_l) (k1 + 1) / (TF(w, t_l) + k1 (1 - b + b |t_l| / avgdl)).

    Beyond the paper: with repeats="log" a word that d has n times counts log2(1 + n) times instead of once,
    and `stop_words` (see stop_words.py) are taken out of label texts, so that they never count.
    """

    def __init__(
        self,
        texts: Sequence[str],
        k1: float = 1.5,
        b: float = 0.75,
        *,
        repeats: Literal["once", "log"] = "once",
        stop_words: Collection[str] = (),
    ) -> None:
        if not len(texts):
            raise MicolError("the label space has no label, so nothing can be retrieved; add labels first")
        if repeats not in ("once", "log"):
            raise UsageError(f'repeats must be "once" or "log", got {repeats!r}')
        self.n_labels, self.repeats = len(texts), repeats
        self.vocabulary, frequencies = count_words(texts, stop_words)
        self.index = weigh(frequencies, self.vocabulary.n_keys, k1, b)

    def search(
        self,
        texts: Sequence[str],
        top: int | None = 50,
        threshold: float | None = None,
        allowed: np.ndarray | None = None,
        threads: int | None = None,
    ) -> Ranking:
        """The `top` labels for each text, or all that score above `threshold`, or both limits at once.

        A label that shares no word with a text is never among them. `allowed` is a mask over labels.
        """
        admitted = in_chunks(self.n_labels)
        admitted[:] = 0
        admitted.reshape(-1)[: self.n_labels] = 1 if allowed is None else allowed
        most = self.n_labels if top is None else min(top, self.n_labels)
        above = float(max(threshold or 0, 0))

        def search_some(some: Sequence[str]) -> Ranking:
            folded = fold(some)
            words = find_words(self.vocabulary, folded.codes, folded.kinds, folded.bounds)
            distinct, counts, bounds = count_each(*words, self.vocabulary.n_keys)
            times = np.log2(1.0 + counts) if self.repeats == "log" else np.ones(len(counts))
            return Ranking(*search_index(self.index, distinct, times, bounds, most, above, admitted))

        most_texts = max(1, ENTRIES_AT_ONCE // max(most, 1))
        return Ranking.concatenate(in_portions(search_some, texts, threads, most_texts))


def count_words(texts: Sequence[str], stop_words: Collection[str]) -> tuple[KeyTable, Frequencies]:
    """The words of all texts, and how often each text has which, stop words left out."""
    vocabulary, parts, sizes = KeyTable.empty(), [], []
    for some in portions(texts):
        folded = fold(some)
        vocabulary = vocabulary.with_room(folded)
        words, bounds = add_words(vocabulary, folded.codes, folded.kinds, folded.bounds)
        parts.append(words)
        sizes.append(np.diff(bounds))
    vocabulary, words, lengths = vocabulary.trimmed(), np.concatenate(parts), np.concatenate(sizes)
    if stop_words:
        folded = fold([" ".join(stop_words)])
        stopped, _ = find_words(vocabulary, folded.codes, folded.kinds, folded.bounds)
        kept = ~np.isin(words, stopped)
        labels = np.repeat(np.arange(len(lengths)), lengths)
        words, lengths = words[kept], np.bincount(labels[kept], minlength=len(lengths))
    return vocabulary, Frequencies.of(words, lengths, vocabulary.n_keys)


def weigh(frequencies: Frequencies, n_words: int, k1: float, b: float) -> Index:
    bounds, words, tf, lengths = frequencies
    labels = row_numbers(bounds)
    labels_with = np.bincount(words, minlength=n_words)
    idf = np.log(1 + (len(lengths) - labels_with + 0.5) / (labels_with + 0.5))
    # Labels without a single word have an average length of zero, and nothing to weigh.
    norm = k1 * (1 - b + b * lengths / (lengths.mean() or 1.0))
    weights = idf[words] * tf * (k1 + 1) / (tf + norm[labels])
    word_bounds = np.concatenate([[0], np.cumsum(labels_with)])
    by_word = grouped(words, word_bounds)
    return Index(word_bounds, labels[by_word].astype(np.uint32), weights[by_word].astype(np.float32))


@kernel
def add_words(
    vocabulary: KeyTable, codes: np.ndarray, kinds: np.ndarray, bounds: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The words of each text, which the vocabulary gains, and where each text's begin."""
    words, word_bounds = np.empty(2 * len(codes), np.int32), np.zeros(len(bounds), np.int64)
    n = 0
    for text in range(len(bounds) - 1):
        last = bounds[text + 1] - 1
        start, end, resume = next_word(codes, kinds, bounds[text], last)
        while start < last:
            words[n] = add(vocabulary, hash_on(HASH_START, codes, start, end), codes, start, end)
            n += 1
            start, end, resume = next_word(codes, kinds, resume, last)
        word_bounds[text + 1] = n
    return words[:n], word_bounds


@kernel
def find_words(
    vocabulary: KeyTable, codes: np.ndarray, kinds: np.ndarray, bounds: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The words of each text that the vocabulary has, and where each text's begin."""
    words, word_bounds = np.empty(2 * len(codes), np.int32), np.zeros(len(bounds), np.int64)
    n = 0
    for text in range(len(bounds) - 1):
        last = bounds[text + 1] - 1
        start, end, resume = next_word(codes, kinds, bounds[text], last)
        while start < last:
            word, _ = find(vocabulary, hash_on(HASH_START, codes, start, end), codes, start, end)
            if word != NOT_FOUND:
                words[n] = word
                n += 1
            start, end, resume = next_word(codes, kinds, resume, last)
        word_bounds[text + 1] = n
    return words[:n], word_bounds


@kernel
def count_each(
    words: np.ndarray, bounds: np.ndarray, n_words: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The distinct words of each text with their counts, and where each text's begin."""
    distinct, counts = np.empty(len(words), np.int32), np.zeros(len(words), np.int32)
    distinct_bounds, place_of = np.zeros(len(bounds), np.int64), np.full(n_words, -1, np.int64)
    n = 0
    for text in range(len(bounds) - 1):
        first = n
        for i in range(bounds[text], bounds[text + 1]):
            if place_of[words[i]] < first:
                place_of[words[i]] = n
                distinct[n] = words[i]
                n += 1
            counts[place_of[words[i]]] += 1
        distinct_bounds[text + 1] = n
    return distinct[:n], counts[:n], distinct_bounds


@kernel
def grouped(words: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """The positions of each word in turn, rising; each word's begin at `bounds`."""
    positions, next_of = np.empty(len(words), np.int64), np.empty(len(bounds), np.int64)
    for word in range(len(bounds)):
        next_of[word] = bounds[word]
    for i in range(len(words)):
        positions[next_of[words[i]]] = i
        next_of[words[i]] += 1
    return positions


@kernel
def search_index(
    index: Index,
    words: np.ndarray,
    times: np.ndarray,
    bounds: np.ndarray,
    most: int,
    above: float,
    admitted: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of the `most` best labels that score above `above`: their bounds, labels and scores.

    Each distinct word of a text counts as many times as `times` says (it need not be a whole number).
    `admitted` is 1 for labels that may win and 0 for others, float32 [chunks, CHUNK].
    """
    n_texts = len(bounds) - 1
    indptr = np.zeros(n_texts + 1, np.int64)
    labels, best = np.empty(n_texts * most, np.int32), np.empty(n_texts * most, np.float32)
    heap = np.empty(most, np.int64)
    scores, sums = np.empty_like(admitted), np.empty(admitted.size, np.float64)
    flat_scores, flat_admitted = scores.ravel(), admitted.ravel()
    for text in range(n_texts):
        sums[:] = 0
        for place in range(bounds[text], bounds[text + 1]):
            first, last = index.bounds[words[place]], index.bounds[words[place] + 1]
            having, weights, time = index.labels[first:last], index.weights[first:last], times[place]
            for i in range(len(having)):
                sums[having[i]] += time * weights[i]
        for i in range(len(sums)):
            flat_scores[i] = sums[i] * flat_admitted[i]
        size, start = choose_best(scores, above, 0, heap, 0), indptr[text]
        unpack_best_first(heap[:size], labels[start:], best[start:])
        indptr[text + 1] = start + size
    return indptr, labels[: indptr[-1]], best[: indptr[-1]]
