"""micol candidates: the retrieval stage alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, Literal

import click

from micol.errors import MicolError, UsageError
from micol.progress import say, say_left_out, say_warnings

if TYPE_CHECKING:
    import numpy as np

    from micol.labels import LabelSpace


@click.command("candidates")
@click.argument("model_or_labels")
@click.argument("docs")
@click.option("-o", "--output", metavar="CAND.jsonl", help="Write here, not to standard output.")
@click.option(
    "--bm25-top",
    type=click.IntRange(1),
    help="Candidates a document gets by BM25.  [default: the model's setting, else 50; with --threshold all]",
)
@click.option("--threshold", type=float, metavar="ETA", help="Only labels whose BM25 score is above this.")
@click.option("--no-exact", is_flag=True, help="Without the labels whose names a document contains.")
@click.option("--no-bm25", is_flag=True, help="Without the labels that BM25 finds.")
@click.option(
    "--dense",
    "dense_top",
    type=click.IntRange(0),
    metavar="N",
    help="Also the N labels with the nearest vectors, from a bi-encoder's model folder.  "
    "[default: the model's setting]",
)
@click.option(
    "--also",
    "further",
    multiple=True,
    metavar="RETRIEVER",
    help="Also what this one finds, such as trigrams (names that stand there nearly); may be repeated.",
)
@click.option(
    "--also-top",
    "further_top",
    default=20,
    show_default=True,
    type=click.IntRange(1),
    help="Candidates a document gets by each retriever of --also.",
)
@click.option(
    "--repeats",
    type=click.Choice(["once", "log"]),
    default="once",
    show_default=True,
    help="How often BM25 counts a word that a document has n times: once, or log2(1 + n) times.",
)
@click.option("--stop-words", is_flag=True, help="BM25 leaves out English words such as 'the'.")
@click.option("--skip-bad", is_flag=True, help="Leave out broken records, and say which.")
def command(
    model_or_labels: str,
    docs: str,
    output: str | None,
    bm25_top: int | None,
    threshold: float | None,
    no_exact: bool,
    no_bm25: bool,
    dense_top: int | None,
    further: tuple[str, ...],
    further_top: int,
    repeats: Literal["once", "log"],
    stop_words: bool,
    skip_bad: bool,
) -> None:
    """Retrieves candidate labels for each document of DOCS: those whose names it contains, and those that
    BM25 finds.

    MODEL_OR_LABELS is a model folder or a file of labels. A line is written for each document, in order:
    {"id": …, "labels": [{"id", "name", "score"}, …]}, best first. Where documents carry `labels`, recall is
    printed.
    """
    from micol.compiled import compiling_is_told
    from micol.retrieve import BM25, ExactMatcher, retrieve
    from micol.retrieve.candidates import CandidateWriter
    from micol.retrieve.further import retriever, with_further
    from micol.retrieve.recall import Recall
    from micol.retrieve.stop_words import ENGLISH
    from micol.stream import document_batches

    if no_exact and no_bm25 and not dense_top and not further:
        raise UsageError("--no-exact and --no-bm25 leave nothing to retrieve with; drop one of them")
    batches = document_batches(docs, skip_bad=skip_bad)
    # Whether there are documents at all is told before labels are indexed.
    batches = chain([next(batches)], batches)
    source = opened(model_or_labels, dense_top, skip_bad)
    with compiling_is_told():
        exact = None if no_exact else ExactMatcher(source.labels.names)
        stopped = ENGLISH if stop_words else ()
        bm25 = None if no_bm25 else BM25(source.labels.texts(), repeats=repeats, stop_words=stopped)
    others = [retriever(name, source.labels) for name in further]
    if bm25_top is None and threshold is None:
        bm25_top = source.bm25_top
    recall = Recall({identifier: position for position, identifier in enumerate(source.labels.ids)})
    skipped: list[str] = []
    with written(output) as stream:
        writer = CandidateWriter(stream, source.labels)
        for batch in batches:
            texts = batch.texts()
            found = retrieve(
                texts,
                exact=exact,
                bm25=bm25,
                bm25_top=bm25_top,
                bm25_threshold=threshold,
                document_vectors=source.encode(texts) if source.encode else None,
                label_vectors=source.vectors,
                dense_top=source.dense_top,
            )
            found = with_further(found, texts, others, further_top)
            writer.write(batch.ids, found.candidates)
            recall.add(batch.gold, found)
            skipped += batch.skipped
    say_left_out(skipped)
    if recall.documents:
        say(recall.report())


@dataclass(frozen=True)
class Source:
    """Labels and, where dense retrieval is asked for, their vectors and the encoder of documents."""

    labels: LabelSpace
    bm25_top: int = 50
    dense_top: int = 0
    vectors: np.ndarray | None = None
    encode: Callable[[list[str]], np.ndarray] | None = None


def opened(model_or_labels: str, dense_top: int | None, skip_bad: bool) -> Source:
    from micol.files import STANDARD_INPUT
    from micol.folder import LabelTable, ModelFolder
    from micol.hub import model_path
    from micol.labels import LabelSpace

    path = model_path(model_or_labels)
    if model_or_labels != STANDARD_INPUT and not path.exists():
        raise MicolError(f"{model_or_labels}: no such file of labels or model folder; check the path")
    if not path.is_dir():
        if dense_top:
            raise UsageError(
                f"{model_or_labels}: --dense needs vectors; give a model folder in place of the labels"
            )
        labels = LabelSpace.read(model_or_labels, skip_bad=skip_bad)
        say_left_out(labels.skipped)
        say_warnings(labels.warnings, model_or_labels)
        return Source(labels)
    folder = ModelFolder(path)
    settings: dict[str, Any] = folder.read_config()["settings"]
    bm25_top = int(settings["bm25_top"])
    if dense_top is None:
        dense_top = int(settings["dense_top"])
    if not dense_top:
        return Source(LabelTable.read(folder.labels).labels, bm25_top)
    # Only here, for it takes seconds to load what runs a model.
    from micol.classify import load
    from micol.rank.bi_encoder import BiEncoder

    model = load(path)
    if not isinstance(model.ranker, BiEncoder):
        raise UsageError(f"{model_or_labels}: a cross-encoder has no vectors; leave --dense out")
    return Source(model.labels, bm25_top, dense_top, model.label_vectors, model.ranker.vectors)


@contextmanager
def written(output: str | None) -> Iterator[IO[bytes]]:
    from micol.files import writing_bytes

    if output in (None, "-"):
        yield sys.stdout.buffer
    else:
        with writing_bytes(str(output)) as stream:
            yield stream
