"""A hash table from stretches of folded text to whole numbers, for the compiled loops.

Open addressing with linear probing. A slot holds the hash of a stretch and a payload: the number of the key
that it is (or none), and whether it begins a longer key. Keys are compared in full, so equal hashes never
pass for equal texts; a beginning is known by its hash alone, which can only make a search look further.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from micol.compiled import inlined, inner, kernel
from micol.retrieve.tokens import Folded

HASH_START = np.uint64(0xCBF29CE484222325)
HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)
NOT_FOUND = np.int64(-1)
# In a payload; the rest of it is the key's number plus one, or zero.
USED, BEGINS_LONGER, FLAG_BITS = np.uint64(1), np.uint64(2), np.uint64(2)
HASH, PAYLOAD = 0, 1


class KeyTable(NamedTuple):
    """The loops that add to a table do not make room in it: see `with_room`."""

    slots: np.ndarray  # uint64 [a power of two, 2]: hash and payload; at most half of them are used
    used: np.ndarray  # int64 [2]: slots used, keys
    bounds: np.ndarray  # int64: where each key begins in `codes`
    codes: np.ndarray  # uint32: the keys one after another

    @classmethod
    def empty(cls) -> KeyTable:
        slots, codes = np.zeros((2, 2), np.uint64), np.empty(0, np.uint32)
        return cls(slots, np.zeros(2, np.int64), np.zeros(1, np.int64), codes)

    @property
    def n_keys(self) -> int:
        return int(self.used[1])

    def with_room(self, folded: Folded) -> KeyTable:
        """A table with room for all words, or for all names and beginnings of names, of these texts."""
        more = len(folded.codes)
        slots = self.in_slots(max(len(self.slots), slots_for(self.used[0] + more)))
        bounds = with_length(self.bounds, self.n_keys + more + 1)
        # Words of scripts without spaces overlap by half.
        return KeyTable(slots, self.used, bounds, with_length(self.codes, bounds[self.n_keys] + 2 * more))

    def trimmed(self) -> KeyTable:
        """The table in no more memory than it needs, where it finds faster."""
        bounds = self.bounds[: self.n_keys + 1].copy()
        slots = self.in_slots(slots_for(self.used[0]))
        return KeyTable(slots, self.used, bounds, self.codes[: bounds[-1]].copy())

    def in_slots(self, n: int) -> np.ndarray:
        if n == len(self.slots):
            return self.slots
        slots = np.zeros((n, 2), np.uint64)
        copy_slots(self.slots, slots)
        return slots


def slots_for(used: int) -> int:
    return 2 << int(used).bit_length()


def with_length(values: np.ndarray, needed: int) -> np.ndarray:
    """The values in an array at least so long; it doubles, so that steady growth costs little."""
    if needed <= len(values):
        return values
    longer = np.empty(max(needed, 2 * len(values)), values.dtype)
    longer[: len(values)] = values
    return longer


@kernel
def copy_slots(old: np.ndarray, new: np.ndarray) -> None:
    for i in range(len(old)):
        if old[i, PAYLOAD]:
            slot = first_slot(new, old[i, HASH])
            while new[slot, PAYLOAD]:
                slot = next_slot(new, slot)
            new[slot, HASH], new[slot, PAYLOAD] = old[i, HASH], old[i, PAYLOAD]


@inlined
def first_slot(slots: np.ndarray, value: np.uint64) -> np.uint64:
    # The high bits of a product are the well mixed ones; this brings them down to where the mask looks.
    return (value ^ (value >> np.uint64(32))) & np.uint64(len(slots) - 1)


@inlined
def next_slot(slots: np.ndarray, slot: np.uint64) -> np.uint64:
    return (slot + np.uint64(1)) & np.uint64(len(slots) - 1)


@inlined
def hash_on(value: np.uint64, codes: np.ndarray, start: int, end: int) -> np.uint64:
    """The hash of a stretch that goes on from one with hash `value`."""
    for i in range(start, end):
        value = (value ^ np.uint64(codes[i])) * HASH_FACTOR
    return value


@inlined
def find(table: KeyTable, value: np.uint64, codes: np.ndarray, start: int, end: int) -> tuple[np.int64, bool]:
    """Number of the key codes[start:end], which has this hash, or NOT_FOUND; and whether it begins others."""
    slots = table.slots
    key, begins_longer = NOT_FOUND, False
    slot = first_slot(slots, value)
    while slots[slot, PAYLOAD]:
        if slots[slot, HASH] == value:
            payload = slots[slot, PAYLOAD]
            begins_longer |= payload & BEGINS_LONGER != 0
            number = np.int64(payload >> FLAG_BITS) - 1
            if number >= 0 and is_key(table, number, codes, start, end):
                key = number
        slot = next_slot(slots, slot)
    return key, begins_longer


@inlined
def is_key(table: KeyTable, number: np.int64, codes: np.ndarray, start: int, end: int) -> bool:
    first = table.bounds[number]
    same = table.bounds[number + 1] - first == end - start
    i = 0
    while same and i < end - start:
        same = table.codes[first + i] == codes[start + i]
        i += 1
    return same


@inner
def add(table: KeyTable, value: np.uint64, codes: np.ndarray, start: int, end: int) -> np.int64:
    """Number of the key codes[start:end], which has this hash; it is added if need be."""
    key, _ = find(table, value, codes, start, end)
    if key == NOT_FOUND:
        key = table.used[1]
        first = table.bounds[key]
        for i in range(end - start):
            table.codes[first + i] = codes[start + i]
        table.bounds[key + 1] = first + end - start
        table.used[1] += 1
        slots = table.slots
        slot = first_slot(slots, value)
        # The slot of a mere beginning with the same hash serves, even if by a freak it is another text's.
        while slots[slot, PAYLOAD] and (slots[slot, HASH] != value or slots[slot, PAYLOAD] >> FLAG_BITS):
            slot = next_slot(slots, slot)
        note(table, slot, value, USED | (np.uint64(key + 1) << FLAG_BITS))
    return key


@inner
def add_beginning(table: KeyTable, value: np.uint64) -> None:
    """Notes that longer keys begin with the stretch of this hash."""
    slots = table.slots
    slot = first_slot(slots, value)
    while slots[slot, PAYLOAD] and slots[slot, HASH] != value:
        slot = next_slot(slots, slot)
    note(table, slot, value, USED | BEGINS_LONGER)


@inlined
def note(table: KeyTable, slot: np.uint64, value: np.uint64, payload: np.uint64) -> None:
    if not table.slots[slot, PAYLOAD]:
        table.used[0] += 1
    table.slots[slot, HASH] = value
    table.slots[slot, PAYLOAD] |= payload
