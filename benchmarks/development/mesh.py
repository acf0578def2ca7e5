"""MeSH: scope notes of headings are the documents, the headings above them the labels."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from development.common import Made, ancestors, document, label, nearest
from micol.labels import LabelSpace

MIN_NARROWER = 8
MESH_LEVELS = 2


def meshnotes(path: Path) -> Made:
    """Headings with many narrower ones are the labels; the others' scope notes are the documents."""
    headings = {heading.id: heading for heading in LabelSpace.read(path)}

    def above(id: str) -> list[str]:
        return [parent for parent in headings[id].parents if parent in headings]

    narrower = Counter(parent for id in headings for parent in above(id))
    wide = {id for id, count in narrower.items() if count >= MIN_NARROWER and headings[id].description}
    documents = [
        document(id, heading.names[0], heading.description, ancestors(id, above, wide, MESH_LEVELS))
        for id, heading in headings.items()
        if heading.description and id not in wide
    ]
    labels = [
        label(id, headings[id].names, headings[id].description, nearest(id, above, wide))
        for id in sorted(wide)
    ]
    return Made(documents, labels)
