"""Exact matching: which labels have one of their names in a document, how often, and where first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from micol.errors import MicolError
from micol.ranking import Ranking, row_bounds
from micol.retrieve.tokens import fold, is_boundary


@dataclass(frozen=True)
class Matches:
    """For each document the labels it names, by rising label position."""

    indptr: np.ndarray  # int64 [documents + 1]
    labels: np.ndarray  # int32: label position
    counts: np.ndarray  # int32: occurrences of any of its names that do not overlap
    starts: np.ndarray  # int32: where the first occurrence begins in the text as given
    ends: np.ndarray  # int32: where it ends
    names: np.ndarray  # int32: which of the label's names it is

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def ranking(self) -> Ranking:
        """The labels by falling number of occurrences."""
        rows = np.repeat(np.arange(len(self)), np.diff(self.indptr))
        return Ranking.from_entries(rows, self.labels, self.counts, len(self))

    def in_title(self, texts: Sequence[str]) -> np.ndarray:
        """Which entries occur in the first line of their text."""
        title_lengths = np.array([(text + "\n").index("\n") for text in texts], np.int64)
        return self.starts < np.repeat(title_lengths, np.diff(self.indptr))


class ExactMatcher:
    """Finds every occurrence of many names at once, shorter names within longer ones too."""

    def __init__(self, names: Sequence[Sequence[str]]) -> None:
        if not len(names):
            raise MicolError("the label space has no label, so nothing can be matched; add labels first")
        self.n_labels = len(names)
        self.owners: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for label, label_names in enumerate(names):
            for position, name in enumerate(label_names):
                self.owners[fold(name)[0].strip(" ")].append((label, position))
        self.owners.pop("", None)
        self.longest = max(map(len, self.owners), default=0)

    def match(self, texts: Sequence[str], allowed: np.ndarray | None = None) -> Matches:
        """All labels named in each text (of those that `allowed`, a mask over labels, admits)."""
        entries = []
        for row, text in enumerate(texts):
            folded, origin = fold(text)
            for label, (count, start, end, name) in sorted(self.occurrences(folded).items()):
                if allowed is None or allowed[label]:
                    entries.append((row, label, count, origin[start], origin[end], name))
        rows, *columns = np.array(entries, np.int64).reshape(-1, 6).T
        return Matches(row_bounds(rows, len(texts)), *(column.astype(np.int32) for column in columns))

    def occurrences(self, text: str) -> dict[int, tuple[int, int, int, int]]:
        """Label -> (count, first start, first end, name) in folded text."""
        found: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        bounds = [0, *(i for i in range(1, len(text)) if is_boundary(text[i - 1], text[i])), len(text)]
        for first, start in enumerate(bounds):
            for end in bounds[first + 1 :]:
                if end - start > self.longest:
                    break
                for label, name in self.owners.get(text[start:end], ()):
                    found[label].append((start, -end, name))
        return {label: without_overlap(spans) for label, spans in found.items()}


def without_overlap(spans: list[tuple[int, int, int]]) -> tuple[int, int, int, int]:
    """Counts from left to right, the longest at each place first."""
    spans.sort()
    count, last_end = 0, 0
    for start, negative_end, _ in spans:
        if start >= last_end:
            count, last_end = count + 1, -negative_end
    start, negative_end, name = spans[0]
    return count, start, -negative_end, name
