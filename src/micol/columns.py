"""Operations on whole columns of strings and of lists of strings (pyarrow)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

ROWS_AT_A_TIME = 1 << 10
LARGEST_CHUNK = (1 << 31) - 1  # bytes of the strings in one array


def strings(column: pa.Array | pa.ChunkedArray) -> list[str]:
    """The values as Python strings; far quicker than to_pylist, which makes a scalar object for each."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return [value for chunk in chunks for value in chunk.to_numpy(zero_copy_only=False)]


def empty_strings(n: int) -> pa.StringArray:
    ends = pa.py_buffer(np.zeros(n + 1, dtype=np.int32))
    return pa.StringArray.from_buffers(n, ends, pa.py_buffer(b""))


def row_ends(lists: pa.ListArray) -> np.ndarray:
    """The offsets of a list array as row pointers that start at 0 (int64, rows + 1)."""
    offsets = lists.offsets.to_numpy().astype(np.int64)
    return offsets - offsets[0]


def csr(column: pa.ChunkedArray) -> tuple[np.ndarray, pa.StringArray]:
    """A list column as row pointers (int64, rows + 1) and flat values (large strings beyond 2 GB)."""
    chunks = column.chunks or [pa.array([], column.type)]
    if len(chunks) == 1:
        return row_ends(chunks[0]), chunks[0].flatten()
    lengths = np.concatenate([np.diff(row_ends(chunk)) for chunk in chunks])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    values = [chunk.flatten() for chunk in chunks]
    if sum(map(len, map(string_bytes, values))) > LARGEST_CHUNK:
        values = [part.cast(pa.large_string()) for part in values]
    return indptr, pa.concat_arrays(values)


def list_array(indptr: np.ndarray, values: pa.StringArray) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(indptr.astype(np.int32)), values)


def rows_of_values(indptr: np.ndarray) -> np.ndarray:
    """The row each value of a CSR stands in."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def keep_values(lists: pa.ListArray, keep: np.ndarray) -> pa.ListArray:
    """The lists without the values that are not to be kept."""
    if keep.all():
        return lists
    kept_before = np.concatenate([[0], np.cumsum(keep)])
    return list_array(kept_before[row_ends(lists)], lists.flatten().filter(pa.array(keep)))


def without_empty(lists: pa.ListArray) -> pa.ListArray:
    """The lists without empty strings."""
    return keep_values(lists, pc.binary_length(lists.flatten()).to_numpy(zero_copy_only=False) > 0)


def tidy(lists: pa.ListArray) -> pa.ListArray:
    """The lists without empty strings, and each value of a list once, where it came first."""
    lists = without_empty(lists)
    indptr = row_ends(lists)
    if np.diff(indptr).max(initial=0) < 2:
        return lists
    codes = lists.flatten().dictionary_encode().indices.to_numpy().astype(np.int64)
    keys = rows_of_values(indptr) * (codes.max() + 1) + codes
    in_order = np.sort(keys)
    if (in_order[1:] != in_order[:-1]).all():
        return lists
    order = np.argsort(keys, kind="stable")
    again = np.zeros(len(keys), dtype=bool)
    again[order[1:]] = keys[order[1:]] == keys[order[:-1]]
    return keep_values(lists, ~again)


def either(preferred: pa.Array, substitute: pa.Array) -> pa.Array:
    """Row by row the preferred string or list, or where that is empty its substitute."""
    length = pc.list_value_length if pa.types.is_list(preferred.type) else pc.binary_length
    if not pc.any(pc.greater(length(substitute), 0)).as_py():
        return preferred
    return pc.if_else(pc.equal(length(preferred), 0), substitute, preferred)


def combined(chunks: Sequence[pa.Array], kind: pa.DataType) -> pa.ChunkedArray:
    """One chunk; or, beyond the two gigabytes that a chunk can hold, the chunks as they are."""
    if not chunks:
        return pa.chunked_array([pa.array([], kind)])
    try:
        return pa.chunked_array([pa.concat_arrays(chunks)], kind)
    except pa.ArrowInvalid:
        return pa.chunked_array(chunks, kind)


def concatenated(tables: Iterable[pa.Table], schema: pa.Schema) -> pa.Table:
    """One table with combined chunks; each column's pieces are let go before the next column is made."""
    pieces: list[list[pa.Array]] = [[] for _ in schema]
    for table in tables:
        for chunks, column in zip(pieces, schema, strict=True):
            chunks.extend(table[column.name].chunks)
    columns = []
    for position, column in enumerate(schema):
        columns.append(combined(pieces[position], column.type))
        pieces[position].clear()
    return pa.table(columns, schema)


