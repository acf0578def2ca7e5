"""Documents in columns: read from files, checked, selected, written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from micol import jsonl
from micol.errors import MicolError
from micol.files import replacing
from micol.layout import LINE, Layout, Problems, csr, rows_of
from micol.records import Document
from micol.schema import DEFAULT_SCHEMA, Schema

if TYPE_CHECKING:
    from micol.network import Network

Paths = str | Path | Sequence[str | Path]


class Corpus:
    """Documents of one schema, in the order of their files, each id once."""

    def __init__(self, table: pa.Table, schema: Schema, source: str, skipped: Sequence[str] = ()) -> None:
        self.table, self.schema, self.source, self.skipped = table, schema, source, list(skipped)

    @classmethod
    def read(
        cls,
        paths: Paths,
        schema: Schema = DEFAULT_SCHEMA,
        *,
        skip_bad: bool = False,
        text: bool = True,
        cache: bool = True,
    ) -> Corpus:
        """Reads JSON Lines (.jsonl, .gz, .zst, `-`) or Parquet; `text=False` leaves the texts unread."""
        many = [paths] if isinstance(paths, str | Path) else list(paths)
        tables, skipped = [], []
        for path in many:
            problems = Problems(str(path), skip_bad)
            layout = _layout(schema, text)
            if str(path).endswith(".parquet"):
                raw = pq.read_table(path)
                tables.append(rows_of(raw.to_pylist(), layout, problems))
            else:
                tables.append(jsonl.read(path, layout, problems))
            skipped += problems.skipped
        return cls._checked(pa.concat_tables(tables), schema, ", ".join(map(str, many)), skipped)

    @classmethod
    def from_records(
        cls,
        records: Iterable[Mapping[str, Any]],
        schema: Schema = DEFAULT_SCHEMA,
        *,
        source: str = "records",
    ) -> Corpus:
        """A corpus from dictionaries of the same form as the lines of a JSONL file."""
        problems = Problems(source, skip_bad=False, unit="record")
        return cls._checked(rows_of(records, _layout(schema, text=True), problems), schema, source, [])

    @classmethod
    def _checked(cls, table: pa.Table, schema: Schema, source: str, skipped: list[str]) -> Corpus:
        seen: set[str] = set()
        for identifier in table["id"].to_pylist():
            if identifier in seen:
                raise MicolError(
                    f"{source}: the id {identifier!r} is given twice; give each document its own"
                )
            seen.add(identifier)
        abstracts = [
            abstract or text
            for abstract, text in zip(table["abstract"].to_pylist(), table["text"].to_pylist(), strict=True)
        ]
        table = table.set_column(2, "abstract", pa.chunked_array([pa.array(abstracts, pa.string())]))
        return cls(table.drop_columns([LINE, "text"]).combine_chunks(), schema, source, skipped)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getitem__(self, position: int) -> Document:
        if not -len(self) <= position < len(self):
            raise IndexError(f"{self.source}: document {position} of {len(self)}")
        return self._document(self.table.slice(position % len(self), 1).to_pylist()[0])

    def __iter__(self) -> Iterator[Document]:
        for batch in self.table.to_batches(max_chunksize=1024):
            yield from map(self._document, batch.to_pylist())

    def _document(self, row: dict[str, Any]) -> Document:
        metadata = {name: tuple(row[name]) for name in self.schema.fields}
        if row["citations"]:
            metadata["citations"] = tuple(row["citations"])
        return Document(row["id"], row["title"], row["abstract"], metadata, tuple(row["labels"]))

    @cached_property
    def ids(self) -> list[str]:
        return _strings(self.table["id"])

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {identifier: position for position, identifier in enumerate(self.ids)}

    def position(self, identifier: str) -> int:
        try:
            return self._positions[identifier]
        except KeyError:
            raise MicolError(f"{self.source}: no document has the id {identifier!r}; check the id") from None

    def texts(self, positions: Sequence[int] | np.ndarray | None = None) -> list[str]:
        """Title and abstract of each document, as `Document.text` joins them."""
        table = self.table.select(["title", "abstract"])
        if positions is not None:
            table = table.take(pa.array(np.asarray(positions, np.int64)))
        both = zip(_strings(table["title"]), _strings(table["abstract"]), strict=True)
        return [
            f"{title}\n{abstract}" if title and abstract else title or abstract for title, abstract in both
        ]

    @property
    def gold(self) -> list[tuple[str, ...]]:
        """The labels documents came with: for evaluation, and baselines that call themselves supervised."""
        indptr, values = self.lists("labels")
        names = _strings(values)
        return [tuple(names[start:stop]) for start, stop in pairwise(indptr)]

    def lists(self, field: str) -> tuple[np.ndarray, pa.StringArray]:
        """A list field as row pointers (int64, documents + 1) and flat values."""
        return csr(self.table[field])

    def select(self, positions: Sequence[int] | np.ndarray) -> Corpus:
        """The documents at these positions, in that order."""
        rows = pa.array(np.asarray(positions, np.int64))
        return Corpus(self.table.take(rows).combine_chunks(), self.schema, self.source)

    def write(self, path: str | Path) -> None:
        """Writes .jsonl, .jsonl.gz, .jsonl.zst or .parquet."""
        with replacing(path) as temporary:
            if str(path).endswith(".parquet"):
                pq.write_table(self.table, temporary, compression="zstd")
                return
            codec = {".gz": "gzip", ".zst": "zstd"}.get(Path(path).suffix)
            with pa.output_stream(str(temporary), compression=codec) as stream:
                for batch in self.table.to_batches(max_chunksize=1024):
                    for row in batch.to_pylist():
                        stream.write((json.dumps(row, ensure_ascii=False) + "\n").encode())

    @cached_property
    def fingerprint(self) -> str:
        """sha256 over ids, texts and metadata; labels do not count."""
        digest = hashlib.sha256()
        columns = ["id", "title", "abstract", *sorted(self.schema.fields), "citations"]
        for batch in self.table.select(columns).to_batches(max_chunksize=1024):
            for row in batch.to_pylist():
                digest.update((json.dumps(row) + "\n").encode())
        return digest.hexdigest()

    def network(self) -> Network:
        """The heterogeneous network of these documents."""
        from micol.network import Network

        return Network.from_corpus(self)


def _layout(schema: Schema, text: bool) -> Layout:
    return Layout("document", ("title", "abstract", "text"), (*schema.fields, "citations", "labels"))


def _strings(values: pa.ChunkedArray | pa.Array) -> list[str]:
    # Far quicker than to_pylist, which makes a scalar object for each value.
    strings: list[str] = (
        values.to_numpy(zero_copy_only=False).tolist()
        if isinstance(values, pa.Array)
        else (values.to_numpy().tolist())
    )
    return strings
