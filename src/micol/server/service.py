"""All that the routes work with, in one place."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from micol import __version__
from micol.errors import MicolError
from micol.records import Document
from micol.schema import DEFAULT_SCHEMA, Schema
from micol.server.batcher import Answer, Batcher, Question
from micol.server.corpus_view import CorpusView
from micol.server.editing import LabelEditor
from micol.server.guard import Changes, is_loopback
from micol.server.limits import Limits
from micol.server.metrics import Metrics
from micol.server.problems import RequestError
from micol.server.state import Current, State


@dataclass(frozen=True)
class Options:
    """How a model is served."""

    host: str = "127.0.0.1"
    name: str = ""  # what Annif's clients call the project; the folder's name if empty
    language: str = "en"  # of the labels, as Annif's clients are told
    token: str | None = None
    is_fetched: bool = False  # whether the model is the hub's, and the folder a copy in the cache
    allow_origins: tuple[str, ...] = ()
    schema: Schema = field(default_factory=lambda: DEFAULT_SCHEMA)
    limits: Limits = field(default_factory=Limits)


class Service:
    """A loaded model with its queue, its editor and its counters."""

    def __init__(self, folder: Path, options: Options, corpus: CorpusView | None = None) -> None:
        from micol.classify import load

        self.options, self.corpus = options, corpus
        self.metrics = Metrics()
        classifier = load(folder)
        # Whatever is made ready on first use is made ready before the first request.
        list(classifier.suggest([Document("", "A document, to warm up")], 1))
        self.current = Current(State(classifier))
        self.batcher = Batcher(self.metrics, options.limits.waiting, options.limits.together)
        self.editor = LabelEditor(folder, self.current, self.batcher, self.metrics)
        self.changes = Changes(options.token, is_loopback(options.host), options.is_fetched)
        self.name = options.name or folder.resolve().name
        self.modified = datetime.fromtimestamp((folder / "config.toml").stat().st_mtime, UTC)
        self.metrics.gauges["micol_labels"] = ("Labels of the model.", lambda: len(self.state.labels))

    @property
    def state(self) -> State:
        return self.current.state

    async def ask(
        self, documents: Sequence[Document], question: Question, state: State | None = None
    ) -> tuple[State, list[Answer]]:
        """Answers from one state of the labels, within the time limit."""
        state = state or self.state
        check_filters(state, question)
        seconds = self.options.limits.seconds
        future = self.batcher.ask(state, documents, question, seconds)
        try:
            return state, await asyncio.wait_for(asyncio.wrap_future(future), seconds)
        except TimeoutError:
            raise RequestError(
                503,
                f"this took longer than {seconds:g} seconds; send fewer documents at a time, or try again",
                {"Retry-After": "5"},
            ) from None

    def about(self) -> dict[str, Any]:
        state = self.state
        classifier = state.classifier
        settings, training = classifier.config["settings"], classifier.config["training"]
        return {
            "name": self.name,
            "micol": __version__,
            "architecture": settings["architecture"],
            "labels": len(state.labels),
            "revision": state.revision,
            "hierarchy": any(state.labels.children),
            "read_tokens": classifier.ranker.text_limit,
            "metadata": list(self.options.schema.fields),
            "training": {
                "path": settings.get("path"),
                "pairs": training.get("pairs_used", 0),
                "documents": classifier.config["data"].get("documents"),
            },
            "changes": self.changes.kind,
            "corpus": self.corpus.about() if self.corpus else None,
            "limits": self.options.limits.as_dict(),
        }


def check_filters(state: State, question: Question) -> None:
    for label in (*question.include, *question.exclude):
        state.labels.position(label)
    try:
        state.classifier.allowed(question.include, question.exclude)
    except MicolError:
        raise RequestError(404, "include and exclude leave no label to suggest; widen one of them") from None
