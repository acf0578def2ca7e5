"""From one record, as it was found, to the columns of a table: what is legitimate and what is an error."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from micol.errors import MicolError

LINE = "line"  # the column that remembers where in its file a record stood, for messages
STRINGS = pa.list_(pa.string())


class RecordError(Exception):
    """What is wrong with one record, and what to do; whoever knows the place adds it."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem, self.remedy = problem, remedy


@dataclass(frozen=True)
class Layout:
    """What a kind of record consists of: an id, texts, and lists of names or ids."""

    kind: str
    texts: tuple[str, ...]
    lists: tuple[str, ...]
    # Column -> the key it has in the file, where that differs.
    keys: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        return ("id", *self.texts, *self.lists)

    def key(self, column: str) -> str:
        return self.keys.get(column, column)

    @property
    def arrow(self) -> pa.Schema:
        texts = [(column, pa.string()) for column in ("id", *self.texts)]
        return pa.schema([*texts, *((column, STRINGS) for column in self.lists), (LINE, pa.int64())])


class Problems:
    """Stops at the first bad record, or, where bad records are skipped, lists them."""

    def __init__(self, source: str, skip_bad: bool, unit: str = "line") -> None:
        self.source, self.skip_bad, self.unit = source, skip_bad, unit
        self.skipped: list[str] = []

    def place(self, number: int) -> str:
        return f"{self.source}:{number}" if self.unit == "line" else f"{self.source}, {self.unit} {number}"

    def add(self, number: int, bad: RecordError) -> None:
        message = f"{self.place(number)}: {bad.problem}"
        if not self.skip_bad:
            raise MicolError(
                f"{message}; {bad.remedy}, or leave bad records out with --skip-bad (skip_bad=True)"
            )
        self.skipped.append(message)


class Rows:
    """Normalised records on their way into a table."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.columns: dict[str, list[Any]] = {column: [] for column in (*layout.columns, LINE)}

    def add(self, record: Any, number: int) -> None:
        """Adds a record whole, or raises RecordError and adds nothing."""
        layout = self.layout
        if not isinstance(record, Mapping):
            raise RecordError(
                f'expected an object such as {{"id": …}}, got {described(record)}',
                f"write each {layout.kind} as one JSON object on a line of its own",
            )
        values = [as_id(record.get(layout.key("id")), layout)]
        values += [as_text(record.get(layout.key(column)), layout.key(column)) for column in layout.texts]
        lists = [as_list(record.get(layout.key(column)), layout.key(column)) for column in layout.lists]
        for column, value in zip(layout.columns, [*values, *lists], strict=True):
            self.columns[column].append(value)
        self.columns[LINE].append(number)

    def table(self) -> pa.Table:
        schema = self.layout.arrow
        return pa.table(
            [pa.chunked_array([pa.array(self.columns[column.name], column.type)]) for column in schema],
            schema=schema,
        )


def rows_of(records: Iterable[Any], layout: Layout, problems: Problems) -> pa.Table:
    """A table of records that are already in memory, or come one by one from a foreign format."""
    rows = Rows(layout)
    for number, record in enumerate(records, start=1):
        try:
            rows.add(record, number)
        except RecordError as bad:
            problems.add(number, bad)
    return rows.table()


def as_id(value: Any, layout: Layout) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return whole_number(value)
    if value is None or value == "":
        raise RecordError(
            f'the {layout.kind} has no "{layout.key("id")}"', f"give every {layout.kind} an id of its own"
        )
    if not isinstance(value, str):
        raise RecordError(
            f'"{layout.key("id")}" must be a string or a whole number, got {described(value)}',
            "write the id as a string",
        )
    return encodable(value)


def as_text(value: Any, key: str) -> str:
    """A string; a list of strings (paragraphs) is joined; nothing is the empty string."""
    if value is None:
        return ""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        return " ".join(encodable(part) for part in value if part)
    raise RecordError(f'"{key}" must be a string, got {described(value)}', "write it as a string")


def as_list(value: Any, key: str) -> list[str]:
    """Each value once, in order; a single value is a list of one, and nothing an empty list."""
    if value is None:
        return []
    if isinstance(value, str):
        return [encodable(value)] if value else []
    if not isinstance(value, list | tuple):
        value = [value]
    names: dict[str, None] = {}
    for item in value:
        if isinstance(item, str):
            if item:
                names[encodable(item)] = None
        elif isinstance(item, int) and not isinstance(item, bool):
            names[whole_number(item)] = None
        elif item is not None:
            raise RecordError(
                f'"{key}" must be a string or a list of strings, got {described(item)}'
                + (" in the list" if len(value) > 1 else ""),
                "write names or ids as plain strings",
            )
    return list(names)


def whole_number(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # Python refuses to print thousands of digits
        raise RecordError("a number has thousands of digits", "write ids as strings") from None


def encodable(value: str) -> str:
    try:
        # isascii costs nothing; only other text has to be encoded to see that it can be.
        value.isascii() or value.encode()
    except UnicodeEncodeError:
        raise RecordError(
            "a string holds half of a surrogate pair (\\ud800 to \\udfff)", "remove it"
        ) from None
    return value


def described(value: Any) -> str:
    """A value in the words of JSON, short."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "an array"
    if isinstance(value, str):
        return f"the string {json.dumps(value[:30])}"
    if isinstance(value, int | float):
        return (
            f"the number {value!r:.20}" if not isinstance(value, int) or abs(value) < 10**18 else "a number"
        )
    return f"a {type(value).__name__}"


def csr(column: pa.ChunkedArray) -> tuple[np.ndarray, pa.StringArray]:
    """A list column as row pointers (int64, rows + 1) and flat values."""
    lists = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(lists, pa.ChunkedArray):
        lists = pa.concat_arrays(lists.chunks) if lists.num_chunks else pa.array([], column.type)
    offsets = lists.offsets.to_numpy().astype(np.int64)
    return offsets - offsets[0], lists.values.slice(offsets[0], offsets[-1] - offsets[0])
