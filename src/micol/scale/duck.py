"""DuckDB: pair mining on one machine, in as much memory as it is given and as much disk as it needs."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from micol.errors import MicolError, UsageError
from micol.files import reason
from micol.scale.engine import FILE, RECORD, Column, Engine, Sizes
from micol.scale.output import replacing_table
from micol.tables import files_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

USABLE = re.compile(r"VARCHAR|ENUM\(.*\)|U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?")
LIST = re.compile(r"(?P<value>.*)\[\d*\]")


class Duck(Engine):
    name = "DuckDB"
    sizes = Sizes(anchors=1_000_000, pairs=4_000_000, instances=50_000_000)

    def __init__(self, connection: DuckDBPyConnection) -> None:
        super().__init__()
        self.connection = connection

    def execute(self, query: str) -> DuckDBPyConnection:
        import duckdb

        try:
            return self.connection.execute(query)
        except duckdb.OutOfMemoryException as error:
            raise MicolError(
                f"DuckDB: {reason(error)}; give it more with --memory-limit, or more disk with --scratch"
            ) from error
        except (duckdb.ConversionException, duckdb.OutOfRangeException) as error:
            raise MicolError(
                "DuckDB: there are more path instances than 63 bits can count; take a shorter path"
            ) from error
        except (duckdb.IOException, duckdb.InvalidInputException) as error:
            raise MicolError(f"DuckDB: {reason(error)}; check the files and the space on the disk") from error

    def read(self, sources: Sequence[str]) -> str:
        files = ", ".join(literal(str(file)) for source in sources for file in files_of(source))
        return self.view(
            "records",
            f"SELECT *, file_row_number + 1 AS {RECORD} FROM read_parquet([{files}], "
            f"filename = '{FILE}', file_row_number = true, union_by_name = true, hive_partitioning = false)",
        )

    def columns(self, table: str) -> dict[str, Column]:
        found = {}
        for name, kind, *_ in self.rows(f"DESCRIBE SELECT * FROM {table}"):
            values = LIST.fullmatch(kind)
            type = values["value"] if values else kind
            usable = USABLE.fullmatch(type) is not None
            found[name] = Column("other" if not usable else "list" if values else "value", type)
        return found

    def view(self, what: str, query: str) -> str:
        name = self.new_name(what)
        self.execute(f"CREATE TEMP VIEW {name} AS {query}")
        return name

    def store(self, table: str, query: str) -> None:
        self.execute(f"CREATE TABLE {table} AS {query}")

    def drop(self, table: str) -> None:
        self.execute(f"DROP TABLE {table}")

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.execute(query).fetchall()

    def writes_folder(self, output: str) -> bool:
        return not output.endswith(".parquet")

    def write(self, query: str, output: str, made_by: dict[str, str]) -> None:
        told = ", ".join(f"{key}: {literal(value)}" for key, value in made_by.items())
        metadata = f", KV_METADATA {{{told}}}" if told else ""
        is_folder = self.writes_folder(output)
        cut = ", FILE_SIZE_BYTES '256MB'" if is_folder else ""
        with replacing_table(output, is_folder=is_folder) as temporary:
            options = f"FORMAT parquet, COMPRESSION zstd{cut}{metadata}"
            self.execute(f"COPY ({query}) TO {literal(str(temporary))} ({options})")

    def quoted(self, column: str) -> str:
        return '"' + column.replace('"', '""') + '"'

    def number(self, digits: str) -> str:
        return f"CAST(concat('0x', {digits}) AS BIGINT)"

    def quotient(self, dividend: str, divisor: str) -> str:
        return f"({dividend} // {divisor})"

    def each(self, values: str) -> str:
        return f"unnest({values})"

    def numbers(self, first: str, last: str) -> str:
        return f"generate_series({first}, {last})"


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def duck(memory_limit: str | None = None, scratch: str | None = None) -> Iterator[Duck]:
    """An engine that puts what its memory does not hold in a folder below `scratch`, which goes with it.

    memory_limit: what DuckDB may take, such as 3GB; four fifths of the machine's by default.
    """
    try:
        import duckdb
    except ModuleNotFoundError:
        raise MicolError(
            "--engine duckdb needs duckdb, which is not installed; pip install 'micol[scale]'"
        ) from None
    if scratch is not None:
        Path(scratch).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="micol-", dir=scratch) as folder:
        # Not in a database file, which packs what it keeps: that takes longer than to mine.
        settings: dict[str, Any] = {"temp_directory": folder, "preserve_insertion_order": "false"}
        with duckdb.connect(config=settings) as connection:
            connection.execute("SET enable_progress_bar = false")  # ours is shown
            if memory_limit is not None:
                set_limit(connection, memory_limit)
            yield Duck(connection)


def set_limit(connection: DuckDBPyConnection, limit: str) -> None:
    import duckdb

    try:
        connection.execute(f"SET memory_limit = {literal(limit)}")
    except duckdb.Error:
        raise UsageError(f"--memory-limit {limit}: expected a size such as 3GB or 500MB") from None
