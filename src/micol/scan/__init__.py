"""Plain records of JSON Lines straight into columns; whatever is out of the ordinary is handed back.

An error, an escape in a key, a key given twice: any such line goes back to be judged exactly (`micol.jsonl`).
So a line is taken here only if every byte of it is valid JSON, and with the values the exact way would give.
"""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa

from micol.columns import either
from micol.layout import LINE, Layout
from micol.scan.kernel import ID, LIST, TEXT, scan


class Scratch(threading.local):
    """Room for the values of a block, kept by each thread: fresh memory costs as much as the scan itself."""

    def __init__(self) -> None:
        self.out = np.empty((0, 0), dtype=np.uint8)
        self.ends = np.empty((0, 0), dtype=np.int32)

    def fit(self, columns: int, size: int) -> None:
        """Every value takes two bytes of a block at least, and never grows when it is copied."""
        if self.out.shape[0] < columns or self.out.shape[1] < size:
            self.out = np.empty((columns, size), dtype=np.uint8)
            self.ends = np.zeros((columns, size // 2 + 2), dtype=np.int32)

    def values(self, column: int, n: int) -> pa.StringArray:
        ends = self.ends[column, : n + 1].copy()
        return pa.StringArray.from_buffers(
            n, pa.py_buffer(ends), pa.py_buffer(self.out[column, : ends[-1]].copy())
        )


scratch = Scratch()


def is_utf8(block: bytes) -> bool:
    ends = pa.py_buffer(np.array([0, len(block)], dtype=np.int32))
    whole = pa.Array.from_buffers(pa.binary(), 1, [None, ends, pa.py_buffer(block)])
    try:
        whole.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def scanned(
    block: bytes, first_line: int, n_newlines: int, layout: Layout
) -> tuple[pa.Table, list[tuple[int, bytes]]]:
    """A table of the plain records of a block (UTF-8), and the other lines with their numbers."""
    if not block.endswith(b"\n"):
        block, n_newlines = block + b"\n", n_newlines + 1
    sought = [(column, key) for column in layout.columns for key in layout.keys(column)]
    kinds = np.array([kind_of(column, layout) for column, _ in sought])
    keys = [key.encode() for _, key in sought]
    scratch.fit(len(sought), len(block))
    row_ends = np.zeros((len(sought), n_newlines + 1), dtype=np.int32)
    lines = np.empty(n_newlines, dtype=np.int64)
    returned = np.empty((n_newlines, 3), dtype=np.int64)
    rows, n_returned = scan(
        np.frombuffer(block, dtype=np.uint8),
        np.frombuffer(b"".join(keys), dtype=np.uint8),
        np.cumsum([0, *map(len, keys)]),
        kinds,
        scratch.out,
        scratch.ends,
        row_ends,
        lines,
        returned,
    )
    found: dict[str, pa.Array] = {}
    for number, (column, _) in enumerate(sought):
        values = scratch.values(number, int(row_ends[number, rows]))
        if kinds[number] == LIST:
            values = pa.ListArray.from_arrays(pa.array(row_ends[number, : rows + 1]), values)
        found[column] = either(found[column], values) if column in found else values
    found[LINE] = pa.array(lines[:rows] + first_line)
    others = [(int(line) + first_line, block[start:stop]) for line, start, stop in returned[:n_returned]]
    return pa.table(found, layout.arrow), others


def kind_of(column: str, layout: Layout) -> int:
    return ID if column == "id" else TEXT if column in layout.texts else LIST
