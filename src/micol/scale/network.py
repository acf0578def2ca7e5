"""The relations of a heterogeneous network as tables of edges (a, b), one for each letter of a schema.

The same network as `micol.network` builds in memory, with ids in place of positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from micol.metapath import Hop
from micol.scale.engine import Engine
from micol.schema import Schema


class Relation(NamedTuple):
    """Edges from one column of a table to another; no edge twice."""

    table: str
    source: str
    target: str

    @property
    def reversed(self) -> Relation:
        return Relation(self.table, self.target, self.source)


@dataclass(frozen=True)
class Network:
    """`documents` (id), and the edges of each letter that a path follows."""

    engine: Engine
    schema: Schema
    documents: str
    edges: dict[str, str]
    # Of the hops that lead out of the corpus, too, the edges that do not.
    inside: dict[Hop, str]

    def relation(self, hop: Hop, *, ends: bool = False) -> Relation:
        """The edges that a hop follows; where a path ends with it, those that lead to documents."""
        table = self.inside.get(hop, self.edges[hop.letter]) if ends else self.edges[hop.letter]
        return Relation(table, "a", "b") if hop.forward else Relation(table, "b", "a")

    def is_empty(self, letter: str) -> bool:
        return not self.engine.rows(f"SELECT a FROM {self.edges[letter]} LIMIT 1")
