"""Reading compressed text and writing files that appear whole or not at all."""

from __future__ import annotations

import gzip
import io
import os
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa

from micol.errors import MicolError

STANDARD_INPUT = "-"
CODECS = {".gz": "gzip", ".zst": "zstd"}


def open_bytes(path: str | Path) -> IO[bytes]:
    """Opens a plain, .gz or .zst file (or `-`, standard input) for reading bytes."""
    if str(path) == STANDARD_INPUT:
        return sys.stdin.buffer
    path = Path(path)
    if path.is_dir():
        raise MicolError(f"{path}: is a folder, but a file was expected")
    try:
        if path.suffix == ".gz":
            return cast(IO[bytes], gzip.open(path, "rb"))
        if path.suffix == ".zst":
            # Buffered, for pyarrow's own stream knows no lines.
            native: Any = pa.CompressedInputStream(pa.OSFile(str(path)), "zstd")
            return io.BufferedReader(native, 1 << 20)
        return path.open("rb")
    except (FileNotFoundError, NotADirectoryError):
        raise MicolError(f"{path}: no such file; check the path") from None
    except (OSError, ValueError) as error:
        raise MicolError(
            f"{path}: cannot be opened ({reason(error)}); check the path and its rights"
        ) from error


@contextmanager
def reading(path: str | Path) -> Iterator[IO[bytes]]:
    """Opens a file as `open_bytes` does; damage met while reading it becomes one clear sentence."""
    stream = open_bytes(path)
    try:
        yield stream
    except BrokenPipeError:
        raise  # of what the reader writes to, not of the file
    except (EOFError, OSError, zlib.error, pa.ArrowException) as error:
        raise damaged(path, error) from error
    finally:
        if stream is not sys.stdin.buffer:
            stream.close()


def read_ids(path: str | Path) -> set[str]:
    """Ids, one a line."""
    with reading(path) as stream:
        try:
            lines = stream.read().decode().split("\n")
        except UnicodeDecodeError:
            raise MicolError(f"{path}: not UTF-8; expected one id a line") from None
    ids = {line.strip() for line in lines} - {""}
    if not ids:
        raise MicolError(f"{path}: holds no id; expected one a line")
    return ids


def damaged(path: str | Path, error: Exception) -> MicolError:
    return MicolError(
        f"{path}: cut short or damaged ({reason(error)}); copy, download or compress the file again"
    )


def reason(error: Exception) -> str:
    """An error's own words on one line."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split()) or type(error).__name__


def suffixes(path: str | Path) -> tuple[str, str]:
    """The extension that tells the format, and the one that tells the compression ('' where plain)."""
    path = Path(path)
    packed = path.suffix.lower() if path.suffix.lower() in CODECS else ""
    return (path.with_suffix("") if packed else path).suffix.lower(), packed


@contextmanager
def replacing(path: str | Path, *, durable: bool = True) -> Iterator[Path]:
    """Yields a temporary path beside `path` that takes its place only if the block succeeds.

    A durable file is on the disk, and not on its way there, before it takes its place.
    """
    path = Path(path)
    with told_of(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        if durable:
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
        # mkstemp makes files private; a result is an ordinary file.
        temporary.chmod(0o666 & ~current_umask())
        with told_of(path):
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def told_of(path: Path) -> Iterator[None]:
    """Failures are told of the file that was asked for, not of the temporary one."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


@contextmanager
def writing_bytes(path: str | Path) -> Iterator[IO[bytes]]:
    """A stream into a file that appears whole or not at all, compressed as its name says (.gz, .zst)."""
    with replacing(path) as temporary:
        codec = CODECS.get(Path(path).suffix.lower())
        with pa.output_stream(str(temporary), compression=codec, buffer_size=1 << 20) as stream:
            yield stream


def put_text(text: str, output: str | None) -> None:
    """A result to a file, whole or not at all, or, without one or for `-`, to standard output."""
    if output is None or output == STANDARD_INPUT:
        sys.stdout.write(text)
        return
    with replacing(output) as temporary:
        temporary.write_text(text, encoding="utf-8")


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
