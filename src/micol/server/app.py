"""The app: routes, page and layers put together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse, PlainTextResponse
from starlette.middleware.cors import CORSMiddleware
from starlette.staticfiles import StaticFiles

from micol import __version__
from micol.server import annif, bodies, problems, routes
from micol.server.guard import Guard, host_check
from micol.server.service import Service

PAGE = files("micol.server") / "page"


def create_app(service: Service) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.batcher.start()
        yield
        # Requests under way are over by now: what is left in the queue belongs to those who went away.
        service.batcher.close()

    app = FastAPI(
        title="micol",
        version=__version__,
        summary="Tags documents with labels from a large taxonomy.",
        lifespan=lifespan,
        docs_url=None,  # FastAPI's own pages load their scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.corpus = service.corpus
    problems.install(app)
    routers = [routes.router(service), annif.router(service)]
    for router in routers:
        app.include_router(router)
    add_plain_routes(app, service)
    app.state.operations = [*app.routes, *(route for router in routers for route in router.routes)]
    # What is added last stands outermost.
    if service.options.allow_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(service.options.allow_origins),
            allow_methods=["GET", "POST", "PATCH", "DELETE"],
            allow_headers=["authorization", "content-type"],
        )
    app.add_middleware(
        Guard,
        limits=service.options.limits,
        metrics=service.metrics,
        knows_host=host_check(service.options.host),
    )
    app.openapi = lambda: description(app)  # type: ignore[method-assign]
    return app


def add_plain_routes(app: FastAPI, service: Service) -> None:
    @app.get("/health", tags=["model"], response_model=bodies.Health)
    async def health() -> Any:
        """Whether requests are answered."""
        return {"status": "ok" if service.batcher.thread.is_alive() else "failing"}

    @app.get("/metrics", tags=["model"], response_class=PlainTextResponse)
    async def metrics() -> Any:
        """Counters, for Prometheus."""
        return PlainTextResponse(service.metrics.text(), media_type="text/plain; version=0.0.4")

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(str(PAGE / "index.html"))

    @app.get("/api", include_in_schema=False)
    async def api_page() -> FileResponse:
        return FileResponse(str(PAGE / "api.html"))

    app.mount("/static", StaticFiles(directory=str(PAGE)), name="static")


def description(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI description; bad requests are problems of status 400, not FastAPI's 422."""
    if app.openapi_schema is None:
        content = get_openapi(
            title=app.title, version=app.version, summary=app.summary, routes=app.routes, description=ABOUT
        )
        for operations in content["paths"].values():
            for operation in operations.values():
                if operation["responses"].pop("422", None):
                    operation["responses"] |= {
                        str(status): response for status, response in problems.documented(400).items()
                    }
        schemas = content["components"]["schemas"]
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        schemas["Problem"] = problems.Problem.model_json_schema()
        app.openapi_schema = content
    return app.openapi_schema


ABOUT = """Suggests labels for documents, and says why; searches labels and changes them while it runs.
Addresses under `/v1/projects` and `/v1/vocabs` are those of Annif's API, so that its clients work unchanged.
Errors are `application/problem+json`; their `detail` says what to do."""
