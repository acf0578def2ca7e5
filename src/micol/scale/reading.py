"""Documents in Parquet become a network of tables; what is wrong with them is told, or set aside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from micol.corpus import CITATIONS, document_layout
from micol.errors import MicolError
from micol.files import STANDARD_INPUT, suffixes
from micol.layout import Problems, RecordError, no_id
from micol.metapath import Hop, MetaPath
from micol.scale.engine import FILE, RECORD, Column, Engine
from micol.scale.network import Network
from micol.schema import Schema
from micol.tables import JSON_LINES, files_of, is_parquet

TOLD = 20  # of the problems, one by one
ITSELF = RecordError("names the document itself", "take that reference out")


@dataclass(frozen=True)
class Rejects:
    """What was left out: records, and references of documents to themselves (file, record, id, reason)."""

    query: str
    number: int
    messages: list[str]  # of the first of them


def check_sources(engine: Engine, sources: Sequence[str]) -> None:
    """Parquet, on this machine's disk or wherever the engine finds it."""
    for source in sources:
        if "://" in source:
            continue
        if source == STANDARD_INPUT or suffixes(source)[0] in JSON_LINES:
            raise MicolError(
                f"{source}: {engine.name} reads documents from Parquet; in Python, "
                f"""duckdb.sql("COPY (FROM '{source}') TO 'docs.parquet'") writes them so"""
            )
        if not Path(source).exists():
            raise MicolError(f"{source}: no such file or folder; check the path")
        if not all(map(is_parquet, files_of(source))):
            raise MicolError(f"{source}: is no Parquet file, and no folder of files that end in .parquet")


