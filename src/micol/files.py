"""Reading compressed text and writing files that appear whole or not at all."""

from __future__ import annotations

import gzip
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa

from micol.errors import MicolError


def open_bytes(path: str | Path) -> IO[bytes]:
    """Opens a plain, .gz or .zst file (or `-`, standard input) for reading bytes."""
    if str(path) == "-":
        return sys.stdin.buffer
    path = Path(path)
    if not path.exists():
        raise MicolError(f"{path}: no such file; check the path")
    if path.is_dir():
        raise MicolError(f"{path}: is a folder, but a file was expected")
    if path.suffix == ".gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    if path.suffix == ".zst":
        # Buffered, for pyarrow's own stream knows no lines.
        native: Any = pa.CompressedInputStream(pa.OSFile(str(path)), "zstd")
        return io.BufferedReader(native, 1 << 20)
    return path.open("rb")


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yields a temporary path beside `path` that takes its place only if the block succeeds."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        # mkstemp makes files private; a result is an ordinary file.
        temporary.chmod(0o666 & ~current_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
