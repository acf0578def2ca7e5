"""micol serve: suggestions, labels, the corpus, limits, and who may do what, against the running server."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

import micol
import world
from micol.cli import cli
from processes import PATIENCE, Command
from serving import STARTED, Server, Start

DOCUMENTS = world.documents(30, seed=3, first=500)
DOCUMENT = DOCUMENTS[0]


def ids(result: dict[str, Any]) -> list[str]:
    return [label["id"] for label in result["labels"]]


def problem(answer: httpx.Response, status: int) -> str:
    """The words of a refusal, in the form they must have."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert set(body) == {"type", "title", "status", "detail"}
    assert body["status"] == status
    detail: str = body["detail"]
    assert "/tmp" not in detail
    assert "Traceback" not in detail
    return detail


def test_told_to_stop_before_it_answers(served_model: Path, tmp_path: Path) -> None:
    starting = Command(["serve", served_model, "--port", 0], tmp_path)
    deadline = time.monotonic() + PATIENCE
    while not STARTED.search(starting.output):
        assert time.monotonic() < deadline, starting.output
    os.kill(starting.process.pid or 0, signal.SIGTERM)
    assert starting.wait() == 0, starting.output


def test_suggests_what_the_classifier_does(server: Server, served_model: Path) -> None:
    model = micol.load(served_model)
    for limit, include, exclude in ((5, [], []), (3, ["even"], []), (20, [], ["even", "t1"])):
        expected = list(model.suggest(DOCUMENTS, limit, include=include, exclude=exclude))
        found = server.suggest(*DOCUMENTS, limit=limit, include=include, exclude=exclude)
        assert [result["id"] for result in found] == [document["id"] for document in DOCUMENTS]
        for result, tagged in zip(found, expected, strict=True):
            scores = {label["id"]: label["score"] for label in result["labels"]}
            assert scores == pytest.approx({label.id: label.score for label in tagged.labels}, abs=2e-3)


def test_threshold_and_strength(server: Server) -> None:
    [every] = server.suggest(DOCUMENT, limit=14)
    middle = every["labels"][len(every["labels"]) // 2]["score"]
    [some] = server.suggest(DOCUMENT, limit=14, threshold=middle)
    assert ids(some) == [label["id"] for label in every["labels"] if label["score"] >= middle]
    assert all(0 <= label["strength"] <= 1 for label in every["labels"])


def test_explains(server: Server) -> None:
    words = world.words_of(4)
    text = f"We study {words[0]} {words[1]} with results"
    [result] = server.suggest({"title": "👩‍🔬 A title", "abstract": text}, explain=True, limit=14)
    assert result["text"] == f"👩‍🔬 A title\n{text}"
    label = next(label for label in result["labels"] if label["id"] == "t4")
    assert label["path"] == ["even group"]
    named = [result["text"][start:end] for start, end in label["explanation"]["named_at"]]
    assert any(name.startswith(words[0]) for name in named)


def test_documents_without_id_or_text(server: Server) -> None:
    results = server.suggest({"text": "results"}, {}, {"id": 7, "title": None})
    assert [result["id"] for result in results] == ["0", "1", "7"]
    assert results[1]["labels"] == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "documents: is missing"),
        ({"documents": []}, "documents: "),
        ({"documents": [{"title": 3}]}, "documents[0].title: "),
        ({"documents": [{}, {"authors": {"a": 1}}]}, "documents[1].authors: "),
        ({"documents": [{"references": [["nested"]]}]}, "documents[0].references"),
        ({"documents": [{}], "limit": 0}, "limit: "),
        ({"documents": [{}], "limit": "5"}, "limit: "),
        ({"documents": [{}], "typo": 1}, "typo: "),
    ],
)
def test_bad_questions_are_told_where_they_break(server: Server, body: dict[str, Any], words: str) -> None:
    assert words in problem(server.client.post("/v1/suggest", json=body), 400)


