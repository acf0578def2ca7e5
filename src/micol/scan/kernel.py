"""A JSON parser that knows what it looks for: compiled, one pass over the bytes, straight into columns.

Every function starts at a place in the block and answers the place after what it read, or ABSENT. No token
holds a newline and every block ends with one, so no loop can run past the end of the block.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from micol.compiled import inner, kernel

ID, TEXT, LIST = 0, 1, 2
DEEPEST = 64
LONGEST_LIST = 512  # each value is compared with all before it
LONGEST_NUMBER = 4000  # Python's own limit for whole numbers is 4,300 digits
ABSENT = -1
ONE = np.uintp(1)

QUOTE, BACKSLASH, COMMA, COLON, MINUS, ZERO, NEWLINE = (ord(c) for c in '"\\,:-0\n')
OPEN_OBJECT, OPEN_LIST, CLOSE_OBJECT, CLOSE_LIST = (ord(c) for c in "{[}]")
LETTER_U, LETTER_N, LETTER_T, LETTER_F = (ord(c) for c in "untf")

# Bytes that stand for themselves inside a string: all but quote, backslash and control characters.
PLAIN = np.ones(256, dtype=np.bool_)
PLAIN[:32] = PLAIN[QUOTE] = PLAIN[BACKSLASH] = False
# Space inside a line. The newline is none: it ends the line, and with it every loop below.
SPACE = np.zeros(256, dtype=np.bool_)
SPACE[[ord(c) for c in " \t\r"]] = True
DIGIT = np.zeros(256, dtype=np.bool_)
DIGIT[[ord(c) for c in "0123456789"]] = True
# What the byte after a backslash stands for; 0: not a one-letter escape.
ESCAPED = np.zeros(256, dtype=np.uint8)
ESCAPED[[ord(c) for c in '"\\/bfnrt']] = [ord(c) for c in '"\\/\b\f\n\r\t']
HEXADECIMAL = np.full(256, -1, dtype=np.int64)
for _character in "0123456789abcdefABCDEF":
    HEXADECIMAL[ord(_character)] = int(_character, 16)
NULL, TRUE, FALSE = (np.frombuffer(word, dtype=np.uint8) for word in (b"null", b"true", b"false"))

Array = np.ndarray
signed: Any = np.int64


@inner
def after_space(block: Array, at: int) -> int:
    while SPACE[block[at]]:
        at += 1
    return at


@inner
def after_plain(block: Array, at: int) -> int:
    # Unsigned: with a signed index numba asks at every byte whether it counts from the end.
    place = np.uintp(at)
    while PLAIN[block[place]]:
        place += ONE
    return signed(place)


@inner
def copy(block: Array, start: int, stop: int, out: Array, used: int) -> None:
    source, target = np.uintp(start), np.uintp(used)
    for place in range(np.uintp(stop - start)):
        out[target + place] = block[source + place]


@inner
def after_word(block: Array, at: int, word: Array) -> int:
    for letter in word:
        if block[at] != letter:
            return ABSENT
        at += 1
    return at


@inner
def four_digits(block: Array, at: int) -> int:
    """The value of the four hexadecimal digits of a \\u escape."""
    value = 0
    for place in range(4):
        digit = HEXADECIMAL[block[at + place]]
        if digit < 0:
            return ABSENT
        value = value * 16 + digit
    return value


@inner
def after_string(block: Array, at: int) -> int:
    """From the byte after the opening quote to the one after the closing quote."""
    while True:
        at = after_plain(block, at)
        if block[at] == QUOTE:
            return at + 1
        if block[at] != BACKSLASH:
            return ABSENT
        if ESCAPED[block[at + 1]] != 0:
            at += 2
        elif block[at + 1] == LETTER_U and four_digits(block, at + 2) >= 0:
            at += 6
        else:
            return ABSENT


@inner
def after_number(block: Array, at: int) -> int:
    start = at
    if block[at] == MINUS:
        at += 1
    if not DIGIT[block[at]]:
        return ABSENT
    if block[at] == ZERO:
        at += 1
    else:
        while DIGIT[block[at]]:
            at += 1
        if at - start > LONGEST_NUMBER:
            return ABSENT
    if block[at] == ord("."):
        at += 1
        if not DIGIT[block[at]]:
            return ABSENT
        while DIGIT[block[at]]:
            at += 1
    if block[at] == ord("e") or block[at] == ord("E"):
        at += 1
        if block[at] == ord("+") or block[at] == MINUS:
            at += 1
        if not DIGIT[block[at]]:
            return ABSENT
        while DIGIT[block[at]]:
            at += 1
    return at


@inner
def after_scalar(block: Array, at: int) -> int:
    first = block[at]
    if first == QUOTE:
        return after_string(block, at + 1)
    if first == LETTER_N:
        return after_word(block, at, NULL)
    if first == LETTER_T:
        return after_word(block, at, TRUE)
    if first == LETTER_F:
        return after_word(block, at, FALSE)
    return after_number(block, at)


@inner
def after_key(block: Array, at: int) -> int:
    """From the opening quote of a key to the start of its value."""
    if block[at] != QUOTE:
        return ABSENT
    at = after_string(block, at + 1)
    if at < 0:
        return ABSENT
    at = after_space(block, at)
    if block[at] != COLON:
        return ABSENT
    return after_space(block, at + 1)


@inner
def after_value(block: Array, at: int, open_brackets: Array) -> int:
    """Past any value, however nested: the fields nobody asked for must be valid, too."""
    depth = 0
    while True:
        first = block[at]
        if first in (OPEN_OBJECT, OPEN_LIST):
            if depth == DEEPEST:
                return ABSENT
            open_brackets[depth] = first
            at = after_space(block, at + 1)
            if block[at] != first + 2:  # in ASCII a closing bracket stands two after its opening one
                depth += 1
                if first == OPEN_OBJECT:
                    at = after_key(block, at)
                    if at < 0:
                        return ABSENT
                continue
            at += 1
        else:
            at = after_scalar(block, at)
            if at < 0:
                return ABSENT
        # A value is complete: leave the brackets that close here, or go on to the next value.
        while depth > 0:
            at = after_space(block, at)
            if block[at] != open_brackets[depth - 1] + 2:
                break
            depth -= 1
            at += 1
        if depth == 0:
            return at
        if block[at] != COMMA:
            return ABSENT
        at = after_space(block, at + 1)
        if open_brackets[depth - 1] == OPEN_OBJECT:
            at = after_key(block, at)
            if at < 0:
                return ABSENT


@inner
def put_utf8(code: int, out: Array, used: int) -> int:
    if code < 0x80:
        out[used] = code
        return used + 1
    if code < 0x800:
        out[used] = 0xC0 | (code >> 6)
        out[used + 1] = 0x80 | (code & 0x3F)
        return used + 2
    if code < 0x10000:
        out[used] = 0xE0 | (code >> 12)
        out[used + 1] = 0x80 | ((code >> 6) & 0x3F)
        out[used + 2] = 0x80 | (code & 0x3F)
        return used + 3
    out[used] = 0xF0 | (code >> 18)
    out[used + 1] = 0x80 | ((code >> 12) & 0x3F)
    out[used + 2] = 0x80 | ((code >> 6) & 0x3F)
    out[used + 3] = 0x80 | (code & 0x3F)
    return used + 4


@inner
def take_string(block: Array, at: int, out: Array, used: int) -> tuple[int, int]:
    """Copies a string without its escapes; answers where it ended, and the bytes of `out` in use."""
    while True:
        start = at
        at = after_plain(block, at)
        copy(block, start, at, out, used)
        used += at - start
        if block[at] == QUOTE:
            return at + 1, used
        if block[at] != BACKSLASH:
            return ABSENT, used
        letter = ESCAPED[block[at + 1]]
        if letter != 0:
            out[used] = letter
            used += 1
            at += 2
            continue
        if block[at + 1] != LETTER_U:
            return ABSENT, used
        code = four_digits(block, at + 2)
        at += 6
        if code < 0 or 0xDC00 <= code < 0xE000:
            return ABSENT, used
        if 0xD800 <= code < 0xDC00:  # the first half of a character beyond 16 bits
            if block[at] != BACKSLASH or block[at + 1] != LETTER_U:
                return ABSENT, used
            low = four_digits(block, at + 2)
            if low < 0xDC00 or low >= 0xE000:
                return ABSENT, used
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
            at += 6
        used = put_utf8(code, out, used)


@inner
def take_whole_number(block: Array, at: int, out: Array, used: int) -> tuple[int, int]:
    """Copies the digits of a whole number: they are what Python would print, but for -0."""
    start = at
    at = after_number(block, at)
    if at < 0:
        return ABSENT, used
    for place in range(at - start):
        digit = block[start + place]
        if not DIGIT[digit] and digit != MINUS:
            return ABSENT, used
        out[used + place] = digit
    if block[start] == MINUS and block[start + 1] == ZERO:
        return ABSENT, used
    return at, used + at - start


@inner
def take_value(block: Array, at: int, out: Array, ends: Array, values: int, numbers: bool) -> int:
    """One string, or where `numbers` is true one whole number, as value number `values` of its column."""
    used = signed(ends[values])
    if block[at] == QUOTE:
        at, used = take_string(block, at + 1, out, used)
    elif numbers:
        at, used = take_whole_number(block, at, out, used)
    else:
        return ABSENT
    ends[values + 1] = used
    return at


@inner
def is_new(out: Array, ends: Array, first: int, value: int) -> bool:
    """Whether a value is not empty, and not the same as an earlier one of its list."""
    size = ends[value + 1] - ends[value]
    for other in range(first, value):
        if ends[other + 1] - ends[other] == size:
            # Backwards, for ids tend to begin alike.
            place = size - 1
            while place >= 0 and out[ends[other] + place] == out[ends[value] + place]:
                place -= 1
            if place < 0:
                return False
    return size > 0


@inner
def take_list(block: Array, at: int, out: Array, ends: Array, values: int) -> tuple[int, int]:
    """The values of a list, each once, or a single value; null is none. Answers place and values so far."""
    first = values
    is_list = block[at] == OPEN_LIST
    if is_list:
        at = after_space(block, at + 1)
        if block[at] == CLOSE_LIST:
            return at + 1, values
    while True:
        if block[at] == LETTER_N:
            at = after_word(block, at, NULL)
        else:
            at = take_value(block, at, out, ends, values, True)
            if at >= 0 and is_new(out, ends, first, values):
                values += 1
        if at < 0 or not is_list:
            return at, values
        at = after_space(block, at)
        if block[at] == CLOSE_LIST:
            return at + 1, values
        if block[at] != COMMA or values - first > LONGEST_LIST:
            return ABSENT, values
        at = after_space(block, at + 1)


@inner
def column_of(block: Array, start: int, stop: int, keys: Array, key_ends: Array) -> int:
    for column in range(len(key_ends) - 1):
        if key_ends[column + 1] - key_ends[column] == stop - start:
            same = True
            for place in range(stop - start):
                if keys[key_ends[column] + place] != block[start + place]:
                    same = False
                    break
            if same:
                return column
    return -1


@inner
def take_record(
    block: Array,
    at: int,
    keys: Array,
    key_ends: Array,
    kinds: Array,
    out: Array,
    ends: Array,
    values: Array,
    open_brackets: Array,
) -> int:
    """One object into the columns; answers where its line ends."""
    seen = 0
    if block[at] != OPEN_OBJECT:
        return ABSENT
    at = after_space(block, at + 1)
    while True:
        start = at + 1
        if block[at] != QUOTE:
            return ABSENT
        at = after_plain(block, start)
        if block[at] != QUOTE:  # an escape in a key, or no key at all
            return ABSENT
        column = column_of(block, start, at, keys, key_ends)
        at = after_space(block, at + 1)
        if block[at] != COLON:
            return ABSENT
        at = after_space(block, at + 1)
        if column < 0:
            at = after_value(block, at, open_brackets)
        elif (seen >> column) & 1:  # a key given twice
            return ABSENT
        else:
            seen |= 1 << column
            if kinds[column] == LIST:
                at, values[column] = take_list(block, at, out[column], ends[column], values[column])
            elif block[at] == LETTER_N:
                at = after_word(block, at, NULL)
            else:
                at = take_value(block, at, out[column], ends[column], values[column], kinds[column] == ID)
                values[column] += 1
        if at < 0:
            return ABSENT
        at = after_space(block, at)
        if block[at] == CLOSE_OBJECT:
            break
        if block[at] != COMMA:
            return ABSENT
        at = after_space(block, at + 1)
    at = after_space(block, at + 1)
    return at if block[at] == NEWLINE else ABSENT


@kernel
def scan(
    block: Array,
    keys: Array,
    key_ends: Array,
    kinds: Array,
    out: Array,
    ends: Array,
    row_ends: Array,
    lines: Array,
    returned: Array,
) -> tuple[int, int]:
    """Fills the columns from a block that ends with a newline.

    out[c]       bytes of column c's values; value v of it ends at ends[c, v + 1]
    row_ends[c]  the values of row r end at row_ends[c, r + 1]
    lines        the number of each row's line within the block
    returned     (number, start, stop) of each line that is not plain
    """
    values = np.zeros(len(kinds), dtype=np.int64)
    open_brackets = np.zeros(DEEPEST, dtype=np.int64)
    rows = n_returned = line = at = 0
    while at < len(block):
        start = at
        at = after_space(block, at)
        if block[at] != NEWLINE:
            at = take_record(block, at, keys, key_ends, kinds, out, ends, values, open_brackets)
            if at >= 0 and values[0] == rows + 1 and ends[0, rows] < ends[0, rows + 1]:
                for column in range(len(kinds)):
                    if kinds[column] != LIST and values[column] == rows:
                        ends[column, rows + 1] = ends[column, rows]
                        values[column] += 1
                    row_ends[column, rows + 1] = values[column]
                lines[rows] = line
                rows += 1
            else:
                at = start
                while block[at] != NEWLINE:
                    at += 1
                returned[n_returned, 0] = line
                returned[n_returned, 1] = start
                returned[n_returned, 2] = at
                n_returned += 1
                for column in range(len(kinds)):
                    values[column] = row_ends[column, rows]
        at += 1
        line += 1
    return rows, n_returned
