"""micol evaluate: scores of predictions, alone or against other systems."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from micol.errors import MicolError
from micol.progress import say_warnings

if TYPE_CHECKING:
    import numpy as np

    from micol.corpus import Corpus
    from micol.evaluation import Gold, Judged, LabelCounts
    from micol.labels import LabelSpace

PLOTS = (".png", ".svg", ".pdf")


@click.command("evaluate")
@click.argument("predictions")
@click.argument("docs")
@click.option(
    "--train-docs", multiple=True, metavar="DOCS", help="Training documents; their `labels` give PSP and PSN."
)
@click.option(
    "--labels",
    "labels_file",
    metavar="LABELS",
    help="The label space: names, and a check that it covers the gold labels.",
)
@click.option(
    "--ids",
    "ids_file",
    metavar="FILE",
    help="Judge only the documents whose ids this file lists, one a line.",
)
@click.option(
    "--against",
    multiple=True,
    metavar="PREDICTIONS2",
    help="Another system to compare with; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON in place of tables.")
@click.option(
    "--annif-names",
    is_flag=True,
    help="Also give the measures that Annif has, under its names and definitions.",
)
@click.option("--per-label", metavar="FILE.csv", help="Write precision, recall and F1 of every label.")
@click.option("--plot", metavar="FILE.png", help="Draw the scores (.png, .svg or .pdf).")
@click.option(
    "--resamples", default=10_000, show_default=True, type=click.IntRange(100), help="Bootstrap resamples."
)
@click.option("--seed", default=0, show_default=True, help="Seed of the bootstrap.")
@click.option("--skip-bad", is_flag=True, help="Leave out broken document records, and say how many.")
@click.option("-o", "--output", metavar="FILE", help="Write the result here, not to standard output.")
def command(
    predictions: str,
    docs: str,
    train_docs: Sequence[str],
    labels_file: str | None,
    ids_file: str | None,
    against: Sequence[str],
    as_json: bool,
    annif_names: bool,
    per_label: str | None,
    plot: str | None,
    resamples: int,
    seed: int,
    skip_bad: bool,
    output: str | None,
) -> None:
    """Scores PREDICTIONS, as `micol suggest` writes them, against the `labels` of DOCS.

    A system that was run with several seeds is given as its files with commas between them:
    run0.jsonl,run1.jsonl,run2.jsonl. Means over the runs are shown, and differences are tested over the runs.
    """
    from micol.breakdown import per_label as per_label_rows
    from micol.breakdown import slices, write_per_label
    from micol.evaluation import Gold
    from micol.files import put_text
    from micol.labels import LabelSpace
    from micol.scoreboard import Scoreboard, System, system_names
    from micol.significance import compare

    if plot and Path(plot).suffix not in PLOTS:
        raise click.UsageError(f"--plot {plot}: expected a name that ends in one of {', '.join(PLOTS)}")
    corpus = _read_documents([docs], skip_bad)
    warnings = [f"left out by --skip-bad: {message}" for message in corpus.skipped]
    gold = Gold.of(corpus, _read_ids(ids_file, corpus, warnings) if ids_file else None)
    counts = _training_counts(train_docs, gold, skip_bad, warnings) if train_docs else None
    space = LabelSpace.read(labels_file, skip_bad=skip_bad) if labels_file else None
    if space is not None:
        _check_coverage(gold, space, warnings)
    rewards = None if counts is None else counts.inverse_propensities(gold.labels.to_pylist())

    files = [_files(spec) for spec in (predictions, *against)]
    ours, *others = (
        System(name, runs, [_judge(file, gold, corpus, space, warnings) for file in runs], rewards)
        for name, runs in zip(system_names(files), files, strict=True)
    )
    board = Scoreboard(
        ours,
        others,
        [compare(ours.gains, other.gains, resamples=resamples, seed=seed) for other in others],
        slices(ours.runs, _frequencies(gold, counts)),
        None if counts is None else counts.documents,
        resamples,
        annif_names,
        warnings,
    )
    say_warnings(warnings)
    if per_label:
        names = {label.id: label.name for label in space} if space is not None else {}
        write_per_label(per_label_rows(ours.runs, names, counts and counts.of_label), per_label)
    if plot:
        board.plot(plot)
    text = json.dumps(board.as_json(), indent=2, ensure_ascii=False) + "\n" if as_json else board.as_text()
    put_text(text, output)


def _files(spec: str) -> list[str]:
    """The runs of a system; a comma may also be part of a single file's name."""
    return [spec] if Path(spec).exists() else [file for file in spec.split(",") if file]


