"""The queue: together, fair, and to the end."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from pathlib import Path

import httpx
import pytest

import micol
import world
from micol.records import Document
from micol.server.batcher import Answer, Batcher, Question
from micol.server.metrics import Metrics
from micol.server.problems import RequestError
from micol.server.state import State
from serving import Start

SHORT = Document("s", "results")
LONG = Document("l", "results", " ".join(world.words_of(3)) + " with using the method" * 200)


@pytest.fixture(scope="module")
def state(served_model: Path) -> State:
    return State(micol.load(served_model))


def finished_order(futures: dict[str, Future[list[Answer]]]) -> list[str]:
    order: list[str] = []
    for name, future in futures.items():
        future.add_done_callback(lambda _, name=name: order.append(name))  # type: ignore[misc]
    for future in futures.values():
        future.result(60)
    return order


def test_what_waits_together_is_tagged_together(state: State) -> None:
    metrics = Metrics()
    batcher = Batcher(metrics, most_waiting=1000)
    futures = [batcher.ask(state, [SHORT], Question(limit), 60) for limit in range(1, 11)]
    batcher.start()
    answers = [future.result(60) for future in futures]
    assert [len(answer[0].tagged.labels) for answer in answers] == list(range(1, 11))
    assert metrics.batch_sizes.total == 10
    assert sum(metrics.batch_sizes.counts) == 1
    batcher.close()


def test_short_requests_pass_long_ones(state: State) -> None:
    batcher = Batcher(Metrics(), most_waiting=10_000)
    batcher.rate = 5000.0  # a slow machine: a batch has place for one long document only
    futures = {f"long{n}": batcher.ask(state, [LONG], Question(), 60) for n in range(6)}
    futures["many"] = batcher.ask(state, [SHORT] * 200, Question(), 60)
    futures["short"] = batcher.ask(state, [SHORT], Question(), 60)
    batcher.start()
    order = finished_order(futures)
    assert order[0] == "short"
    assert order[-1] == "many"
    batcher.close()


def test_a_stream_of_short_ones_does_not_starve_a_long_one(state: State) -> None:
    batcher = Batcher(Metrics(), most_waiting=10_000)
    batcher.rate = 2500.0
    futures = {"long": batcher.ask(state, [LONG], Question(), 60)}
    futures |= {f"short{n}": batcher.ask(state, [SHORT], Question(), 60) for n in range(30)}
    passed = threading.Event()
    futures["long"].add_done_callback(lambda _: passed.set())
    batcher.start()
    deadline = time.monotonic() + 30
    while not passed.is_set():
        assert time.monotonic() < deadline
        batcher.ask(state, [SHORT] * 3, Question(), 60).result(60)
    batcher.close()


def test_one_bad_document_fails_alone(state: State) -> None:
    batcher = Batcher(Metrics(), most_waiting=100)
    good = [batcher.ask(state, [SHORT], Question(), 60) for _ in range(3)]
    bad = batcher.ask(state, [Document("b", "half a character: \ud800")], Question(), 60)
    batcher.start()
    assert all(future.result(60)[0].tagged.labels for future in good)
    with pytest.raises(Exception):  # noqa: B017, PT011
        bad.result(60)
    assert batcher.ask(state, [SHORT], Question(), 60).result(60)
    batcher.close()


def test_closing_finishes_what_was_accepted(state: State) -> None:
    batcher = Batcher(Metrics(), most_waiting=1000)
    futures = [batcher.ask(state, [SHORT] * 20, Question(), 60) for _ in range(5)]
    batcher.start()
    batcher.close()
    assert all(len(future.result(0)) == 20 for future in futures)
    with pytest.raises(RequestError, match="shutting down"):
        batcher.ask(state, [SHORT], Question(), 60)
    with pytest.raises(RequestError, match="shutting down"):
        batcher.call(lambda: None)


def test_a_queue_that_is_full_says_so(state: State) -> None:
    batcher = Batcher(Metrics(), most_waiting=10)
    batcher.ask(state, [SHORT] * 10, Question(), 60)
    with pytest.raises(RequestError, match="try again") as refused:
        batcher.ask(state, [SHORT], Question(), 60)
    assert refused.value.headers == {"Retry-After": "2"}
    batcher.start()
    batcher.close()


def test_what_nobody_waits_for_is_let_go(state: State) -> None:
    metrics = Metrics()
    batcher = Batcher(metrics, most_waiting=1000)
    late = batcher.ask(state, [SHORT] * 50, Question(), -1)
    gone = batcher.ask(state, [SHORT] * 50, Question(), 60)
    gone.cancel()
    batcher.start()
    batcher.ask(state, [SHORT], Question(), 60).result(60)
    batcher.close()
    assert metrics.documents == 1
    assert not late.done()


def test_sigterm_answers_what_was_accepted(start: Start) -> None:
    server = start("--max-documents", 20_000, "--max-body", 64)
    documents = [{"text": "results with the method of it " * 10}] * 6000
    answers: list[httpx.Response] = []
    asking = threading.Thread(
        target=lambda: answers.append(
            httpx.post(f"{server.url}/v1/suggest", json={"documents": documents, "limit": 1}, timeout=60)
        )
    )
    asking.start()
    deadline = time.monotonic() + 30
    while "micol_waiting_documents 0\n" in server.client.get("/metrics").text:
        assert time.monotonic() < deadline
    server.client.close()
    server.terminate()
    asking.join()
    assert server.command.wait() == 0
    assert answers[0].status_code == 200
    assert len(answers[0].json()["results"]) == 6000
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{server.url}/health")
