"""Exact matching: which labels have one of their names in a document, how often, and where first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from micol.compiled import kernel
from micol.errors import MicolError
from micol.ranking import Ranking, by_row_and_label, first_of_each_label, row_bounds, row_numbers
from micol.retrieve.keytable import HASH_START, NOT_FOUND, KeyTable, add, add_beginning, find, hash_on
from micol.retrieve.portions import in_portions, portions
from micol.retrieve.tokens import SPACE, Folded, fold, unit_end


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
        return Ranking.from_entries(row_numbers(self.indptr), self.labels, self.counts, len(self))

    def in_title(self, texts: Sequence[str]) -> np.ndarray:
        """Which entries occur in the first line of their text."""
        title_lengths = np.array([(text + "\n").index("\n") for text in texts], np.int64)
        return self.starts < np.repeat(title_lengths, np.diff(self.indptr))


# What is kept of a name found in folded text.
KEY, FROM, TO = range(3)
# What is kept of a label found in a document; the last two columns serve counting only.
LABEL, COUNT, START, END, NAME, LAST_START, LAST_END = range(7)


class ExactMatcher:
    """Finds every occurrence of many names at once, shorter names within longer ones too."""

    def __init__(self, names: Sequence[Sequence[str]]) -> None:
        if not len(names):
            raise MicolError("the label space has no label, so nothing can be matched; add labels first")
        self.n_labels = len(names)
        self.table, keys = KeyTable.empty(), [np.empty(0, np.int64)]
        for some in portions([name for label_names in names for name in label_names]):
            folded = fold(some)
            self.table = self.table.with_room(folded)
            keys.append(add_names(self.table, folded.codes, folded.kinds, folded.bounds))
        self.table = self.table.trimmed()
        self.owners = owners_of_keys(np.concatenate(keys), [len(label_names) for label_names in names])

    def match(
        self, texts: Sequence[str], allowed: np.ndarray | None = None, threads: int | None = None
    ) -> Matches:
        """All labels named in each text (of those that `allowed`, a mask over labels, admits)."""
        admitted = np.ones(self.n_labels, bool) if allowed is None else np.asarray(allowed, bool)

        def match_some(some: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
            folded = fold(some)
            return count_labels(*self.occurrences(folded), *self.owners, folded.origin, admitted)

        parts = in_portions(match_some, texts, threads)
        sizes = np.concatenate([np.zeros(1, np.int64), *(part_sizes for part_sizes, _ in parts)])
        entries = np.concatenate([np.empty((0, 7), np.int32), *(part_entries for _, part_entries in parts)])
        indptr = np.cumsum(sizes)
        by_label = by_row_and_label(row_numbers(indptr), entries[:, LABEL])
        return Matches(indptr, *(entries[by_label, column] for column in (LABEL, COUNT, START, END, NAME)))

    def occurrences(self, folded: Folded) -> tuple[np.ndarray, np.ndarray]:
        """KEY, FROM and TO of every occurrence of a name in folded texts, and where each text's begin."""
        # There is seldom more than one for two characters.
        found, bounds = np.empty((len(folded.codes) // 2 + 1, 3), np.int64), np.empty_like(folded.bounds)
        while not find_names(self.table, folded.codes, folded.kinds, folded.bounds, found, bounds):
            found = np.empty((2 * len(found), 3), np.int64)
        return found, bounds


def owners_of_keys(keys: np.ndarray, names_of_label: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each key the labels that have it as a name, and which name of theirs it is."""
    label = np.repeat(np.arange(len(names_of_label)), names_of_label)
    name = np.arange(len(keys)) - np.repeat(np.cumsum(names_of_label) - names_of_label, names_of_label)
    order = np.lexsort((name, label, keys))
    order = order[keys[order] != NOT_FOUND]
    keys, label, name = keys[order], label[order], name[order]
    # Two names of a label may fold to the same key; the first of them stands for both.
    first = first_of_each_label(keys, label, adjacent=True)
    bounds = row_bounds(keys[first], int(keys.max(initial=-1)) + 1)
    return bounds, label[first].astype(np.int32), name[first].astype(np.int32)


@kernel
def add_names(table: KeyTable, codes: np.ndarray, kinds: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Adds the names and their beginnings to the table; the key of each name (none for a blank one)."""
    keys = np.full(len(bounds) - 1, NOT_FOUND, np.int64)
    for name in range(len(bounds) - 1):
        start, last = bounds[name], bounds[name + 1] - 1
        while start < last and codes[start] == SPACE:
            start += 1
        while start < last and codes[last - 1] == SPACE:
            last -= 1
        value, at = HASH_START, start
        while at < last:
            end = unit_end(kinds, at)
            value = hash_on(value, codes, at, end)
            if end == last:
                keys[name] = add(table, value, codes, start, end)
            elif codes[end - 1] != SPACE:
                add_beginning(table, value)
            at = end
    return keys


@kernel
def find_names(
    table: KeyTable,
    codes: np.ndarray,
    kinds: np.ndarray,
    bounds: np.ndarray,
    found: np.ndarray,
    found_bounds: np.ndarray,
) -> bool:
    """Writes KEY, FROM and TO of every occurrence of a name into `found`, those of a text by rising start and
    then by rising end, and where each text's begin into `found_bounds`; False if there is no room for all.
    """
    n = 0
    for text in range(len(bounds) - 1):
        found_bounds[text] = n
        start, last = bounds[text], bounds[text + 1] - 1
        while start < last:
            end = unit_end(kinds, start)
            next_start = end
            value = hash_on(HASH_START, codes, start, end)
            # No name begins or ends with a space.
            while codes[start] != SPACE:
                if codes[end - 1] != SPACE:
                    key, begins_longer = find(table, value, codes, start, end)
                    if key != NOT_FOUND:
                        if n == len(found):
                            return False
                        found[n, KEY], found[n, FROM], found[n, TO] = key, start, end
                        n += 1
                    if not begins_longer:
                        break
                if end == last:
                    break
                unit = end
                end = unit_end(kinds, unit)
                value = hash_on(value, codes, unit, end)
            start = next_start
    found_bounds[-1] = n
    return True


@kernel
def count_labels(
    found: np.ndarray,
    found_bounds: np.ndarray,
    owner_bounds: np.ndarray,
    owner_labels: np.ndarray,
    owner_names: np.ndarray,
    origin: np.ndarray,
    admitted: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """How many labels each text names, and for each of them LABEL, COUNT, START, END, NAME."""
    sizes = np.zeros(len(found_bounds) - 1, np.int64)
    capacity = 0
    for i in range(found_bounds[-1]):
        capacity += owner_bounds[found[i, KEY] + 1] - owner_bounds[found[i, KEY]]
    entries = np.empty((capacity, 7), np.int32)
    entry_of = np.full(len(admitted), -1, np.int64)
    n = 0
    for text in range(len(sizes)):
        first_entry = n
        for i in range(found_bounds[text], found_bounds[text + 1]):
            key, start, end = found[i, KEY], found[i, FROM], found[i, TO]
            for owner in range(owner_bounds[key], owner_bounds[key + 1]):
                label = owner_labels[owner]
                if not admitted[label]:
                    continue
                if entry_of[label] < first_entry:
                    entry_of[label] = n
                    entries[n, LABEL], entries[n, COUNT] = label, 0
                    entries[n, LAST_START] = entries[n, LAST_END] = -1
                    n += 1
                entry = entry_of[label]
                if start >= entries[entry, LAST_END]:
                    entries[entry, COUNT] += 1
                    entries[entry, LAST_START] = start
                # Of those that begin at one place the longest, which comes last, is to stand.
                if start == entries[entry, LAST_START]:
                    entries[entry, LAST_END] = end
                    if entries[entry, COUNT] == 1:
                        entries[entry, NAME] = owner_names[owner]
                        entries[entry, START] = origin[start]
                        # A character that folds to several ends where the next begins.
                        following = end
                        while origin[following] == origin[end - 1]:
                            following += 1
                        entries[entry, END] = origin[following]
        sizes[text] = n - first_entry
    return sizes, entries[:n]
