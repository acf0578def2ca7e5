"""Which fields of a document are metadata, and the letters that meta-paths call them by."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from micol.errors import MicolError
from micol.files import reading

EXAMPLE = '[nodes] with lines like A = "authors", or [links] with lines like P = "references"'

# Fields with a meaning of their own: no schema may use them as metadata.
RESERVED_FIELDS = frozenset({"id", "title", "abstract", "text", "labels", "citations"})


@dataclass(frozen=True)
class Schema:
    """Letters for metadata nodes (`A = "authors"`) and for document links (`P = "references"`)."""

    nodes: Mapping[str, str] = field(default_factory=lambda: {"A": "authors", "V": "venue"})
    links: Mapping[str, str] = field(default_factory=lambda: {"P": "references"})
    document: str = "P"

    def __post_init__(self) -> None:
        letters = [*self.nodes, *self.links]
        for letter in [*letters, self.document]:
            if not isinstance(letter, str) or len(letter) != 1 or not letter.isalpha():
                raise MicolError(f'schema: {letter!r} must be a single letter, such as A = "authors"')
        for letter in self.nodes:
            if letter in self.links or letter == self.document:
                raise MicolError(f"schema: the letter {letter!r} stands for two things; give each its own")
        for name in [*self.nodes.values(), *self.links.values()]:
            if name in RESERVED_FIELDS:
                raise MicolError(f"schema: {name!r} is not metadata; reserved: {sorted(RESERVED_FIELDS)}")

    @property
    def fields(self) -> tuple[str, ...]:
        """Every metadata field, each once."""
        return tuple(dict.fromkeys([*self.nodes.values(), *self.links.values()]))

    @classmethod
    def read(cls, path: str | Path | None) -> Schema:
        """Reads a TOML file with [nodes] and [links] tables and an optional `document` letter.

        Without a file it is the default one, that of scientific papers.
        """
        if path is None:
            return cls()
        with reading(path) as stream:
            data = stream.read()
        try:
            content = tomllib.loads(data.decode())
            return cls(*_tables(content), content.get("document", next(iter(content.get("links", {})), "P")))
        except UnicodeDecodeError:
            raise MicolError(f"{path}: not UTF-8; convert the file to UTF-8") from None
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise MicolError(f"{path}: not valid TOML ({error}); expected {EXAMPLE}") from error
        except MicolError as error:
            raise MicolError(f"{path}: {error}") from error


def _tables(content: Mapping[str, Any]) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The [nodes] and [links] of a schema file."""
    for entry in content:
        if entry not in ("nodes", "links", "document"):
            raise MicolError(f"unknown entry {entry!r}; expected [nodes], [links] or document")
    nodes, links = content.get("nodes", {}), content.get("links", {})
    for name, table in (("nodes", nodes), ("links", links)):
        if not isinstance(table, dict):
            raise MicolError(f"[{name}] must be a table, got {table!r}; expected {EXAMPLE}")
        for letter, value in table.items():
            if not isinstance(value, str) or not value:
                raise MicolError(f'{letter} must name a field, as in {letter} = "authors", got {value!r}')
    if not nodes and not links:
        raise MicolError(f"no field at all; expected {EXAMPLE}")
    return nodes, links


DEFAULT_SCHEMA = Schema()
