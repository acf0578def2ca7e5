"""micol benchmark: every system of the paper on a data set, its tables and its figures."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from micol.errors import UsageError
from micol.progress import say


@click.command("benchmark")
@click.argument("conditions_file", metavar="CONDITIONS.toml")
@click.option(
    "--data", "data_folder", metavar="FOLDER", help="Where the data lies, if not where the file says."
)
@click.option(
    "--weights",
    multiple=True,
    metavar="ID=FOLDER",
    help="Take the model of a hub id (or `wordnet`) from a folder; may be repeated.",
)
@click.option(
    "--systems",
    multiple=True,
    metavar="PATTERN",
    help="Run only rows whose name or system fits, such as 'MICoL (Bi*' or match; may be repeated.",
)
@click.option("--skip", multiple=True, metavar="PATTERN", help="Leave such rows out; may be repeated.")
@click.option("--seeds", metavar="0,1", help="Run only these of the seeds.")
@click.option("--limit-minutes", type=float, metavar="N", help="Begin no run after this many minutes.")
@click.option("--report-only", is_flag=True, help="Run nothing: report on the results that are there.")
@click.option(
    "-o", "--output", metavar="FOLDER", help="For results and the report.  [default: benchmark-CONDITIONS]"
)
def command(
    conditions_file: str,
    data_folder: str | None,
    weights: Sequence[str],
    systems: Sequence[str],
    skip: Sequence[str],
    seeds: str | None,
    limit_minutes: float | None,
    report_only: bool,
    output: str | None,
) -> None:
    """Runs the systems of CONDITIONS.toml and writes the paper's tables.

    Each run is kept as a file of its own in FOLDER/results: interrupted, the same command goes on where it
    stopped, and results of several machines can be copied together.
    """
    from micol.benchmark.conditions import Conditions
    from micol.benchmark.kept import KeptArrays
    from micol.benchmark.report import write_report
    from micol.benchmark.results import ResultFolder, machines
    from micol.benchmark.run import chosen_rows, collect, read_statistics, run
    from micol.benchmark.task import Task
    from micol.files import replacing

    conditions = Conditions.read(conditions_file, data_folder)
    rows = chosen_rows(conditions, systems, skip)
    chosen_seeds = _seeds(seeds, conditions.seeds)
    folder = Path(output or f"benchmark-{Path(conditions_file).stem}")
    if not report_only:
        task = Task.read(
            conditions.data, conditions.candidates, KeptArrays(folder / "cache"), dict(map(_weights, weights))
        )
        with replacing(folder / "data.json") as temporary:
            temporary.write_text(json.dumps(task.statistics(), indent=1) + "\n", encoding="utf-8")
        run(conditions, task, folder, rows=rows, seeds=chosen_seeds, limit_minutes=limit_minutes)
    results = ResultFolder(folder / "results")
    measured = collect(conditions, conditions.rows, results)
    report = write_report(measured, conditions, read_statistics(folder), machines(results), folder)
    sys.stdout.write(report)
    say(f"the report is in {folder / 'report.html'} and {folder / 'report.md'}")


def _seeds(text: str | None, known: Sequence[int]) -> list[int]:
    if text is None:
        return list(known)
    try:
        chosen = [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--seeds must be whole numbers with commas between them, got {text!r}") from None
    for seed in chosen:
        if seed not in known:
            raise UsageError(f"--seeds {seed}: the conditions have {', '.join(map(str, known))}")
    return chosen


def _weights(text: str) -> tuple[str, str]:
    identifier, separator, folder = text.partition("=")
    if not separator or not folder:
        raise UsageError(f"--weights must be given as ID=FOLDER, got {text!r}")
    return identifier, folder
