"""Documents of any number, a batch at a time: memory does not grow with the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from micol import jsonl, parquet, tables
from micol.corpus import Corpus, document_layout, finished, is_annif, read_afresh, unit_of
from micol.layout import Layout, Problems
from micol.schema import Schema

BATCH = 1024
# Without metadata: what is left is id, title, abstract and labels.
TEXTS_ONLY = Schema(nodes={}, links={})


def document_batches(
    source: str | Path,
    size: int = BATCH,
    schema: Schema = TEXTS_ONLY,
    *,
    skip_bad: bool = False,
    quiet: bool = False,
) -> Iterator[Corpus]:
    """Yields the documents of a file, or of a folder of Parquet files, in order, at most `size` at a time.

    What was left out under skip_bad is listed in `skipped` of the next batch. That an id comes twice is told
    only where both stand near each other, for no list is kept of all ids.
    """
    layout = document_layout(schema)
    documents = 0
    for file in tables.files_of(source):
        problems, told = Problems(str(file), skip_bad, unit_of(file)), 0
        for table in pieces(file, layout, problems, quiet):
            for start in range(0, len(table), size):
                batch = table.slice(start, size)
                yield Corpus(finished(batch, layout), schema, str(source), problems.skipped[told:])
                told, documents = len(problems.skipped), documents + len(batch)
    if not documents:
        tables.not_empty(layout.arrow.empty_table(), layout, problems)


def pieces(source: str | Path, layout: Layout, problems: Problems, quiet: bool = False) -> Iterator[pa.Table]:
    """The checked records of a file, a block of it at a time."""
    if is_annif(source):
        yield read_afresh(source, layout, problems)
    else:
        reader = parquet if tables.is_parquet(source) else jsonl
        for piece in reader.read(source, layout, problems, quiet=quiet):
            yield tables.checked(piece, layout, problems)
