"""MeSH descriptor XML (desc20XX.xml) -> labels: names, scope notes, and parents from the tree numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from micol.files import reading
from micol.formats.markup import flat, records
from micol.layout import Problems, RecordError
from micol.records import Label

ROOT = "DescriptorRecordSet"


class Descriptor(NamedTuple):
    """A descriptor and its places in the trees, from which its parents follow once all are known."""

    label: Label
    tree_numbers: tuple[str, ...]


def labels(path: str | Path, problems: Problems | None = None) -> Iterator[Label]:
    """The descriptors of a MeSH file, in its order."""
    problems = problems or Problems(str(path), skip_bad=False)
    with reading(path) as stream:
        found = list(descriptors(stream, problems))
    at = {number: descriptor.label.id for descriptor in found for number in descriptor.tree_numbers}
    for label, numbers in found:
        # C04.588.149 stands below C04.588.
        above = (at.get(number.rpartition(".")[0]) for number in numbers)
        parents = sorted({parent for parent in above if parent and parent != label.id})
        yield Label(label.id, label.names, label.description, tuple(parents))


def descriptors(stream: Any, problems: Problems) -> Iterator[Descriptor]:
    for element in records(stream, ["DescriptorRecord"], problems, roots=[ROOT]):
        try:
            yield descriptor(element)
        except RecordError as error:
            problems.add(element.sourceline or 1, error)


def descriptor(element: Any) -> Descriptor:
    identifier = flat(element.find("DescriptorUI"))
    preferred = flat(element.find("DescriptorName/String"))
    if not identifier or not preferred:
        raise RecordError("the descriptor has no DescriptorUI or no DescriptorName", "repair the record")
    concepts = element.findall("ConceptList/Concept")
    # The preferred concept's scope note describes the descriptor.
    concepts.sort(key=lambda concept: concept.get("PreferredConceptYN") != "Y")
    notes = (flat(concept.find("ScopeNote")) for concept in concepts)
    terms = (flat(term) for concept in concepts for term in concept.findall("TermList/Term/String"))
    names = tuple(dict.fromkeys(name for name in (preferred, *terms) if name))
    numbers = tuple(flat(number) for number in element.findall("TreeNumberList/TreeNumber"))
    return Descriptor(Label(identifier, names, next(notes, "")), numbers)
