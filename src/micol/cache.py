"""Tables of large files, kept in the user's cache folder to be mapped into memory the next time."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from micol.files import replacing
from micol.layout import Layout

FORMAT_VERSION = 1
SMALLEST_SOURCE = 4 << 20  # smaller files are read as quickly as found in a cache
LARGEST_CACHE = 10 << 30
SECONDS_A_DAY = 86_400
SKIPPED = b"skipped"


class Kept(NamedTuple):
    """A table as it was read before, and what had been left out of it."""

    table: pa.Table
    skipped: list[str]


class Place:
    """Where the table of a file, in its present state and under a layout, is kept."""

    def __init__(self, source: str | Path, layout: Layout) -> None:
        self.source, self.layout = Path(source), layout
        self.state = state_of(self.source)

    @property
    def file(self) -> Path:
        return folder() / f"{self._source_key}-{key_of(self.state)}-{key_of(self._form)}.arrow"

    @property
    def _source_key(self) -> str:
        return key_of(str(self.source.absolute()))

    @property
    def _form(self) -> list[object]:
        layout = self.layout
        return [FORMAT_VERSION, layout.kind, layout.columns, layout.links, sorted(layout.substitutes.items())]

    def load(self) -> Kept | None:
        """The kept table, its pages read from the disk only when they are looked at."""
        try:
            table = pa.ipc.open_file(pa.memory_map(str(self.file))).read_all()
            validate(table, self.layout.texts)
            skipped = json.loads(table.schema.metadata[SKIPPED])
        except (OSError, pa.ArrowException, ValueError, KeyError, TypeError):
            return None  # never kept, or damaged: the file itself is still there
        if not table.schema.equals(self.layout.arrow):
            return None
        with suppress(OSError):
            self.file.touch()  # the oldest go first when room is needed
        return Kept(table.replace_schema_metadata(None), skipped)

    def store(self, kept: Kept) -> None:
        """Keeps a table; a cache folder that is full or cannot be written is no reason to stop."""
        if self.state is None or state_of(self.source) != self.state:
            return  # the file changed while it was read
        table = kept.table.replace_schema_metadata({SKIPPED: json.dumps(kept.skipped)})
        with suppress(OSError):
            with (
                replacing(self.file, durable=False) as temporary,
                pa.ipc.new_file(str(temporary), table.schema) as writer,
            ):
                writer.write_table(table)
            self._make_room()

    def _make_room(self) -> None:
        """Drops what was kept of earlier states of this file, and the oldest beyond the limit."""
        for leftover in folder().glob(".*.tmp"):  # of a process that was killed while it wrote
            if time.time() - last_use(leftover) > SECONDS_A_DAY:
                leftover.unlink(missing_ok=True)
        current = f"{self._source_key}-{key_of(self.state)}-"
        total = 0
        for file in sorted(folder().glob("*.arrow"), key=last_use, reverse=True):
            total += file.stat().st_size
            is_outdated = file.name.startswith(self._source_key) and not file.name.startswith(current)
            if is_outdated or (total > LARGEST_CACHE and file != self.file):
                total -= file.stat().st_size
                with suppress(OSError):
                    file.unlink()


def validate(table: pa.Table, texts: Collection[str]) -> None:
    """Raises where the parts of a table do not fit together; the bytes of texts are left on the disk."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        for chunk in column.chunks:
            (chunk.view(pa.binary()) if name in texts else chunk).validate(full=True)


def folder() -> Path:
    """$MICOL_CACHE, or micol in the user's cache folder."""
    if own := os.environ.get("MICOL_CACHE"):
        return Path(own) / "tables"
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path(os.path.expanduser("~/.cache"))) / "micol" / "tables"


def is_worth_it(source: str | Path) -> bool:
    state = state_of(Path(source))
    return state is not None and state[0] >= SMALLEST_SOURCE


def state_of(source: Path) -> tuple[int, int] | None:
    """Size and time of last change; None where there is no such file."""
    try:
        found = source.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def last_use(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def key_of(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]
