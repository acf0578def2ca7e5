"""Document, Label, Suggestion: the plain values that travel through the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Document:
    """One document: its text, and its metadata as field -> values."""

    id: str
    title: str = ""
    abstract: str = ""
    metadata: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    labels: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Title and abstract, the title on a line of its own."""
        return "\n".join(part for part in (self.title, self.abstract) if part)


@dataclass(frozen=True, slots=True)
class Label:
    """One label: the first name is the preferred one, the others serve exact matching only."""

    id: str
    names: tuple[str, ...]
    description: str = ""
    parents: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.names[0]

    @property
    def text(self) -> str:
        """The paper's t_l: preferred name and description."""
        return f"{self.name}. {self.description}" if self.description else self.name


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One label suggested for a document."""

    id: str
    name: str
    score: float


@dataclass(frozen=True, slots=True)
class Tagged:
    """A document's suggestions, best first."""

    id: str
    labels: tuple[Suggestion, ...]
