"""From one record, as it was found, to the columns of a table: what is legitimate and what is an error."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from micol.errors import MicolError

# The column that remembers where in its file a record stood, for messages.
LINE = "__line__"
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
    # Lists of ids that may not hold the record's own.
    links: tuple[str, ...] = ()
    # Column -> the key that stands in where the column's own is empty.
    substitutes: Mapping[str, str] = field(default_factory=dict)
    # Column -> its key in the original MICoL release, whose files are read as they are.
    release_keys: Mapping[str, str] = field(default_factory=dict)
    is_release: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return ("id", *self.texts, *self.lists)

    def keys(self, column: str) -> tuple[str, ...]:
        """The keys a column is read from: the first that is not empty counts."""
        own = self.release_keys.get(column, column) if self.is_release else column
        substitute = self.substitutes.get(column, own)
        return (own,) if substitute == own else (own, substitute)

    def suited_to(self, keys: Collection[str]) -> Layout:
        """The same layout under the names that these keys, a file's first ones, call for."""
        is_release = "id" not in keys and self.release_keys.get("id") in keys
        return replace(self, is_release=is_release)

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

    def add(self, number: int, error: RecordError) -> None:
        message = f"{self.place(number)}: {error.problem}"
        if not self.skip_bad:
            raise MicolError(f"{message}; {error.remedy}, or leave bad records out with --skip-bad")
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
        values = [
            as_id(record.get(layout.keys("id")[0]), layout),
            *(first(record, layout.keys(column), as_text) for column in layout.texts),
            *(first(record, layout.keys(column), as_list) for column in layout.lists),
        ]
        for column, value in zip(layout.columns, values, strict=True):
            self.columns[column].append(value)
        self.columns[LINE].append(number)

    def table(self) -> pa.Table:
        schema = self.layout.arrow
        return pa.table([pa.array(self.columns[column.name], column.type) for column in schema], schema)


def table_of(numbered: Iterable[tuple[int, Any]], layout: Layout, problems: Problems) -> pa.Table:
    """A table of records that are in memory already, or come one by one from a foreign format."""
    numbered = iter(numbered)
    beginning = list(islice(numbered, 1))
    if beginning and isinstance(beginning[0][1], Mapping):
        layout = layout.suited_to(beginning[0][1])
    rows = Rows(layout)
    for number, record in chain(beginning, numbered):
        try:
            rows.add(record, number)
        except RecordError as error:
            problems.add(number, error)
    return rows.table()


def first(record: Mapping[str, Any], keys: tuple[str, ...], normalise: Any) -> Any:
    """The first value that is not empty; all are looked at, for all must be right."""
    values = [normalise(record.get(key), key) for key in keys]
    return next(filter(None, values), values[0])


def as_id(value: Any, layout: Layout) -> str:
    key = layout.keys("id")[0]
    if isinstance(value, int) and not isinstance(value, bool):
        return whole_number(value)
    if value is None or value == "":
        raise no_id(layout)
    if not isinstance(value, str):
        raise RecordError(
            f'"{key}" must be a string or a whole number, got {described(value)}', "write the id as a string"
        )
    return encodable(value)


def no_id(layout: Layout) -> RecordError:
    key = layout.keys("id")[0]
    return RecordError(f'the {layout.kind} has no "{key}"', f"give every {layout.kind} an id of its own")


def as_text(value: Any, key: str) -> str:
    """A string; the strings of a list are joined by spaces; nothing is the empty string."""
    if value is None:
        return ""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, list | tuple) and all(part is None or isinstance(part, str) for part in value):
        return " ".join(encodable(part) for part in value if part)
    raise RecordError(f'"{key}" must be a string, got {described(value)}', "write it as a string")


def as_list(value: Any, key: str) -> list[str]:
    """Each value once, in order; a single value is a list of one, and nothing an empty list."""
    names: dict[str, None] = {}
    for item in value if isinstance(value, list | tuple) else [value]:
        if isinstance(item, str):
            names[encodable(item)] = None
        elif isinstance(item, int) and not isinstance(item, bool):
            names[whole_number(item)] = None
        elif item is not None:
            where = " in its list" if isinstance(value, list | tuple) else ""
            raise RecordError(
                f'"{key}" must be a string or a list of strings, got {described(item)}{where}',
                "write its names or ids as plain strings",
            )
    names.pop("", None)
    return list(names)


def whole_number(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # Python refuses to print thousands of digits
        raise RecordError("a number has thousands of digits", "write ids as strings") from None


def encodable(value: str) -> str:
    # isascii costs nothing; only other text has to be encoded to see that it can be.
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise RecordError(
                "a string holds half a character (a lone \\ud800 to \\udfff)", "take it out"
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
        return f"the number {value}" if abs(value) < 1e15 else "a number"
    return f"a {type(value).__name__}"
