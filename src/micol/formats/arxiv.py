"""arXiv's metadata snapshot (JSON Lines) -> documents with categories as labels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from micol.formats.arxiv_categories import ARCHIVES, CATEGORIES
from micol.formats.base import Gathered, Imported, Options, Record, document, files, json_lines, squeezed
from micol.layout import RecordError, as_list, as_text, described


def read(sources: Sequence[str | Path], options: Options) -> Imported:
    labels = Gathered()
    return Imported(documents(sources, labels, options), labels)


def documents(sources: Sequence[str | Path], labels: Gathered, options: Options) -> Iterator[Record]:
    for path in files(sources, {".json", ".jsonl"}):
        problems = options.problems(path)
        for number, record in json_lines(path, problems):
            try:
                yield document(
                    as_text(record.get("id"), "id"),
                    title=squeezed(as_text(record.get("title"), "title")),
                    abstract=squeezed(as_text(record.get("abstract"), "abstract")),
                    authors=authors(record.get("authors_parsed")),
                    venue=journal(as_text(record.get("journal-ref"), "journal-ref")),
                    labels=[category(name, labels) for name in categories(record.get("categories"))],
                )
            except RecordError as error:
                problems.add(number, error)


def authors(parsed: Any) -> list[str]:
    """`Last, First` of [last, first, suffix, affiliation …]."""
    if parsed is not None and not isinstance(parsed, list):
        raise RecordError(f'"authors_parsed" must be an array, got {described(parsed)}', "check the format")
    names = []
    for person in parsed or []:
        if not isinstance(person, list):
            raise RecordError(f"an author must be an array, got {described(person)}", "check the format")
        parts = [squeezed(as_text(part, "authors_parsed")) for part in person[:2]]
        names.append(", ".join(filter(None, parts)))
    return names


def journal(reference: str) -> str:
    """The journal's name: what stands before the first number of `Phys.Rev.D76:013009,2007`."""
    return (
        squeezed(re.split(r"\d", reference, maxsplit=1)[0])
        .rstrip(" ,;:([")
        .removesuffix(" vol.")
        .rstrip(" ,")
    )


def categories(value: Any) -> list[str]:
    """`cs.LG stat.ML`, or a list of such."""
    return [name for text in as_list(value, "categories") for name in text.split()]


def category(identifier: str, labels: Gathered) -> str:
    """Gathers a category under its name in arXiv's taxonomy, below its archive where it has one."""
    archive, _, subject = identifier.partition(".")
    parents = [labels.add(archive, ARCHIVES.get(archive, archive), archive)] if subject else []
    name = CATEGORIES.get(identifier) or ARCHIVES.get(identifier, identifier)
    return labels.add(identifier, name, identifier, parents=parents)
