"""Documents in columns: read from files, checked, selected, written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from micol import columns, tables
from micol.cache import Kept, Place, is_worth_it
from micol.errors import UsageError
from micol.files import STANDARD_INPUT, suffixes
from micol.layout import LINE, Layout, Problems, table_of
from micol.records import Document
from micol.schema import DEFAULT_SCHEMA, Schema

if TYPE_CHECKING:
    from micol.network import Network

TEXTS = ("title", "abstract")
CITATIONS, LABELS = "citations", "labels"
# The original MICoL release calls its fields so; its papers have a `text` instead of title and abstract.
RELEASE_KEYS = {
    "id": "paper",
    "authors": "author",
    "references": "reference",
    CITATIONS: "citation",
    LABELS: "label",
}
Positions = Sequence[int] | np.ndarray


class Corpus(tables.Records):
    """Documents of one schema, in the order of their files, each id once."""

    kind = "document"

    def __init__(self, table: pa.Table, schema: Schema, source: str, skipped: Iterable[str] = ()) -> None:
        self.table, self.schema, self.source = table, schema, source
        # What was left out under skip_bad, one message each: records, or a document's reference to itself.
        self.skipped = list(skipped)

    @classmethod
    def read(
        cls,
        paths: str | Path | Sequence[str | Path],
        schema: Schema = DEFAULT_SCHEMA,
        *,
        skip_bad: bool = False,
        text: bool = True,
        cache: bool = True,
    ) -> Corpus:
        """Reads JSON Lines (plain, .gz, .zst, or `-`: standard input), Parquet (files or folders of them), or
        Annif's .tsv and folders.

        skip_bad: leave bad records out and list them in `skipped`, instead of stopping at the first.
        text: False leaves titles and abstracts unread (they are empty), which is quicker.
        cache: keep the table of a large file in the user's cache folder, and take it from there next time.
        """
        given = [paths] if isinstance(paths, str | Path) else list(paths)
        if not given:
            raise UsageError("no documents to read; give at least one file")
        sources = [file for source in given for file in tables.files_of(source)]
        layout = document_layout(schema, text)
        problems = [Problems(name_of(source), skip_bad, unit_of(source)) for source in sources]
        read = [
            read_source(source, layout, found, cache) for source, found in zip(sources, problems, strict=True)
        ]
        table = read[0] if len(read) == 1 else tables.without_repeats(read, layout, problems)
        skipped = [message for found in problems for message in found.skipped]
        return cls(finished(table, layout), schema, ", ".join(map(name_of, given)), skipped)

    @classmethod
    def from_records(
        cls,
        records: Iterable[Mapping[str, Any]],
        schema: Schema = DEFAULT_SCHEMA,
        *,
        source: str = "records",
    ) -> Corpus:
        """A corpus from dictionaries of the same form as the lines of a JSONL file."""
        layout, problems = document_layout(schema), Problems(source, skip_bad=False, unit="record")
        table = tables.checked(table_of(enumerate(records, start=1), layout, problems), layout, problems)
        return cls(finished(table, layout), schema, source)

    def __getitem__(self, position: int) -> Document:
        if not -len(self) <= position < len(self):
            raise IndexError(f"there are {len(self)} documents, none is number {position}")
        return self._document(self.table.slice(position % len(self), 1).to_pylist()[0])

    def __iter__(self) -> Iterator[Document]:
        return map(self._document, tables.rows(self.table))

    def _document(self, row: dict[str, Any]) -> Document:
        metadata = {name: tuple(row[name]) for name in self.schema.fields}
        if row[CITATIONS]:
            metadata[CITATIONS] = tuple(row[CITATIONS])
        return Document(row["id"], row["title"], row["abstract"], metadata, tuple(row[LABELS]))

    def texts(self, positions: Positions | None = None) -> list[str]:
        """Title and abstract of each document, as `Document.text` joins them."""
        table = self.table.select(TEXTS)
        if positions is not None:
            table = columns.taken(table, np.asarray(positions, dtype=np.int64))
        both = zip(columns.strings(table["title"]), columns.strings(table["abstract"]), strict=True)
        return [
            f"{title}\n{abstract}" if title and abstract else title or abstract for title, abstract in both
        ]

    @property
    def gold(self) -> list[tuple[str, ...]]:
        """The labels documents came with: for evaluation, and baselines that call themselves supervised."""
        indptr, values = self.lists(LABELS)
        names = columns.strings(values)
        return [tuple(names[start:stop]) for start, stop in pairwise(indptr.tolist())]

    def lists(self, field: str) -> tuple[np.ndarray, pa.StringArray]:
        """A list field as row pointers (int64, documents + 1) and flat values."""
        known = (*self.schema.fields, CITATIONS, LABELS)
        if field not in known:
            raise UsageError(f"{field!r} is no field of the schema; the fields are {', '.join(known)}")
        return columns.csr(self.table[field])

    def select(self, positions: Positions) -> Corpus:
        """The documents at these positions, in that order."""
        table = columns.taken(self.table, np.asarray(positions, dtype=np.int64))
        return Corpus(table, self.schema, self.source)

    def write(self, path: str | Path) -> None:
        """Writes .jsonl (also .gz, .zst) or .parquet; the file appears whole or not at all."""
        tables.write(self.table, path, "documents")

    @cached_property
    def fingerprint(self) -> str:
        """sha256 over ids, texts and metadata, the same whatever file they came from; labels do not count."""
        return columns.fingerprint(self.table, ["id", *TEXTS, *sorted(self.schema.fields), CITATIONS])

    def network(self) -> Network:
        """The heterogeneous network of these documents."""
        from micol.network import Network

        return Network.of(self)


def document_layout(schema: Schema, text: bool = True) -> Layout:
    return Layout(
        kind="document",
        texts=TEXTS if text else (),
        lists=(*schema.fields, CITATIONS, LABELS),
        links=(*dict.fromkeys(schema.links.values()), CITATIONS),
        substitutes={"abstract": "text"},
        release_keys=RELEASE_KEYS,
    )


def name_of(source: str | Path) -> str:
    return "standard input" if str(source) == STANDARD_INPUT else str(source)


def unit_of(source: str | Path) -> str:
    """What a place in a file is called in messages."""
    return "record" if tables.is_parquet(source) or is_annif(source) else "line"


def is_annif(source: str | Path) -> bool:
    return Path(source).is_dir() or suffixes(source)[0] in (".tsv", ".csv")


def read_source(source: str | Path, layout: Layout, problems: Problems, cache: bool) -> pa.Table:
    """The checked table of one file, from the cache where it has not changed since."""
    if not cache or str(source) == STANDARD_INPUT or Path(source).is_dir() or not is_worth_it(source):
        return read_afresh(source, layout, problems)
    place = Place(source, layout)
    kept = place.load() or kept_with_texts(source, layout)
    # What was once read with bad records skipped must be read again to stop at the first of them.
    if kept is None or (kept.skipped and not problems.skip_bad):
        kept = Kept(read_afresh(source, layout, problems), problems.skipped)
        place.store(kept)
    problems.skipped = kept.skipped
    return kept.table


def kept_with_texts(source: str | Path, layout: Layout) -> Kept | None:
    """A table kept with its texts serves without them, too, if no record was left out because of them."""
    kept = Place(source, replace(layout, texts=TEXTS)).load()
    if kept is None or kept.skipped:
        return None
    return Kept(kept.table.select(layout.arrow.names), [])


def read_afresh(source: str | Path, layout: Layout, problems: Problems) -> pa.Table:
    if not is_annif(source):
        return tables.read(source, layout, problems)
    from micol.formats import annif

    in_lines = Problems(problems.source, problems.skip_bad)  # that reader counts lines, as they are at hand
    in_lines.skipped = problems.skipped
    records = enumerate(annif.documents(source, problems=in_lines), start=1)
    table = tables.checked(table_of(records, layout, problems), layout, problems)
    return tables.not_empty(table, layout, problems)


def finished(table: pa.Table, layout: Layout) -> pa.Table:
    """The columns every corpus has: texts that were left unread are empty, and lines no longer matter."""
    table = table.drop_columns([LINE])
    for position, name in enumerate(TEXTS, start=1):
        if name not in layout.texts:
            table = table.add_column(position, name, columns.empty_strings(len(table)))
    return table
