"""Tables of documents (CSV, TSV): rows under a header, with the lines on which they begin."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from micol.files import reading, reason, suffixes
from micol.layout import Problems, RecordError

# A field may be a whole book; Python's own limit is 128 KiB.
LONGEST_FIELD = 1 << 30


def rows(
    path: str | Path, problems: Problems, check_header: Callable[[Sequence[str]], None]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each row by its columns' names; `check_header` sees those before any row is read."""
    csv.field_size_limit(LONGEST_FIELD)
    with reading(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        last = 0
        try:
            first = text.readline()
            table = csv.DictReader(
                chain([first], text) if first else [], delimiter=delimiter(path, first), strict=True
            )
            check_header(table.fieldnames or [])
            last = table.line_num
            for row in table:
                # A row may span lines; it is called by its first.
                number, last = last + 1, table.line_num
                if None in row:
                    problems.add(number, more_than_the_header())
                else:
                    yield number, row
        except csv.Error as error:
            problem = f"not valid CSV from here on ({reason(error)})"
            problems.add(last + 1, RecordError(problem, "repair the file"))
        except UnicodeDecodeError as error:
            problem = f"not UTF-8 from about here on ({error.reason})"
            problems.add(last + 1, RecordError(problem, "convert the file to UTF-8"))


def delimiter(path: str | Path, header: str) -> str:
    """Tabs in a .tsv; commas, or the semicolons that spreadsheets write where a comma is a decimal point."""
    if suffixes(path)[0] == ".tsv":
        return "\t"
    return ";" if ";" in header and "," not in header else ","


def more_than_the_header() -> RecordError:
    return RecordError("the row has more fields than the header", "quote fields that hold commas")
