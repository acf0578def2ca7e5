"""The corpus' network around a document, for looking at."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow.compute as pc

from micol.corpus import Corpus
from micol.errors import MicolError, UsageError
from micol.metapath import PAPER_PATHS, MetaPath
from micol.network import Network
from micol.server.problems import RequestError, printable

MOST_LETTERS = 60  # of a meta-path that is asked about: long ones take long to follow


class CorpusView:
    """Documents and their neighbours by meta-path."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.schema = corpus.schema
        _ = self.network, corpus.ids

    @cached_property
    def network(self) -> Network:
        return self.corpus.network()

    @cached_property
    def paths(self) -> list[str]:
        """Those of the paper's meta-paths that the schema has letters for, else the simplest of its own."""
        fitting = [path.canonical for path in PAPER_PATHS if fits(path, self)]
        document = self.schema.document
        return fitting or [f"{document}{letter}{document}" for letter in self.schema.nodes]

    def about(self) -> dict[str, Any]:
        return {"documents": len(self.corpus), "paths": self.paths}

    def position(self, id: str) -> int:
        try:
            return self.corpus.position(id)
        except MicolError:
            raise RequestError(404, f"no document of the corpus has the id {printable(id)}") from None

    def search(self, text: str, limit: int) -> dict[str, Any]:
        """Documents with a text in title or id."""
        table = self.corpus.table.select(["id", "title"])
        if text.strip():
            matches = [
                pc.match_substring(table[column], text.strip(), ignore_case=True)
                for column in ("id", "title")
            ]
            table = table.filter(pc.or_(*matches))
        return {"total": len(table), "documents": table.slice(0, limit).to_pylist()}

    def document(self, id: str) -> dict[str, Any]:
        document = self.corpus[self.position(id)]
        metadata = {name: list(values) for name, values in document.metadata.items() if values}
        return {"id": document.id, "title": document.title, "abstract": document.abstract, **metadata}

    def neighbours(self, id: str, path: str, limit: int) -> dict[str, Any]:
        """The documents that a meta-path reaches, those that share most first."""
        position = self.position(id)
        reached = self.parsed(path).reachable_positions(self.network, position)
        shared = self.shared_counts(position)[reached]
        best = reached[np.argsort(-shared, kind="stable")[:limit]]
        document = self.corpus[position]
        return {
            "id": document.id,
            "title": document.title,
            "path": path,
            "total": len(reached),
            "neighbours": [self.relative(document.metadata, document.id, int(other)) for other in best],
        }

    def parsed(self, path: str) -> MetaPath:
        try:
            parsed = MetaPath(path)
            parsed.bind(self.schema)
        except UsageError as error:
            raise RequestError(404, str(error)) from None
        return parsed

    def shared_counts(self, position: int) -> np.ndarray:
        """How many nodes each document shares with one, of any kind; the rarer a node the more it counts."""
        counts = np.zeros(len(self.corpus))
        for relation in self.network.relations.values():
            nodes = relation.forward.indices[slice(*relation.forward.indptr[position : position + 2])]
            for node in nodes:
                members = relation.backward.indices[slice(*relation.backward.indptr[node : node + 2])]
                counts[members] += 1 / np.log2(1 + max(len(members), 2))
        return counts

    def relative(self, metadata: Any, id: str, other: int) -> dict[str, Any]:
        document = self.corpus[other]
        shared = {
            name: common(metadata.get(name, ()), document.metadata.get(name, ()))
            for name in self.schema.fields
        }
        links = [
            *(f"→ {name}" for name in self.schema.links.values() if document.id in metadata.get(name, ())),
            *(f"← {name}" for name in self.schema.links.values() if id in document.metadata.get(name, ())),
        ]
        return {
            "id": document.id,
            "title": document.title,
            "shared": {name: values for name, values in shared.items() if values},
            "links": links,
        }


def fits(path: MetaPath, view: CorpusView) -> bool:
    try:
        path.bind(view.schema)
    except UsageError:
        return False
    return True


def common(one: Sequence[str], other: Sequence[str], most: int = 5) -> list[str]:
    """Values of both, in the order of the first."""
    both = set(other)
    return [value for value in one if value in both][:most]
