"""Parquet into tables of the same form that JSON Lines give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from micol.columns import either, list_array, tidy, without_empty
from micol.errors import MicolError
from micol.files import damaged, open_bytes
from micol.layout import LINE, Layout, Problems, no_id
from micol.progress import Progress

ROWS_AT_A_TIME = 1 << 16


def read(
    path: str | Path,
    layout: Layout,
    problems: Problems,
    *,
    quiet: bool = False,
    rows: range | None = None,
) -> Iterator[pa.Table]:
    """The records of a file as tables, in order; what is wrong with others goes to `problems`.

    quiet: without progress, where reading is not what takes the time.
    rows: only these, counted from 0; row groups without any of them stay unread.
    """
    what = None if quiet else f"reading {path}"
    open_bytes(path).close()  # says in plain words if it cannot be opened
    try:
        file = pq.ParquetFile(path, memory_map=True)
        layout = layout.suited_to(file.schema_arrow.names)
        sought = {key for column in layout.columns for key in layout.keys(column)}
        present = [name for name in file.schema_arrow.names if name in sought]
        wanted = range(file.metadata.num_rows) if rows is None else rows
        with Progress(what, len(wanted), f"{layout.kind}s") as progress:
            for first, batch in batches(file, wanted, present):
                yield canonical(batch, first + 1, layout, problems)
                progress.advance(len(batch))
    except (OSError, pa.ArrowException) as error:
        raise damaged(path, error) from error


def batches(
    file: pq.ParquetFile, rows: range, columns: Sequence[str]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of a range, and where each batch of them begins."""
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    ends = np.cumsum(sizes, dtype=np.int64)
    groups = np.flatnonzero((ends > rows.start) & (ends - sizes < rows.stop)).tolist()
    if not groups:
        return
    at = int(ends[groups[0]]) - sizes[groups[0]]
    for batch in file.iter_batches(ROWS_AT_A_TIME, row_groups=groups, columns=list(columns)):
        first, last = max(rows.start, at), min(rows.stop, at + len(batch))
        if first < last:
            yield first, batch.slice(first - at, last - first)
        at += len(batch)
        if at >= rows.stop:
            return


def canonical(batch: pa.RecordBatch, first_number: int, layout: Layout, problems: Problems) -> pa.Table:
    """The columns of the layout, without nulls, from whatever columns the file has."""
    found: dict[str, pa.Array] = {}
    for column in layout.columns:
        for key in layout.keys(column):
            raw = batch.column(key) if key in batch.schema.names else pa.nulls(len(batch))
            try:
                values = lists(raw) if column in layout.lists else texts(raw, numbers=column == "id")
            except TypeError:
                raise wrong_type(problems.source, key, raw.type, column, layout) from None
            found[column] = either(found[column], values) if column in found else values
    found[LINE] = pa.array(np.arange(first_number, first_number + len(batch)))
    table = pa.table(found, layout.arrow)
    missing = pc.equal(table["id"], "")
    for number in table[LINE].filter(missing).to_pylist():
        problems.add(number, no_id(layout))
    return table.filter(pc.invert(missing))


def texts(column: pa.Array, numbers: bool) -> pa.StringArray:
    """Strings, and where `numbers` is true whole numbers; null is the empty string."""
    if is_list(column.type) and not numbers:
        parts = pc.fill_null(plain(pc.list_flatten(column), numbers), "")
        return pc.binary_join(without_empty(list_array(ends_of(column), parts)), " ")
    return pc.fill_null(plain(column, numbers), "")


def lists(column: pa.Array) -> pa.ListArray:
    """Lists of strings; a single value is a list of one, and null an empty list."""
    if is_list(column.type):
        values = plain(pc.list_flatten(column), numbers=True)
        return tidy(list_array(ends_of(column), pc.fill_null(values, "")))
    values = plain(column, numbers=True)
    return tidy(list_array(np.arange(len(values) + 1), pc.fill_null(values, "")))


def is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def ends_of(column: pa.Array) -> np.ndarray:
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def plain(values: pa.Array, numbers: bool) -> pa.StringArray:
    """A column of scalars as strings, nulls kept."""
    if isinstance(values, pa.DictionaryArray):
        values = values.dictionary_decode()
    kind = values.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    if not (pa.types.is_null(kind) or is_text or is_bytes or (numbers and pa.types.is_integer(kind))):
        raise TypeError(kind)
    values = values.cast(pa.string())
    values.validate(full=True)  # a file may claim to hold UTF-8 and not do so
    return values


def wrong_type(source: str, key: str, kind: pa.DataType, column: str, layout: Layout) -> MicolError:
    expected = "strings or lists of strings" if column in layout.lists else "strings"
    return MicolError(
        f'{source}: column "{key}" must hold {expected}, got {kind}; write its values as strings'
    )
