"""A document as sentences: one of them often says what the whole text buries."""

from __future__ import annotations

import re
from collections.abc import Sequence

from micol.records import Document

BREAK = re.compile(r"(?<=[.!?;:])\s+|\n+")
# Shorter pieces are "Methods:" and the like.
FEWEST_CHARACTERS = 20
MOST_SENTENCES = 25


def spans(text: str) -> list[tuple[int, int]]:
    """Where the sentences of a text begin and end; the first line, its title, counts however short."""
    found = []
    start = 0
    for end, following in [
        *((match.start(), match.end()) for match in BREAK.finditer(text)),
        (len(text),) * 2,
    ]:
        if end - start >= FEWEST_CHARACTERS or (start == 0 and end and "\n" in text[end:following]):
            found.append((start, end))
        start = following
    return found[:MOST_SENTENCES] or ([(0, len(text))] if text else [])


def sentences_of(documents: Sequence[Document]) -> tuple[list[str], list[int]]:
    """The sentences of all documents, and where each document's begin."""
    found: list[str] = []
    bounds = [0]
    for document in documents:
        text = document.text
        found += [text[start:end] for start, end in spans(text)]
        bounds.append(len(found))
    return found, bounds
