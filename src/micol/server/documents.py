"""Documents of requests: from JSON, or from Annif's fields, to the records that the classifier takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from micol.corpus import CITATIONS
from micol.layout import RecordError, as_list, as_text
from micol.records import Document
from micol.schema import Schema
from micol.server.limits import Limits
from micol.server.problems import RequestError


def documents_of(records: Sequence[Mapping[str, Any]], schema: Schema, limits: Limits) -> list[Document]:
    """Checked documents; one without an id is called by its number."""
    if len(records) > limits.documents:
        raise RequestError(
            413, f"{len(records):,} documents in one request; at most {limits.documents:,} are taken"
        )
    return [
        document_of(record, f"documents[{position}]", str(position), schema, limits)
        for position, record in enumerate(records)
    ]


def document_of(
    record: Mapping[str, Any], place: str, substitute_id: str, schema: Schema, limits: Limits
) -> Document:
    try:
        title = as_text(record.get("title"), "title")
        abstract = as_text(record.get("abstract"), "abstract") or as_text(record.get("text"), "text")
        metadata = {name: tuple(as_list(record.get(name), name)) for name in schema.fields}
        if citations := as_list(record.get(CITATIONS), CITATIONS):
            metadata[CITATIONS] = tuple(citations)
    except RecordError as error:
        raise RequestError(400, f"{place}: {error.problem}; {error.remedy}") from None
    size = len(title) + len(abstract)
    if size > limits.document_characters:
        raise RequestError(
            413,
            f"{place} has {size:,} characters; at most {limits.document_characters:,} are taken, "
            "so send its beginning",
        )
    id = record.get("id")
    return Document(substitute_id if id is None else str(id), title, abstract, metadata)
