"""The relational definition of a meta-path: what each of its steps joins, and where a walk along it leads.

Steps are those of `MetaPath.bind`, which the kernels of `micol.reach` follow as well. Every join here is from
few rows to what they are linked with; documents are never joined with documents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from micol.metapath import Hop, Shared, Step
from micol.scale.network import Network, Relation

# A node with more edges than this is not listed with all of them for the sake of one pair.
HUB = 1_000


class Edge(NamedTuple):
    """A hop as a part of a walk; `spared`: so many of the largest nodes that it leads to are left alone."""

    hop: Hop
    spared: int = 0


class Entries(NamedTuple):
    """Edges (a, b) that a walk takes, and those that it leaves alone."""

    walked: str
    spared: str | None


def reverse(step: Step) -> Step:
    """The step from its end to its beginning."""
    if isinstance(step, Hop):
        return Hop(step.letter, not step.forward)
    return tuple(
        Shared(Hop(out_of.letter, not out_of.forward), Hop(into.letter, not into.forward), least)
        for into, out_of, least in step
    )


class Walks:
    """Walks over a network."""

    def __init__(self, network: Network) -> None:
        self.network, self.engine = network, network.engine
        self.chosen: dict[tuple[Shared, ...], Shared] = {}

    def proposer(self, meta_graph: tuple[Shared, ...]) -> Shared:
        """The branch of a meta-graph that has the fewest instances; documents are looked for along it."""
        if len(meta_graph) > 1 and meta_graph not in self.chosen:
            sizes = [self.instances(branch) for branch in meta_graph]
            self.chosen[meta_graph] = meta_graph[sizes.index(min(sizes))]
        return self.chosen.get(meta_graph, meta_graph[0])

    def instances(self, branch: Shared) -> int:
        into, out_of = self.network.relation(branch.into), self.network.relation(branch.out_of)
        arrivals = f"SELECT {into.target} AS node, count(*) AS n FROM {into.table} GROUP BY {into.target}"
        departures = (
            f"SELECT {out_of.source} AS node, count(*) AS n FROM {out_of.table} GROUP BY {out_of.source}"
        )
        found = self.engine.rows(
            # A sum of floating point numbers would depend on their order.
            f"SELECT sum(CAST(i.n * o.n AS DECIMAL(38, 0))) FROM ({arrivals}) i "
            f"JOIN ({departures}) o ON i.node = o.node"
        )
        return int(found[0][0] or 0)

    def edges(self, steps: Sequence[Step]) -> list[Edge]:
        """The hops of a walk, through meta-graphs by their proposers.

        Who shares m of k nodes is at one of any k - m + 1 of them, so the m - 1 largest need no look.
        """
        found = []
        for step in steps:
            if isinstance(step, Hop):
                found.append(Edge(step))
            else:
                branch = self.proposer(step)
                found += [Edge(branch.into, branch.least - 1), Edge(branch.out_of)]
        return found

    def entries(self, nodes: str, edge: Edge, then: Relation) -> Entries:
        """The edges (a, b) from some nodes; where the walk goes on (`then`) tells which b are large."""
        relation = self.network.relation(edge.hop)
        entries = self.engine.keep(
            "entries",
            f"SELECT r.{relation.source} AS a, r.{relation.target} AS b FROM {relation.table} r "
            f"SEMI JOIN {nodes} n ON r.{relation.source} = n.node",
        )
        if not edge.spared:
            return Entries(entries, None)
        ranked = self.engine.keep(
            "ranked",
            "SELECT e.a, e.b, row_number() OVER (PARTITION BY e.a ORDER BY d.weight DESC, e.b) AS place "
            f"FROM {entries} e JOIN {self.degrees(then, self.distinct(entries, 'b'))} d ON e.b = d.node",
        )
        return Entries(
            self.engine.view("entries", f"SELECT a, b FROM {ranked} WHERE place > {edge.spared}"),
            self.engine.view("spared", f"SELECT a, b FROM {ranked} WHERE place <= {edge.spared}"),
        )

    def distinct(self, table: str, column: str) -> str:
        return self.engine.view("nodes", f"SELECT DISTINCT {column} AS node FROM {table}")

    def degrees(self, relation: Relation, nodes: str) -> str:
        """How many edges leave each of some nodes, as (node, weight, degree)."""
        return self.engine.keep(
            "degrees",
            f"SELECT r.{relation.source} AS node, count(*) AS weight, count(*) AS degree "
            f"FROM {relation.table} r SEMI JOIN {nodes} n ON r.{relation.source} = n.node "
            f"GROUP BY r.{relation.source}",
        )

    def walked(self, starts: str, steps: Sequence[Step], *, to_documents: bool = False) -> str:
        """All that walks from (anchor, node) lead to: (anchor, node, walks), the number of walks to each."""
        level = self.engine.view("level", f"SELECT anchor, node, CAST(1 AS BIGINT) AS walks FROM {starts}")
        for place, step in enumerate(steps, start=1):
            if isinstance(step, Hop):
                relation = self.network.relation(step, ends=to_documents and place == len(steps))
            else:
                nodes = self.distinct(level, "node")
                relation = self.met(nodes, step, to_documents and place == len(steps))
            level = self.engine.keep(
                "level",
                f"SELECT l.anchor, r.{relation.target} AS node, CAST(sum(l.walks) AS BIGINT) AS walks "
                f"FROM {level} l JOIN {relation.table} r ON r.{relation.source} = l.node "
                f"GROUP BY l.anchor, r.{relation.target}",
            )
        return level

    def met(self, nodes: str, step: tuple[Shared, ...], to_documents: bool = False) -> Relation:
        """The relation of a meta-graph from some nodes: found along one branch, held against the others."""
        into, out_of = self.edges([step])
        then = self.network.relation(out_of.hop, ends=to_documents)
        entries = self.entries(nodes, into, then)
        pairs = self.engine.keep(
            "found",
            f"SELECT e.a, r.{then.target} AS b, count(*) AS n FROM {entries.walked} e JOIN {then.table} r "
            f"ON r.{then.source} = e.b GROUP BY e.a, r.{then.target}",
        )
        proposer = self.proposer(step)
        if entries.spared is not None:
            # What they share beyond that, of the few largest nodes, is looked up for each pair.
            more = self.between(pairs, Relation(entries.spared, "a", "b"), then)
            pairs = self.engine.keep(
                "found",
                f"SELECT p.a, p.b FROM {pairs} p LEFT JOIN {more} m ON m.a = p.a AND m.b = p.b "
                f"WHERE p.n + coalesce(m.n, 0) >= {proposer.least}",
            )
        others = [branch for branch in step if branch != proposer]
        return Relation(self.meeting(pairs, others), "a", "b")

    def meeting(self, pairs: str, branches: Sequence[Shared]) -> str:
        """Of pairs (a, b) those that share enough nodes along every one of some branches."""
        for branch in branches:
            shared = self.shared(pairs, branch)
            pairs = self.engine.keep("meeting", f"SELECT a, b FROM {shared} WHERE n >= {branch.least}")
        return pairs

    def shared(self, pairs: str, branch: Shared, entries: str | None = None) -> str:
        """How many nodes (n) lie between the two of each pair, where there are any.

        entries: the edges (a, b) into those nodes, where not all of them count.
        """
        into, out_of = self.network.relation(branch.into), self.network.relation(branch.out_of)
        if entries is not None:
            into = Relation(entries, "a", "b")
        return self.from_either_end(
            pairs,
            branch.into,
            lambda some: self.between(some, into, out_of),
            lambda some: self.between(some, out_of.reversed, into.reversed),
        )

    def from_either_end(
        self, pairs: str, hop: Hop, ahead: Callable[[str], str], back: Callable[[str], str]
    ) -> str:
        """Counts (a, b, n) for pairs: ahead from a, but for those whose a is a hub, back from b.

        Along a field a document leads to no more than its record holds; against it, to any number of others.
        """
        relation = self.network.relation(hop)
        if hop.forward:
            return ahead(pairs)
        hubs = self.engine.keep(
            "hubs",
            f"SELECT node FROM {self.degrees(relation, self.distinct(pairs, 'a'))} WHERE degree > {HUB}",
        )
        if not self.engine.count(hubs):
            return ahead(pairs)
        others = self.engine.keep(
            "pairs", f"SELECT p.a, p.b FROM {pairs} p ANTI JOIN {hubs} h ON h.node = p.a"
        )
        turned = self.engine.keep(
            "pairs", f"SELECT p.b AS a, p.a AS b FROM {pairs} p SEMI JOIN {hubs} h ON h.node = p.a"
        )
        return self.engine.view(
            "counts",
            f"SELECT a, b, n FROM {ahead(others)} UNION ALL SELECT b AS a, a AS b, n FROM {back(turned)}",
        )

    def between(self, pairs: str, into: Relation, out_of: Relation) -> str:
        # The nodes of a first: joined with those of b alone, a hub would bring all that it has.
        between = self.engine.keep(
            "between",
            f"SELECT p.a, p.b, r.{into.target} AS node FROM {pairs} p "
            f"JOIN {into.table} r ON r.{into.source} = p.a",
        )
        return self.engine.keep(
            "shared",
            f"SELECT t.a, t.b, count(*) AS n FROM {between} t "
            f"JOIN {out_of.table} r ON r.{out_of.source} = t.node AND r.{out_of.target} = t.b "
            "GROUP BY t.a, t.b",
        )

    def joined(self, pairs: str, chain: Sequence[Step]) -> str:
        """How many walks (n) along a chain lead from a to b, for those pairs (a, b) where there are any."""
        first = chain[0]
        if len(chain) != 2 or not isinstance(first, Hop):
            return self.joined_at(self.middle(pairs, chain), pairs, chain)
        back = [reverse(step) for step in reversed(chain)]
        return self.from_either_end(
            pairs,
            first,
            lambda some: self.joined_at(1, some, chain),
            lambda some: self.joined_at(1, some, back),
        )

    def joined_at(self, middle: int, pairs: str, chain: Sequence[Step]) -> str:
        """The same by walks from a and walks back from b, held against each other at a step between them."""
        ahead = self.walked(self.starts(pairs, "a"), chain[:middle])
        back = self.walked(self.starts(pairs, "b"), [reverse(step) for step in reversed(chain[middle + 1 :])])
        ends = self.engine.keep(
            "ends",
            "SELECT p.a AS first, p.b AS last, f.node AS a, g.node AS b, f.walks * g.walks AS walks "
            f"FROM {pairs} p JOIN {ahead} f ON f.anchor = p.a JOIN {back} g ON g.anchor = p.b",
        )
        step = chain[middle]
        if isinstance(step, Hop):
            relation = self.network.relation(step)
        else:
            between = self.engine.keep("pairs", f"SELECT DISTINCT a, b FROM {ends}")
            relation = Relation(self.meeting(between, step), "a", "b")
        return self.engine.keep(
            "joined",
            f"SELECT e.first AS a, e.last AS b, CAST(sum(e.walks) AS BIGINT) AS n FROM {ends} e "
            f"JOIN {relation.table} r ON r.{relation.source} = e.a AND r.{relation.target} = e.b "
            "GROUP BY e.first, e.last",
        )

    def starts(self, pairs: str, column: str) -> str:
        return self.engine.view(
            "starts", f"SELECT DISTINCT {column} AS anchor, {column} AS node FROM {pairs}"
        )

    def middle(self, pairs: str, chain: Sequence[Step]) -> int:
        """The step at which the fewest walks meet."""
        if len(chain) == 1:
            return 0
        back = [reverse(step) for step in reversed(chain)]
        costs = []
        for place in range(len(chain)):
            ahead = self.fan(self.distinct(pairs, "a"), chain[:place])
            behind = self.fan(self.distinct(pairs, "b"), back[: len(chain) - 1 - place])
            found = self.engine.rows(
                f"SELECT sum(CAST(f.weight AS DOUBLE) * g.weight) FROM {pairs} p "
                f"JOIN {ahead.weights[0]} f ON f.node = p.a JOIN {behind.weights[0]} g ON g.node = p.b"
            )
            costs.append(found[0][0] or 0)
        return costs.index(min(costs))

    def fan(self, starts: str, steps: Sequence[Step], *, to_documents: bool = False) -> Fan:
        """All walks from some nodes, counted but not listed."""
        edges = self.edges(steps)
        if not edges:
            ones = self.engine.view("weights", f"SELECT node, CAST(1 AS BIGINT) AS weight FROM {starts}")
            return Fan(None, [], [ones])
        relations = [
            self.network.relation(edge.hop, ends=to_documents and edge is edges[-1]) for edge in edges
        ]
        entries: list[str] = []
        nodes = starts
        for edge, then in zip(edges, relations[1:]):
            entries.append(self.entries(nodes, edge, then).walked)
            nodes = self.distinct(entries[-1], "b")
        weights = [self.degrees(relations[-1], nodes)]
        for table in reversed(entries):
            query = (
                "SELECT e.a AS node, CAST(sum(w.weight) AS BIGINT) AS weight, count(*) AS degree "
                f"FROM {table} e JOIN {weights[0]} w ON w.node = e.b GROUP BY e.a"
            )
            weights.insert(0, self.engine.keep("weights", query))
        return Fan(relations[-1], entries, weights)


class Fan(NamedTuple):
    """The walks from some nodes.

    entries[k] are the edges (a, b) of hop k + 1 but for the last hop, whose edges are those of a relation;
    weights[k] is the number of ways to go on from each node after k hops: (node, weight, degree).
    """

    last: Relation | None
    entries: list[str]
    weights: list[str]
