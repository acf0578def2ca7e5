"""Annif's corpora (folders of texts, TSV, CSV, JSON, JSON Lines) and vocabularies -> documents and labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from micol.errors import MicolError
from micol.files import reading, suffixes
from micol.formats import skos
from micol.formats.base import (
    Gathered,
    Imported,
    Options,
    Record,
    as_object,
    as_objects,
    document,
    json_lines,
    lines,
    name_of,
)
from micol.formats.rows import rows
from micol.jsonl import BYTE_ORDER_MARK, loaded
from micol.labels import LabelSpace
from micol.layout import Problems, RecordError, as_text, encodable
from micol.records import Label

# Metadata with a meaning of its own in our documents; the other fields keep their names.
TEXTS = ("title", "abstract")
LISTS = ("authors", "references", "citations")
# What a document's own columns say counts, not metadata of the same name.
TAKEN = ("id", "labels")


class Subjects:
    """Finds the id that a corpus means by a URI or by a label, in a vocabulary where there is one."""

    def __init__(self, vocabulary: Sequence[Label] | None = None) -> None:
        self.gathered = Gathered()
        self.unknown: set[str] = set()
        self._by_name = None if vocabulary is None else {label.name: label.id for label in vocabulary}

    def by_uri(self, uri: str, name: str = "") -> str:
        return self.gathered.add(uri.strip().removeprefix("<").removesuffix(">"), name.strip())

    def by_label(self, label: str) -> str:
        """An id; without a vocabulary the label itself is one; '' where a vocabulary does not know it."""
        label = label.strip()
        if self._by_name is None:
            return self.gathered.add(label) if label else ""
        if label and label not in self._by_name:
            self.unknown.add(label)
        return self._by_name.get(label, "")


def read(sources: Sequence[str | Path], options: Options) -> Imported:
    """`options.labels` names the vocabulary; else labels are gathered from the corpora."""
    if not options.labels:
        subjects = Subjects()
        return Imported(corpora(sources, subjects, options), subjects.gathered)
    described = vocabulary(options.labels, options)
    return Imported(corpora(sources, Subjects(described), options), described)


def vocabulary(path: str, options: Options) -> list[Label]:
    """SKOS in the language asked for, or a table."""
    if suffixes(path)[0] in skos.SYNTAXES:
        return list(skos.labels(path, options.language))
    return list(LabelSpace.read(path, skip_bad=options.skip_bad))


def corpora(sources: Sequence[str | Path], subjects: Subjects, options: Options) -> Iterator[Record]:
    for source in sources:
        yield from documents(source, subjects, options.problems(source))
    if subjects.unknown:
        count, example = len(subjects.unknown), sorted(subjects.unknown)[0]
        options.notes.append(f"{count} subjects, such as {example!r}, are not in the vocabulary: left out")


def documents(
    path: str | Path, subjects: Subjects | None = None, problems: Problems | None = None
) -> Iterator[Record]:
    """The documents of one corpus: a folder, or a .tsv, .csv or .jsonl file, packed or not."""
    subjects = subjects or Subjects()
    problems = problems or Problems(str(path), skip_bad=False)
    if Path(path).is_dir():
        yield from folder(Path(path), subjects, problems)
        return
    readers = {".tsv": tsv, ".csv": table, ".jsonl": json_corpus}
    extension = suffixes(path)[0]
    if extension not in readers:
        raise MicolError(
            f"{path}: expected an Annif corpus, a folder or a file that ends in {', '.join(readers)} "
            f"(packed or not), got {extension or 'no extension'}"
        )
    yield from readers[extension](path, subjects, problems)


def folder(path: Path, subjects: Subjects, problems: Problems) -> Iterator[Record]:
    """Full texts: NAME.txt with its subjects in NAME.tsv or NAME.key, or NAME.json."""
    paths = sorted([*path.glob("*.txt"), *path.glob("*.json")])
    if not paths:
        raise MicolError(f"{path}: no .txt or .json file in this folder; expected an Annif full-text corpus")
    for file in paths:
        own = Problems(str(file), problems.skip_bad)
        own.skipped = problems.skipped
        try:
            if file.suffix == ".json":
                yield json_document(loaded(whole(file)), file.stem, subjects)
            else:
                text = "\n".join(line for _, line in lines(file, own)).strip()
                yield document(file.stem, abstract=text, labels=assigned(file, subjects, own))
        except RecordError as error:
            own.add(1, error)


def whole(path: Path) -> bytes:
    with reading(path) as stream:
        return stream.read().removeprefix(BYTE_ORDER_MARK)


def assigned(path: Path, subjects: Subjects, problems: Problems) -> Iterator[str]:
    """The subjects of a text: URIs with labels in a .tsv beside it, or labels alone in a .key."""
    if path.with_suffix(".tsv").exists():
        for _, line in lines(path.with_suffix(".tsv"), problems):
            uri, _, rest = line.partition("\t")
            if uri.strip():
                yield subjects.by_uri(uri, rest.partition("\t")[0])
    elif path.with_suffix(".key").exists():
        for _, line in lines(path.with_suffix(".key"), problems):
            yield subjects.by_label(line)


def tsv(path: str | Path, subjects: Subjects, problems: Problems) -> Iterator[Record]:
    """Short texts: a text, a tab, and URIs with spaces between them."""
    for number, line in lines(path, problems):
        text, tab, uris = line.partition("\t")
        try:
            if not line.strip():
                continue
            if not tab:
                raise RecordError("expected a text, a tab and subject URIs, got no tab", "add the tab")
            yield document(
                f"{name_of(path)}:{number}", abstract=text.strip(), labels=map(subjects.by_uri, uris.split())
            )
        except RecordError as error:
            problems.add(number, error)


def table(path: str | Path, subjects: Subjects, problems: Problems) -> Iterator[Record]:
    """A CSV file with a header: text, subject_uris, perhaps document_id, and metadata."""

    def check_header(header: Sequence[str]) -> None:
        if "text" not in header:
            raise MicolError(
                f'{path}: expected a header with a column "text", got {", ".join(header)[:100]!r}; tables '
                "with other columns are read by `micol import csv`"
            )

    for number, row in rows(path, problems, check_header):
        try:
            yield table_document(row, f"{name_of(path)}:{number}", subjects)
        except RecordError as error:
            problems.add(number, error)


def table_document(row: dict[str, Any], otherwise: str, subjects: Subjects) -> Record:
    uris = (row.pop("subject_uris", "") or "").split()
    identifier = (row.pop("document_id", "") or "").strip() or otherwise
    text = row.pop("text") or ""
    return with_metadata(identifier, text, row, map(subjects.by_uri, uris))


def json_corpus(path: str | Path, subjects: Subjects, problems: Problems) -> Iterator[Record]:
    for number, record in json_lines(path, problems):
        try:
            yield json_document(record, f"{name_of(path)}:{number}", subjects)
        except RecordError as error:
            problems.add(number, error)


def json_document(value: Any, otherwise: str, subjects: Subjects) -> Record:
    """`{"document_id", "text", "metadata": {…}, "subjects": [{"uri", "label"}, …]}`."""
    record = as_object(value, "the document")
    assigned = []
    for subject in as_objects(record.get("subjects"), '"subjects"'):
        uri, label = as_text(subject.get("uri"), "uri"), as_text(subject.get("label"), "label")
        assigned.append(subjects.by_uri(uri, label) if uri else subjects.by_label(label))
    identifier = as_text(record.get("document_id"), "document_id") or otherwise
    metadata = as_object(record.get("metadata"), '"metadata"')
    return with_metadata(identifier, as_text(record.get("text"), "text"), metadata, assigned)


def with_metadata(identifier: str, text: str, metadata: Record, labels: Any) -> Record:
    """A document whose title and further metadata come from named fields."""
    fields = {key: as_text(value, key).strip() for key, value in metadata.items() if key not in TAKEN}
    title, abstract = (fields.pop(key, "") for key in TEXTS)
    # The text proper counts; where there is none, the abstract does.
    record = document(identifier, title=title, abstract=text.strip() or abstract, labels=labels)
    more = {encodable(key): [value] if key in LISTS else value for key, value in fields.items() if value}
    return {**record, **more}
