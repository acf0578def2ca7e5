"""Debian's index files: stanzas of `Field: value`, packed in any of the ways that apt packs them."""

from __future__ import annotations

import bz2
import io
import lzma
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa

from micol.errors import MicolError
from micol.files import damaged, reading
from micol.layout import Problems, RecordError

Stanza = dict[str, str]


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """As `files.reading`, and .xz, .bz2 and .lz4 besides."""
    if path.suffix not in (".xz", ".bz2", ".lz4"):
        with reading(path) as stream:
            yield stream
        return
    try:
        with unpacked(path) as stream:
            yield stream
    except FileNotFoundError:
        raise MicolError(f"{path}: no such file; check the path") from None
    except (EOFError, OSError, lzma.LZMAError, pa.ArrowException) as error:
        raise damaged(path, error) from error


def unpacked(path: Path) -> IO[bytes]:
    if path.suffix == ".xz":
        return cast(IO[bytes], lzma.open(path))
    if path.suffix == ".bz2":
        return cast(IO[bytes], bz2.open(path))
    native: Any = pa.CompressedInputStream(pa.OSFile(str(path)), "lz4")
    return io.BufferedReader(native, 1 << 20)


def stanzas(path: Path, fields: Collection[str], problems: Problems) -> Iterator[Stanza]:
    """The stanzas of a file, each with those of the wanted fields that it has.

    A value of several lines keeps its line breaks, as in a package's description.
    """
    stanza: Stanza = {}
    current = ""
    with opened(path) as stream:
        for number, raw in enumerate(stream, start=1):
            try:
                line = raw.decode().rstrip("\r\n")
            except UnicodeDecodeError as error:
                problem = f"byte {error.start + 1} of the line is not UTF-8"
                problems.add(number, RecordError(problem, "fetch the file again"))
                continue
            if not line.strip():
                if stanza:
                    yield stanza
                stanza, current = {}, ""
            elif line[0] in " \t":
                if current in stanza:
                    stanza[current] += "\n" + line
            else:
                current, colon, value = line.partition(":")
                if not colon:
                    problem = f"expected `Field: value`, got {line[:40]!r}"
                    problems.add(number, RecordError(problem, "fetch the file again"))
                elif current in fields:
                    stanza[current] = value.strip()
    if stanza:
        yield stanza


def paragraphs(description: str) -> tuple[str, str]:
    """A description's first line, and the rest with a line for each paragraph."""
    title, *rest = description.split("\n")
    found: list[list[str]] = [[]]
    for line in rest:
        if line.strip() == ".":
            found.append([])
        else:
            # Spaces and tabs are layout; a no-break space, where split() would cut as well, is text.
            found[-1] += re.findall(r"[^ \t\r]+", line)
    return title.strip(), "\n".join(" ".join(words) for words in found if words)
