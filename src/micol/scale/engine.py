"""What pair mining asks of a relational engine; DuckDB on one machine and Spark on many provide it.

All queries of mining are one text for both. What the two spell differently is in the few methods here that
return a piece of SQL.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Literal, NamedTuple

from micol.progress import Progress
from micol.rule import HALF, KEY_DIGITS, PRIME

# The columns that tell where a record stands.
FILE, RECORD = "__file__", "__record__"
Kind = Literal["value", "list", "other"]


class Column(NamedTuple):
    """What a column holds: strings or whole numbers, lists of them, or something that cannot be used."""

    kind: Kind
    type: str  # of the values, as the engine calls it


class Sizes(NamedTuple):
    """How much is done at once; they cost or save time and memory, and never change a pair."""

    anchors: int  # that are drawn for together
    pairs: int  # that are drawn together, where an anchor is drawn for many times
    instances: int  # of paths that are listed together


class Engine(ABC):
    """Runs queries, and keeps what they give."""

    name: ClassVar[str]
    sizes: Sizes

    def __init__(self) -> None:
        self.made = 0
        self.open: list[list[str]] = [[]]
        self.progress = Progress(None)

    def new_name(self, what: str) -> str:
        self.made += 1
        return f"{what}_{self.made}"

    def keep(self, what: str, query: str) -> str:
        """The rows of a query as a table, computed now and never again; its name.

        A kept table is also a wall for the optimiser: no join in it is put off until after a larger one.
        """
        table = self.new_name(what)
        self.store(table, query)
        self.open[-1].append(table)
        self.progress.advance()
        return table

    @contextmanager
    def scope(self) -> Iterator[list[str]]:
        """Tables kept in the block are dropped at its end, but for those put on the list it is given."""
        self.open.append([])
        kept: list[str] = []
        try:
            yield kept
        finally:
            for table in self.open.pop():
                if table in kept:
                    self.open[-1].append(table)
                else:
                    self.drop(table)

    def key(self, id: str) -> str:
        """The key of a document."""
        return self.number(f"substr(md5({id}), 1, {KEY_DIGITS})")

    def spread(self, key: str, coefficients: Sequence[str]) -> str:
        """The place of a key in an order that three coefficients decide."""
        first, second, third = coefficients
        return (
            f"(({first} * {self.quotient(key, str(HALF))} + {second} * ({key} % {HALF}) + {third}) % {PRIME})"
        )

    def count(self, table: str) -> int:
        return int(self.rows(f"SELECT count(*) FROM {table}")[0][0])

    @abstractmethod
    def read(self, sources: Sequence[str]) -> str:
        """Parquet files, or folders of them, as a view with FILE and RECORD (from 1)."""

    @abstractmethod
    def columns(self, table: str) -> dict[str, Column]:
        """What each column holds."""

    @abstractmethod
    def view(self, what: str, query: str) -> str:
        """A name for the rows of a query, which is computed whenever it is used."""

    @abstractmethod
    def store(self, table: str, query: str) -> None: ...

    @abstractmethod
    def drop(self, table: str) -> None: ...

    @abstractmethod
    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The few rows of a query."""

    @abstractmethod
    def writes_folder(self, output: str) -> bool:
        """Whether an output of this name becomes a folder of files."""

    @abstractmethod
    def write(self, query: str, output: str, made_by: dict[str, str]) -> None:
        """The rows of a query, in its order, as Parquet that appears whole or not at all."""

    # What is spelt differently.

    @abstractmethod
    def quoted(self, column: str) -> str: ...

    @abstractmethod
    def number(self, digits: str) -> str:
        """The whole number that up to 15 hexadecimal digits stand for."""

    @abstractmethod
    def quotient(self, dividend: str, divisor: str) -> str:
        """Division of whole numbers, rounded down."""

    @abstractmethod
    def each(self, values: str) -> str:
        """A row for each value of a list."""

    @abstractmethod
    def numbers(self, first: str, last: str) -> str:
        """The list of whole numbers from first to last."""
