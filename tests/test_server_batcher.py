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
from micol.server.fair_queue import FairQueue
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
    assert order.index("many") >= 4
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


class Asking:
    """A request of the queue's own tests."""

    def __init__(self, name: str, is_gone: bool = False) -> None:
        self.name, self.is_gone = name, is_gone

    def is_over(self) -> bool:
        return self.is_gone


@pytest.mark.parametrize("budget", [50.0, 500.0, 3000.0])
def test_whatever_comes_everybody_has_a_turn(budget: float) -> None:
    """Short ones come without end, and many of them always wait."""
    queue: FairQueue[Asking] = FairQueue()
    queue.add(Asking("long"), [1000.0])
    queue.add(Asking("many"), [300.0] * 20)
    taken: list[str] = []
    for _ in range(20_000):
        while len(queue) < 40:
            queue.add(Asking("short"), [10.0])
        batch = queue.take(budget, 64)
        assert batch
        taken += [waiting.request.name for waiting in batch]
        if taken.count("many") == 20 and "long" in taken:
            break
    assert taken.count("many") == 20
    assert taken.count("long") == 1
    assert len(queue.by_size) + len(queue.by_turn) <= 4 * len(queue) + 64, "what was taken is not kept"


def test_a_short_request_is_in_the_next_batch() -> None:
    queue: FairQueue[Asking] = FairQueue()
    for number in range(64):
        queue.add(Asking(f"long{number}"), [1000.0] * 16)
    queue.add(Asking("gone", is_gone=True), [1.0])
    for _ in range(100):
        queue.add(Asking("short"), [20.0])
        assert "short" in {waiting.request.name for waiting in queue.take(8000.0, 64)}
    assert sum(1 for _, _, waiting in queue.by_turn if not waiting.is_taken) == len(queue)


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
