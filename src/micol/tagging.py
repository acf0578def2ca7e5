"""Documents stream in, suggestions stream out, batch by batch; an interrupted run goes on where it stopped."""

from __future__ import annotations
from micol.files import reading
from micol.errors import MicolError


def read_ids(path: str) -> set[str]:
    """Document ids, one a line."""
    with reading(path) as stream:
        try:
            lines = stream.read().decode().splitlines()
        except UnicodeDecodeError:
            raise MicolError(f"{path}: not UTF-8; expected one document id a line") from None
    return {line.strip() for line in lines} - {""}
