"""Labels in CSV and TSV: our own columns, and the vocabularies of Annif."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from micol.errors import MicolError
from micol.files import reading, reason, suffixes

OURS = "id, name or names (separated by |), description, parents (separated by |)"
ANNIFS = "uri, label_en"
SEPARATOR = "|"
# A longer field is a forgotten quote. The csv module has one limit, which other readers may have raised.
LONGEST_FIELD = 1 << 17


def labels(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The line number and the record of each label."""
    delimiter = "\t" if suffixes(path)[0] == ".tsv" else ","
    csv.field_size_limit(LONGEST_FIELD)
    with reading(path) as stream:
        lines = csv.reader(io.TextIOWrapper(stream, encoding="utf-8-sig", newline=""), delimiter=delimiter)
        try:
            first = next(lines, None)
            if first is None:
                return
            if delimiter == "\t" and first[:1] and first[0].startswith("<"):
                for cells in chain([first], lines):
                    if any(cells):
                        yield lines.line_num, annif_line(cells)
                return
            header = [cell.strip().lower() for cell in first]
            read = reader_of(path, header)
            for cells in lines:
                if any(cells):
                    yield lines.line_num, read(dict(zip(header, cells)))
        except UnicodeDecodeError as error:
            raise MicolError(f"{path}:{lines.line_num + 1}: not UTF-8; convert the file to UTF-8") from error
        except csv.Error as error:
            raise MicolError(
                f"{path}:{lines.line_num}: not a table that can be read ({reason(error)}); check its quotes"
            ) from error


def reader_of(path: str | Path, header: list[str]) -> Any:
    """The function that reads a line under this header."""
    if "id" in header and {"name", "names"} & set(header):
        return our_line
    languages = [name for name in header if name.startswith("label_")]
    if "uri" in header and languages:
        label = "label_en" if "label_en" in languages else languages[0]
        return lambda cells: annif_line([cells.get("uri", ""), cells.get(label, "")])
    raise MicolError(
        f"{path}:1: expected the columns {OURS}, or Annif's {ANNIFS}, got {', '.join(header)[:200]}; "
        "name the columns in the first line"
    )


def our_line(cells: dict[str, str]) -> dict[str, Any]:
    return {
        "id": cells.get("id", ""),
        "names": [cells.get("name", ""), *parts(cells, "names")],
        "description": cells.get("description", ""),
        "parents": parts(cells, "parents"),
    }


def parts(cells: dict[str, str], column: str) -> list[str]:
    return [part.strip() for part in cells.get(column, "").split(SEPARATOR)]


def annif_line(cells: list[str]) -> dict[str, Any]:
    """A URI, in angle brackets or not, and a name."""
    uri, name = (*cells, "", "")[:2]
    return {"id": uri.strip().removeprefix("<").removesuffix(">"), "names": [name]}
