"""Path instances drawn by number, and accepted so that each document at their ends is equally likely.

The instances from an anchor are numbered by prefix sums: how many lie behind each node that it is linked
with, behind each node that those are linked with, and so on. A random number leads to its instance by one
equi-join for each hop.
"""

from __future__ import annotations

from collections.abc import Sequence

from micol.metapath import Hop, Step
from micol.rule import KEY_DIGITS
from micol.scale.walks import Fan, Walks


class Proposals:
    """Trials for anchors, or for some of them; `fans` has the walks along each chain."""

    def __init__(
        self,
        walks: Walks,
        chains: Sequence[Sequence[Step]],
        fans: Sequence[Fan],
        anchors: str,
        seed: str,
    ) -> None:
        self.walks, self.engine, self.chains, self.seed = walks, walks.engine, chains, seed
        starts = self.engine.view("starts", f"SELECT anchor AS node FROM {anchors}")
        self.fans = [self.narrowed(fan, starts) for fan in fans]
        self.cells = [[self.cell_table(fan, hop) for hop in range(len(fan.entries))] for fan in self.fans]
        self.index = [self.numbered(fan, starts) for fan in self.fans]
        self.shares = self.shares_of_chains()

    def narrowed(self, fan: Fan, starts: str) -> Fan:
        """The walks from these nodes only."""
        nodes, entries = starts, []
        for table in fan.entries:
            query = f"SELECT e.a, e.b FROM {table} e SEMI JOIN {nodes} n ON e.a = n.node"
            entries.append(self.engine.keep("entries", query))
            nodes = self.walks.distinct(entries[-1], "b")
        return Fan(fan.last, entries, fan.weights)

    def cell_table(self, fan: Fan, hop: int) -> str:
        """The number range of each edge, cut into cells as wide as the mean range, of which it fills some.

        A node's ranges fill at most twice as many cells as it has edges. To look a number up by its cell is
        an equi-join, where to look it up by its range is not.
        """
        ranges = (
            "SELECT e.a, e.b, w.weight, CAST(sum(w.weight) OVER (PARTITION BY e.a ORDER BY e.b "
            "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS BIGINT) AS stop "
            f"FROM {fan.entries[hop]} e JOIN {fan.weights[hop + 1]} w ON w.node = e.b"
        )
        in_cells = (
            f"SELECT r.a, r.b, r.stop - r.weight AS first, r.stop, {self.width('v')} AS width "
            f"FROM ({ranges}) r JOIN {fan.weights[hop]} v ON v.node = r.a"
        )
        quotient = self.engine.quotient
        cells = self.engine.each(
            self.engine.numbers(quotient("first", "width"), quotient("(stop - 1)", "width"))
        )
        return self.engine.keep("cells", f"SELECT a, b, first, stop, {cells} AS cell FROM ({in_cells}) c")

    def width(self, weights: str) -> str:
        return self.engine.quotient(f"({weights}.weight + {weights}.degree - 1)", f"{weights}.degree")

    def numbered(self, fan: Fan, starts: str) -> str:
        """The edges of the last hop, numbered from 0 at each node."""
        assert fan.last is not None
        nodes = self.walks.distinct(fan.entries[-1], "b") if fan.entries else starts
        table, source, target = fan.last
        return self.engine.keep(
            "numbered",
            f"SELECT r.{source} AS a, r.{target} AS b, "
            f"row_number() OVER (PARTITION BY r.{source} ORDER BY r.{target}) - 1 AS place "
            f"FROM {table} r SEMI JOIN {nodes} n ON r.{source} = n.node",
        )

    def shares_of_chains(self) -> str:
        """The instances of each anchor, one chain after the other: (anchor, chain, first, stop)."""
        totals = " UNION ALL ".join(
            f"SELECT {chain} AS chain, node, weight FROM {fan.weights[0]}"
            for chain, fan in enumerate(self.fans)
        )
        return self.engine.view(
            "shares",
            "SELECT node AS anchor, chain, stop - weight AS first, stop FROM (SELECT node, chain, weight, "
            "CAST(sum(weight) OVER (PARTITION BY node ORDER BY chain "
            f"ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS BIGINT) AS stop FROM ({totals}) t) s",
        )

    def accepted(self, anchors: str, first: int, stop: int) -> str:
        """What comes of the trials of anchors (anchor, key, total, trials): (anchor, positive, trial)."""
        trials = self.trials(anchors, first, stop)
        proposed = []
        for number, (chain, fan) in enumerate(zip(self.chains, self.fans, strict=True)):
            mine = self.engine.view(
                "trials",
                "SELECT t.anchor, t.trial, t.luck, t.place - s.first AS place, t.anchor AS n0, "
                f"CAST(1 AS BIGINT) AS times FROM {trials} t JOIN {self.shares} s "
                f"ON s.anchor = t.anchor AND s.chain = {number} "
                "WHERE t.place >= s.first AND t.place < s.stop",
            )
            proposed.append(self.met(chain, fan, self.instances(number, fan, mine)))
        return self.lucky(proposed)

    def trials(self, anchors: str, first: int, stop: int) -> str:
        each = self.engine.each(
            self.engine.numbers(f"CAST({first} AS BIGINT)", f"CAST(least({stop}, trials) - 1 AS BIGINT)")
        )
        text = f"concat('{self.seed}:', key, ':', trial)"
        digests = (
            f"SELECT anchor, total, trial, md5({text}) AS digest "
            f"FROM (SELECT anchor, key, total, {each} AS trial FROM {anchors}) t"
        )
        place = self.engine.number(f"substr(digest, 1, {KEY_DIGITS})")
        luck = self.engine.number(f"substr(digest, {KEY_DIGITS + 1}, {KEY_DIGITS})")
        return self.engine.keep(
            "trials", f"SELECT anchor, trial, {place} % total AS place, {luck} AS luck FROM ({digests}) d"
        )

    def instances(self, number: int, fan: Fan, trials: str) -> str:
        """Follows each trial to the end of its instance; n0, n1, … are the nodes that it meets."""
        quotient, nodes = self.engine.quotient, ["n0"]
        for hop, cells in enumerate(self.cells[number]):
            here, there = nodes[-1], f"n{len(nodes)}"
            trials = self.engine.keep(
                "trials",
                f"SELECT t.anchor, t.trial, t.luck, t.place - c.first AS place, t.times, "
                f"{columns('t', nodes)}, c.b AS {there} "
                f"FROM (SELECT i.*, {quotient('i.place', self.width('w'))} AS cell "
                f"FROM {trials} i JOIN {fan.weights[hop]} w ON w.node = i.{here}) t JOIN {cells} c "
                f"ON c.a = t.{here} AND c.cell = t.cell WHERE t.place >= c.first AND t.place < c.stop",
            )
            nodes.append(there)
        return self.engine.keep(
            "trials",
            f"SELECT t.anchor, t.trial, t.luck, t.times, {columns('t', nodes)}, x.b AS n{len(nodes)}, "
            f"x.b AS positive FROM {trials} t JOIN {self.index[number]} x "
            f"ON x.a = t.{nodes[-1]} AND x.place = t.place "
            "WHERE x.b <> t.anchor",
        )

    def met(self, chain: Sequence[Step], fan: Fan, trials: str) -> str:
        """Trials whose meta-graphs hold; `times`: as many instances as this one join the same documents."""
        place = 0
        for step in chain:
            if isinstance(step, Hop):
                place += 1
                continue
            proposer = self.walks.proposer(step)
            begin, end = f"n{place}", f"n{place + 2}"
            pairs = self.engine.keep("pairs", f"SELECT DISTINCT {begin} AS a, {end} AS b FROM {trials}")
            # One node they share along the proposer: the one by which they were drawn.
            unknown = [branch for branch in step if branch != proposer or branch.least > 1]
            pairs = self.walks.meeting(pairs, unknown)
            shared = self.walks.shared(pairs, proposer, fan.entries[place])
            others = columns("t", [f"n{node}" for node in range(len(fan.entries) + 2)])
            trials = self.engine.keep(
                "trials",
                f"SELECT t.anchor, t.trial, t.luck, {others}, t.positive, t.times * s.n AS times "
                f"FROM {trials} t JOIN {shared} s ON s.a = t.{begin} AND s.b = t.{end}",
            )
            place += 2
        return trials

    def lucky(self, proposed: Sequence[str]) -> str:
        """Each proposal with probability 1 / (the instances that lead to its document)."""
        trials = " UNION ALL ".join(
            f"SELECT anchor, trial, luck, positive, times FROM {table}" for table in proposed
        )
        if len(self.chains) == 1 and len(self.chains[0]) == 1:
            # A single step joins two documents, or does not.
            query = f"SELECT anchor, positive, trial FROM ({trials}) t WHERE {self.is_lucky('times')}"
            return self.engine.keep("accepted", query)
        pairs = self.engine.keep("pairs", f"SELECT DISTINCT anchor AS a, positive AS b FROM ({trials}) t")
        ways = " UNION ALL ".join(
            f"SELECT a, b, n FROM {self.walks.joined(pairs, chain)}" for chain in self.chains
        )
        ways = f"SELECT a, b, CAST(sum(n) AS BIGINT) AS n FROM ({ways}) u GROUP BY a, b"
        return self.engine.keep(
            "accepted",
            f"SELECT t.anchor, t.positive, t.trial FROM ({trials}) t JOIN ({ways}) w "
            f"ON w.a = t.anchor AND w.b = t.positive WHERE {self.is_lucky('t.times * w.n')}",
        )

    def is_lucky(self, times: str) -> str:
        """One in so many; a remainder favours small ones by less than any number of draws could tell."""
        return f"t.luck % ({times}) = 0"


def columns(table: str, names: Sequence[str]) -> str:
    return ", ".join(f"{table}.{name}" for name in names)
