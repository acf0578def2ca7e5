"""What each anchor draws: the documents that it reaches, in an order that is any of their orders alike.

Anchors with few path instances have their documents listed, in a random order. For the others instances are
drawn (`micol.scale.proposals`), and who has had many trials in vain is listed after all. What an anchor draws
depends on the seed, the anchor and the network alone, and is what `micol.kernels.uniform` draws: chance is
that of `micol.rule`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from micol.metapath import Hop, Step
from micol.rule import LIMITS, PRIME, Limits, are_few, seed_text
from micol.scale.proposals import Proposals
from micol.scale.walks import Fan, Walks

FIRST_TRIALS = 3  # for each draw
MORE_TRIALS = 8  # times as many as before


class Draws:
    """Draws for batches of anchors."""

    def __init__(
        self, walks: Walks, chains: Sequence[Sequence[Step]], seed: int, limits: Limits = LIMITS
    ) -> None:
        self.walks, self.engine = walks, walks.engine
        self.seed, self.limits = seed_text(seed), limits
        self.chains = [(chain, self.is_short(chain)) for chain in chains]

    def is_short(self, chain: Sequence[Step]) -> bool:
        """Whether a chain has several hops before its last step, and they lead to few nodes.

        Those are then walked as a set, as the embedded engine does: many walks may lead to one node. Who
        decides is the whole network, so that the anchor at hand makes no difference.
        """
        if len(self.walks.edges(chain[:-1])) < 2:
            return False
        with self.engine.scope():
            documents = f"(SELECT id AS node FROM {self.walks.network.documents})"
            walks = self.walks.fan(documents, chain[:-1]).weights[0]
            ((total, documents),) = self.engine.rows(
                f"SELECT sum(CAST(weight AS DECIMAL(38, 0))), count(*) FROM {walks}"
            )
        return are_few(int(total or 0), int(documents))

    def shortened(self, batch: str) -> list[Sequence[Step]]:
        """The chains, as they are or with their first steps walked from some anchors and made one hop."""
        chains: list[Sequence[Step]] = []
        for chain, is_short in self.chains:
            if is_short:
                starts = self.engine.view("starts", f"SELECT anchor, anchor AS node FROM {batch}")
                walked = self.walks.walked(starts, chain[:-1])
                hop = self.engine.view("hop", f"SELECT anchor AS a, node AS b FROM {walked}")
                self.walks.network.edges[hop] = hop
                chain = (Hop(hop, forward=True), chain[-1])
            chains.append(chain)
        return chains

    def drawn(self, batch: str, rounds: int) -> str:
        """The draws of anchors (anchor, key, h), so many rounds: (anchor, key, h, round, positive)."""
        with self.engine.scope() as results:
            chains = self.shortened(batch)
            starts = self.engine.view("starts", f"SELECT anchor AS node FROM {batch}")
            fans = [self.walks.fan(starts, chain, to_documents=True) for chain in chains]
            anchors = self.sized(fans)
            accepted = self.accepted(anchors, chains, fans, rounds)
            unserved = self.engine.keep("unserved", self.waiting(anchors, accepted, rounds))
            listed = [self.listed(chunk, chains) for chunk in self.chunks(unserved)]
            draws = " UNION ALL ".join(
                [
                    *(
                        f"SELECT anchor, positive, 0 AS is_listed, trial AS place, trial AS key FROM {table}"
                        for table in accepted
                    ),
                    *(f"SELECT anchor, positive, 1 AS is_listed, place, key FROM {t}" for t in listed),
                    # Where there is nothing to list, either.
                    "SELECT anchor, anchor AS positive, 1 AS is_listed, total AS place, key "
                    f"FROM {anchors} WHERE FALSE",
                ]
            )
            # What was drawn twice counts where it came first.
            once = (
                "SELECT anchor, positive, is_listed, place, key, row_number() OVER "
                "(PARTITION BY anchor, positive ORDER BY is_listed, place) AS time "
                f"FROM ({draws}) d"
            )
            in_order = (
                "SELECT anchor, positive, row_number() OVER "
                "(PARTITION BY anchor ORDER BY is_listed, place, key, positive) AS round "
                f"FROM ({once}) o WHERE time = 1"
            )
            query = (
                f"SELECT b.anchor, b.key, b.h, o.round, o.positive FROM ({in_order}) o "
                f"JOIN {batch} b ON b.anchor = o.anchor WHERE o.round <= {rounds}"
            )
            results.append(self.engine.keep("drawn", query))
        return results[0]

    def sized(self, fans: Sequence[Fan]) -> str:
        """Anchors, the number of their path instances, and how many trials they have."""
        totals = " UNION ALL ".join(f"SELECT node, weight FROM {fan.weights[0]}" for fan in fans)
        few, least, share, most, *_ = self.limits
        many = f"least({most}, greatest({least}, {self.engine.quotient('total', str(share))}))"
        return self.engine.keep(
            "anchors",
            f"SELECT anchor, {self.engine.key('anchor')} AS key, total, "
            f"CASE WHEN total <= {few} THEN 0 ELSE {many} END AS trials "
            "FROM (SELECT node AS anchor, CAST(sum(weight) AS BIGINT) AS total "
            f"FROM ({totals}) t GROUP BY node) s",
        )

    def accepted(
        self, anchors: str, chains: Sequence[Sequence[Step]], fans: Sequence[Fan], rounds: int
    ) -> list[str]:
        """Documents accepted in trials, as many trials as it takes: tables of (anchor, positive, trial)."""
        tables: list[str] = []
        eager = self.eager(anchors, tables, rounds, 0)
        if not self.engine.count(eager):
            return tables
        proposals = Proposals(self.walks, chains, fans, eager, self.seed)
        first, stop = 0, FIRST_TRIALS * rounds
        while self.engine.count(eager):
            with self.engine.scope() as results:
                results.append(proposals.accepted(eager, first, stop))
            tables += results
            eager = self.eager(anchors, tables, rounds, stop)
            first, stop = stop, MORE_TRIALS * stop
        return tables

    def waiting(self, anchors: str, accepted: Sequence[str], rounds: int) -> str:
        """Anchors that have not had all their draws."""
        if not accepted:
            return f"SELECT anchor, key, total, trials FROM {anchors}"
        so_far = " UNION ALL ".join(f"SELECT anchor, positive FROM {table}" for table in accepted)
        served = f"SELECT anchor, count(DISTINCT positive) AS n FROM ({so_far}) p GROUP BY anchor"
        return (
            f"SELECT a.anchor, a.key, a.total, a.trials FROM {anchors} a LEFT JOIN ({served}) s "
            f"ON s.anchor = a.anchor WHERE coalesce(s.n, 0) < {rounds}"
        )

    def eager(self, anchors: str, accepted: Sequence[str], rounds: int, used: int) -> str:
        """Those that have trials left."""
        waiting = self.waiting(anchors, accepted, rounds)
        return self.engine.keep("eager", f"SELECT * FROM ({waiting}) w WHERE trials > {used}")

    def chunks(self, anchors: str) -> Iterator[str]:
        """The anchors in as many parts as keep the instances that are listed together within bounds."""
        total = self.engine.rows(f"SELECT CAST(sum(total) AS BIGINT) FROM {anchors}")[0][0] or 0
        parts = -(-total // self.engine.sizes.instances)
        for part in range(parts):
            yield self.engine.view("part", f"SELECT * FROM {anchors} WHERE key % {parts} = {part}")

    def listed(self, anchors: str, chains: Sequence[Sequence[Step]]) -> str:
        """All documents that some anchors reach, in a random order: (anchor, positive, place, key)."""
        with self.engine.scope() as results:
            reached = reached_by(self.walks, chains, f"SELECT anchor, anchor AS node FROM {anchors}")
            digest = f"SELECT anchor, md5(concat('{self.seed}:', key, ':list')) AS digest FROM {anchors}"
            chances = ", ".join(
                f"{self.engine.number(f'substr(digest, {begin}, 8)')} % {PRIME} AS {name}"
                for name, begin in (("c1", 1), ("c2", 9), ("c3", 17))
            )
            chances = self.engine.keep("chances", f"SELECT anchor, {chances} FROM ({digest}) d")
            keyed = f"SELECT anchor, positive, {self.engine.key('positive')} AS key FROM {reached}"
            place = self.engine.spread("r.key", ["c.c1", "c.c2", "c.c3"])
            query = (
                f"SELECT r.anchor, r.positive, {place} AS place, r.key FROM ({keyed}) r "
                f"JOIN {chances} c ON c.anchor = r.anchor"
            )
            results.append(self.engine.keep("listed", query))
        return results[0]


def reached_by(walks: Walks, chains: Sequence[Sequence[Step]], anchors: str) -> str:
    """All documents that anchors (anchor, node) reach: (anchor, positive)."""
    starts = walks.engine.view("starts", anchors)
    ends = " UNION ".join(
        f"SELECT anchor, node FROM {walks.walked(starts, chain, to_documents=True)}" for chain in chains
    )
    return walks.engine.view(
        "reached", f"SELECT anchor, node AS positive FROM ({ends}) e WHERE anchor <> node"
    )
