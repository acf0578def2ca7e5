"""Documents in, suggestions out, a batch at a time: memory does not grow with the number of documents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from micol.corpus import Corpus, is_annif
from micol.errors import MicolError
from micol.files import STANDARD_INPUT, reading
from micol.labels import LabelSpace
from micol.progress import Progress
from micol.ranking import Ranking
from micol.retrieve.candidates import candidate_lines
from micol.schema import Schema
from micol.stream import document_batches
from micol.tables import files_of, is_parquet

if TYPE_CHECKING:
    from micol.classify import Classifier
    from micol.explain import Explainer

SCORE_DIGITS = 6


@dataclass(frozen=True)
class Request:
    """What is asked for: at most `limit` labels a document, each of the threshold or above."""

    limit: int = 5
    threshold: float | None = None
    # Ids of labels; each stands for its whole branch.
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    # Whether the reasons for each suggestion are written with it.
    explain: bool = False


@dataclass(frozen=True)
class Tally:
    """How many documents there were, and of how many there is something to tell."""

    documents: int = 0
    empty: int = 0
    without_candidate: int = 0
    below_threshold: int = 0
    cut: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(Tally)))

    def lines(self, tokens: int) -> Iterator[str]:
        yield f"{self.documents:,} documents tagged"
        if self.empty:
            yield f"{self.empty:,} have no text, so they got no label"
        if self.without_candidate:
            yield f"{self.without_candidate:,} have a text, but no candidate label"
        if self.below_threshold:
            yield f"{self.below_threshold:,} have candidates, but none reaches the threshold"
        if self.cut:
            yield f"{self.cut:,} are longer than the {tokens:,} tokens that are read; the rest was cut"


class Tagger:
    """A classifier with a request: turns batches of documents into lines of JSON."""

    def __init__(self, model: Classifier, request: Request) -> None:
        self.model, self.request = model, request
        self.text_tokens = model.ranker.text_limit
        self.explainer = explainer_of(model) if request.explain else None

    def tag(self, batch: Corpus, candidates: Ranking | None = None) -> tuple[bytes, Tally]:
        """The lines of a batch, one a document, and what there is to tell about it."""
        records, tally = self.records(batch, candidates)
        lines = (json.dumps(record, ensure_ascii=False) for record in records)
        return "".join(f"{line}\n" for line in lines).encode(), tally

    def records(self, batch: Corpus, candidates: Ranking | None = None) -> tuple[list[dict[str, Any]], Tally]:
        """The same as records in place of lines."""
        request, texts = self.request, batch.texts()
        tagged = self.model.suggest(
            batch, request.limit, candidates=candidates, include=request.include, exclude=request.exclude
        )
        records = []
        without = below = 0
        for number, (text, document) in enumerate(zip(texts, tagged, strict=True)):
            chosen = [
                label
                for label in document.labels
                if request.threshold is None or label.score >= request.threshold
            ]
            labels: list[dict[str, Any]] = [
                {"id": label.id, "name": label.name, "score": round(label.score, SCORE_DIGITS)}
                for label in chosen
            ]
            if self.explainer and chosen:
                for label, why in zip(labels, self.explainer.explain(batch[number], chosen), strict=True):
                    label["why"] = why.as_dict()
            without += bool(text and not document.labels)
            below += bool(document.labels and not labels)
            records.append({"id": document.id, "labels": labels})
        cut = self.model.ranker.encoder.count_longer(texts, self.text_tokens)
        return records, Tally(len(batch), texts.count(""), without, below, cut)


def explainer_of(model: Classifier) -> Explainer:
    from micol.explain import Explainer

    return Explainer(model)


class CandidateFile:
    """Candidates of documents as they are asked for; those met on the way wait for their turn.

    Where the file has the order of the documents, as is usual, none waits for long.
    """

    def __init__(self, path: str | Path, labels: LabelSpace) -> None:
        self.path, self.labels = path, labels
        self.rows = self._rows()
        self.waiting: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def of(self, ids: Sequence[str]) -> Ranking:
        """A row for each document."""
        found = [self._row_of(document) for document in ids]
        numbers = np.repeat(np.arange(len(ids)), [len(labels) for labels, _ in found])
        labels, scores = (np.concatenate(column) for column in zip(*found, strict=True))
        return Ranking.from_entries(numbers, labels, scores, len(ids))

    def _row_of(self, document: str) -> tuple[np.ndarray, np.ndarray]:
        while document not in self.waiting:
            row = next(self.rows, None)
            if row is None:
                raise MicolError(
                    f"{self.path}: holds no candidates for document {document!r}; make them with "
                    "`micol candidates`"
                )
            self.waiting[row[0]] = row[1:]
        return self.waiting.pop(document)

    def _rows(self) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        with reading(self.path) as stream:
            for line, document, entries in candidate_lines(stream, self.path):
                try:
                    positions = [self.labels.position(label) for label in entries]
                except MicolError as error:
                    raise MicolError(f"{self.path}:{line}: {error}") from None
                yield document, np.array(positions, np.int32), np.array(list(entries.values()), np.float32)


class Output(Protocol):
    """Where lines go. `state` is what was told with the last batch of an earlier, interrupted run."""

    state: dict[str, Any]

    def append(self, content: bytes, state: Mapping[str, Any]) -> None: ...


def tag_all(
    tagger: Tagger,
    batches: Iterable[Corpus],
    candidates: CandidateFile | None,
    output: Output,
    progress: Progress,
) -> Tally:
    """Tags what an earlier run has not, and returns the tally of both."""
    tally = Tally(**output.state.get("tally", {}))
    tagged_before, seen, ids = tally.documents, 0, hashlib.sha256()
    progress.begin_at(tagged_before)
    for batch in batches:
        rows = candidates.of(batch.ids) if candidates else None
        ids.update("".join(f"{name}\n" for name in batch.ids).encode())
        seen += len(batch)
        if seen - len(batch) >= tagged_before:
            lines, told = tagger.tag(batch, rows)
            tally += told
            output.append(lines, {"tally": asdict(tally), "ids": ids.hexdigest()})
            progress.advance(len(batch))
        elif seen > tagged_before or (seen == tagged_before and ids.hexdigest() != output.state["ids"]):
            raise other_documents(tagged_before)
    if seen < tagged_before:
        raise other_documents(tagged_before)
    return tally


def other_documents(number: int) -> MicolError:
    return MicolError(
        f"the first {number:,} documents are not those that an earlier run has tagged, so it cannot go on; "
        "remove its partial output to start afresh"
    )


def even_batches(batches: Iterable[Corpus], size: int, wanted: Collection[str] | None) -> Iterator[Corpus]:
    """The documents, of these only the wanted ones, in batches of exactly `size`, but for the last."""
    waiting: list[pa.Table] = []
    last: Corpus | None = None
    for last in batches:
        waiting.append(last.table if wanted is None else chosen(last, wanted).table)
        if sum(len(table) for table in waiting) >= size:
            table = pa.concat_tables(waiting)
            whole = len(table) // size * size
            for start in range(0, whole, size):
                yield Corpus(table.slice(start, size).combine_chunks(), last.schema, last.source)
            waiting = [table.slice(whole)]
    if last is not None and any(len(table) for table in waiting):
        yield Corpus(pa.concat_tables(waiting).combine_chunks(), last.schema, last.source)


def chosen(batch: Corpus, wanted: Collection[str]) -> Corpus:
    return batch.select([position for position, name in enumerate(batch.ids) if name in wanted])


def documents_of(
    source: str, size: int, schema: Schema, skip_bad: bool, wanted: Collection[str] | None, skipped: list[str]
) -> Iterator[Corpus]:
    """The batches to tag; what was left out is added to `skipped`."""

    def noting() -> Iterator[Corpus]:
        for batch in document_batches(source, size, schema, skip_bad=skip_bad, quiet=True):
            skipped.extend(batch.skipped)
            yield batch

    return even_batches(noting(), size, wanted)


def label_id(labels: LabelSpace, text: str) -> str:
    """The id of a label that is called by its id or, where only one label has it, by its preferred name."""
    if text in labels.ids:
        return text
    named = [name for name, names in zip(labels.ids, labels.names, strict=True) if names[0] == text]
    if len(named) == 1:
        return named[0]
    if named:
        raise MicolError(f"{text!r} is the name of {len(named)} labels; say which by id: {', '.join(named)}")
    raise MicolError(
        f"no label has the id or the preferred name {text!r}; find it with `micol labels MODEL list --search`"
    )


def number_of_documents(source: str | Path) -> int | None:
    """How many records there are, to tell how long it will take; None where that cannot be told."""
    files = files_of(source)
    if all(map(is_parquet, files)):
        return sum(map(rows_of, files))
    if str(source) == STANDARD_INPUT or is_annif(source):
        return None
    with reading(source) as stream:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: stream.read(1 << 20), b""))


def rows_of(path: str | Path) -> int:
    """How many rows a Parquet file has."""
    with reading(path) as file:
        return int(pq.read_metadata(file).num_rows)
