"""MD5, as `micol.rule` needs it: keys of ids, the trials of an anchor, the coefficients of its list."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from micol.compiled import bare, kernel
from micol.kernels.random import int64
from micol.rule import HALF, PRIME

# Of MD5's definition: the sines of whole numbers, and by how much each of its four rounds turns words.
SINES = np.array([int(2**32 * abs(math.sin(step + 1))) for step in range(64)], dtype=np.uint64)
TURNS = np.array([[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]], dtype=np.uint64)
BEGINNING = np.array([0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476], dtype=np.uint64)
MASK, BITS = np.uint64(2**32 - 1), np.uint64(32)
BLOCK, LENGTH_AT = 64, 56  # bytes; where in the last block the length of the text stands
COLON, ZERO_DIGIT = ord(":"), ord("0")
LIST = np.frombuffer(b"list", dtype=np.uint8)


class Hasher(NamedTuple):
    """Memory to hash in: a block of text, the digest so far, and at the end as four big-endian numbers."""

    text: np.ndarray
    words: np.ndarray  # the same block as little-endian numbers
    state: np.ndarray
    digest: np.ndarray


def hasher() -> Hasher:
    text = np.zeros(BLOCK, np.uint8)
    return Hasher(text, text.view("<u4"), np.zeros(4, np.uint64), np.zeros(4, np.int64))


@bare
def turned(number: np.uint64, by: np.uint64) -> np.uint64:
    number &= MASK
    return ((number << by) | (number >> (BITS - by))) & MASK


@bare
def compress(hasher: Hasher) -> None:
    """Takes a block of text into the digest."""
    words, state = hasher.words, hasher.state
    a, b, c, d = state[0], state[1], state[2], state[3]
    for step in range(16):
        mixed = a + ((b & c) | (~b & d)) + SINES[step] + words[step]
        a, d, c, b = d, c, b, b + turned(mixed, TURNS[0, step & 3])
    for step in range(16):
        mixed = a + ((d & b) | (~d & c)) + SINES[16 + step] + words[(5 * step + 1) & 15]
        a, d, c, b = d, c, b, b + turned(mixed, TURNS[1, step & 3])
    for step in range(16):
        mixed = a + (b ^ c ^ d) + SINES[32 + step] + words[(3 * step + 5) & 15]
        a, d, c, b = d, c, b, b + turned(mixed, TURNS[2, step & 3])
    for step in range(16):
        mixed = a + (c ^ (b | (~d & MASK))) + SINES[48 + step] + words[(7 * step) & 15]
        a, d, c, b = d, c, b, b + turned(mixed, TURNS[3, step & 3])
    state[0], state[1] = (state[0] + a) & MASK, (state[1] + b) & MASK
    state[2], state[3] = (state[2] + c) & MASK, (state[3] + d) & MASK


@bare
def restart(hasher: Hasher) -> None:
    for index in range(4):
        hasher.state[index] = BEGINNING[index]


@bare
def finish(hasher: Hasher, filled: int, length: int) -> None:
    """Ends a text of so many bytes, whose last block is filled so far; leaves the digest."""
    text = hasher.text
    text[filled] = 0x80
    for at in range(filled + 1, BLOCK):
        text[at] = 0
    if filled >= LENGTH_AT:
        compress(hasher)
        for at in range(LENGTH_AT):
            text[at] = 0
    bits = np.uint64(length) << np.uint64(3)
    for index in range(8):
        text[LENGTH_AT + index] = np.uint8((bits >> np.uint64(8 * index)) & np.uint64(255))
    compress(hasher)
    for index in range(4):
        state = hasher.state[index]
        hasher.digest[index] = int64(
            ((state & np.uint64(0xFF)) << np.uint64(24))
            | ((state & np.uint64(0xFF00)) << np.uint64(8))
            | ((state >> np.uint64(8)) & np.uint64(0xFF00))
            | (state >> np.uint64(24))
        )


@bare
def first_digits(hasher: Hasher) -> int:
    """The first 15 hexadecimal digits of a digest."""
    return (hasher.digest[0] << 28) | (hasher.digest[1] >> 4)


@bare
def next_digits(hasher: Hasher) -> int:
    """The 15 digits after those."""
    return ((hasher.digest[1] & 15) << 56) | (hasher.digest[2] << 24) | (hasher.digest[3] >> 8)


@bare
def write_number(text: np.ndarray, at: int, number: int) -> int:
    """Writes a number that is not negative in decimal; returns where it ends."""
    digits = int64(1)
    rest = number // 10
    while rest > 0:
        digits += 1
        rest //= 10
    for place in range(at + digits - 1, at - 1, -1):
        text[place] = ZERO_DIGIT + number % 10
        number //= 10
    return at + digits


@bare
def begin_anchor(hasher: Hasher, seed: np.ndarray, key: int) -> int:
    """Writes what all texts of an anchor begin with, which fits one block with what follows; its length."""
    for index in range(len(seed)):
        hasher.text[index] = seed[index]
    hasher.text[len(seed)] = COLON
    end = write_number(hasher.text, int64(len(seed) + 1), key)
    hasher.text[end] = COLON
    return end + 1


@bare
def hash_trial(hasher: Hasher, begin: int, trial: int) -> None:
    end = write_number(hasher.text, begin, trial)
    restart(hasher)
    finish(hasher, end, end)


@bare
def hash_list(hasher: Hasher, begin: int) -> None:
    for index in range(len(LIST)):
        hasher.text[begin + index] = LIST[index]
    restart(hasher)
    finish(hasher, begin + len(LIST), begin + len(LIST))


@bare
def spread(key: int, first: int, second: int, third: int) -> int:
    """The place of a key in an order that three coefficients decide."""
    return (first * (key >> 30) + second * (key & (HALF - 1)) + third) % PRIME


@kernel
def keys_of(offsets: np.ndarray, data: np.ndarray, hasher: Hasher) -> np.ndarray:
    """The key of each name; name i is data[offsets[i] : offsets[i + 1]]."""
    keys = np.empty(len(offsets) - 1, dtype=np.int64)
    for index in range(len(keys)):
        begin, end = offsets[index], offsets[index + 1]
        restart(hasher)
        at = begin
        while end - at >= BLOCK:
            for place in range(BLOCK):
                hasher.text[place] = data[at + place]
            compress(hasher)
            at += BLOCK
        for place in range(end - at):
            hasher.text[place] = data[at + place]
        finish(hasher, end - at, end - begin)
        keys[index] = first_digits(hasher)
    return keys


@kernel
def order_keys(keys: np.ndarray, items: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """For some items, numbers of 64 bits in the order of their places, and of their keys in one place."""
    found = np.empty(len(items), dtype=np.uint64)
    for index in range(len(items)):
        key = keys[items[index]]
        place = spread(key, coefficients[0], coefficients[1], coefficients[2])
        # A place has 31 bits; the highest 33 of the 60 bits of a key tell those in one place apart.
        found[index] = (np.uint64(place) << np.uint64(33)) | np.uint64(key >> 27)
    return found