def test_other_bad_requests(server: Server) -> None:
    post = server.client.post
    json = {"content-type": "application/json"}
    assert "not valid JSON" in problem(post("/v1/suggest", content=b"{", headers=json), 400)
    assert "application/json" in problem(post("/v1/suggest", content=b'{"documents": [{}]}'), 400)
    problem(post("/v1/suggest", content=b'{"documents": [{"text": "\\ud800"}]}', headers=json), 400)
    problem(post("/v1/suggest", content=b'{"documents": [{"authors": "\\ud800"}]}', headers=json), 400)
    deep = b"[" * 100_000 + b"]" * 100_000
    problem(post("/v1/suggest", content=b'{"documents": [{"a": %s}]}' % deep, headers=json), 400)
    body = {"documents": [DOCUMENT], "include": ["nowhere"]}
    assert "nowhere" in problem(post("/v1/suggest", json=body), 404)
    body = {"documents": [DOCUMENT], "include": ["even"], "exclude": ["even"]}
    assert "widen" in problem(post("/v1/suggest", json=body), 404)
    problem(server.client.get("/nothing/here"), 404)
    answer = server.client.put("/v1/labels", json={})
    problem(answer, 405)
    assert answer.headers["allow"] == "GET, POST"


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static//etc/passwd"]
)
def test_no_file_outside_the_page(server: Server, path: str) -> None:
    assert httpx.get(f"{server.url}{path}").status_code == 404


def test_lists_and_searches_labels(server: Server) -> None:
    get = server.client.get
    everything = get("/v1/labels").json()
    assert everything["total"] == 14
    branches = get("/v1/labels", params={"branches": True}).json()["labels"]
    assert [(label["id"], label["children"]) for label in branches] == [("even", 6), ("odd", 6)]
    second = world.words_of(3)[1]
    assert [
        label["id"] for label in get("/v1/labels", params={"search": second.upper()}).json()["labels"]
    ] == ["t3"]
    below = get("/v1/labels", params={"branch": "odd", "limit": 3, "offset": 1}).json()
    assert below["total"] == 7
    assert [label["id"] for label in below["labels"]] == ["t1", "t3", "t5"]
    place = get("/v1/labels/t3").json()
    assert place["paths"] == [[{"id": "odd", "name": "odd group"}]]
    assert {label["id"] for label in get("/v1/labels/odd").json()["below"]} >= {"t1", "t3"}
    assert "missing" in problem(get("/v1/labels/missing"), 404)


def test_tells_about_itself(server: Server) -> None:
    about = server.client.get("/v1/model").json()
    assert about["labels"] == 14
    assert about["hierarchy"] is True
    assert about["corpus"]["documents"] == 240
    assert about["changes"] == "open"
    assert about["metadata"] == ["authors", "venue", "references"]


def test_the_network_around_a_document(server: Server, docs_file: Path) -> None:
    network = micol.Corpus.read(docs_file).network()
    for path in ("P->P", "PAP", "P->P<-P", "P(AV)P"):
        answer = server.client.get("/v1/documents/d5/neighbours", params={"path": path, "limit": 200}).json()
        assert {other["id"] for other in answer["neighbours"]} == micol.MetaPath(path).reachable(
            network, "d5"
        )
    [shared] = {tuple(other["shared"]["authors"]) for other in server.client.get(
        "/v1/documents/d5/neighbours", params={"path": "PAP"}).json()["neighbours"]}  # fmt: skip
    assert shared == tuple(server.client.get("/v1/documents/d5").json()["authors"])
    assert server.client.get("/v1/documents", params={"search": "D17"}).json()["total"] == 11
    get = server.client.get
    assert "PXP" in problem(get("/v1/documents/d5/neighbours", params={"path": "PXP"}), 404)
    problem(get("/v1/documents/none/neighbours", params={"path": "PAP"}), 404)


