"""Retrievers beyond the paper's two, asked for by name. A new one is a new file here and a line below."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from micol.errors import UsageError
from micol.retrieve import Retrieved, lifted_above

if TYPE_CHECKING:
    from micol.labels import LabelSpace
    from micol.ranking import Ranking


class Retriever(Protocol):
    """An index of labels that finds some for each text."""

    def __init__(self, labels: LabelSpace) -> None: ...

    def search(self, texts: Sequence[str], top: int) -> Ranking:
        """At most `top` labels for each text, best first."""


RETRIEVERS = {
    "trigrams": "micol.retrieve.trigrams.Trigrams",
}


def retriever(name: str, labels: LabelSpace) -> Retriever:
    if name not in RETRIEVERS:
        raise UsageError(f"{name!r} is no retriever; there are {', '.join(RETRIEVERS)}")
    module, _, kind = RETRIEVERS[name].rpartition(".")
    found: type[Retriever] = getattr(importlib.import_module(module), kind)
    return found(labels)


def with_further(
    found: Retrieved, texts: Sequence[str], retrievers: Sequence[Retriever], top: int
) -> Retrieved:
    """What was found, and below it what each further retriever adds."""
    candidates = found.candidates
    for each in retrievers:
        more = each.search(texts, top)
        candidates = lifted_above(candidates, more).union(more)
    return replace(found, candidates=candidates)
