"""SKOS vocabularies (RDF/XML, Turtle, N-Triples, JSON-LD) -> labels."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import rdflib
from rdflib.namespace import OWL, RDF, SKOS

from micol.errors import MicolError
from micol.files import reading, reason, suffixes
from micol.formats.base import squeezed
from micol.formats.markup import refuse_multiplying_entities
from micol.progress import say
from micol.records import Label

SYNTAXES = {
    ".rdf": "xml",
    ".owl": "xml",
    ".xml": "xml",
    ".skos": "xml",
    ".ttl": "turtle",
    ".n3": "n3",
    ".nt": "nt",
    ".jsonld": "json-ld",
    ".json": "json-ld",
}
# rdflib reads some two megabytes a second: from here on a person should know what they wait for.
LARGE_BYTES = 4 << 20


def labels(path: str | Path, language: str = "en") -> Iterator[Label]:
    """The concepts of a vocabulary by their URIs, in that order, without the deprecated ones.

    Names and descriptions are taken in `language`, else without a language, else in the first one there is.
    """
    graph = parsed(path)
    concepts = {
        concept
        for concept in {*graph.subjects(RDF.type, SKOS.Concept), *graph.subjects(SKOS.prefLabel)}
        if isinstance(concept, rdflib.URIRef) and not is_deprecated(graph, concept)
    }
    for concept in sorted(concepts):
        names = names_of(graph, concept, language)
        # A concept without a name gives nothing to compare a text with.
        if names:
            parents = {*graph.objects(concept, SKOS.broader), *graph.subjects(SKOS.narrower, concept)}
            above = sorted(str(parent) for parent in parents & concepts if parent != concept)
            yield Label(str(concept), names, description_of(graph, concept, language), tuple(above))


def parsed(path: str | Path) -> rdflib.Graph:
    extension = suffixes(path)[0]
    if extension not in SYNTAXES:
        known = ", ".join(SYNTAXES)
        raise MicolError(f"{path}: its extension does not tell its RDF syntax; expected one of {known}")
    syntax = SYNTAXES[extension]
    with reading(path) as stream:
        content = stream.read()
    if syntax == "json-ld":
        refuse_remote_contexts(content, path)
    if syntax == "xml":
        refuse_multiplying_entities(content, path)
    if len(content) > LARGE_BYTES:
        say(f"reading {path} ({len(content) >> 20} MB of {syntax})")
    try:
        # A fixed base, so that relative URIs mean the same in every working directory.
        return rdflib.Graph().parse(io.BytesIO(content), format=syntax, publicID="file:///")
    except Exception as error:
        # rdflib's parsers have no common error: a broken file may end in any of a dozen.
        raise MicolError(f"{path}: not valid {syntax} ({reason(error)[:200]}); correct the file") from error


def refuse_remote_contexts(content: bytes, path: str | Path) -> None:
    """Reading a file must not open addresses, which JSON-LD's contexts may name."""
    try:
        waiting = [json.loads(content)]
    except (ValueError, RecursionError) as error:
        raise MicolError(f"{path}: not valid JSON ({reason(error)}); correct the file") from error
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            waiting += value.values()
            contexts = value.get("@context", [])
            outside = [*(contexts if isinstance(contexts, list) else [contexts]), value.get("@import")]
            for address in outside:
                if isinstance(address, str):
                    raise MicolError(
                        f"{path}: its context {address!r} lies outside the file and is not fetched; "
                        "put it into the file, or convert the vocabulary to Turtle"
                    )


def is_deprecated(graph: rdflib.Graph, concept: Any) -> bool:
    return any(str(value).lower() in ("true", "1") for value in graph.objects(concept, OWL.deprecated))


def names_of(graph: rdflib.Graph, concept: Any, language: str) -> tuple[str, ...]:
    """The preferred name, then the alternative and hidden ones of the same language."""
    preferred = in_language(graph.objects(concept, SKOS.prefLabel), language)
    if not preferred:
        return ()
    others = [
        *graph.objects(concept, SKOS.altLabel),
        *graph.objects(concept, SKOS.hiddenLabel),
    ]
    of_same = [literal for literal in others if isinstance(literal, rdflib.Literal)]
    of_same = [literal for literal in of_same if literal.language == preferred[0].language]
    names = [squeezed(str(literal)) for literal in (*preferred, *sorted(of_same, key=str))]
    return tuple(dict.fromkeys(filter(None, names)))


def description_of(graph: rdflib.Graph, concept: Any, language: str) -> str:
    for relation in (SKOS.definition, SKOS.scopeNote):
        texts = in_language(graph.objects(concept, relation), language)
        if texts:
            return " ".join(squeezed(str(text)) for text in texts)
    return ""


def in_language(values: Iterable[Any], language: str) -> list[rdflib.Literal]:
    """The literals of the best language there is, in a fixed order."""
    literals = [value for value in values if isinstance(value, rdflib.Literal)]
    if not literals:
        return []

    def distance(literal: rdflib.Literal) -> tuple[int, str]:
        tag = literal.language or ""
        if tag == language:
            return 0, tag
        if tag.partition("-")[0] == language:
            return 1, tag
        return (3, tag) if tag else (2, tag)

    best = min(map(distance, literals))
    return sorted((literal for literal in literals if distance(literal) == best), key=str)
