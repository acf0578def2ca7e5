"""Any table of documents (CSV, TSV) -> documents, by a mapping of fields to columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from micol.errors import MicolError, UsageError
from micol.files import suffixes
from micol.formats.annif import vocabulary
from micol.formats.base import Gathered, Imported, Options, Record, distinct, files, name_of, squeezed
from micol.formats.rows import rows
from micol.layout import RecordError, encodable
from micol.records import Label

TABLES = (".csv", ".tsv", ".txt")
TEXTS = ("title", "abstract", "text")
# Beside the separator in use, what a table may have meant to separate values by.
OTHER_SEPARATORS = (";", "|", ",")


def read(sources: Sequence[str | Path], options: Options) -> Imported:
    """`options.labels` names the vocabulary; else labels are gathered from the column `labels`."""
    if not options.separator:
        raise UsageError("--separator must not be empty; give what stands between two values of a cell")
    if options.labels is None:
        gathered = Gathered()
        return Imported(documents(sources, Known(None, gathered), options), gathered)
    described = vocabulary(options.labels, options)
    return Imported(documents(sources, Known(described, Gathered()), options), described)


class Known:
    """Finds labels by id or by any of their names, in a vocabulary where there is one."""

    def __init__(self, labels: Sequence[Label] | None, gathered: Gathered) -> None:
        self.gathered, self.unknown = gathered, Counter[str]()
        self._ids: dict[str, str] | None = None
        if labels is not None:
            names = {
                name.casefold(): label.id for label in reversed(labels) for name in reversed(label.names)
            }
            self._ids = {**names, **{label.id: label.id for label in labels}}

    def id_of(self, text: str) -> str:
        """'' where the vocabulary does not know it."""
        if self._ids is None:
            return self.gathered.add(text)
        found = self._ids.get(text) or self._ids.get(text.casefold(), "")
        if not found:
            self.unknown[text] += 1
        return found


def documents(sources: Sequence[str | Path], labels: Known, options: Options) -> Iterator[Record]:
    separated: Counter[tuple[str, str]] = Counter()
    for path in files(sources, {".csv", ".tsv"}):
        if suffixes(path)[0] not in TABLES:
            raise MicolError(
                f"{path}: expected a table that ends in .csv or .tsv; save a spreadsheet as CSV first"
            )
        problems = options.problems(path)

        def check_header(header: Sequence[str], path: Path = path) -> None:
            check(path, header, options.columns)

        for number, row in rows(path, problems, check_header):
            try:
                yield document_of(
                    renamed(row, options.columns), f"{name_of(path)}:{number}", labels, options, separated
                )
            except RecordError as error:
                problems.add(number, error)
    if labels.unknown:
        (example, _), count = labels.unknown.most_common(1)[0], len(labels.unknown)
        options.notes.append(f"{count} labels, such as {example!r}, are not in the vocabulary: left out")
    options.notes.extend(mistaken(separated, options.separator))


def check(path: Path, header: Sequence[str], columns: Mapping[str, str]) -> None:
    """A column that is asked for must be there, and there must be something to read."""
    there = f"the columns are {', '.join(header)[:200]}"
    for field, column in columns.items():
        if column not in header:
            raise UsageError(f"{path}:1: no column {column!r} for --column {field}={column}; {there}")
    if not {*TEXTS} & {*columns, *header}:
        raise UsageError(
            f"{path}:1: no column title, abstract or text; say which one has the text, such as "
            f"--column text=NAME; {there}"
        )


def renamed(row: dict[str, Any], columns: Mapping[str, str]) -> dict[str, str]:
    """The cells by the names of fields; columns that no field asks for keep their own."""
    asked = set(columns.values())
    kept = {column: cell for column, cell in row.items() if column not in asked and column not in columns}
    found = {**kept, **{field: row[column] for field, column in columns.items()}}
    return {field: (cell or "").strip() for field, cell in found.items() if field}


def document_of(
    cells: dict[str, str],
    otherwise: str,
    labels: Known,
    options: Options,
    separated: Counter[tuple[str, str]],
) -> Record:
    """Texts as they are; every other field is a list of values, which a schema may name as metadata."""
    record: Record = {"id": encodable(cells.pop("id", "") or otherwise)}
    for field in TEXTS:
        if text := squeezed(cells.pop(field, "")):
            record[field] = encodable(text)
    given = values(cells.pop("labels", ""), options.separator)
    for field, cell in cells.items():
        if cell:
            record[encodable(field)] = distinct(values(cell, options.separator))
            separated.update((field, mark) for mark in (options.separator, *OTHER_SEPARATORS) if mark in cell)
    for field in ("references", "citations"):
        if field in record:
            record[field] = [target for target in record[field] if target != record["id"]]
    record["labels"] = distinct(map(labels.id_of, given))
    return record


def values(cell: str, separator: str) -> list[str]:
    return [part.strip() for part in cell.split(separator) if part.strip()]


def mistaken(separated: Counter[tuple[str, str]], separator: str) -> Iterator[str]:
    """Fields that the separator never divides, while another mark would divide them often."""
    for field in sorted({field for field, _ in separated}):
        if separated[field, separator]:
            continue
        for mark in OTHER_SEPARATORS[:2]:
            if mark != separator and separated[field, mark] > 1:
                yield (
                    f"no {field} holds {separator!r}, but {separated[field, mark]:,} hold {mark!r}; if that "
                    f"separates values, import again with --separator '{mark}'"
                )
