"""micol's own API: suggestions, labels, the model, the corpus."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer
from starlette.concurrency import run_in_threadpool

from micol.records import Label
from micol.server import bodies
from micol.server.batcher import SCORE_DIGITS, Answer, Question
from micol.server.corpus_view import MOST_LETTERS, CorpusView
from micol.server.documents import documents_of
from micol.server.editing import Edited
from micol.server.limits import MOST_LABELS
from micol.server.problems import RequestError, documented
from micol.server.service import Service
from micol.server.state import State

PAGE = 50

LabelId = Annotated[str, Path(description="The label's id, percent-encoded.")]
DocumentId = Annotated[str, Path(description="The document's id, percent-encoded.")]


def corpus_of(request: Request) -> CorpusView:
    corpus: CorpusView | None = request.app.state.corpus
    if corpus is None:
        raise RequestError(404, "the server has no corpus; start it with `micol serve MODEL --docs DOCS`")
    return corpus


View = Annotated[CorpusView, Depends(corpus_of)]


def router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/v1")
    add_tagging(routes, service)
    add_labels(routes, service)
    add_changes(routes, service)
    add_corpus(routes)
    return routes


def add_tagging(routes: APIRouter, service: Service) -> None:
    @routes.get("/model", tags=["model"], response_model=bodies.ModelAnswer)
    async def model() -> Any:
        """What serves here, and how much it takes at a time."""
        return service.about()

    @routes.post(
        "/suggest",
        tags=["suggest"],
        response_model=bodies.SuggestAnswer,
        response_model_exclude_unset=True,
        responses=documented(400, 404, 413, 503),
    )
    async def suggest(body: bodies.SuggestBody) -> Any:
        """Suggests labels for one or many documents, best first."""
        records = [document.model_dump() for document in body.documents]
        documents = documents_of(records, service.options.schema, service.options.limits)
        question = Question(
            body.limit, body.threshold, tuple(body.include), tuple(body.exclude), body.explain
        )
        state, answers = await service.ask(documents, question)
        results = [
            as_json(state, answer, document.text if body.explain else None)
            for answer, document in zip(answers, documents, strict=True)
        ]
        # What is built here needs no second check on its way out.
        return JSONResponse({"results": results, "revision": state.revision})


def as_json(state: State, answer: Answer, text: str | None) -> dict[str, Any]:
    labels: list[dict[str, Any]] = [
        {
            "id": label.id,
            "name": label.name,
            "score": label.score,
            "strength": round(state.strength(label.score), SCORE_DIGITS),
        }
        for label in answer.tagged.labels
    ]
    if answer.reasons is None:
        return {"id": answer.tagged.id, "labels": labels}
    for label, reason in zip(labels, answer.reasons, strict=True):
        label["path"] = state.labels.names_above(label["id"])
        label["explanation"] = reason
    return {"id": answer.tagged.id, "labels": labels, "text": text}


def add_labels(routes: APIRouter, service: Service) -> None:
    @routes.get("/labels", tags=["labels"], response_model=bodies.LabelPage, responses=documented(400, 404))
    def labels(
        search: Annotated[str, Query(max_length=200, description="In a name or the id, in any case.")] = "",
        branch: Annotated[str | None, Query(description="Only this label and those below it.")] = None,
        branches: Annotated[bool, Query(description="Only labels that others stand below.")] = False,
        limit: Annotated[int, Query(ge=0, le=MOST_LABELS)] = PAGE,
        offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
    ) -> Any:
        """Lists and searches labels, the likeliest meant first."""
        index = service.state.labels
        found = index.search(search, branch, branches)
        page = [index.records[position] for position in found[offset : offset + limit]]
        return {"total": len(found), "labels": page}

    @routes.get(
        "/labels/{label_id:path}",
        tags=["labels"],
        response_model=bodies.LabelPlace,
        responses=documented(400, 404),
    )
    def label(label_id: LabelId) -> Any:
        """A label and its place in the hierarchy."""
        index = service.state.labels
        return index.place(index.position(label_id))


def add_changes(routes: APIRouter, service: Service) -> None:
    if service.changes.kind == "token":
        # Only names the scheme in the API's description; the check itself is ours, and tells why.
        security = [Depends(HTTPBearer(auto_error=False, description="The token the server started with."))]
    else:
        security = []

    def may_change(request: Request) -> None:
        service.changes.check(request)

    guarded = [*security, Depends(may_change)]
    refusals = documented(400, 401, 403, 404, 409, 413, 503, 507)

    @routes.post(
        "/labels",
        status_code=201,
        tags=["labels"],
        response_model=bodies.EditAnswer,
        dependencies=guarded,
        responses=refusals,
    )
    def add(body: bodies.NewLabels) -> Any:
        """Adds labels, all or none; they are suggested from the next request on, and are kept."""
        labels = [
            Label(label.id, tuple(label.names), label.description, tuple(label.parents))
            for label in body.labels
        ]
        return as_answer(service.editor.add(labels))

    @routes.patch(
        "/labels/{label_id:path}",
        tags=["labels"],
        response_model=bodies.EditAnswer,
        dependencies=guarded,
        responses=refusals,
    )
    def change(label_id: LabelId, body: bodies.LabelChange) -> Any:
        """Changes what is given of a label."""

        def changed(label: Label) -> Label:
            return replace(
                label,
                names=label.names if body.names is None else tuple(body.names),
                description=label.description if body.description is None else body.description,
                parents=label.parents if body.parents is None else tuple(body.parents),
            )

        return as_answer(service.editor.update(label_id, changed))

    @routes.delete(
        "/labels/{label_id:path}",
        tags=["labels"],
        response_model=bodies.EditAnswer,
        dependencies=guarded,
        responses=refusals,
    )
    def remove(label_id: LabelId) -> Any:
        """Removes a label; those below it stay, without that parent."""
        return as_answer(service.editor.remove([label_id]))


def as_answer(edited: Edited) -> dict[str, Any]:
    return {
        "ids": list(edited.ids),
        "embedded": edited.embedded,
        "total": len(edited.state.labels),
        "revision": edited.state.revision,
    }


def add_corpus(routes: APIRouter) -> None:
    problems = documented(400, 404)

    @routes.get("/documents", tags=["corpus"], response_model=bodies.CorpusPage, responses=problems)
    def documents(
        view: View,
        search: Annotated[str, Query(max_length=200, description="In title or id, in any case.")] = "",
        limit: Annotated[int, Query(ge=0, le=MOST_LABELS)] = PAGE,
    ) -> Any:
        """Searches the documents of the corpus."""
        return view.search(search, limit)

    @routes.get(
        "/documents/{document_id:path}/neighbours",
        tags=["corpus"],
        response_model=bodies.Relatives,
        responses=problems,
    )
    async def neighbours(
        view: View,
        document_id: DocumentId,
        path: Annotated[str, Query(description="A meta-path, such as `PAP`.", max_length=MOST_LETTERS)],
        limit: Annotated[int, Query(ge=1, le=200)] = 20,
    ) -> Any:
        """The documents that a meta-path reaches from one, those that share most first."""
        return await run_in_threadpool(view.neighbours, document_id, path, limit)

    @routes.get(
        "/documents/{document_id:path}",
        tags=["corpus"],
        response_model=bodies.CorpusDocument,
        responses=problems,
    )
    def document(view: View, document_id: DocumentId) -> Any:
        """A document of the corpus with its metadata."""
        return view.document(document_id)