class Reader:
    """Reads the columns that a path needs."""

    def __init__(self, engine: Engine, sources: Sequence[str], schema: Schema, path: MetaPath) -> None:
        check_sources(engine, sources)
        self.engine, self.schema, self.path = engine, schema, path
        self.source = ", ".join(sources)
        self.records = engine.read(sources)
        self.columns = engine.columns(self.records)
        self.layout = document_layout(schema).suited_to(self.columns)
        letters = path.letters(schema)
        self.fields = {
            a: field for a, field in [*schema.nodes.items(), *schema.links.items()] if a in letters
        }
        self.first_link = next(iter(schema.links), None)
        # Documents that tell what links to them count for the first link field.
        self.has_citations = self.column(CITATIONS) is not None and self.first_link in letters
        self.id = text(engine.quoted(self.key("id")))
        self.check_columns()

    def key(self, field: str) -> str:
        return self.layout.keys(field)[0]

    def column(self, field: str) -> Column | None:
        return self.columns.get(self.key(field))

    @property
    def link_fields(self) -> list[str]:
        named = [field for letter, field in self.fields.items() if letter in self.schema.links]
        present = [field for field in dict.fromkeys(named) if self.column(field)]
        return [*present, CITATIONS] if self.has_citations else present

    def check_columns(self) -> None:
        if self.column("id") is None:
            raise MicolError(
                f'{self.source}: has no column "{self.key("id")}"; give every document an id of its own'
            )
        for field in ["id", *self.fields.values(), *self.link_fields]:
            column = self.column(field)
            if column and (column.kind == "other" or (field == "id" and column.kind == "list")):
                expected = "strings" if field == "id" else "strings or lists of strings"
                raise MicolError(
                    f'{self.source}: column "{self.key(field)}" must hold {expected}, got {column.type}; '
                    "write its values as strings"
                )

    def read(self, skip_bad: bool) -> tuple[Network, Rejects]:
        """The network, and what was left out of it; unless bad records are skipped, the first stops it."""
        rejected = self.engine.keep("rejected", " UNION ALL ".join(self.problems()))
        rejects = Rejects(
            f"SELECT file, record, id, reason FROM {rejected} ORDER BY file, record, reason",
            self.engine.count(rejected),
            self.told(rejected, skip_bad),
        )
        if rejects.number:
            self.records = self.engine.view(
                "records",
                f"SELECT r.* FROM {self.records} r ANTI JOIN (SELECT * FROM {rejected} WHERE is_whole) j "
                f"ON r.{FILE} = j.file AND r.{RECORD} = j.record",
            )
        documents = self.engine.keep("documents", f"SELECT {self.id} AS id FROM {self.records}")
        if not self.engine.rows(f"SELECT id FROM {documents} LIMIT 1"):
            raise MicolError(f"{self.source}: no document in it can be used; check the files")
        edges = {letter: self.edges(letter, field) for letter, field in self.fields.items()}
        return Network(self.engine, self.schema, documents, edges, self.inside(documents, edges)), rejects

    def told(self, rejected: str, skip_bad: bool) -> list[str]:
        messages: list[str] = []
        first = f"ORDER BY file, record, reason LIMIT {TOLD}"
        found = self.engine.rows(f"SELECT file, record, reason, is_whole FROM {rejected} {first}")
        for file, record, reason, is_whole in found:
            problems = Problems(file, skip_bad, "record")
            remedy = no_id(self.layout).remedy if is_whole else ITSELF.remedy
            problems.add(record, RecordError(reason, remedy))
            messages += problems.skipped
        return messages

    def problems(self) -> Iterator[str]:
        """Queries for everything that is wrong, and whether it makes a record useless as a whole."""
        place = f"{FILE} AS file, {RECORD} AS record, {self.id} AS id"
        without = f"({self.id} IS NULL OR {self.id} = '')"
        yield (
            f"SELECT {place}, '{no_id(self.layout).problem}' AS reason, TRUE AS is_whole "
            f"FROM {self.records} WHERE {without}"
        )
        for field in self.link_fields:
            reason = f"""concat('"{self.key(field)}" of "', {self.id}, '" {ITSELF.problem}')"""
            yield (
                f"SELECT {place}, {reason} AS reason, FALSE AS is_whole "
                f"FROM {self.records} WHERE {self.names_itself(field)}"
            )
        repeated = self.engine.keep(
            "repeated",
            f"SELECT id FROM (SELECT {self.id} AS id FROM {self.records} WHERE NOT {without}) i "
            "GROUP BY id HAVING count(*) > 1",
        )
        if self.engine.count(repeated):
            given = f"SELECT {place} FROM {self.records}"
            first = "PARTITION BY g.id ORDER BY g.file, g.record"
            yield (
                "SELECT file, record, id, "
                """concat('the id "', id, '" was already given at ', earlier) AS reason, TRUE AS is_whole """
                "FROM (SELECT g.*, row_number() OVER w AS place, "
                "first_value(concat(g.file, ', record ', g.record)) OVER w AS earlier "
                f"FROM ({given}) g SEMI JOIN {repeated} r ON g.id = r.id WINDOW w AS ({first})) t "
                "WHERE place > 1"
            )

    def names_itself(self, field: str) -> str:
        name, column = self.engine.quoted(self.key(field)), self.columns[self.key(field)]
        if column.kind == "list":
            # An id that is no number is in no list of numbers.
            return f"array_contains({name}, TRY_CAST({self.id} AS {column.type}))"
        return f"{text(name)} = {self.id}"

    def edges(self, letter: str, field: str) -> str:
        if letter not in self.schema.links:
            return self.engine.keep("edges", self.values(field))
        links = f"SELECT a, b FROM ({self.values(field)}) l WHERE a <> b"
        if self.has_citations and letter == self.first_link:
            # A link that both its documents tell is one link.
            links += f" UNION SELECT b AS a, a AS b FROM ({self.values(CITATIONS)}) c WHERE a <> b"
        return self.engine.keep("edges", links)

    def values(self, field: str) -> str:
        """Documents and the values of a field; ids are unique, and each value of a record is given once."""
        column, name = self.column(field), self.engine.quoted(self.key(field))
        if column is None:
            return "SELECT CAST(NULL AS STRING) AS a, CAST(NULL AS STRING) AS b WHERE FALSE"
        value = self.engine.each(f"array_distinct({name})") if column.kind == "list" else name
        return (
            f"SELECT a, {text('b')} AS b FROM (SELECT {self.id} AS a, {value} AS b FROM {self.records}) v "
            f"WHERE b IS NOT NULL AND {text('b')} <> ''"
        )

    def inside(self, documents: str, edges: dict[str, str]) -> dict[Hop, str]:
        """For each hop that a chain ends with and that may lead out of the corpus, the edges that do not."""
        found: dict[Hop, str] = {}
        for *_, last in self.path.bind(self.schema):
            for hop in [last] if isinstance(last, Hop) else [branch.out_of for branch in last]:
                told_by_others = self.has_citations and hop.letter == self.first_link
                leads_out = hop.letter in self.schema.links and (hop.forward or told_by_others)
                if leads_out and hop not in found:
                    found[hop] = self.engine.keep(
                        "inside",
                        f"SELECT e.a, e.b FROM {edges[hop.letter]} e SEMI JOIN {documents} d "
                        f"ON e.{'b' if hop.forward else 'a'} = d.id",
                    )
        return found


def text(value: str) -> str:
    return f"CAST({value} AS STRING)"
