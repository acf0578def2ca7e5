"""micol suggest: labels for documents."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from micol import __version__
from micol.cli.options import spark_option
from micol.errors import MicolError, UsageError
from micol.progress import Progress, say, say_left_out

if TYPE_CHECKING:
    from micol.tagging import Output


@click.command("suggest")
@click.argument("model_folder", metavar="MODEL")
@click.argument("docs")
@click.option("--limit", default=5, show_default=True, type=click.IntRange(1), help="Labels a document.")
@click.option("--threshold", type=float, metavar="T", help="Only labels that score T or more.")
@click.option(
    "--candidates",
    metavar="FILE",
    help="Rank these, as `micol candidates` writes them, instead of retrieving.",
)
@click.option(
    "--include",
    multiple=True,
    metavar="LABEL",
    help="Only this label and those below it, by id or preferred name; may be repeated.",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="LABEL",
    help="Not this label nor those below it, by id or preferred name; may be repeated.",
)
@click.option("--explain", is_flag=True, help="Write the reasons for each label with it.")
@click.option("--ids", "ids_file", metavar="FILE", help="Only the documents whose ids it lists, one a line.")
@click.option(
    "--schema",
    "schema_file",
    metavar="S.toml",
    help="Which fields are metadata; the default is what the model was trained with.",
)
@click.option("--skip-bad", is_flag=True, help="Leave out broken records, and say which.")
@click.option(
    "--batch-size", type=click.IntRange(1), help="Documents tagged at a time, and saved.  [default: by model]"
)
@click.option(
    "--engine",
    type=click.Choice(["embedded", "spark"]),
    default="embedded",
    show_default=True,
    help="What runs it: this process, or Spark, on one machine or many; then DOCS is Parquet, a file or a "
    "folder of them, and OUT a folder of Parquet files.",
)
@click.option(
    "--shard-size",
    type=click.IntRange(1),
    default=16_384,
    show_default=True,
    help="Spark: documents in a task, and in a file of the output.",
)
@spark_option
@click.option(
    "-o",
    "--output",
    metavar="OUT.jsonl",
    help="Write here (also .gz, .zst; a folder with --engine spark), not to standard output.",
)
def command(
    model_folder: str,
    docs: str,
    limit: int,
    threshold: float | None,
    candidates: str | None,
    include: Sequence[str],
    exclude: Sequence[str],
    explain: bool,
    ids_file: str | None,
    schema_file: str | None,
    skip_bad: bool,
    batch_size: int | None,
    engine: str,
    shard_size: int,
    spark_settings: Sequence[str],
    output: str | None,
) -> None:
    """Suggests labels for each document of DOCS (- is standard input), best first.

    A line is written for each document, in order: {"id": …, "labels": [{"id", "name", "score"}, …]}.

    With -o, finished batches are saved beside the output: run again after an interruption, the same command
    goes on where it stopped.

    With --engine spark, shards of DOCS are tagged by as many workers as there are; broken records are always
    left out, and listed in OUT/_rejected.
    """
    from micol.files import read_ids
    from micol.folder import LabelTable, ModelFolder
    from micol.hub import model_path
    from micol.schema import Schema
    from micol.tagging import Request, documents_of, label_id, number_of_documents

    wanted = read_ids(ids_file) if ids_file else None
    folder = ModelFolder(model_path(model_folder))
    config = folder.read_config()
    schema = Schema.read(schema_file) if schema_file else Schema(**config["schema"])
    labels = LabelTable.read(folder.labels).labels
    request = Request(
        limit,
        threshold,
        tuple(label_id(labels, label) for label in include),
        tuple(label_id(labels, label) for label in exclude),
        explain,
    )
    size = batch_size or usual_batch(config)
    if engine == "spark":
        if candidates or ids_file or output is None or output == "-":
            raise UsageError(
                "--engine spark takes neither --candidates nor --ids, and needs -o OUT, a folder; leave them "
                "out, or use the embedded engine"
            )
        from micol.scale.suggest import suggest

        summary = suggest(folder, docs, output, request, schema, size, shard_size, spark_settings)
        for line in summary.lines(output):
            say(line)
        return
    total = len(wanted) if wanted is not None else number_of_documents(docs)
    begun_with = {
        "micol": __version__,
        "model": folder.fingerprint(),
        "documents": state_of_file(docs),
        "candidates": state_of_file(candidates),
        "ids": state_of_file(ids_file),
        "schema": state_of_file(schema_file),
        **asdict(request),
        "batch size": size,
    }
    skipped: list[str] = []
    batches = documents_of(docs, size, schema, skip_bad, wanted, skipped)
    with output_to(output, begun_with) as out:
        # After all that can be told without it, for it takes seconds to load what runs a model.
        from micol.classify import load
        from micol.tagging import CandidateFile, Tagger, tag_all

        if out.state:
            say(f"going on after {out.state['tally']['documents']:,} documents that were tagged before")
        tagger = Tagger(load(folder.path), request)
        rows = CandidateFile(candidates, labels) if candidates else None
        with Progress("tagging", total, "documents") as progress:
            tally = tag_all(tagger, batches, rows, out, progress)
        if wanted is not None and not tally.documents:
            raise MicolError(f"{ids_file}: lists no document of {docs}; expected one id a line")
    if wanted is not None and len(wanted) > tally.documents:
        say(f"{ids_file}: {len(wanted) - tally.documents:,} of its ids are of no document")
    say_left_out(skipped)
    for line in tally.lines(tagger.text_tokens):
        say(line)


class StandardOutput:
    """Lines for whoever reads on; nothing can be gone on with."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}

    def append(self, content: bytes, state: Mapping[str, Any]) -> None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


@contextmanager
def output_to(output: str | None, begun_with: Mapping[str, Any]) -> Iterator[Output]:
    from micol.partial import partial_file

    if output in (None, "-"):
        yield StandardOutput()
    else:
        with partial_file(str(output), begun_with) as partial:
            yield partial


def usual_batch(config: Mapping[str, Any]) -> int:
    """Few enough documents to be done in seconds: a cross-encoder reads each of them dozens of times."""
    return 512 if config["settings"]["architecture"] == "bi" else 64


def state_of_file(path: str | None) -> str | None:
    """What tells whether a file has changed."""
    if path is None or path == "-":
        return path
    if not Path(path).exists():
        raise MicolError(f"{path}: no such file; check the path")
    from micol.tables import files_of

    states = [Path(file).stat() for file in files_of(path)]
    size, changed = sum(state.st_size for state in states), max(state.st_mtime_ns for state in states)
    return f"{Path(path).resolve()}, {size} bytes, changed {changed}"
