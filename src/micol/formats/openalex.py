"""OpenAlex works (JSON Lines) -> documents with topics, concepts or keywords as labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from micol.errors import UsageError
from micol.formats.base import (
    Gathered,
    Imported,
    Options,
    Record,
    as_object,
    as_objects,
    document,
    files,
    json_lines,
    squeezed,
)
from micol.layout import RecordError, as_list, as_text, described

ADDRESS = "https://openalex.org/"
KINDS = ("topics", "concepts", "keywords")
# A topic stands below its subfield, that below its field, and that below its domain.
LEVELS = ("subfield", "field", "domain")


def read(sources: Sequence[str | Path], options: Options) -> Imported:
    kind = options.labels or KINDS[0]
    if kind not in KINDS:
        raise UsageError(f"--labels must be one of {', '.join(KINDS)} for openalex, got {kind!r}")
    labels = Gathered()
    return Imported(documents(sources, kind, labels, options), labels)


def documents(
    sources: Sequence[str | Path], kind: str, labels: Gathered, options: Options
) -> Iterator[Record]:
    for path in files(sources, {"", ".jsonl", ".json", ".ndjson"}):
        if path.name == "manifest":
            continue  # the snapshot's list of its own parts
        problems = options.problems(path)
        for number, line in json_lines(path, problems):
            try:
                # The API answers with pages of works, the snapshot has one work a line.
                for work in as_objects(line["results"], '"results"') if "results" in line else [line]:
                    yield document_of(work, kind, labels, options.min_score)
            except RecordError as error:
                problems.add(number, error)


def document_of(work: Record, kind: str, labels: Gathered, min_score: float) -> Record:
    location = as_object(work.get("primary_location"), '"primary_location"')
    source = as_object(location.get("source") or work.get("host_venue"), '"source"')
    authorships = as_objects(work.get("authorships"), '"authorships"')
    authors = [as_object(authorship.get("author"), '"author"') for authorship in authorships]
    return document(
        short(work.get("id"), "id"),
        title=squeezed(as_text(work.get("title") or work.get("display_name"), "title")),
        abstract=abstract(work.get("abstract_inverted_index")),
        authors=[identity(author) for author in authors],
        venue=identity(source),
        references=[
            short(target, "referenced_works")
            for target in as_list(work.get("referenced_works"), "referenced_works")
        ],
        labels=subjects(work.get(kind), kind, labels, min_score),
    )


def short(address: Any, key: str) -> str:
    """W2741809807 for https://openalex.org/W2741809807."""
    return as_text(address, key).removeprefix(ADDRESS)


def identity(entity: Record) -> str:
    return short(entity.get("id"), "id") or as_text(entity.get("display_name"), "display_name")


def abstract(index: Any) -> str:
    """The words of an inverted index (word -> positions) in their order."""
    placed: list[tuple[int, str]] = []
    for word, positions in as_object(index, '"abstract_inverted_index"').items():
        for position in positions if isinstance(positions, list) else [positions]:
            if not isinstance(position, int):
                raise RecordError(
                    f'"abstract_inverted_index" must give positions, got {described(position)}',
                    "check the file's format",
                )
            placed.append((position, word))
    return squeezed(" ".join(word for _, word in sorted(placed)))


def subjects(items: Any, kind: str, labels: Gathered, min_score: float) -> list[str]:
    found = []
    for item in as_objects(items, f'"{kind}"'):
        score = item.get("score")
        if score is not None and not isinstance(score, int | float):
            raise RecordError(f'"score" must be a number, got {described(score)}', "check the file's format")
        if score is None or score >= min_score:
            found.append(label(item, labels, LEVELS))
    return found


def label(item: Record, labels: Gathered, levels: Sequence[str]) -> str:
    """Gathers a label together with those above it, and gives its id."""
    # Early snapshots name a keyword by itself, without an id.
    name = squeezed(as_text(item.get("display_name") or item.get("keyword"), "display_name"))
    identifier = short(item.get("id"), "id") or name
    if not identifier:
        raise RecordError("a label has neither an id nor a name", "check the file's format")
    if identifier in labels:
        return identifier
    parents = []
    for place, level in enumerate(levels):
        if above := as_object(item.get(level), f'"{level}"'):
            # A topic lists all three levels; each stands below the next of them.
            rest = {higher: item.get(higher) for higher in levels[place + 1 :]}
            parents.append(label({**above, **rest}, labels, levels[place + 1 :]))
            break
    description = squeezed(as_text(item.get("description"), "description"))
    return labels.add(identifier, name, description=description, parents=parents)