def test_headers_and_host_names(server: Server) -> None:
    for path in ("/", "/v1/model", "/static/main.js", "/nothing"):
        headers = server.client.get(path, headers={"Origin": "http://elsewhere.example"}).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers
    problem(server.client.get("/v1/model", headers={"Host": "attacker.example"}), 421)
    assert server.client.get("/health", headers={"Host": "localhost:1"}).status_code == 200


def test_nothing_is_loaded_from_elsewhere(server: Server) -> None:
    page = Path(micol.__file__).parent / "server" / "page"
    for file in page.iterdir():
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|//cdn|innerHTML|insertAdjacentHTML|document\.write|eval\(", text), (
            file
        )
    assert server.client.get("/docs").status_code == 404


PROMETHEUS = re.compile(r'[a-z_]+(\{([a-z]+="(\\.|[^"\\])*",?)*\})? -?[0-9.e+]+')


def test_metrics_in_prometheus_form(server: Server) -> None:
    server.suggest(DOCUMENT)
    text = server.client.get("/metrics").text
    assert all(line.startswith("# ") or PROMETHEUS.fullmatch(line) for line in text.splitlines())
    for name in ("micol_documents_total", "micol_labels 14", "micol_request_seconds_bucket", 'le="+Inf"'):
        assert name in text


def test_limits(start: Start) -> None:
    server = start("--max-body", 1, "--max-characters", 500, "--max-documents", 3)
    post = server.client.post
    assert "1,048,576 bytes" in problem(post("/v1/suggest", content=b"x" * (2 << 20)), 413)

    def drip() -> Any:
        for _ in range(40):
            yield b"x" * (1 << 15)

    problem(post("/v1/suggest", content=drip()), 413)
    long = {"documents": [{"text": "short"}, {"text": "x" * 501}]}
    assert "documents[1] has 501 characters" in problem(post("/v1/suggest", json=long), 413)
    many = {"documents": [{"text": "short"}] * 4}
    assert "at most 3" in problem(post("/v1/suggest", json=many), 413)
    form = {"text": "x" * 501}
    problem(post(f"/v1/projects/{server.folder.name}/suggest", data=form), 413)
    assert server.client.get("/v1/model").json()["corpus"] is None
    assert "--docs" in problem(server.client.get("/v1/documents"), 404)


def test_time_limit(start: Start) -> None:
    server = start("--max-seconds", 0.1, "--max-documents", 10_000)
    body = {"documents": [{"text": "results with the method " * 20}] * 5000}
    assert "longer than 0.1 seconds" in problem(server.client.post("/v1/suggest", json=body), 503)
    assert server.client.get("/health").json() == {"status": "ok"}
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as slow:
        slow.sendall(b"POST /v1/suggest HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50\r\n\r\n{")
        assert slow.recv(100).startswith(b"HTTP/1.1 408 ")


def test_pages_of_other_sites_only_where_allowed(start: Start) -> None:
    server = start("--allow-origin", "https://library.example")
    for origin, allowed in (
        ("https://library.example", "https://library.example"),
        ("https://x.example", None),
    ):
        headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        answer = server.client.options("/v1/suggest", headers=headers)
        assert answer.headers.get("access-control-allow-origin") == allowed


def serve(*arguments: object) -> str:
    result = CliRunner().invoke(cli, ["serve", *map(str, arguments)], catch_exceptions=True)
    assert result.exit_code == 1
    assert isinstance(result.exception, micol.errors.MicolError)
    return str(result.exception)


def test_mistakes_at_the_start_are_one_sentence(
    server: Server, served_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no such model folder" in serve(tmp_path / "nothing")
    port = server.url.rsplit(":", 1)[1]
    assert f"127.0.0.1:{port} cannot be listened on" in serve(served_model, "--port", port)
    assert "cannot be listened on" in serve(served_model, "--host", "nowhere.invalid")
    assert "--name" in serve(served_model, "--name", "a/b")
    monkeypatch.setenv("MICOL_TOKEN", "short")
    assert "at least 16" in serve(served_model)
