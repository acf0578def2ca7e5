"""What all formats have in common: options, results, files, lines, documents."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from micol.errors import MicolError
from micol.files import STANDARD_INPUT, reading, suffixes
from micol.jsonl import BYTE_ORDER_MARK, MAX_LINE_BYTES, loaded, too_long
from micol.layout import Problems, RecordError, described, encodable
from micol.records import Label

Record = dict[str, Any]


@dataclass
class Options:
    """What a user may say about an import, and what the import has to say to the user."""

    # Which labels (openalex), or the file that describes them (the others).
    labels: str | None = None
    min_score: float = 0.0
    language: str = "en"
    # csv: field of a document -> column of the table, and what stands between several values of a cell.
    columns: Mapping[str, str] = field(default_factory=dict)
    separator: str = "|"
    # debian: the suite whose lists apt-get shall fetch first.
    fetch: str | None = None
    skip_bad: bool = False
    # One message for each record left out.
    skipped: list[str] = field(default_factory=list)
    # What the user should know about the result.
    notes: list[str] = field(default_factory=list)

    def problems(self, source: str | Path, unit: str = "line") -> Problems:
        """Judges the records of one file; what is left out of any file is listed together."""
        problems = Problems(str(source), self.skip_bad, unit)
        problems.skipped = self.skipped
        return problems


class Imported(NamedTuple):
    """What a format gives; labels are asked for after the documents, from which they may be gathered."""

    documents: Iterable[Record]
    labels: Iterable[Label]
    candidates: Iterable[Record] = ()


class Gathered:
    """Labels as they come by in documents: the first description of each counts."""

    def __init__(self) -> None:
        self._labels: dict[str, Label] = {}

    def add(self, identifier: str, *names: str, description: str = "", parents: Sequence[str] = ()) -> str:
        if not identifier:
            raise RecordError("a label has no id", "give it one")
        if identifier not in self._labels:
            known = tuple(dict.fromkeys(name for name in names if name)) or (identifier,)
            self._labels[identifier] = Label(identifier, known, description, tuple(parents))
        return identifier

    def __contains__(self, identifier: str) -> bool:
        return identifier in self._labels

    def __iter__(self) -> Iterator[Label]:
        return iter(self._labels.values())


class Seen:
    """Which ids came by, in some twenty bytes an id, so that a file's length hardly shows in memory.

    Ids are told apart by 64 bits of BLAKE2: among ten million ids, the chance that any two are mixed up
    is below one in a hundred thousand.
    """

    def __init__(self) -> None:
        self._sorted = np.empty(0, np.uint64)
        self._recent: set[int] = set()

    def add(self, identifier: str) -> bool:
        """Whether the id is new."""
        key = int.from_bytes(hashlib.blake2b(identifier.encode(), digest_size=8).digest(), "little")
        place = int(np.searchsorted(self._sorted, np.uint64(key)))
        if key in self._recent or (place < len(self._sorted) and int(self._sorted[place]) == key):
            return False
        self._recent.add(key)
        # Merging ever larger sets keeps the total work linear.
        if len(self._recent) > max(1 << 16, len(self._sorted) // 8):
            recent = np.fromiter(self._recent, np.uint64, len(self._recent))
            self._sorted = np.sort(np.concatenate([self._sorted, recent]))
            self._recent = set()
        return True


def files(sources: Sequence[str | Path], extensions: Collection[str]) -> list[Path]:
    """The files among the sources; a folder stands for all files in it, at any depth, of these extensions."""
    found: list[Path] = []
    for source in map(Path, sources):
        if source.is_dir():
            inside = sorted(
                path for path in source.rglob("*") if suffixes(path)[0] in extensions and path.is_file()
            )
            if not inside:
                raise MicolError(
                    f"{source}: no file in this folder ends in {' or '.join(sorted(extensions))} "
                    "(packed or not); name the files themselves"
                )
            found += inside
        else:
            found.append(source)
    return found


def raw_lines(path: str | Path, problems: Problems) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers, one at a time."""
    with reading(path) as stream:
        number = 0
        while line := stream.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(line) > MAX_LINE_BYTES:
                problems.add(number, too_long())
                while line and not line.endswith(b"\n"):
                    line = stream.readline(MAX_LINE_BYTES)
                continue
            yield number, line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line


def lines(path: str | Path, problems: Problems) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 text file with their numbers, one at a time."""
    for number, line in raw_lines(path, problems):
        try:
            yield number, line.decode().rstrip("\r\n")
        except UnicodeDecodeError as error:
            problem = f"byte {error.start + 1} of the line is not UTF-8"
            problems.add(number, RecordError(problem, "convert the file to UTF-8"))


def json_lines(path: str | Path, problems: Problems) -> Iterator[tuple[int, Record]]:
    """The objects of a JSON Lines file with their line numbers, one at a time."""
    for number, line in raw_lines(path, problems):
        if line.strip():
            try:
                yield number, as_object(loaded(line), "the line")
            except RecordError as error:
                problems.add(number, error)


def as_object(value: Any, what: str) -> Record:
    """A JSON object, or the error that says that it is none; nothing is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise RecordError(f"{what} must be an object, got {described(value)}", "check the file's format")
    return value


def as_objects(value: Any, what: str) -> list[Record]:
    """A JSON array of objects; nothing is an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise RecordError(f"{what} must be an array, got {described(value)}", "check the file's format")
    return [as_object(item, f"an item of {what}") for item in value]


def squeezed(text: str) -> str:
    """The text on one line, with single spaces."""
    return " ".join(text.split())


def document(
    identifier: str,
    *,
    title: str = "",
    abstract: str = "",
    authors: Iterable[str] = (),
    venue: str = "",
    references: Iterable[str] = (),
    labels: Iterable[str] = (),
) -> Record:
    """A document in our own format; each author, reference and label once, and no reference to itself."""
    if not identifier:
        raise RecordError("the document has no id", "give it one")
    record: Record = {
        "id": encodable(identifier),
        "title": encodable(title),
        "abstract": encodable(abstract),
        "authors": distinct(authors),
    }
    if venue:
        record["venue"] = encodable(venue)
    record["references"] = [target for target in distinct(references) if target != identifier]
    record["labels"] = distinct(labels)
    return record


def distinct(values: Iterable[str]) -> list[str]:
    return [encodable(value) for value in dict.fromkeys(values) if value]


def name_of(source: str | Path) -> str:
    """A file's name, packed or not: the first part of the ids of documents that have none."""
    if str(source) == STANDARD_INPUT:
        return "document"
    return Path(source).name.removesuffix(suffixes(source)[1])
