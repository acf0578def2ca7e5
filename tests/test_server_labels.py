"""Labels that change while they are served: in one step, kept, and only by those who may."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import pytest

import micol
import world
from micol.classify import Classifier
from micol.folder import LabelTable, ModelFolder
from micol.rank.cross_encoder import CrossEncoder
from micol.rank.encoder import Encoder
from micol.server.guard import Changes, host_check, is_loopback
from micol.settings import resolve
from processes import succeed
from serving import Server, Start
from test_server import ids, problem

TOKEN = "a-token-of-good-length"
NEW = {
    "id": "http://example.org/new label?#1",
    "names": ["wine tasting", "vinology"],
    "description": "the study of wine",
    "parents": ["odd"],
}
WINE = {"id": "w", "title": "Wine tasting in the results of a study"}


def add(server: Server, *labels: dict[str, Any], **more: Any) -> Any:
    return server.client.post("/v1/labels", json={"labels": labels}, **more)


def path_of(label: str) -> str:
    from urllib.parse import quote

    return f"/v1/labels/{quote(label, safe='')}"


def test_add_change_remove_and_restart(start: Start) -> None:
    server = start()
    assert NEW["id"] not in ids(server.suggest(WINE, limit=20)[0])
    added = add(server, NEW)
    assert added.status_code == 201
    assert added.json() == {"ids": [NEW["id"]], "embedded": 1, "total": 15, "revision": 1}
    assert ids(server.suggest(WINE, limit=20)[0]).count(NEW["id"]) == 1
    place = server.client.get(path_of(NEW["id"])).json()
    assert place["paths"] == [[{"id": "odd", "name": "odd group"}]]

    changed = server.client.patch(path_of(NEW["id"]), json={"names": ["oenology"], "parents": ["even"]})
    assert changed.json()["embedded"] == 1
    after = server.client.get(path_of(NEW["id"])).json()
    assert (after["names"], after["description"]) == (["oenology"], NEW["description"])
    assert after["parents"] == ["even"]

    folder = server.folder
    assert server.stop() == 0
    again = start(folder=folder)
    assert again.client.get(path_of(NEW["id"])).json() == after
    assert again.client.delete(path_of(NEW["id"])).json()["total"] == 14
    problem(again.client.get(path_of(NEW["id"])), 404)
    assert [path.name for path in folder.iterdir() if path.name.endswith(".tmp")] == []
    assert len(LabelTable.read(ModelFolder(folder).labels).labels) == 14


def test_refused_changes_change_nothing(start: Start) -> None:
    server = start()
    before = server.client.get("/v1/labels").json()
    plain = {"id": "x", "names": ["x"]}
    assert "'t1'" in problem(add(server, plain, {"id": "t1", "names": ["again"]}), 409).replace('"', "'")
    assert "twice" in problem(add(server, plain, plain), 409)
    assert "own parent" in problem(add(server, {**plain, "parents": ["x"]}), 409)
    assert "nowhere" in problem(add(server, {**plain, "parents": ["nowhere"]}), 404)
    assert "labels[0].names" in problem(add(server, {"id": "x", "names": []}), 400)
    problem(add(server, {"id": "x", "names": ["\u00a0 "]}), 400)
    problem(add(server, {"id": "", "names": ["x"]}), 400)
    problem(server.client.patch("/v1/labels/nowhere", json={"names": ["x"]}), 404)
    problem(server.client.patch("/v1/labels/t1", json={"id": "other"}), 400)
    problem(server.client.delete("/v1/labels/nowhere"), 404)
    assert server.client.get("/v1/labels").json() == before
    assert server.client.get("/v1/model").json()["revision"] == 0
    for label in before["labels"][1:]:
        server.client.delete(path_of(label["id"])).raise_for_status()
    assert "last label" in problem(server.client.delete("/v1/labels/even"), 409)


def test_a_full_disk_leaves_all_as_it_was(start: Start) -> None:
    server = start(largest_file=1 << 16)
    size = ModelFolder(server.folder).labels.stat().st_size
    big = [
        {"id": f"n{n}", "names": [f"name {n}"], "description": random.randbytes(9000).hex()}
        for n in range(100)
    ]
    assert "not made" in problem(add(server, *big), 507)
    assert ModelFolder(server.folder).labels.stat().st_size == size
    assert server.client.get("/v1/labels").json()["total"] == 14
    assert add(server, {"id": "small", "names": ["small"]}).status_code == 201


def test_nobody_sees_half_a_change(start: Start) -> None:
    """Two labels come and go together; every answer has both for all of its documents, or none for any."""
    server = start()
    pair = [{"id": f"pair{n}", "names": [f"wine tasting {n}"]} for n in range(2)]
    documents = [
        {"id": str(n), "title": f"wine tasting {n % 2}, wine tasting {1 - n % 2}"} for n in range(40)
    ]
    stop = threading.Event()
    seen: list[tuple[int, set[frozenset[str]]]] = []
    failures: list[str] = []

    def read() -> None:
        while not stop.is_set():
            answer = server.client.post("/v1/suggest", json={"documents": documents, "limit": 20})
            if answer.status_code != 200:
                failures.append(answer.text)
                return
            body = answer.json()
            found = {
                frozenset(id for id in ids(result) if id.startswith("pair")) for result in body["results"]
            }
            seen.append((body["revision"], found))

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for _ in range(12):
        add(server, *pair).raise_for_status()
        # Both leave in one step as well: under other names, then for good.
        for label in pair:
            server.client.delete(f"/v1/labels/{label['id']}").raise_for_status()
    stop.set()
    for reader in readers:
        reader.join()
    assert not failures
    assert len({revision for revision, _ in seen}) > 3
    states = [frozenset({"pair0", "pair1"}), frozenset({"pair1"}), frozenset()]
    for revision, found in seen:
        assert found == {states[(revision - 1) % 3]}


def test_changes_by_the_command_meanwhile_are_kept(start: Start, tmp_path: Path) -> None:
    server = start()
    succeed(["labels", server.folder, "add", "--id", "outside", "--name", "from outside"], tmp_path)
    assert add(server, {"id": "inside", "names": ["from inside"]}).json()["total"] == 16
    assert server.client.get("/v1/labels/outside").status_code == 200
    assert set(micol.load(server.folder).labels.ids) >= {"inside", "outside"}


def test_a_token_is_needed_where_one_was_given(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    server = start("--token-file", file)
    assert server.client.get("/v1/model").json()["changes"] == "token"
    label = {"id": "x", "names": ["x"]}
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}):
        refused = add(server, label, headers=headers)
        assert TOKEN not in problem(refused, 401)
        assert refused.headers["www-authenticate"].startswith("Bearer")
        problem(server.client.delete("/v1/labels/t1", headers=headers), 401)
    right = {"Authorization": f"Bearer {TOKEN}"}
    assert add(server, label, headers=right).status_code == 201
    assert server.client.delete("/v1/labels/x", headers=right).status_code == 200
    assert server.suggest(WINE)[0]["labels"]
    assert TOKEN not in server.command.output


def test_no_change_from_another_sites_page(server: Server) -> None:
    label = {"id": "x", "names": ["x"]}
    problem(add(server, label, headers={"Origin": "http://elsewhere.example"}), 403)
    # What a page may send without asking first is not taken for JSON.
    problem(
        server.client.post("/v1/labels", content=b'{"labels": []}', headers={"Content-Type": "text/plain"}),
        400,
    )


def test_a_cross_encoder_serves_as_well(
    start: Start, tiny_bert: Path, docs_file: Path, labels_file: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "cross"
    ranker = CrossEncoder.untrained(Encoder.load(tiny_bert, 64), 0)
    corpus, labels = micol.Corpus.read(docs_file), micol.LabelSpace.read(labels_file)
    Classifier.build(labels, ranker, resolve("cross", "P->P", "best", {}), {}, corpus).save(folder)
    server = start(folder=folder)
    add(server, NEW).raise_for_status()
    [result] = server.suggest(WINE, limit=20, explain=True)
    assert NEW["id"] in ids(result)
    assert all(0 < label["strength"] < 1 for label in result["labels"])
    assert server.client.get("/v1/model").json()["architecture"] == "cross"


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("0.0.0.0", False), ("192.168.1.5", False)],
)
def test_beyond_this_machine_only_with_a_token(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
    assert Changes(None, is_loopback(host)).kind == ("open" if expected else "off")
    assert Changes(TOKEN, is_loopback(host)).kind == "token"
    assert Changes(TOKEN, is_loopback(host), is_fetched=True).kind == "off"
    assert host_check(host)("attacker.example") is not expected


def test_off_over_the_network(start: Start) -> None:
    server = start("--host", "0.0.0.0")
    assert "cannot be changed" in problem(add(server, {"id": "x", "names": ["x"]}), 403)
    assert "cannot be changed over the network" in server.command.output
    assert server.suggest({"title": world.words_of(0)[0]})[0]["labels"]
