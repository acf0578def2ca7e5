"""What a format gave -> docs.jsonl, labels.jsonl and, where there are any, candidates.jsonl."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import IO, Any

from micol.errors import MicolError
from micol.files import writing_bytes
from micol.formats.base import Imported, Options, Record, Seen
from micol.layout import RecordError
from micol.progress import track
from micol.records import Label

# Beyond these there is something to learn from, or to judge by: a document of the right format has some.
TEXT = ("id", "title", "abstract", "text")


def write(imported: Imported, folder: str | Path, options: Options, packing: str = "") -> Counter[str]:
    """Writes all files or none, one record at a time, and counts what was written."""
    folder = Path(folder)
    counts: Counter[str] = Counter()
    are_bare = True
    # The stack closes the files in reverse: the documents appear last, when all else is in place.
    with ExitStack() as stack:
        documents = stack.enter_context(writing_bytes(folder / f"docs.jsonl{packing}"))
        for record in track(distinct(imported.documents, options), "importing", unit="documents"):
            put(record, documents)
            counts["documents"] += 1
            counts["references"] += len(record.get("references", ()))
            are_bare = are_bare and not any(value for field, value in record.items() if field not in TEXT)
        labels = stack.enter_context(writing_bytes(folder / "labels.jsonl"))
        for label in imported.labels:
            put(as_record(label), labels)
            counts["labels"] += 1
        ranked = iter(imported.candidates)
        if (first := next(ranked, None)) is not None:
            candidates = stack.enter_context(writing_bytes(folder / f"candidates.jsonl{packing}"))
            for record in chain([first], ranked):
                put(record, candidates)
                counts["candidates"] += 1
        if not counts:
            raise MicolError("the sources hold neither documents nor labels; check the format and the files")
    if counts["documents"] and are_bare:
        options.notes.append(
            "no document has anything but text, no authors, no venue, no references, no labels, so there is "
            "nothing to learn from; check that the sources are of this format"
        )
    if options.skipped:
        counts["left out"] = len(options.skipped)
    return counts


def distinct(documents: Iterable[Record], options: Options) -> Iterator[Record]:
    """Each document once: a second one of the same id is a bad record."""
    seen = Seen()
    problems = options.problems("the sources", unit="document")
    for number, record in enumerate(documents, start=1):
        if seen.add(record["id"]):
            yield record
        else:
            repeated = RecordError(f"the id {record['id']!r} is given twice", "give each document its own")
            problems.add(number, repeated)


def as_record(label: Label) -> Record:
    return {"id": label.id, "names": label.names, "description": label.description, "parents": label.parents}


def put(record: Any, stream: IO[bytes]) -> None:
    stream.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
