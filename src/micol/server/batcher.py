"""One thread runs the model, for everybody: requests that wait together are tagged together."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, TypeVar

from micol.records import Document, Tagged
from micol.server.fair_queue import FairQueue, Waiting
from micol.server.metrics import Metrics
from micol.server.problems import RequestError
from micol.server.state import State, explain

log = logging.getLogger("micol.server")
Result = TypeVar("Result")

SCORE_DIGITS = 6
BATCH_SECONDS = 0.2  # what a batch may take: so long does a newcomer wait at the most to be next
CHARACTERS_A_TOKEN = 6
FIXED_COST = 200  # of any document, in characters
FIRST_RATE = 100_000.0  # characters a second, until it is known
LINGER_SECONDS = 0.003  # for those that were answered together and are about to ask again


@dataclass(frozen=True)
class Question:
    """What is asked about documents; `include` and `exclude` are ids of labels that exist."""

    limit: int = 5
    threshold: float | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    explain: bool = False

    def selects(self, score: float) -> bool:
        return self.threshold is None or score >= self.threshold


@dataclass(frozen=True)
class Answer:
    """The suggestions for one document and, where asked for, the reasons."""

    tagged: Tagged
    reasons: list[dict[str, Any]] | None = None


@dataclass
class Job:
    """A request on its way: its documents may be tagged in several batches, all from one state."""

    state: State
    documents: Sequence[Document]
    question: Question
    deadline: float
    future: Future[list[Answer]] = field(default_factory=Future)
    answers: dict[int, Answer] = field(default_factory=dict)

    def done(self, index: int, answer: Answer) -> None:
        self.answers[index] = answer
        if len(self.answers) == len(self.documents):
            self.finish([self.answers[index] for index in range(len(self.documents))])

    def finish(self, answers: list[Answer]) -> None:
        with suppress(InvalidStateError):  # whoever asked has gone
            self.future.set_result(answers)

    def fail(self, error: Exception) -> None:
        with suppress(InvalidStateError):
            self.future.set_exception(error)

    def is_over(self) -> bool:
        return self.future.done() or time.monotonic() > self.deadline


class Batcher:
    """Collects requests into batches, and runs them on a thread of its own."""

    def __init__(self, metrics: Metrics, most_waiting: int, most_together: int = 512) -> None:
        self.metrics, self.most_waiting, self.most_together = metrics, most_waiting, most_together
        self.queue: FairQueue[Job] = FairQueue()
        self.errands: list[Callable[[], None]] = []
        self.changed = threading.Condition()
        self.rate = FIRST_RATE
        self.last_size = 1
        self.is_closed = False
        self.thread = threading.Thread(target=self.run, name="micol-batcher", daemon=True)
        metrics.queue_length = lambda: len(self.queue)

    def start(self) -> None:
        self.thread.start()

    def close(self) -> None:
        """Accepts nothing more, and returns once all that was accepted is done."""
        with self.changed:
            self.is_closed = True
            self.changed.notify()
        self.thread.join()

    def ask(
        self, state: State, documents: Sequence[Document], question: Question, seconds: float
    ) -> Future[list[Answer]]:
        """Puts documents into the queue."""
        job = Job(state, documents, question, time.monotonic() + seconds)
        if not documents:
            job.finish([])
            return job.future
        most_read = CHARACTERS_A_TOKEN * state.classifier.ranker.text_limit
        with self.changed:
            self.check_open()
            if len(self.queue) + len(documents) > self.most_waiting:
                raise RequestError(
                    503, "too many documents are waiting; try again soon", {"Retry-After": "2"}
                )
            costs = [
                FIXED_COST + min(len(document.title) + len(document.abstract), most_read)
                for document in documents
            ]
            self.queue.add(job, costs)
            self.changed.notify()
        return job.future

    def call(self, errand: Callable[[], Result]) -> Result:
        """Runs something else that needs the model on its thread, before the next batch."""
        future: Future[Result] = Future()

        def run() -> None:
            try:
                future.set_result(errand())
            except Exception as error:
                future.set_exception(error)

        with self.changed:
            self.check_open()
            self.errands.append(run)
            self.changed.notify()
        return future.result()

    def check_open(self) -> None:
        if self.is_closed:
            raise RequestError(503, "the server is shutting down; try again soon", {"Retry-After": "5"})

    def run(self) -> None:
        while True:
            with self.changed:
                while not (self.queue or self.errands or self.is_closed):
                    self.changed.wait()
                errands, self.errands = self.errands, []
            for errand in errands:
                errand()
            if self.queue:
                self.tag(self.next_batch())
            elif self.is_closed and not self.errands:
                return

    def next_batch(self) -> list[Waiting[Job]]:
        """As many documents as the model does in a moment."""
        with self.changed:
            if len(self.queue) < self.last_size and not self.is_closed:
                self.changed.wait_for(lambda: len(self.queue) >= self.last_size, LINGER_SECONDS)
            batch = self.queue.take(self.rate * BATCH_SECONDS, self.most_together)
            self.last_size = len(batch)
            return batch

    def tag(self, batch: Sequence[Waiting[Job]]) -> None:
        if not batch:
            return
        groups: dict[tuple[int, tuple[str, ...], tuple[str, ...]], list[Waiting[Job]]] = {}
        for waiting in batch:
            question = waiting.request.question
            key = (id(waiting.request.state), question.include, question.exclude)
            groups.setdefault(key, []).append(waiting)
        started = time.perf_counter()
        for group in groups.values():
            self.tag_group(group)
        seconds = time.perf_counter() - started
        self.metrics.batch(len(batch), seconds)
        cost = sum(waiting.cost for waiting in batch)
        self.rate += 0.3 * (cost / max(seconds, 1e-6) - self.rate)

    def tag_group(self, group: Sequence[Waiting[Job]]) -> None:
        """Documents with the same labels to choose from."""
        try:
            answers = answers_to(group)
        except Exception as error:
            if len(group) == 1:
                log.error("a document could not be tagged", exc_info=error)
                group[0].request.fail(error)
                return
            # One of them is to blame, and only that one is to fail.
            for waiting in group:
                self.tag_group([waiting])
            return
        for waiting, answer in zip(group, answers, strict=True):
            waiting.request.done(waiting.index, answer)


def answers_to(group: Sequence[Waiting[Job]]) -> list[Answer]:
    first = group[0].request
    state, question = first.state, first.question
    most = max(waiting.request.question.limit for waiting in group)
    tagged = state.classifier.suggest(
        [waiting.request.documents[waiting.index] for waiting in group],
        most,
        include=question.include,
        exclude=question.exclude,
    )
    return [
        answer_to(state, waiting.request.documents[waiting.index], waiting.request.question, found)
        for waiting, found in zip(group, tagged, strict=True)
    ]


def answer_to(state: State, document: Document, question: Question, found: Tagged) -> Answer:
    # Rounded first, so that a score that was shown can serve as a threshold.
    rounded = (replace(label, score=round(label.score, SCORE_DIGITS)) for label in found.labels)
    chosen = tuple(label for label in islice(rounded, question.limit) if question.selects(label.score))
    reasons = explain(state, document, chosen) if question.explain else None
    return Answer(Tagged(found.id, chosen), reasons)
