"""JSON Lines into tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from micol.files import open_bytes
from micol.layout import Layout, Problems, RecordError, Rows


def read(path: str | Path, layout: Layout, problems: Problems) -> pa.Table:
    rows = Rows(layout)
    with open_bytes(path) as stream:
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            try:
                rows.add(parsed(line), number)
            except RecordError as bad:
                problems.add(number, bad)
    return rows.table()


def parsed(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise RecordError(
            f"not UTF-8 (byte {error.start + 1} of the line)", "convert the file to UTF-8"
        ) from None
    except (ValueError, RecursionError) as error:
        raise RecordError(f"not valid JSON ({error})", "correct the line") from None
