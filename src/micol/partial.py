"""A result that grows batch by batch beside its later name, so that an interrupted run can go on.

`OUT.partial` holds the finished batches, `OUT.partial.journal` a line of JSON for each of them, after a first
line that says what the run was begun with. A batch counts only once its line in the journal is whole and on
the disk, so whatever a crash leaves behind it is cut off.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from micol.errors import MicolError
from micol.files import reason, suffixes, writing_bytes


class PartialFile:
    """The finished part of an output; open it with `partial_file`."""

    def __init__(self, output: Path, data: IO[bytes], journal: IO[bytes]) -> None:
        self.output, self.data, self.journal = output, data, journal
        # What was told with the last finished batch; empty at the beginning.
        self.state: dict[str, Any] = {}

    def append(self, content: bytes, state: Mapping[str, Any]) -> None:
        """Adds a batch, and what has to be known to go on after it."""
        try:
            self._write(self.data, content)
            line = json.dumps({"bytes": os.fstat(self.data.fileno()).st_size, "state": state})
            self._write(self.journal, f"{line}\n".encode())
        except OSError as error:
            raise MicolError(
                f"{self.data.name}: could not be written ({reason(error)}); free disk space, then run the "
                "same command again: it goes on from here"
            ) from error
        self.state = dict(state)

    @staticmethod
    def _write(file: IO[bytes], content: bytes) -> None:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(file.fileno(), rest) :]
        os.fsync(file.fileno())

    def take(self, begun_with: Mapping[str, Any]) -> None:
        """Goes on after the last batch that is whole, or begins."""
        lines = whole_lines(self.journal)
        size = os.fstat(self.data.fileno()).st_size
        batches = [(end, batch) for end, batch in lines[1:] if batch["bytes"] <= size]
        if not batches:
            self._keep(0, 0)
            self._write(self.journal, json.dumps(begun_with).encode() + b"\n")
            return
        check_same(self.data.name, lines[0][1], begun_with, f"remove it and {self.journal.name}")
        end, last = batches[-1]
        self._keep(last["bytes"], end)
        self.state = last["state"]

    def _keep(self, data: int, journal: int) -> None:
        """Cuts off what a crash has left behind the last whole batch."""
        self.data.truncate(data)
        self.journal.truncate(journal)

    def finish(self) -> None:
        """Puts the whole output in its place."""
        if suffixes(self.output)[1]:
            self.data.seek(0)
            with writing_bytes(self.output) as stream:
                shutil.copyfileobj(self.data, stream, 1 << 20)
            os.unlink(self.data.name)
        else:
            os.replace(self.data.name, self.output)
        os.unlink(self.journal.name)


def check_same(place: str, before: Mapping[str, Any], now: Mapping[str, Any], remedy: str) -> None:
    """What was begun can be gone on with only by the same request; `remedy` is how to start afresh."""
    for name, value in json.loads(json.dumps(now)).items():
        if before.get(name) != value:
            raise MicolError(
                f"{place}: was begun with another {name} ({shown(before.get(name))}; now {shown(value)}); "
                f"go on with what it was begun with, or {remedy} to start afresh"
            )


@contextmanager
def partial_file(output: str | Path, begun_with: Mapping[str, Any]) -> Iterator[PartialFile]:
    """An output to which batches are appended; with the block's end it takes its name."""
    path = Path(output)
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        opened(path.with_name(f"{path.name}.partial")) as data,
        opened(path.with_name(f"{path.name}.partial.journal")) as journal,
    ):
        partial = PartialFile(path, data, journal)
        partial.take(begun_with)
        yield partial
        partial.finish()


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """For reading and appending, by this process alone; nothing waits in a buffer to fail later."""
    with path.open("a+b", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise MicolError(
                f"{path}: another process is writing it; wait for it, or choose another output"
            ) from None
        yield file


def whole_lines(journal: IO[bytes]) -> list[tuple[int, dict[str, Any]]]:
    """The journal up to where a crash has left it damaged: where each line ends, and what it says."""
    lines: list[tuple[int, dict[str, Any]]] = []
    journal.seek(0)
    end = 0
    for line in journal.read().splitlines(keepends=True):
        end += len(line)
        try:
            record = json.loads(line)
        except ValueError:
            break
        if not line.endswith(b"\n") or not isinstance(record, dict):
            break
        lines.append((end, record))
    return lines


def shown(value: Any) -> str:
    text = str(value) if not isinstance(value, str) else value
    return text if len(text) <= 60 else f"{text[:12]}…"
