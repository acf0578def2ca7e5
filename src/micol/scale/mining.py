"""Pairs (d, d+) from networks that are too large for the memory of one machine.

`micol.pairs` on a relational engine: anchors in a random order, for each draw of an anchor one positive,
uniform over all documents that it reaches; further rounds where one round over all anchors gives too few.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from micol.errors import UsageError
from micol.metapath import MetaPath
from micol.progress import Progress
from micol.rule import LIMITS, PRIME, Limits, order_of_anchors
from micol.scale.draws import Draws, reached_by
from micol.scale.engine import Engine
from micol.scale.network import Network
from micol.scale.reading import Reader, Rejects
from micol.scale.walks import Walks
from micol.schema import DEFAULT_SCHEMA, Schema

# Some more anchors than pairs are asked for: not every document has a partner.
MARGIN, FEWEST = 1.1, 1_000


class Mined(NamedTuple):
    """Pairs as a query for (anchor, positive) in their order; `exhausted` where no further pair exists."""

    query: str
    pairs: int
    anchors: int
    exhausted: bool


class Mine:
    """The network of some documents on an engine; only what a path needs of it."""

    def __init__(
        self,
        engine: Engine,
        sources: Sequence[str],
        path: MetaPath | str,
        schema: Schema = DEFAULT_SCHEMA,
        *,
        skip_bad: bool = False,
    ) -> None:
        self.engine = engine
        self.path = MetaPath(path) if isinstance(path, str) else path
        self.chains = self.path.bind(schema)
        self.source = ", ".join(sources)
        self.network: Network
        self.rejects: Rejects
        with Progress(f"mining with {engine.name}", None, "steps") as engine.progress:
            reader = Reader(engine, sources, schema, self.path)
            self.network, self.rejects = reader.read(skip_bad)
        self.walks = Walks(self.network)
        self.n_documents = engine.count(self.network.documents)

    def reachable(self) -> str:
        """Every document with all that it reaches, as a query for (anchor, positive); for small networks."""
        documents = f"SELECT id AS anchor, id AS node FROM {self.network.documents}"
        return f"SELECT anchor, positive FROM {reached_by(self.walks, self.chains, documents)}"

    def draw(self, n: int, seed: int = 0, limits: Limits = LIMITS) -> Mined:
        """Draws n distinct pairs, or all there are."""
        if n < 0:
            raise UsageError(f"the number of pairs must not be negative, got {n}")
        with Progress(f"mining with {self.engine.name}", None, "steps") as self.engine.progress:
            draws = Draws(self.walks, self.chains, seed, limits)
            return Drawing(self, draws, n, seed).pairs()


class Drawing:
    """One drawing of pairs: batches of anchors, and rounds."""

    def __init__(self, mine: Mine, draws: Draws, n: int, seed: int) -> None:
        self.engine, self.n_documents, self.draws, self.n = mine.engine, mine.n_documents, draws, n
        # One pair more than asked for tells whether there is one.
        self.enough = n + 1
        keyed = f"SELECT id AS anchor, {self.engine.key('id')} AS key FROM {mine.network.documents}"
        h = self.engine.spread("key", list(map(str, order_of_anchors(seed))))
        self.anchors = self.engine.keep("anchors", f"SELECT anchor, key, {h} AS h FROM ({keyed}) k")

    def pairs(self) -> Mined:
        drawn, found = self.sweep(self.anchors, self.n_documents, 1, self.enough)
        rounds = 1
        while found < self.enough:
            full = self.full(drawn, rounds)
            n_full = self.engine.count(full)
            if not n_full:
                break
            # Who had as many partners as there were rounds may have more, and starts again with more rounds.
            finished = self.engine.keep(
                "drawn", f"SELECT d.* FROM ({drawn}) d ANTI JOIN {full} f ON f.anchor = d.anchor"
            )
            n_finished = self.engine.count(finished)
            likely = -(-(self.enough - n_finished) // n_full)
            # Nobody has as many partners as there are documents.
            rounds = min(max(2 * rounds, likely), self.n_documents)
            more, n_more = self.sweep(full, n_full, rounds, None)
            drawn, found = f"{more} UNION ALL SELECT * FROM {finished}", n_more + n_finished
        return self.first(drawn, found)

    def full(self, drawn: str, rounds: int) -> str:
        """The anchors that have drawn in every round."""
        return self.engine.keep(
            "full",
            f"SELECT anchor, key, h FROM ({drawn}) d GROUP BY anchor, key, h HAVING count(*) = {rounds}",
        )

    def sweep(self, anchors: str, n_anchors: int, rounds: int, enough: int | None) -> tuple[str, int]:
        """Draws for anchors in their order until there are enough: a query, and a count."""
        most = max(1, min(self.engine.sizes.anchors, self.engine.sizes.pairs // rounds))
        parts: list[str] = []
        begin = seen = found = 0
        while begin < PRIME and not (enough is not None and found >= enough):
            likely = most
            if enough is not None and (found or not seen):
                rate = found / seen if seen else 1.0
                likely = min(most, int(MARGIN * (enough - found) / rate) + FEWEST)
            # Places are spread evenly, so a share of them is a share of the anchors.
            end = min(PRIME, begin + 1 + PRIME * likely // max(n_anchors, 1))
            with self.engine.scope() as results:
                batch = self.engine.keep(
                    "batch", f"SELECT anchor, key, h FROM {anchors} WHERE h >= {begin} AND h < {end}"
                )
                drawn = self.draws.drawn(batch, rounds)
                results.append(drawn)
                seen, found = seen + self.engine.count(batch), found + self.engine.count(drawn)
            parts.append(drawn)
            begin = end
        return " UNION ALL ".join(
            f"SELECT anchor, key, h, round, positive FROM {part}" for part in parts
        ), found

    def first(self, drawn: str, found: int) -> Mined:
        """The first n in the order of rounds and anchors."""
        if found > self.n:
            cut = self.engine.keep(
                "cut",
                f"SELECT round, h, key, anchor FROM ({drawn}) d ORDER BY round, h, key, anchor "
                f"LIMIT 1 OFFSET {self.n}",
            )
            drawn = (
                f"SELECT d.* FROM ({drawn}) d CROSS JOIN {cut} c WHERE d.round < c.round "
                "OR (d.round = c.round AND (d.h < c.h OR (d.h = c.h AND (d.key < c.key "
                "OR (d.key = c.key AND d.anchor < c.anchor)))))"
            )
        pairs = self.engine.keep("pairs", drawn)
        n_anchors = self.engine.rows(f"SELECT count(*) FROM (SELECT DISTINCT anchor FROM {pairs}) a")[0][0]
        query = f"SELECT anchor, positive FROM {pairs} ORDER BY round, h, key, anchor"
        return Mined(query, self.engine.count(pairs), n_anchors, exhausted=found <= self.n)
