"""Which fields of a document are metadata, and the letters that meta-paths call them by."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from micol.errors import MicolError

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
            if len(letter) != 1 or not letter.isalpha():
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
    def read(cls, path: str | Path) -> Schema:
        """Reads a TOML file with [nodes] and [links] tables and an optional `document` letter."""
        try:
            content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise MicolError(f"{path}: cannot be read as a schema ({error})") from error
        except tomllib.TOMLDecodeError as error:
            raise MicolError(
                f'{path}: not valid TOML ({error}); expected [nodes] with lines like A = "authors"'
            ) from error
        unknown = set(content) - {"nodes", "links", "document"}
        if unknown:
            raise MicolError(
                f"{path}: unknown entry {sorted(unknown)[0]!r}; expected [nodes], [links] or document"
            )
        nodes, links = content.get("nodes", {}), content.get("links", {})
        for table in (nodes, links):
            for letter, name in table.items():
                if not isinstance(name, str):
                    raise MicolError(
                        f'{path}: {letter} must name a field, as in {letter} = "authors", got {name!r}'
                    )
        document = content.get("document", next(iter(links), "P"))
        try:
            return cls(nodes, links, document)
        except MicolError as error:
            raise MicolError(f"{path}: {error}") from error


DEFAULT_SCHEMA = Schema()
