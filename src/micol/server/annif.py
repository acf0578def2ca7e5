"""Annif's API where it means the same here, so that its clients and its `http` backend work unchanged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from micol import __version__
from micol.server.batcher import SCORE_DIGITS, Answer, Question
from micol.server.documents import document_of
from micol.server.limits import ANNIF_BATCH
from micol.server.problems import RequestError, documented, printable
from micol.server.service import Service
from micol.server.state import State

LIMIT, MOST = 10, 1000
PREFIX = "metadata_"
NUMBERS = ("limit", "threshold")
FORM, JSON = "application/x-www-form-urlencoded", "application/json"


class ApiInfo(BaseModel):
    title: str
    version: str


class Vocabulary(BaseModel):
    vocab_id: str
    languages: list[str]
    size: int
    loaded: bool


class Vocabularies(BaseModel):
    vocabs: list[Vocabulary]


class ProjectBackend(BaseModel):
    backend_id: str


class Project(BaseModel):
    project_id: str
    name: str
    language: str
    backend: ProjectBackend
    vocab: Vocabulary
    vocab_language: str
    is_trained: bool
    modification_time: str


class Projects(BaseModel):
    projects: list[Project]


class Subject(BaseModel):
    uri: str
    label: str
    notation: str | None
    score: float = Field(ge=0, le=1)


class Subjects(BaseModel):
    results: list[Subject]


class SubjectsOfDocument(Subjects):
    document_id: str | None


class AnnifDocument(BaseModel):
    model_config = ConfigDict(strict=True)

    text: str
    document_id: str | None = None
    metadata: dict[str, str] | None = None


class AnnifBatch(BaseModel):
    model_config = ConfigDict(strict=True)

    documents: list[AnnifDocument] = Field(max_length=ANNIF_BATCH)


def either_body(languages: list[str]) -> dict[str, Any]:
    """The description of a document as a form or as a JSON object, which may have nulls."""
    tongues: dict[str, list[str | None]] = {FORM: [*languages], JSON: [*languages, None]}
    content = {kind: {"schema": body_fields(allowed)} for kind, allowed in tongues.items()}
    return {"requestBody": {"required": True, "content": content}}


def body_fields(languages: list[str | None]) -> dict[str, Any]:
    about = "Metadata, such as `metadata_authors`; several separated by semicolons."
    return {
        "type": "object",
        "required": ["text"],
        "properties": {
            "text": {"type": "string", "description": "The document."},
            "limit": {"type": "integer", "minimum": 0, "maximum": MOST, "default": LIMIT},
            "threshold": {"type": "number", "minimum": 0, "maximum": 1, "default": 0},
            "language": {"description": "Of the labels.", "enum": languages},
        },
        "patternProperties": {f"^{PREFIX}": {"type": "string", "description": about}},
    }


def router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/v1", tags=["Annif"])
    tongue = service.options.language
    languages = ["", tongue]  # none given: the one there is
    any_language = Query("", json_schema_extra={"enum": languages})

    def vocabulary() -> dict[str, Any]:
        size = len(service.state.labels)
        return {"vocab_id": service.name, "languages": [tongue], "size": size, "loaded": True}

    def project() -> dict[str, Any]:
        return {
            "project_id": service.name,
            "name": f"micol: {service.name}",
            "language": tongue,
            "backend": {"backend_id": "micol"},
            "vocab": vocabulary(),
            "vocab_language": tongue,
            "is_trained": True,
            "modification_time": service.modified.isoformat(),
        }

    def check(project_id: str, language: str | None = None) -> None:
        if project_id != service.name:
            raise RequestError(404, f"Project {printable(project_id)} not found; there is {service.name!r}")
        if language is not None and language not in languages:
            raise RequestError(400, f"language {printable(language)} not supported by vocabulary")

    @routes.get("/", response_model=ApiInfo)
    async def info() -> Any:
        """The name and version of the program."""
        return {"title": "micol, by Annif's REST API", "version": __version__}

    @routes.get("/vocabs", response_model=Vocabularies)
    async def vocabularies() -> Any:
        """The label space, as Annif describes a vocabulary."""
        return {"vocabs": [vocabulary()]}

    @routes.get("/projects", response_model=Projects)
    async def projects() -> Any:
        """The model, as Annif describes a project."""
        return {"projects": [project()]}

    @routes.get("/projects/{project_id}", response_model=Project, responses=documented(404))
    async def one_project(project_id: str) -> Any:
        """The same, alone."""
        check(project_id)
        return project()

    @routes.post(
        "/projects/{project_id}/suggest",
        response_model=Subjects,
        responses=documented(400, 404, 413, 503),
        openapi_extra=either_body(languages),
    )
    async def suggest(project_id: str, request: Request) -> Any:
        """Suggests subjects for a text; a form or a JSON object."""
        fields = await fields_of(request)
        check(project_id, text_of(fields, "language"))
        text = required(fields, "text")
        limit, threshold = number_of(fields, "limit", LIMIT, MOST), number_of(fields, "threshold", 0, 1)
        if limit != int(limit):
            raise RequestError(400, "limit: must be a whole number")
        metadata = {name: required(fields, name) for name in fields if name.startswith(PREFIX)}
        results = await results_of([record(text, metadata, PREFIX)], int(limit), threshold)
        return JSONResponse({"results": results[0]})

    @routes.post(
        "/projects/{project_id}/suggest-batch",
        response_model=list[SubjectsOfDocument],
        responses=documented(400, 404, 413, 503),
    )
    async def suggest_batch(
        project_id: str,
        body: AnnifBatch,
        limit: Annotated[int, Query(ge=0, le=MOST)] = LIMIT,
        threshold: Annotated[float, Query(ge=0, le=1, allow_inf_nan=False)] = 0,
        language: str = any_language,
    ) -> Any:
        """Suggests subjects for up to 32 documents."""
        check(project_id, language)
        records = [record(document.text, document.metadata or {}) for document in body.documents]
        results = await results_of(records, limit, threshold)
        return JSONResponse(
            [
                {"document_id": document.document_id, "results": found}
                for document, found in zip(body.documents, results, strict=True)
            ]
        )

    @routes.post("/projects/{project_id}/learn", include_in_schema=False)
    async def learn(project_id: str) -> Any:
        """Refused: labels are learnt from metadata, not from examples."""
        check(project_id)
        raise RequestError(403, f"Project {service.name!r} is not configured to allow learning via API")

    async def results_of(
        records: list[dict[str, Any]], limit: int, threshold: float
    ) -> list[list[dict[str, Any]]]:
        documents = [
            document_of(
                fields, f"documents[{place}]", str(place), service.options.schema, service.options.limits
            )
            for place, fields in enumerate(records)
        ]
        state, answers = await service.ask(documents, Question(max(limit, 1)))
        return [subjects(state, answer, limit, threshold) for answer in answers]

    return routes


def record(text: str, metadata: Mapping[str, str], prefix: str = "") -> dict[str, Any]:
    """A document with its metadata; several names or ids of a field are separated by semicolons."""
    fields = {name.removeprefix(prefix): value for name, value in metadata.items()}
    lists = {name: [part.strip() for part in value.split(";")] for name, value in fields.items()}
    return {**lists, "id": None, "abstract": "", "title": fields.get("title", ""), "text": text}


def subjects(state: State, answer: Answer, limit: int, threshold: float) -> list[dict[str, Any]]:
    found = [
        {
            "uri": label.id,
            "label": label.name,
            "notation": None,
            "score": round(state.strength(label.score), SCORE_DIGITS),
        }
        for label in answer.tagged.labels[:limit]
    ]
    return [subject for subject in found if subject["score"] >= threshold]  # type: ignore[operator]


async def fields_of(request: Request) -> dict[str, Any]:
    """The fields of a form or of a JSON object, whichever was sent."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    try:
        if kind == JSON or kind.endswith("+json"):
            content = json.loads(body)
            if not isinstance(content, dict):
                raise RequestError(400, "the body must be a JSON object")
            return content
        if kind == FORM:
            pairs = parse_qsl(body.decode(), keep_blank_values=True, errors="strict")
            fields: dict[str, Any] = {}
            for name, value in pairs:  # a list of metadata arrives as a field that is repeated
                if name.startswith(PREFIX) and name in fields:
                    value = f"{fields[name]};{value}"
                fields[name] = as_number(value) if name in NUMBERS else value
            return fields
    except (ValueError, RecursionError):
        raise RequestError(400, f"the body is not valid {'JSON' if kind != FORM else 'form data'}") from None
    raise RequestError(400, f"send the document as {FORM} or as {JSON}")


def text_of(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if value is None or isinstance(value, str):
        return value
    raise RequestError(400, f"{name[:200]}: must be a string")


def required(fields: Mapping[str, Any], name: str) -> str:
    text = text_of(fields, name)
    if text is None:
        raise RequestError(400, f"{name[:200]}: is missing")
    return text


def number_of(fields: Mapping[str, Any], name: str, default: float, most: float) -> float:
    value = fields.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RequestError(400, f"{name}: must be a number")
    if not 0 <= value <= most:
        raise RequestError(400, f"{name}: must be between 0 and {most:g}")
    return value


def as_number(text: str) -> float | str:
    """What stands in a form's field, if it is a number."""
    try:
        return float(text)
    except ValueError:
        return text
