"""Reachability straight from the definition, over plain sets; shares no code with the package.

A path is given twice: as text for the package, and here as the steps of its chains from node to node:
    ("node", "A")                 a shared value of a node letter
    ("link", "P", "->")           a link, forwards or backwards
    ("nodes", "AAV")              a meta-graph over node letters
    ("links", "PPR", "->", "<-")  a meta-graph over link letters
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations

FIELDS = {"A": "authors", "V": "venue", "P": "references", "R": "replies"}


class PlainNetwork:
    def __init__(self, records):
        self.documents = [record["id"] for record in records]
        self.values = {
            (record["id"], letter): set(as_list(record.get(field)))
            for record in records
            for letter, field in FIELDS.items()
        }
        self.edges = {
            letter: {(a, b) for a in self.documents for b in self.values[a, letter] if a != b}
            for letter in ("P", "R")
        }
        for record in records:
            self.edges["P"] |= {(citing, record["id"]) for citing in record.get("citations", ())}
        ends = {end for edges in self.edges.values() for edge in edges for end in edge}
        self.nodes = [*self.documents, *sorted(ends - set(self.documents))]

    def linked(self, letter, arrow, a, b):
        return ((a, b) if arrow == "->" else (b, a)) in self.edges[letter]

    def middles(self, step, letter, a):
        """The nodes between: those that one letter of a step leads to from a."""
        kind, _, *arrows = step
        if kind == "links":
            return {x for x in self.nodes if self.linked(letter, arrows[0], a, x)}
        return self.values.get((a, letter), set())

    def row(self, step, letter, middle):
        """The nodes that a node between leads on to."""
        kind, _, *arrows = step
        if kind == "links":
            return {b for b in self.nodes if self.linked(letter, arrows[1], middle, b)}
        return {b for b in self.documents if middle in self.values[b, letter]}

    def joined(self, step, a, b):
        kind, letters, *arrows = step
        if kind == "link":
            return self.linked(letters, *arrows, a, b)
        for letter, count in Counter(letters).items():
            common = [x for x in self.middles(step, letter, a) if b in self.row(step, letter, x)]
            if not any(combinations(common, count)):
                return False
        return True

    def walk(self, steps, start):
        """All nodes at the end of some walk along the steps."""
        ends = {start}
        for step in steps:
            ends = {b for b in self.nodes for a in ends if self.joined(step, a, b)}
        return ends

    def reachable(self, chains, start):
        ends = set().union(*(self.walk(steps, start) for steps in chains))
        return ends & set(self.documents) - {start}

    def pairs(self, chains):
        return {(a, b) for a in self.documents for b in self.reachable(chains, a)}

    def shared_nodes(self, chains, start, every_letter):
        """For each node that a last hop leaves from: its neighbours, and those of them that are partners."""
        listed = []
        for *before, last in chains:
            kind, letters, *arrows = last
            sources = self.walk(before, start)
            if kind == "link":
                rows = [(a, {b for b in self.nodes if self.linked(letters, *arrows, a, b)}) for a in sources]
            elif kind == "node":
                # A plain path is walked as a set: a node counts once, however many documents lead to it.
                middles = set().union(*(self.middles(last, letters, a) for a in sources))
                rows = [(None, self.row(last, letters, x)) for x in middles]
            else:
                chosen = sorted(set(letters)) if every_letter else sorted(set(letters))[:1]
                rows = [
                    (a, self.row(last, letter, x))
                    for a in sources
                    for letter in chosen
                    for x in self.middles(last, letter, a)
                ]
            for a, row in rows:
                partners = {
                    b
                    for b in row & set(self.documents) - {start}
                    if kind in {"link", "node"} or self.joined(last, a, b)
                }
                listed.append((row, partners))
        return listed


def as_list(value):
    if value is None:
        return []
    return [value] if isinstance(value, str) else value


def node_first(rows):
    """A node with a partner, uniformly; then one of its partners, uniformly."""
    alive = [partners for _, partners in rows if partners]
    chances = Counter()
    for partners in alive:
        for partner in partners:
            chances[partner] += Fraction(1, len(alive) * len(partners))
    return chances


def rarity(rows):
    """A partner's weight is the sum of 1 / degree over the nodes it shares."""
    weights = Counter()
    for row, partners in rows:
        for partner in partners:
            weights[partner] += Fraction(1, len(row))
    total = sum(weights.values())
    return {partner: weight / total for partner, weight in weights.items()}