def _read_documents(paths: Sequence[str], skip_bad: bool) -> Corpus:
    from micol.corpus import Corpus
    from micol.schema import Schema

    # Ids and labels are all that is needed: an empty schema leaves the metadata unread.
    return Corpus.read(list(paths), Schema({}, {}), skip_bad=skip_bad, text=False)


def _read_ids(path: str, corpus: Corpus, warnings: list[str]) -> set[str]:
    from micol.files import read_ids

    ids = read_ids(path)
    unknown = ids.difference(corpus.ids)
    if len(unknown) == len(ids):
        raise MicolError(
            f"{path}: lists no document of {corpus.source}; expected one document id a line, "
            f"such as {corpus.ids[0]!r}"
        )
    if unknown:
        warnings.append(
            f"{path}: ids that no document of {corpus.source} has, left out: {len(unknown):,}, "
            f"such as {min(unknown)!r}"
        )
    return ids


def _training_counts(paths: Sequence[str], gold: Gold, skip_bad: bool, warnings: list[str]) -> LabelCounts:
    """Counts labels of training documents; a document that is judged is no training document."""
    from micol.evaluation import LabelCounts

    train = _read_documents(paths, skip_bad)
    warnings += [f"left out by --skip-bad: {message}" for message in train.skipped]
    judged = gold.without_labels.union(gold.ids)
    kept = [position for position, document in enumerate(train.ids) if document not in judged]
    if len(kept) < len(train):
        warnings.append(
            f"{train.source}: documents that are judged here, so not counted as training documents: "
            f"{len(train) - len(kept):,} of {len(train):,}"
        )
    if not kept:
        raise MicolError(
            f"{train.source}: all of its documents are judged here, so none is left to count labels of; name "
            "the documents to judge with --ids, or give other training documents"
        )
    counts = LabelCounts.of(train.select(kept))
    if not counts.of_label:
        raise MicolError(f"{train.source}: no training document has labels; propensities cannot be counted")
    return counts


def _check_coverage(gold: Gold, space: LabelSpace, warnings: list[str]) -> None:
    import numpy as np

    known = set(space.ids)
    outside = np.array([label not in known for label in gold.labels.to_pylist()])
    if outside.all():
        raise MicolError(
            f"{space.source}: holds none of the gold labels (such as {gold.labels[0].as_py()!r}); "
            "give the label space that the documents were labelled with"
        )
    if outside.any():
        example = gold.labels[int(np.flatnonzero(outside)[0])].as_py()
        warnings.append(
            f"{space.source}: gold labels that it lacks: {outside.sum():,} of {len(outside):,}, such as "
            f"{example!r}, and {outside[gold.codes].mean():.1%} of all gold assignments; no system can find "
            "them, and they count as missed"
        )


def _judge(file: str, gold: Gold, corpus: Corpus, space: LabelSpace | None, warnings: list[str]) -> Judged:
    from micol.evaluation import judge, troubles
    from micol.predictions import Predictions

    predictions = Predictions.read(file)
    judged = judge(predictions, gold, known=frozenset(corpus.ids))
    warnings += troubles(judged)
    if space is not None:
        outside = set(predictions.labels.to_pylist()).difference(space.ids)
        if outside:
            warnings.append(
                f"{file}: predicted labels that {space.source} lacks: {len(outside):,}, such as "
                f"{min(outside)!r}; they count as wrong unless a document has them"
            )
    return judged


def _frequencies(gold: Gold, counts: LabelCounts | None) -> np.ndarray:
    """How frequent each gold label is: in training where it is known, else among the gold labels."""
    import numpy as np

    if counts is None:
        return np.bincount(gold.codes, minlength=len(gold.labels))
    return np.array([counts.of_label.get(label, 0) for label in gold.labels.to_pylist()])
