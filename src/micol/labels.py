"""Labels in columns: names, descriptions and their place in a hierarchy."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from micol import jsonl
from micol.errors import MicolError
from micol.files import replacing
from micol.layout import Layout, Problems
from micol.records import Label

LAYOUT = Layout("label", ("description",), ("names", "name", "parents"))


class LabelSpace:
    """Labels in the order of their file, each id once."""

    def __init__(self, labels: list[Label], source: str, skipped: Iterable[str] = ()) -> None:
        self._labels, self.source, self.skipped = labels, source, list(skipped)
        self.warnings: list[str] = []

    @classmethod
    def read(cls, path: str | Path, *, skip_bad: bool = False) -> LabelSpace:
        problems = Problems(str(path), skip_bad)
        rows = jsonl.read(path, LAYOUT, problems).to_pylist()
        labels = [
            Label(row["id"], tuple(row["names"] or row["name"]), row["description"], tuple(row["parents"]))
            for row in rows
        ]
        return cls(labels, str(path), problems.skipped)

    @classmethod
    def from_labels(cls, labels: Iterable[Label], *, source: str = "labels") -> LabelSpace:
        return cls(list(labels), source)

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, position: int) -> Label:
        return self._labels[position]

    def __iter__(self) -> Iterator[Label]:
        return iter(self._labels)

    @cached_property
    def ids(self) -> list[str]:
        return [label.id for label in self._labels]

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {identifier: position for position, identifier in enumerate(self.ids)}

    def position(self, identifier: str) -> int:
        try:
            return self._positions[identifier]
        except KeyError:
            raise MicolError(f"{self.source}: no label has the id {identifier!r}; check the id") from None

    def texts(self) -> list[str]:
        """The paper's t_l of each label: preferred name and description."""
        return [label.text for label in self._labels]

    @cached_property
    def names(self) -> list[tuple[str, ...]]:
        return [label.names for label in self._labels]

    @cached_property
    def parents(self) -> list[tuple[int, ...]]:
        """Positions of each label's parents."""
        known = self._positions
        return [tuple(known[p] for p in label.parents if p in known) for label in self._labels]

    def branch(self, identifier: str) -> set[int]:
        """Positions of a label and all that stand below it."""
        children: dict[int, list[int]] = {}
        for child, parents in enumerate(self.parents):
            for parent in parents:
                children.setdefault(parent, []).append(child)
        found, waiting = set(), [self.position(identifier)]
        while waiting:
            position = waiting.pop()
            if position not in found:
                found.add(position)
                waiting += children.get(position, [])
        return found

    def write(self, path: str | Path) -> None:
        codec = {".gz": "gzip", ".zst": "zstd"}.get(Path(path).suffix)
        with replacing(path) as temporary, pa.output_stream(str(temporary), compression=codec) as stream:
            for label in self._labels:
                record = {
                    "id": label.id,
                    "names": label.names,
                    "description": label.description,
                    "parents": label.parents,
                }
                stream.write((json.dumps(record, ensure_ascii=False) + "\n").encode())

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for label in self._labels:
            digest.update(json.dumps([label.id, label.names, label.description, label.parents]).encode())
        return digest.hexdigest()
