"""Real servers for tests: `micol serve` in a process of its own, on a port of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import micol
from conftest import write_lines
from micol.data import debian
from processes import PATIENCE, Command

STARTED = re.compile(r"at (http://\S+)")


class Server:
    """A server under way; `url` is where it listens, `client` talks to it."""

    def __init__(self, folder: Path, *options: object, log: Path, **more: Any) -> None:
        self.folder = folder
        self.command = Command(["serve", folder, "--port", 0, *options], log, **more)
        deadline = time.monotonic() + PATIENCE
        while not (started := STARTED.search(self.command.output)):
            assert self.command.process.is_alive(), self.command.output
            assert time.monotonic() < deadline, self.command.output
            time.sleep(0.02)
        self.url = started[1]
        self.client = httpx.Client(base_url=self.url, timeout=60)
        while True:
            try:
                self.client.get("/health").raise_for_status()
                break
            except httpx.TransportError:
                assert time.monotonic() < deadline, self.command.output
                time.sleep(0.02)

    def suggest(self, *documents: dict[str, Any], **question: Any) -> list[dict[str, Any]]:
        answer = self.client.post("/v1/suggest", json={"documents": documents, **question})
        assert answer.status_code == 200, answer.text
        results: list[dict[str, Any]] = answer.json()["results"]
        return results

    def terminate(self) -> None:
        os.kill(self.command.process.pid or 0, signal.SIGTERM)

    def stop(self) -> int:
        """Ends it as a service manager would, and returns its exit status."""
        self.client.close()
        if self.command.process.is_alive():
            self.terminate()
        return self.command.wait()


Start = Callable[..., Server]


@pytest.fixture(scope="session")
def served_model(
    tiny_bert: Path, docs_file: Path, labels_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("served") / "tiny"
    micol.train(
        micol.Corpus.read(docs_file), micol.LabelSpace.read(labels_file), "P->P", base=str(tiny_bert),
        init_only=True, output=folder,
    )  # fmt: skip
    return folder


@pytest.fixture(scope="session")
def server(served_model: Path, docs_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """For tests that leave the labels as they were."""
    running = Server(served_model, "--docs", docs_file, log=tmp_path_factory.mktemp("log"))
    yield running
    assert running.stop() == 0, running.command.output


@pytest.fixture
def start(served_model: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts servers with options of their own, each with a copy of the model."""
    running: list[Server] = []

    def begin(*options: object, folder: Path | None = None, **more: Any) -> Server:
        if folder is None:
            folder = tmp_path / f"model{len(running)}"
            shutil.copytree(served_model, folder)
        running.append(Server(folder, *options, log=tmp_path, **more))
        return running[-1]

    yield begin
    for each in running:
        each.stop()


def facets(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Debian's tags with their facets as the branches above them: `game::board` stands below `game`."""
    names = {record["id"].split("::")[0]: record["description"].split(":")[0] for record in records}
    heads = [
        {"id": facet, "names": [name], "description": "", "parents": []} for facet, name in names.items()
    ]
    return heads + [{**record, "parents": [record["id"].split("::")[0]]} for record in records]


@pytest.fixture(scope="session")
def debian_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `debtags`, an untrained model of the default encoder, and `docs.jsonl`, some packages."""
    folder = tmp_path_factory.mktemp("debian")
    files = debian()
    records = [json.loads(line) for line in files.labels.read_text(encoding="utf-8").splitlines()]
    labels = micol.LabelSpace.read(write_lines(folder / "labels.jsonl", facets(records)))
    packages = micol.Corpus.read(files.docs).select(range(4000))
    packages.write(folder / "docs.jsonl")
    micol.train(packages, labels, "P->P", init_only=True, output=folder / "debtags")
    return folder


@pytest.fixture(scope="session")
def debian_server(debian_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(
        debian_files / "debtags", "--docs", debian_files / "docs.jsonl", log=tmp_path_factory.mktemp("log")
    )
    yield running
    assert running.stop() == 0, running.command.output
