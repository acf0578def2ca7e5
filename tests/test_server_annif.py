"""Annif's clients work against micol unchanged: its own from PyPI, and what its `http` backend sends."""

from __future__ import annotations

import io
from datetime import datetime

import pytest
import requests
from annif_client import AnnifClient

import world
from serving import Server
from test_server import DOCUMENTS, ids, problem

TEXT = " ".join(word for topic in (2, 3, 5) for word in world.words_of(topic))


@pytest.fixture(scope="module")
def client(server: Server) -> AnnifClient:
    return AnnifClient(api_base=f"{server.url}/v1/")


def test_the_client_finds_the_project(client: AnnifClient) -> None:
    assert client.api_info["title"].startswith("micol")
    [project] = client.projects
    assert project["project_id"] == "tiny"
    assert client.get_project("tiny") == project
    assert project["vocab"]["size"] == 14
    with pytest.raises(ValueError, match="not found"):
        client.get_project("another")


def test_the_client_gets_suggestions(client: AnnifClient, server: Server) -> None:
    own = ids(server.suggest({"text": TEXT}, limit=10)[0])
    found = client.suggest("tiny", TEXT)
    assert [hit["uri"] for hit in found] == own[: len(found)]
    assert client.suggest("tiny", io.StringIO(TEXT), limit=2) == found[:2]
    middle = found[1]["score"]
    assert client.suggest("tiny", TEXT, threshold=middle) == found[:2]
    assert set(found[0]) == {"uri", "label", "notation", "score"}
    with pytest.raises(ValueError, match="not found"):
        client.suggest("another", TEXT)


def test_the_client_sends_batches(client: AnnifClient) -> None:
    documents = [
        {"document_id": document["id"], "text": document["abstract"], "metadata": {"authors": "a1; a2"}}
        for document in DOCUMENTS
    ]
    results = client.suggest_batch("tiny", [*documents, {"text": TEXT}], limit=3)
    assert [result["document_id"] for result in results] == [*(d["id"] for d in DOCUMENTS), None]
    assert all(len(result["results"]) <= 3 for result in results)
    with pytest.raises(requests.HTTPError, match="400"):
        client.suggest_batch("tiny", [{"text": TEXT}] * 33)


def test_learning_is_refused_as_annif_does(client: AnnifClient) -> None:
    with pytest.raises(requests.HTTPError, match="403"):
        client.learn("tiny", [{"text": TEXT, "subjects": [{"uri": "t2"}]}])


def test_what_annifs_http_backend_sends(server: Server) -> None:
    """Its requests as its source has them: project information by the address of `suggest`, then a form."""
    endpoint = f"{server.url}/v1/projects/tiny/suggest"
    project = requests.get(
        endpoint.replace("/suggest", ""), headers={"User-Agent": "Annif/1.4.3"}, timeout=30
    )
    assert project.json()["is_trained"] is True
    assert datetime.fromisoformat(project.json()["modification_time"]).tzinfo is not None
    form = {
        "text": TEXT,
        "metadata_title": "A title",
        "metadata_authors": "a1",
        "project": "tiny",
        "limit": 4,
    }
    answer = requests.post(endpoint, data=form, headers={"User-Agent": "Annif/1.4.3"}, timeout=30)
    hits = answer.json()["results"]
    assert [hit["uri"] for hit in hits if hit["score"] > 0.0]
    assert len(hits) <= 4


def test_forms_and_json_alike(server: Server) -> None:
    address = "/v1/projects/tiny/suggest"
    fields = {"text": TEXT, "limit": 3, "threshold": 0.1, "language": "en", "metadata_authors": "a1;a2"}
    post = server.client.post
    form, json = post(address, data=fields), post(address, json=fields)
    assert form.json() == json.json()
    assert form.json()["results"]
    assert post(address, json={"text": TEXT, "limit": 0}).json() == {"results": []}
    both = [("text", TEXT), ("metadata_authors", "a1"), ("metadata_authors", "a2")]
    assert requests.post(f"{server.url}{address}", data=both, timeout=30).status_code == 200
    for wrong, word in (
        ({"limit": 3}, "text"),
        ({"text": TEXT, "limit": "many"}, "limit"),
        ({"text": TEXT, "limit": 1.5}, "whole"),
        ({"text": TEXT, "threshold": 2}, "threshold"),
        ({"text": TEXT, "language": "xx"}, "language"),
    ):
        assert word in problem(post(address, json=wrong), 400)
        assert word in problem(post(address, data=wrong), 400)
    assert "JSON object" in problem(post(address, json=[1]), 400)
    problem(
        post(address, content=b"%ff%fe=\xff", headers={"Content-Type": "application/x-www-form-urlencoded"}),
        400,
    )
    problem(post(address, content=TEXT, headers={"Content-Type": "text/plain"}), 400)
    problem(post("/v1/projects/tiny/suggest-batch", params={"limit": -1}, json={"documents": []}), 400)
    assert [vocab["vocab_id"] for vocab in server.client.get("/v1/vocabs").json()["vocabs"]] == ["tiny"]
