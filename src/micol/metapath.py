"""Meta-paths and meta-graphs, written as the paper prints them.

    path    = chain { "|" chain }
    chain   = letter { join ( letter | group ) }        begins and ends with a single letter
    group   = "(" letter { letter } ")"
    join    = [ "-" ] | "->" | "<-"                     `→` and `←` are read as well, blanks are skipped

`P(AA)P` asks for two distinct shared authors, `P->(PP)<-P` for two distinct common link targets; everything
else is a walk, hop by hop. What a letter means is known only to a schema, so parsing checks the grammar and
`MetaPath.bind` checks the letters.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from micol.errors import UsageError
from micol.schema import Schema

if TYPE_CHECKING:
    from micol.network import Network

JOINS = {"->": "->", "<-": "<-", "→": "->", "←": "<-", "-": "-"}
EXAMPLE = "P(AA)P"
MOST_LETTERS = 1000  # in one pair of brackets


class MetaPathError(UsageError):
    """Shows the path, where it breaks, why, and a path that works."""

    def __init__(self, text: str, place: int, why: str, example: str = EXAMPLE) -> None:
        shown = "".join(character if character.isprintable() else " " for character in text)
        caret = " " * place + "^"
        super().__init__(f"meta-path {text!r}: {why}\n  {shown}\n  {caret}\na valid example: {example}")
        self.place = place


class Hop(NamedTuple):
    """One step along a relation of the network, or against it."""

    letter: str
    forward: bool


class Shared(NamedTuple):
    """One branch of a meta-graph: at least so many distinct nodes that `into` reaches and `out_of` leaves."""

    into: Hop
    out_of: Hop
    least: int


# A chain is bound to hops, and to meta-graphs: branches that must all hold between the same two documents.
Step = Hop | tuple[Shared, ...]


@dataclass(frozen=True)
class Element:
    """A letter of a chain, or a bracket of several, and where it stands in the text."""

    letters: tuple[str, ...]
    places: tuple[int, ...]  # of the letters
    place: int  # of the first character

    def __str__(self) -> str:
        return self.letters[0] if len(self.letters) == 1 else f"({''.join(self.letters)})"


@dataclass(frozen=True)
class Chain:
    """Elements and the joins between them."""

    elements: tuple[Element, ...]
    joins: tuple[str, ...]

    def __str__(self) -> str:
        # Two letters need no `-`, only arrows are written.
        parts = [str(self.elements[0])]
        for join, element in zip(self.joins, self.elements[1:]):
            parts += ["" if join == "-" else join, str(element)]
        return "".join(parts)


class MetaPath:
    """A meta-path, a meta-graph, or a union of them; equal to every other way of writing it."""

    def __init__(self, text: str) -> None:
        self.text = text
        chains = {str(chain): chain for chain in Parser(text).chains()}
        self.chains = tuple(chains[name] for name in sorted(chains))

    @cached_property
    def canonical(self) -> str:
        return "|".join(map(str, self.chains))

    def __str__(self) -> str:
        return self.canonical

    def __repr__(self) -> str:
        return f"MetaPath({self.canonical!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MetaPath) and self.canonical == other.canonical

    def __hash__(self) -> int:
        return hash(self.canonical)

    def bind(self, schema: Schema) -> tuple[tuple[Step, ...], ...]:
        """The steps of each chain, once every letter is known to the schema."""
        return tuple(Binder(self.text, schema).steps(chain) for chain in self.chains)

    def letters(self, schema: Schema) -> set[str]:
        """The letters of the relations that the path follows."""
        steps = [step for chain in self.bind(schema) for step in chain]
        branches = [branch for step in steps if not isinstance(step, Hop) for branch in step]
        hops = [step for step in steps if isinstance(step, Hop)]
        return {hop.letter for hop in hops} | {branch.into.letter for branch in branches}

    def reachable(self, network: Network, id: str) -> set[str]:
        """The ids of all documents that the document reaches; never its own."""
        positions = self.reachable_positions(network, network.position(id))
        return {network.ids[position] for position in positions}

    def reachable_positions(self, network: Network, position: int) -> np.ndarray:
        """The same by positions, ascending."""
        from micol.reach import reachable_positions

        return reachable_positions(network, self, position)


class Parser:
    """Reads text from left to right; every complaint points at a character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.characters = [
            (character, place) for place, character in enumerate(text) if not character.isspace()
        ]
        self.at = 0

    def ahead(self, length: int = 1) -> str:
        """The next characters, blanks left out."""
        return "".join(character for character, _ in self.characters[self.at : self.at + length])

    @property
    def place(self) -> int:
        return self.characters[self.at][1] if self.at < len(self.characters) else len(self.text)

    def fail(self, why: str, place: int | None = None, example: str = EXAMPLE) -> MetaPathError:
        return MetaPathError(self.text, self.place if place is None else place, why, example)

    def chains(self) -> list[Chain]:
        if not self.characters:
            raise self.fail("it is empty")
        chains = [self.chain()]
        while self.ahead() == "|":
            self.at += 1
            chains.append(self.chain())
        return chains

    def chain(self) -> Chain:
        elements, joins = [self.element()], []
        while self.ahead() not in {"", "|"}:
            joins.append(self.join())
            elements.append(self.element())
        self.check(elements, joins)
        return Chain(tuple(elements), tuple(joins))

    def join(self) -> str:
        for arrow in (self.ahead(2), self.ahead()):
            if arrow in JOINS:
                self.at += len(arrow)
                return JOINS[arrow]
        if self.ahead() in {"<", ">"}:
            raise self.fail("an arrow is written -> or <-", example="P->P<-P")
        return "-"

    def element(self) -> Element:
        place = self.place
        if self.ahead() == "(":
            return self.group(place)
        return Element((self.letter(),), (place,), place)

    def letter(self) -> str:
        letter = self.ahead()
        if letter == ")":
            raise self.fail("this bracket was never opened")
        if letter in {"", "|"}:
            raise self.fail("it ends where a letter is expected")
        if not letter.isalpha():
            raise self.fail(f"a letter is expected, not {letter!r}")
        self.at += 1
        return letter

    def group(self, opened: int) -> Element:
        self.at += 1
        members: list[tuple[str, int]] = []
        while self.ahead() != ")":
            if self.ahead() in {"", "|"}:
                raise self.fail("the bracket opened here is never closed", opened)
            if self.ahead() == "(":
                raise self.fail("brackets cannot stand inside brackets")
            place = self.place
            members.append((self.letter(), place))
        self.at += 1
        if not members:
            raise self.fail("the brackets hold no letter", opened)
        if len(members) > MOST_LETTERS:
            raise self.fail(f"the brackets hold more than {MOST_LETTERS:,} letters", opened)
        # The branches of a meta-graph have no order: P(VA)P is P(AV)P.
        members.sort()
        return Element(tuple(letter for letter, _ in members), tuple(place for _, place in members), opened)

    def check(self, elements: list[Element], joins: list[str]) -> None:
        """What makes sense under no schema."""
        if len(elements) == 1:
            raise self.fail(
                "it must lead from a document to a document, and has one end only", elements[0].place
            )
        for index, element in enumerate(elements):
            if len(element.letters) == 1:
                continue
            if index in (0, len(elements) - 1):
                raise self.fail("a path begins and ends with a single letter", element.place)
            after = elements[index + 1]
            if len(after.letters) > 1:
                raise self.fail("brackets stand between two single letters", after.place)
            if (joins[index - 1] == "-") != (joins[index] == "-"):
                raise self.fail(
                    "brackets have arrows on both sides or on neither", element.place, example="P->(PP)<-P"
                )


