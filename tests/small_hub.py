"""A hub of models on this machine: the few addresses that huggingface_hub asks to push and fetch a model."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

TOKEN = "hf_a-token-of-the-tests"


class Hub:
    """Repositories, each a commit and its files."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, bool] = {}
        self.url = ""

    def commit(self, repository: str) -> str:
        digest = hashlib.sha1()
        for name, content in sorted(self.files[repository].items()):
            digest.update(name.encode() + content)
        return digest.hexdigest()


def failure(status: int, code: str, message: str) -> Response:
    return Response(status_code=status, headers={"X-Error-Code": code, "X-Error-Message": message})


def application(hub: Hub) -> FastAPI:
    app = FastAPI()

    @app.middleware("http")
    async def only_who_may(request: Request, answer: Any) -> Response:
        repository = "/".join(request.path_params.values()) if request.path_params else ""
        if request.headers.get("authorization") != f"Bearer {TOKEN}" and (
            request.method == "POST" or hub.private.get(repository, False)
        ):
            return failure(401, "", "Invalid username or password.")
        response: Response = await answer(request)
        return response

    @app.post("/api/repos/create")
    async def create(request: Request) -> Any:
        asked = await request.json()
        repository = f"{asked['organization']}/{asked['name']}" if asked["organization"] else asked["name"]
        if repository in hub.files:
            return JSONResponse({"url": f"{hub.url}/{repository}", "name": repository}, status_code=409)
        hub.files[repository] = {}
        hub.private[repository] = asked.get("visibility") == "private" or asked.get("private", False)
        return {"url": f"{hub.url}/{repository}", "name": repository}

    @app.post("/api/validate-yaml")
    async def validate(request: Request) -> Any:
        content = (await request.json())["content"]
        problems = [] if content.startswith("---\n") else [{"message": "no front matter"}]
        return {"errors": problems, "warnings": []}

    @app.post("/api/models/{owner}/{name}/preupload/{revision}")
    async def preupload(request: Request) -> Any:
        asked = (await request.json())["files"]
        return {
            "files": [
                {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False} for file in asked
            ]
        }

    @app.post("/api/models/{owner}/{name}/commit/{revision}")
    async def commit(owner: str, name: str, request: Request) -> Any:
        repository = f"{owner}/{name}"
        for line in (await request.body()).splitlines():
            entry = json.loads(line)
            if entry["key"] == "file":
                content = base64.b64decode(entry["value"]["content"])
                hub.files[repository][entry["value"]["path"]] = content
        oid = hub.commit(repository)
        return {"commitUrl": f"{hub.url}/{repository}/commit/{oid}", "commitOid": oid}

    @app.get("/api/models/{owner}/{name}/revision/{revision}")
    def info(owner: str, name: str) -> Any:
        repository = f"{owner}/{name}"
        if repository not in hub.files:
            return failure(404, "RepoNotFound", "Repository not found")
        siblings = [{"rfilename": path} for path in hub.files[repository]]
        return {"id": repository, "sha": hub.commit(repository), "siblings": siblings}

    @app.get("/api/models/{owner}/{name}/tree/{revision}")
    def tree(owner: str, name: str) -> Any:
        return [
            {"type": "file", "path": path, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
            for path, content in hub.files[f"{owner}/{name}"].items()
        ]

    @app.api_route("/{owner}/{name}/resolve/{revision}/{path:path}", methods=["GET", "HEAD"])
    def resolve(owner: str, name: str, path: str, request: Request) -> Response:
        repository = f"{owner}/{name}"
        content = hub.files[repository].get(path)
        if content is None:
            return failure(404, "EntryNotFound", "Entry not found")
        headers = {
            "ETag": f'"{hashlib.sha1(content).hexdigest()}"',
            "X-Repo-Commit": hub.commit(repository),
            "Content-Length": str(len(content)),
        }
        return Response(
            content if request.method == "GET" else b"",
            headers=headers,
            media_type="application/octet-stream",
        )

    return app


@contextmanager
def running() -> Iterator[Hub]:
    hub = Hub()
    server = uvicorn.Server(uvicorn.Config(application(hub), port=0, log_level="warning", ws="none"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    hub.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    yield hub
    server.should_exit = True
    thread.join()
