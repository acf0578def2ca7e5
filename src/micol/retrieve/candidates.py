"""Candidate labels of documents in a file: one JSON line a document, labels best first."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from micol.corpus import Corpus
from micol.errors import MicolError
from micol.files import reading
from micol.jsonl import loaded
from micol.labels import LabelSpace
from micol.layout import RecordError, as_list, described
from micol.progress import say, track
from micol.ranking import Ranking

EXPECTED = (
    '{"id": "d1", "labels": [{"id": "l1", "score": 2.5}, …]} or {"paper": "d1", "predicted_label": ["l1", …]}'
)

GREATEST = float(np.finfo(np.float32).max)


class CandidateWriter:
    """Writes rankings as they come, `{"id": …, "labels": [{"id", "name", "score"}, …]}` a document."""

    def __init__(self, stream: IO[bytes], labels: LabelSpace) -> None:
        self.stream, self.labels = stream, labels
        # What every record about a label begins with; written once, for labels come again and again.
        self.beginnings: dict[int, str] = {}

    def write(self, ids: Sequence[str], ranking: Ranking) -> None:
        lines = []
        for row, identifier in enumerate(ids):
            labels, scores = (column.tolist() for column in ranking.row(row))
            # Nine digits are enough to read the same float32 back.
            entries = [f"{self.beginning(label)}{score:.9g}}}" for label, score in zip(labels, scores)]
            lines.append(f'{{"id": {encoded(identifier)}, "labels": [{", ".join(entries)}]}}\n')
        self.stream.write("".join(lines).encode())

    def beginning(self, label: int) -> str:
        if label not in self.beginnings:
            identifier, name = self.labels.ids[label], self.labels.names[label][0]
            self.beginnings[label] = f'{{"id": {encoded(identifier)}, "name": {encoded(name)}, "score": '
        return self.beginnings[label]


def encoded(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def read_candidates(path: str | Path, corpus: Corpus, labels: LabelSpace) -> Ranking:
    """Candidates for every document of a corpus, in its order, from what `micol candidates` or
    `micol suggest` writes, or from the original release's file.

    Where labels have no scores their order counts: the first gets 1, the second 1/2, and so on.
    """
    row_of = {identifier: row for row, identifier in enumerate(corpus.ids)}
    position_of = {identifier: position for position, identifier in enumerate(labels.ids)}
    line_of = np.zeros(len(corpus), np.int64)
    rows, positions, scores = array("q"), array("i"), array("f")
    elsewhere = 0
    with reading(path) as stream:
        for line, document, entries in track(
            candidate_lines(stream, path), f"reading {path}", unit="documents"
        ):
            row = row_of.get(document)
            if row is None:
                elsewhere += 1
                continue
            if line_of[row]:
                raise MicolError(
                    f"{path}:{line}: document {document!r} has candidates on line {line_of[row]} already; "
                    "leave one line for each document"
                )
            line_of[row] = line
            for label, score in entries.items():
                if label not in position_of:
                    raise MicolError(
                        f"{path}:{line}: no label of {labels.source} has the id {label!r}; "
                        "take the candidates that were made for these labels"
                    )
                rows.append(row)
                positions.append(position_of[label])
                scores.append(score)
    missing = np.flatnonzero(line_of == 0)
    if len(missing):
        others = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise MicolError(
            f"{path}: holds no candidates for document {corpus.ids[missing[0]]!r}{others} of "
            f"{corpus.source}; make them with `micol candidates`"
        )
    if elsewhere:
        say(f"{path}: {elsewhere:,} documents are not in {corpus.source}; their candidates are left out")
    return Ranking.from_entries(
        np.array(rows, np.int64), np.array(positions), np.array(scores, np.float32), len(corpus)
    )


def candidate_lines(stream: IO[bytes], path: str | Path) -> Iterator[tuple[int, str, Mapping[str, float]]]:
    """Line number, document and scored labels of each line."""
    for number, line in enumerate(stream, start=1):
        if line.strip():
            try:
                yield number, *candidates_of(loaded(line))
            except RecordError as error:
                raise MicolError(f"{path}:{number}: {error.problem}; {error.remedy}") from None


def candidates_of(record: Any) -> tuple[str, Mapping[str, float]]:
    if not isinstance(record, dict):
        raise RecordError(f"expected an object, got {described(record)}", f"write {EXPECTED}")
    if "predicted_label" in record:
        ranked = as_list(record["predicted_label"], "predicted_label")
        return document_of(record, "paper"), {label: 1 / rank for rank, label in enumerate(ranked, start=1)}
    entries = record.get("labels")
    if not isinstance(entries, list):
        raise RecordError(f'"labels" must be a list, got {described(entries)}', f"write {EXPECTED}")
    scored: dict[str, float] = {}
    for rank, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict):
            raise RecordError(
                f'"labels" must hold objects such as {{"id": "l1"}}, got {described(entry)}',
                f"write {EXPECTED}",
            )
        scored.setdefault(document_of(entry, "id"), score_of(entry, 1 / rank))
    return document_of(record, "id"), scored


def document_of(record: Mapping[str, Any], key: str) -> str:
    identifiers = as_list(record.get(key), key)
    if len(identifiers) != 1:
        raise RecordError(f'"{key}" must be one id, got {described(record.get(key))}', f"write {EXPECTED}")
    return identifiers[0]


def score_of(entry: Mapping[str, Any], default: float) -> float:
    score = entry.get("score", default)
    # The bound keeps out NaN and infinity as well.
    if isinstance(score, bool) or not isinstance(score, int | float) or not abs(score) <= GREATEST:
        raise RecordError(f'"score" must be a number, got {described(score)}', "mend it, or leave it out")
    return float(score)