def taken(table: pa.Table, positions: np.ndarray) -> pa.Table:
    """The rows at these positions, in that order, with combined chunks."""
    if all(column.num_chunks == 1 for column in table.columns):
        return concatenated([table.take(pa.array(positions))], table.schema)
    parts = []
    for start in range(0, len(positions), ROWS_AT_A_TIME):
        rows = positions[start : start + ROWS_AT_A_TIME]
        parts.append(pa.table([taken_from_chunks(column, rows) for column in table.columns], table.schema))
    return concatenated(parts, table.schema)


def taken_from_chunks(column: pa.ChunkedArray, rows: np.ndarray) -> pa.Array:
    """Chunk by chunk: pyarrow itself would first join the chunks, and they may be too large for that."""
    ends = np.cumsum([len(chunk) for chunk in column.chunks])
    chunk_of = np.searchsorted(ends, rows, side="right")
    pieces = [
        chunk.take(pa.array(rows[chunk_of == number] - (ends[number] - len(chunk))))
        for number, chunk in enumerate(column.chunks)
    ]
    place = np.empty(len(rows), dtype=np.int64)
    place[np.argsort(chunk_of, kind="stable")] = np.arange(len(rows))
    return pa.concat_arrays(pieces).take(pa.array(place))


def repeats(ids: pa.ChunkedArray) -> list[tuple[int, int]]:
    """(row, earlier row) for every id that was given before."""
    if len(pc.unique(ids)) == len(ids):
        return []
    first: dict[str, int] = {}
    found = [(row, first.setdefault(value, row)) for row, value in enumerate(strings(ids))]
    return [(row, earlier) for row, earlier in found if earlier < row]


def without_own_id(table: pa.Table, column: str) -> tuple[pa.Table, np.ndarray]:
    """The table without references from a row to itself in one of its list columns, and those rows."""
    indptr, values = csr(table[column])
    rows = rows_of_values(indptr)
    own = pc.equal(values, table["id"].combine_chunks().take(pa.array(rows))).to_numpy(zero_copy_only=False)
    if not own.any():
        return table, rows[own]
    lists = keep_values(list_array(indptr, values), ~own)
    return table.set_column(table.schema.get_field_index(column), column, lists), rows[own]


def fingerprint(table: pa.Table, columns: Iterable[str]) -> str:
    """sha256 over the content of some columns, however it is cut into chunks."""
    digest = hashlib.sha256()
    for name in columns:
        digest.update(f"{name}\n".encode())
        column = table[name]
        if pa.types.is_list(column.type):
            for chunk in column.chunks:
                digest.update(np.diff(row_ends(chunk)).astype("<i8").data)
            chunks = [chunk.flatten() for chunk in column.chunks]
        else:
            chunks = column.chunks
        for chunk in chunks:
            digest.update(pc.binary_length(chunk).to_numpy(zero_copy_only=False).astype("<i8").data)
        for chunk in chunks:
            digest.update(string_bytes(chunk))
    return digest.hexdigest()


def string_bytes(values: pa.StringArray) -> memoryview:
    """The bytes of all values, one after the other, without a copy."""
    _, offsets, data = values.buffers()
    if data is None or not len(values):
        return memoryview(b"")
    ends = np.frombuffer(offsets, dtype=np.int32)[values.offset : values.offset + len(values) + 1]
    return memoryview(data)[ends[0] : ends[-1]]
