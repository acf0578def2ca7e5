"""Files of records into one checked table, whatever their format."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from micol import columns, jsonl, parquet
from micol.errors import MicolError, UsageError
from micol.files import replacing, suffixes, writing_bytes
from micol.layout import LINE, Layout, Problems, RecordError
from micol.progress import track

JSON_LINES = (".jsonl", ".json", ".ndjson")


class Records:
    """A table whose rows have ids, and where it came from."""

    table: pa.Table
    source: str
    kind: ClassVar[str]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def ids(self) -> list[str]:
        return columns.strings(self.table["id"])

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.ids)}

    def position(self, id: str) -> int:
        """Where the record with this id stands."""
        try:
            return self._positions[id]
        except KeyError:
            raise MicolError(f"{self.source}: no {self.kind} has the id {id!r}; check the id") from None


def is_parquet(path: str | Path) -> bool:
    return suffixes(path)[0] == ".parquet"


def files_of(source: str | Path) -> list[str | Path]:
    """The source itself, or the Parquet files of a folder and of those in it, by name.

    Names that begin with _ or . are no data, as everywhere where tables are folders.
    """
    folder = Path(source)
    if not folder.is_dir():
        return [source]
    found = sorted(path.relative_to(folder) for path in folder.rglob("*.parquet"))
    data = [path for path in found if not any(part.startswith(("_", ".")) for part in path.parts)]
    return [folder / path for path in data] or [source]


def read(path: str | Path, layout: Layout, problems: Problems) -> pa.Table:
    """The records of a JSON Lines or Parquet file: each id once, and at least one of them."""
    pieces = (parquet if is_parquet(path) else jsonl).read(path, layout, problems)
    table = columns.concatenated(pieces, layout.arrow)
    return not_empty(checked(table, layout, problems), layout, problems)


def not_empty(table: pa.Table, layout: Layout, problems: Problems) -> pa.Table:
    if len(table):
        return table
    if problems.skipped:
        what = f"none of its {len(problems.skipped):,} records can be used, the first because of this: "
        raise MicolError(f"{problems.source}: {what}{problems.skipped[0]}")
    example = '{"id": "x1", …}'
    raise MicolError(
        f"{problems.source}: no {layout.kind}s in it; expected one record a line, such as {example}"
    )


def checked(table: pa.Table, layout: Layout, problems: Problems) -> pa.Table:
    """The table without links from a record to itself and without repeated ids, both of them problems."""
    for column in layout.links:
        table, rows = columns.without_own_id(table, column)
        for row in rows:
            key, name = layout.keys(column)[0], table["id"][int(row)].as_py()
            problems.add(
                table[LINE][int(row)].as_py(),
                RecordError(f'"{key}" of {name!r} names the {layout.kind} itself', "take that reference out"),
            )
    return without_repeats([table], layout, [problems])


def without_repeats(tables: Sequence[pa.Table], layout: Layout, problems: Sequence[Problems]) -> pa.Table:
    """One table of all; an id that was given before, in the same file or an earlier one, is a problem."""
    table = tables[0] if len(tables) == 1 else columns.concatenated(tables, layout.arrow)
    repeats = columns.repeats(table["id"])
    if not repeats:
        return table
    first_rows = np.cumsum([0, *map(len, tables)])
    lines = table[LINE].to_numpy()

    def problems_of(row: int) -> Problems:
        return problems[int(np.searchsorted(first_rows, row, side="right")) - 1]

    for row, earlier in repeats:
        name, place = table["id"][row].as_py(), problems_of(earlier).place(lines[earlier])
        error = RecordError(
            f"the id {name!r} was already given at {place}", f"give every {layout.kind} an id of its own"
        )
        problems_of(row).add(int(lines[row]), error)
    keep = np.ones(len(table), dtype=bool)
    keep[[row for row, _ in repeats]] = False
    return table.filter(pa.array(keep)).combine_chunks()


def rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows as dictionaries, made a few at a time."""
    for batch in table.to_batches(max_chunksize=1024):
        yield from batch.to_pylist()


def write(table: pa.Table, path: str | Path, what: str) -> None:
    """Writes .jsonl (also .gz, .zst) or .parquet; lists that are empty are left out of JSON records."""
    kind = suffixes(path)[0]
    if kind == ".parquet":
        with replacing(path) as temporary:
            pq.write_table(table, temporary, compression="zstd")
        return
    if kind not in JSON_LINES:
        raise UsageError(
            f"{path}: cannot tell the format; name the file .jsonl, .jsonl.gz, .jsonl.zst or .parquet"
        )
    with writing_bytes(path) as stream:
        for row in track(rows(table), f"writing {path}", len(table), what):
            record = {name: value for name, value in row.items() if value != []}
            stream.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
