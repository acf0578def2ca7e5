"""Runs rows seed by seed, keeps each result, and leaves out what is there already."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from micol.benchmark.conditions import Conditions, Row
from micol.benchmark.results import Measured, Result, ResultFolder, measured
from micol.benchmark.task import Task
from micol.errors import MicolError, UsageError
from micol.machine import machine
from micol.progress import say

LIBRARIES = ("micol", "numpy", "torch", "transformers")


@dataclass(frozen=True)
class Work:
    """One run that is to be done."""

    row: Row
    seed: int


def seeds_of(row: Row, seeds: Sequence[int]) -> Sequence[int]:
    return seeds[:1] if row.system.deterministic else seeds


def chosen_rows(
    conditions: Conditions, wanted: Sequence[str] = (), left_out: Sequence[str] = ()
) -> list[Row]:
    """Rows whose name or kind of system fits a pattern such as `MICoL (Bi*`; all where none is given."""
    for pattern in (*wanted, *left_out):
        if not any(is_named(row, pattern) for row in conditions.rows):
            names = ", ".join(row.name for row in conditions.rows)
            raise UsageError(f"{pattern!r}: no row of {conditions.source} fits; there are {names}")
    return [
        row
        for row in conditions.rows
        if (not wanted or any(is_named(row, pattern) for pattern in wanted))
        and not any(is_named(row, pattern) for pattern in left_out)
    ]


def is_named(row: Row, pattern: str) -> bool:
    return row.kind == pattern or fnmatchcase(row.name, pattern)


def in_order(conditions: Conditions, rows: Sequence[Row], seeds: Sequence[int]) -> list[Work]:
    """All rows with the first seed, then all with the second: a run that is stopped leaves a whole table.

    Rows that depend on the results of others come last.
    """
    work = [Work(row, seed) for seed in seeds for row in rows if seed in seeds_of(row, conditions.seeds)]
    return sorted(work, key=lambda one: waits(one.row))


def waits(row: Row) -> bool:
    """Whether a row is made of the best of the others: pairs of the top paths together."""
    return isinstance(getattr(row.system, "combine", None), int) and row.options["combine"] > 0


def settled(row: Row, conditions: Conditions, folder: ResultFolder) -> Row:
    """The row, where it waited for the best paths with these put in."""
    if not waits(row):
        return row
    count, mine = row.options["combine"], row.options
    alone = [
        other
        for other in conditions.rows
        if other.kind == row.kind
        and other.options["path"]
        and all(other.options[name] == mine[name] for name in ("architecture", "base", "settings"))
    ]
    rivals = [rival for rival in collect(conditions, alone, folder) if rival.runs]
    if len(rivals) < count:
        raise MicolError(f"needs the results of at least {count} paths, and there are {len(rivals)}")
    rivals.sort(key=lambda rival: -rival.mean("P@1"))
    paths = tuple(rival.row.options["path"] for rival in rivals[:count])
    return replace(row, system=replace(row.system, combine=paths))  # type: ignore[type-var]


def collect(conditions: Conditions, rows: Sequence[Row], folder: ResultFolder) -> list[Measured]:
    """What the folder holds of these rows."""
    found = []
    for row in rows:
        try:
            now = settled(row, conditions, folder)
        except MicolError:
            now = row
        results = (folder.load(now, seed) for seed in seeds_of(row, conditions.seeds))
        found.append((now, [result for result in results if result is not None]))
    return measured(found)


def run(
    conditions: Conditions,
    task: Task,
    output: Path,
    *,
    rows: Sequence[Row],
    seeds: Sequence[int],
    limit_minutes: float | None = None,
) -> None:
    """Runs what is missing; a system that cannot run says why in its result, and the others go on."""
    folder = ResultFolder(output / "results")
    started = time.monotonic()
    work = in_order(conditions, rows, seeds)
    for number, (row, seed) in enumerate(((w.row, w.seed) for w in work), start=1):
        if limit_minutes is not None and time.monotonic() - started > limit_minutes * 60:
            say(
                f"{limit_minutes:g} minutes are over; {len(work) - number + 1} runs are left for another time"
            )
            return
        result, is_new = result_of(row, seed, conditions, task, folder)
        if is_new:
            shown = result.failed or f"P@1 {result.scores['P@1']:.4f}, NDCG@5 {result.scores['NDCG@5']:.4f}"
            again = "" if result.failed else f" in {result.seconds:.0f} s"
            say(f"{number} of {len(work)}: {row.name}, seed {seed}: {shown}{again}")


def result_of(
    row: Row, seed: int, conditions: Conditions, task: Task, folder: ResultFolder
) -> tuple[Result, bool]:
    """The result of one run, and whether it was made now. What failed before is tried again."""
    started = time.monotonic()
    scores: dict[str, float] = {}
    failed = ""
    try:
        row = settled(row, conditions, folder)
        found = folder.load(row, seed)
        if found is not None and not found.failed and found.data == task.fingerprint:
            return found, False
        scores = task.scores(row.system.rank(task, seed))
    except MicolError as error:
        failed = str(error)
    seconds = round(time.monotonic() - started, 1)
    result = Result(
        row.name, row.kind, row.options, seed, task.fingerprint, scores, seconds, machine(*LIBRARIES), failed
    )
    folder.store(row, result)
    return result, True


def read_statistics(output: Path) -> dict[str, float]:
    """What the last run has counted of the data; empty where only results were copied here."""
    path = output / "data.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
