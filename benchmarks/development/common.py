"""What all development sets have in common: drawing, cleaning, writing, climbing a hierarchy, fetching."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from micol.errors import MicolError
from micol.progress import say

Record = dict[str, Any]
MAX_DOCUMENTS = 9_000
TEST_DOCUMENTS = 1_200
SEED = 1


class Made(NamedTuple):
    """A set before documents are drawn from it."""

    documents: list[Record]
    labels: list[Record]


def document(id: str, title: str, abstract: str, labels: Iterable[str], **metadata: Any) -> Record:
    empty: Record = {"authors": [], "venue": "", "references": []}
    return {"id": id, "title": title, "abstract": abstract, **empty, **metadata, "labels": list(labels)}


def label(id: str, names: Iterable[str], description: str = "", parents: Iterable[str] = ()) -> Record:
    return {"id": id, "names": list(names), "description": description, "parents": list(parents)}


def drawn(documents: Iterable[Record]) -> list[Record]:
    """At most MAX_DOCUMENTS of those with labels, the same in every run; their metadata join something."""
    labelled = sorted((record for record in documents if record["labels"]), key=lambda record: record["id"])
    chosen = random.Random(SEED).sample(labelled, min(MAX_DOCUMENTS, len(labelled)))
    chosen.sort(key=lambda record: record["id"])
    for field in ("authors", "references"):
        keep_joining(chosen, field)
    return chosen


def keep_joining(documents: Sequence[Record], field: str) -> None:
    """A value that only one document has joins nothing, unless it is itself a document."""
    count = Counter(value for record in documents for value in set(record[field]))
    ids = {record["id"] for record in documents}
    for record in documents:
        values = (value for value in dict.fromkeys(record[field]) if value != record["id"])
        record[field] = [value for value in values if count[value] > 1 or value in ids]


def write(made: Made, folder: Path) -> None:
    documents = drawn(made.documents)
    ids = [record["id"] for record in documents]
    tested = sorted(random.Random(SEED).sample(ids, min(TEST_DOCUMENTS, len(ids))))
    folder.mkdir(parents=True, exist_ok=True)
    write_lines(folder / "docs.jsonl.gz", documents)
    write_lines(folder / "labels.jsonl.gz", made.labels)
    (folder / "test_ids.txt").write_text("\n".join(tested) + "\n", encoding="utf-8")
    say(f"{folder}: {summary(documents, made.labels)}")


def write_lines(path: Path, records: Iterable[Record]) -> None:
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    # Without the time of writing, the same records make the same file.
    path.write_bytes(gzip.compress(text.encode("utf-8"), mtime=0))


def summary(documents: Sequence[Record], labels: Sequence[Record]) -> str:
    """The figures that tell one set from another, as one line."""
    n = max(1, len(documents))
    used = {name for record in documents for name in record["labels"]}
    marks = sum(len(record["labels"]) for record in documents) / n
    words = sum(len(f"{record['title']} {record['abstract']}".split()) for record in documents) / n
    shares = (
        f"{sum(bool(record[field]) for record in documents) / n:.0%} with {field}"
        for field in ("references", "authors")
    )
    return (
        f"{len(documents):,} documents, {len(labels):,} labels ({len(used):,} used), "
        f"{marks:.2f} labels and {words:.0f} words a document, {', '.join(shares)}"
    )


def nearest(start: str, parents: Callable[[str], Iterable[str]], wanted: Iterable[str]) -> list[str]:
    """The wanted ancestors on the lowest level above `start` that has any."""
    wanted, seen, level = set(wanted), {start}, list(parents(start))
    while level:
        if found := [node for node in dict.fromkeys(level) if node in wanted]:
            return found
        seen.update(level)
        level = [above for node in level for above in parents(node) if above not in seen]
    return []


def ancestors(
    start: str, parents: Callable[[str], Iterable[str]], wanted: Iterable[str], levels: int
) -> list[str]:
    """The wanted ancestors at most so many levels above `start`, the nearest first."""
    wanted, found, level = set(wanted), [], [start]
    for _ in range(levels):
        level = [above for node in level for above in parents(node)]
        found += [node for node in level if node in wanted]
    return list(dict.fromkeys(found))


@contextmanager
def unpacked(package: str, downloads: Path) -> Iterator[Path]:
    """The files of a Debian package, which apt fetches unless an earlier run has."""
    downloads.mkdir(parents=True, exist_ok=True)
    if not list(downloads.glob(f"{package}_*.deb")):
        say(f"fetching the Debian package {package}")
        run(["apt-get", "-o", "Acquire::Retries=3", "download", package], downloads)
    archive = max(downloads.glob(f"{package}_*.deb"))
    with tempfile.TemporaryDirectory(prefix="micol-") as name:
        run(["dpkg-deb", "-x", str(archive.resolve()), name], downloads)
        yield Path(name)


def run(command: Sequence[str], folder: Path) -> None:
    try:
        subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise MicolError(f"{command[0]}: no such command; this set needs a Debian system") from None
    except subprocess.CalledProcessError as error:
        words = " ".join(error.stderr.split())[:300]
        raise MicolError(
            f"`{command[0]} … {command[-1]}` failed ({words}); check the network, or run `apt-get update`"
        ) from None