class Binder:
    """Gives the letters of a chain the meaning that a schema gives them."""

    def __init__(self, text: str, schema: Schema) -> None:
        self.text, self.schema = text, schema
        self.documents = {schema.document, *schema.links}

    def fail(self, why: str, place: int) -> MetaPathError:
        return MetaPathError(self.text, place, why, self.example())

    def example(self) -> str:
        """A valid path of this schema."""
        document, nodes, links = self.schema.document, list(self.schema.nodes), list(self.schema.links)
        if nodes:
            return f"{document}{nodes[0]}{document}"
        return f"{document}->{links[0]}<-{document}" if links else "none, as the schema names no field"

    def steps(self, chain: Chain) -> tuple[Step, ...]:
        elements, joins = chain.elements, chain.joins
        for element in elements:
            for letter, place in zip(element.letters, element.places):
                self.check_known(letter, place)
        for element, end in ((elements[0], "begin"), (elements[-1], "end")):
            if element.letters[0] not in self.documents:
                raise self.fail(
                    f"a path must {end} at a document ({self.schema.document})", element.places[0]
                )
        steps: list[Step] = []
        index = 0
        while index < len(joins):
            here, there = elements[index], elements[index + 1]
            if len(there.letters) == 1:
                steps.append(self.hop(here.letters[0], joins[index], there.letters[0], there.places[0]))
                index += 1
                continue
            after = elements[index + 2]
            if here.letters[0] not in self.documents or after.letters[0] not in self.documents:
                raise self.fail("brackets stand between two documents", there.place)
            steps.append(self.branches(here, joins[index], there, joins[index + 1], after))
            index += 2
        return tuple(steps)

    def branches(
        self, here: Element, join: str, group: Element, next_join: str, after: Element
    ) -> tuple[Shared, ...]:
        places = dict(zip(group.letters, group.places))
        return tuple(
            Shared(
                self.hop(here.letters[0], join, letter, places[letter]),
                self.hop(letter, next_join, after.letters[0], places[letter]),
                count,
            )
            for letter, count in Counter(group.letters).items()
        )

    def check_known(self, letter: str, place: int) -> None:
        if letter in self.schema.nodes or letter in self.documents:
            return
        known = [
            f"{letter} ({name})" for letter, name in [*self.schema.nodes.items(), *self.schema.links.items()]
        ]
        if self.schema.document not in self.schema.links:
            known.append(f"{self.schema.document} (document)")
        raise self.fail(f"the schema has no letter {letter!r}; it has {', '.join(known)}", place)

    def hop(self, here: str, join: str, there: str, place: int) -> Hop:
        if join != "-":
            return self.link(here, join, there, place)
        nodes = [letter for letter in (here, there) if letter in self.schema.nodes]
        if len(nodes) == 2:
            raise self.fail(f"{here} and {there} are joined only through documents", place)
        if not nodes:
            raise self.fail(f"say which way the link goes: {here}->{there} or {here}<-{there}", place)
        return Hop(nodes[0], forward=there == nodes[0])

    def link(self, here: str, join: str, there: str, place: int) -> Hop:
        for letter in (here, there):
            if letter in self.schema.nodes:
                raise self.fail(f"{letter} is no link and takes no arrow", place)
        named = {here, there} - {self.schema.document}
        if len(named) == 2:
            raise self.fail(f"one step cannot follow two link fields, {here} and {there}", place)
        letter = next(iter(named), self.schema.document)
        if letter not in self.schema.links:
            raise self.fail(f"the schema has no link field for {letter}", place)
        return Hop(letter, forward=join == "->")


PAPER_PATHS = tuple(
    MetaPath(path)
    for path in (
        "P->P", "P<-P", "PAP", "PVP", "P->P<-P", "P<-P->P", "P(AA)P", "P(AV)P", "P->(PP)<-P", "P<-(PP)->P",
    )
)  # fmt: skip
