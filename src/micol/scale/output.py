"""Tables on a disk, a file or a folder of files, that appear whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from micol.errors import MicolError
from micol.files import replacing, told_of


@contextmanager
def replacing_table(output: str, *, is_folder: bool) -> Iterator[Path]:
    """A temporary path beside the output that takes its place if the block succeeds."""
    path = Path(output)
    if not is_folder:
        with replacing(path) as temporary:
            yield temporary
        return
    with told_of(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        room = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
    try:
        yield room / "table"
        check_replaceable(path)
        if path.exists():
            path.rename(room / "before")
        (room / "table").rename(path)
    finally:
        shutil.rmtree(room, ignore_errors=True)


def check_replaceable(path: Path) -> None:
    """Parquet, in a file or a folder, makes room for a folder; nothing else does."""
    is_table = all(map(is_part_of_table, path.iterdir() if path.is_dir() else [path]))
    if path.exists() and not is_table:
        raise MicolError(f"{path}: is there already, and is no folder of Parquet files; give another name")


def is_part_of_table(path: Path) -> bool:
    return path.suffix == ".parquet" or path.name.startswith(("_", "."))
