"""The original MICoL release's files -> documents, labels and candidates in our form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from micol.errors import MicolError
from micol.formats.base import Imported, Options, Record, document, files, json_lines, squeezed
from micol.layout import Problems, RecordError, as_list, as_text
from micol.records import Label


def read(sources: Sequence[str | Path], options: Options) -> Imported:
    """Tells documents, labels and candidates apart by the keys of each file's first record."""
    kinds: dict[str, list[Path]] = {"documents": [], "labels": [], "candidates": []}
    for path in files(sources, {".json", ".jsonl"}):
        kinds[kind_of(path)].append(path)
    described = list(labels(kinds["labels"], options))
    names = {label.id: label.name for label in described}
    return Imported(
        documents(kinds["documents"], options), described, candidates(kinds["candidates"], names, options)
    )


def kind_of(path: Path) -> str:
    # A bad line is judged when the file is read, not here.
    for _, record in json_lines(path, Problems(str(path), skip_bad=True)):
        if "predicted_label" in record:
            return "candidates"
        if "paper" in record:
            return "documents"
        if "label" in record and "name" in record:
            return "labels"
        break
    raise MicolError(
        f"{path}: its first record is neither a document (paper, text, …), a label (label, name, …) "
        "nor a list of candidates (paper, predicted_label, …); leave this file out"
    )


def documents(paths: Sequence[Path], options: Options) -> Iterator[Record]:
    for path in paths:
        problems = options.problems(path)
        for number, record in json_lines(path, problems):
            try:
                converted = document(
                    only(record, "paper"),
                    abstract=squeezed(as_text(record.get("text"), "text")),
                    authors=as_list(record.get("author"), "author"),
                    venue=" ".join(as_list(record.get("venue"), "venue")),
                    references=as_list(record.get("reference"), "reference"),
                    labels=as_list(record.get("label"), "label"),
                )
                citing = as_list(record.get("citation"), "citation")
                yield {**converted, "citations": [source for source in citing if source != converted["id"]]}
            except RecordError as error:
                problems.add(number, error)


def labels(paths: Sequence[Path], options: Options) -> Iterator[Label]:
    for path in paths:
        problems = options.problems(path)
        for number, record in json_lines(path, problems):
            try:
                identifier = only(record, "label")
                names = tuple(as_list(record.get("name"), "name")) or (identifier,)
                yield Label(identifier, names, squeezed(as_text(record.get("definition"), "definition")))
            except RecordError as error:
                problems.add(number, error)


def candidates(paths: Sequence[Path], names: dict[str, str], options: Options) -> Iterator[Record]:
    """The release ranks its candidates without scores: the first gets 1, the second 1/2, and so on."""
    for path in paths:
        problems = options.problems(path)
        for number, record in json_lines(path, problems):
            try:
                ranked = as_list(record.get("predicted_label"), "predicted_label")
                scored = [
                    {"id": label, "name": names.get(label, label), "score": 1 / rank}
                    for rank, label in enumerate(ranked, start=1)
                ]
                yield {"id": only(record, "paper"), "labels": scored}
            except RecordError as error:
                problems.add(number, error)


def only(record: Record, key: str) -> str:
    """The one value of a key that a record cannot do without."""
    values = as_list(record.get(key), key)
    if len(values) != 1:
        raise RecordError(f'"{key}" must be one id, got {len(values)}', "give each record one")
    return values[0]
