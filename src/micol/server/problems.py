"""Errors as `application/problem+json`, the form that Annif's clients read: useful, and leaking nothing."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.routing import Match

log = logging.getLogger("micol.server")


class RequestError(Exception):
    """What is answered in place of a result."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})


class Problem(BaseModel):
    """What is wrong, for a person (`detail`) and for a program (`status`)."""

    type: str = Field("about:blank", examples=["about:blank"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["no label has the id 'l9'"])


class ProblemResponse(JSONResponse):
    media_type = "application/problem+json"


def answer(status: int, detail: str, headers: Mapping[str, str] | None = None) -> ProblemResponse:
    title = HTTPStatus(status).phrase
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return ProblemResponse(body, status, dict(headers or {}))


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems of an operation, for its OpenAPI description."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {ProblemResponse.media_type: {"schema": schema}},
        }
        for status in statuses
    }


def install(app: FastAPI) -> None:
    """Every failure of the app becomes a problem."""
    app.add_exception_handler(RequestError, of_problem)
    app.add_exception_handler(RequestValidationError, of_validation)
    app.add_exception_handler(HTTPException, of_http)
    app.add_exception_handler(Exception, of_surprise)


async def of_problem(request: Request, error: Exception) -> ProblemResponse:
    assert isinstance(error, RequestError)
    return answer(error.status, error.detail, error.headers)


async def of_validation(request: Request, error: Exception) -> ProblemResponse:
    assert isinstance(error, RequestValidationError)
    return answer(400, in_words(error.errors()))


async def of_http(request: Request, error: Exception) -> ProblemResponse:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 405:
        headers["Allow"] = ", ".join(sorted(methods_at(request)))
    details = {
        404: "there is nothing here; the API is described at /openapi.json",
        405: "this address does not take that method; the API is described at /openapi.json",
    }
    return answer(error.status_code, details.get(error.status_code, str(error.detail)), headers)


def methods_at(request: Request) -> set[str]:
    """What an address takes, by all of its routes."""
    methods: set[str] = set()
    for route in request.app.state.operations:
        match, _ = route.matches(request.scope)
        if match != Match.NONE:
            methods |= getattr(route, "methods", None) or set()
    return methods


async def of_surprise(request: Request, error: Exception) -> ProblemResponse:
    """Whoever runs the server finds the reason in its log; whoever asked is told nothing of it."""
    log.error("%s %s failed", request.method, request.scope["path"], exc_info=error)
    return answer(500, "the server failed on this request; its log says why")


def in_words(errors: Iterable[Mapping[str, Any]]) -> str:
    """The first few complaints, each with its place: `documents[2].title: must be a string`."""
    told = [f"{place_of(error['loc'])}: {complaint(error)}" for error in list(errors)[:3]]
    return "; ".join(dict.fromkeys(told))


def place_of(location: Iterable[Any]) -> str:
    parts = list(location)
    place = ""
    # The first part says where in the request, the rest where in that; names of unions say nothing to anyone.
    for part in parts[1:]:
        if isinstance(part, int):
            place += f"[{part}]"
        elif not (part in ("str", "int") or part.startswith(("list[", "function-", "constrained-"))):
            place += f".{part}" if place else str(part)
    return place[:200] or {"body": "the body"}.get(str(parts[0]), str(parts[0]))


def complaint(error: Mapping[str, Any]) -> str:
    kind = error["type"]
    if kind == "json_invalid":
        return "not valid JSON"
    if kind == "missing":
        return "is missing"
    if kind == "model_attributes_type" or kind == "dict_type":
        return "must be a JSON object, sent as application/json"
    message = str(error["msg"])
    return message[0].lower() + message[1:]


def printable(text: str, most: int = 80) -> str:
    """A value of the request, short and on one line, for a message."""
    short = text if len(text) <= most else f"{text[:most]}…"
    return json.dumps(short.encode("utf-8", "replace").decode(), ensure_ascii=False)
