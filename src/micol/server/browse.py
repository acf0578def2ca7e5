"""Labels to look through: search, place in the hierarchy."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from micol.errors import MicolError
from micol.labels import LabelSpace
from micol.server.problems import RequestError, printable


class LabelIndex:
    """A label space with what a reader of it asks for."""

    def __init__(self, labels: LabelSpace) -> None:
        self.space = labels

    def __len__(self) -> int:
        return len(self.space)

    def position(self, id: str) -> int:
        try:
            return self.space.position(id)
        except MicolError:
            raise RequestError(404, f"no label has the id {printable(id)}") from None

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """Each label as the API shows it."""
        rows = self.space.table.select(["id", "names", "description", "parents"]).to_pylist()
        return [{**row, "children": len(below)} for row, below in zip(rows, self.children, strict=True)]

    @cached_property
    def folded(self) -> list[tuple[str, ...]]:
        """Names and id of each label, whatever their case; the preferred name first."""
        return [
            tuple(text.casefold() for text in (*names, id))
            for names, id in zip(self.space.names, self.space.ids, strict=True)
        ]

    @cached_property
    def children(self) -> list[list[int]]:
        """The positions of those right below each label."""
        below: list[list[int]] = [[] for _ in range(len(self.space))]
        for child, parents in enumerate(self.space.parents):
            for parent in parents:
                below[parent].append(child)
        return below

    def search(self, text: str, branch: str | None = None, only_branches: bool = False) -> list[int]:
        """Positions of labels with `text` in a name or the id, the likeliest meant first."""
        sought = text.strip().casefold()
        within = None
        if branch is not None:
            self.position(branch)  # tells whoever asked, if there is none
            within = self.space.branch(branch)
        found = []
        for position, texts in enumerate(self.folded):
            if within is not None and position not in within:
                continue
            if only_branches and not self.children[position]:
                continue
            rank = closeness(texts, sought)
            if rank is not None:
                found.append((rank, position))
        return [position for _, position in sorted(found)]

    def place(self, position: int) -> dict[str, Any]:
        """A label with the ways that lead down to it, and what stands right below it."""
        return {
            **self.records[position],
            "paths": [[self.brief(at) for at in way] for way in self.ways(position)],
            "below": [self.brief(child) for child in self.children[position]],
        }

    def names_above(self, id: str) -> list[str]:
        """The first of the ways down to a label, by preferred names."""
        ways = self.ways(self.position(id), most=1)
        return [self.space.names[position][0] for position in ways[0]] if ways else []

    def brief(self, position: int) -> dict[str, str]:
        return {"id": self.space.ids[position], "name": self.space.names[position][0]}

    def ways(self, position: int, most: int = 8) -> list[list[int]]:
        """From the top down to a label's parent; where there are circles, each label once."""
        found = []
        for way in self._upward(position, (position,)):
            found.append(list(reversed(way[1:])))
            if len(found) == most:
                break
        return [way for way in found if way]

    def _upward(self, position: int, way: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        parents = [parent for parent in self.space.parents[position] if parent not in way]
        if not parents or len(way) > 50:
            yield way
        for parent in parents:
            yield from self._upward(parent, (*way, parent))


def closeness(texts: tuple[str, ...], sought: str) -> int | None:
    """0 for the very name, then names that begin so, words that begin so, all that contain it."""
    if not sought:
        return 0
    if not any(sought in text for text in texts):
        return None
    if sought in texts:
        return 0
    if any(text.startswith(sought) for text in texts):
        return 1
    return 2 if any(f" {sought}" in text for text in texts) else 3
