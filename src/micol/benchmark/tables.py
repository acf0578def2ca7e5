"""The paper's tables from measured rows: means, the best in bold, stars, and what was expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from micol.benchmark.conditions import Conditions, Report
from micol.benchmark.results import Measured
from micol.scoreboard import RATIO
from micol.significance import seed_test, stars

if TYPE_CHECKING:
    from micol.baselines.contrastive import Micol

TABLE_2 = ("P@1", "P@3", "P@5", "NDCG@3", "NDCG@5")
TABLE_3 = ("PSP@1", "PSP@3", "PSP@5", "PSN@3", "PSN@5", RATIO)
ZERO_SHOT, SUPERVISED = "Zero-shot", "Supervised"
NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Line:
    """A row of a table: cells, which of them are the best, and what it stands under."""

    name: str
    cells: tuple[str, ...]
    best: frozenset[int] = frozenset()
    group: str = ""


@dataclass(frozen=True)
class Table:
    title: str
    header: tuple[str, ...]
    lines: tuple[Line, ...]
    caption: str = ""


def verdict(score: float, expected: float, report: Report) -> str:
    distance = abs(score - expected)
    # Scores are printed with four digits: what agrees to them is not a hair too far off.
    return "OK" if distance <= report.ok + 5e-5 else "near" if distance <= report.near + 5e-5 else "off"


def row_verdict(row: Measured, expected: Mapping[str, float], measures: Sequence[str], report: Report) -> str:
    """The verdict on the score that is farthest from what was expected of it."""
    judged = [name for name in known_measures([row], measures) if name in expected]
    if not row.runs or not judged:
        return ""
    distances = {name: row.mean(name) - expected[name] for name in judged}
    worst = max(distances, key=lambda name: abs(distances[name]))
    word = verdict(row.mean(worst), expected[worst], report)
    return word if word == "OK" else f"{word} ({worst} {distances[worst]:+.3f})"


def is_micol(row: Measured) -> bool:
    return row.row.kind == "micol"


def is_variant(row: Measured) -> bool:
    """One of the paper's 20: a path and an architecture, under the name that they give it."""
    return is_micol(row) and bool(micol(row).path) and row.name == micol(row).title


def micol(row: Measured) -> Micol:
    assert is_micol(row)
    return row.row.system  # type: ignore[return-value]


def reference_of(rows: Sequence[Measured], report: Report) -> Measured | None:
    """The row that the others are compared with: the named one, or the best MICoL."""
    if report.reference:
        named = next(row for row in rows if row.name == report.reference)
        return named if named.runs else None
    return best_of([row for row in rows if is_variant(row)])


def best_of(rows: Sequence[Measured]) -> Measured | None:
    return max((row for row in rows if row.runs), key=lambda row: row.mean("P@1"), default=None)


def main_rows(rows: Sequence[Measured], report: Report) -> list[Measured]:
    """The rows of Tables 2 and 3: of the paths the chosen ones and the best of each architecture."""
    best = {
        architecture: best_of(
            [row for row in rows if is_variant(row) and micol(row).architecture == architecture]
        )
        for architecture in ("bi", "cross")
    }
    shown: list[Measured] = []
    for row in rows:
        if is_micol(row):
            is_chosen = micol(row).path in report.paths or row is best[micol(row).architecture]
            # What has a name of its own was put there to be seen.
            has_own_name = bool(micol(row).path) and not is_variant(row)
            if is_chosen or has_own_name or row.name == report.reference:
                shown.append(row)
        elif not row.row.report_as:
            shown.append(row)
        elif row.row.report_as not in {other.name for other in shown}:
            alike = [other for other in rows if other.row.report_as == row.row.report_as]
            chosen = best_of(alike) or row
            shown.append(replace(chosen, row=replace(chosen.row, name=row.row.report_as)))
    return shown


def path_rows(rows: Sequence[Measured]) -> list[Measured]:
    """The rows of Table 4: the encoder before training, then MICoL."""
    trained = [row for row in rows if is_micol(row)]
    bases = {micol(row).base for row in trained}
    untrained = [row for row in rows if row.row.kind == "encoder" and row.row.options["base"] in bases]
    return [*untrained, *trained]


def score_table(
    title: str,
    rows: Sequence[Measured],
    measures: Sequence[str],
    reference: Measured | None,
    conditions: Conditions,
    caption: str,
) -> Table:
    """Means over seeds, stars where the reference is better, and the best zero-shot scores in bold."""
    zero_shot = [row for row in rows if row.runs and not row.row.system.supervised]
    best = {
        measure: max((round(row.mean(measure), 4) for row in zero_shot), default=0.0) for measure in measures
    }
    expected = [conditions.expected.get(row.name, {}) for row in rows]
    verdicts = [
        row_verdict(row, scores, measures, conditions.report)
        for row, scores in zip(rows, expected, strict=True)
    ]
    has_verdicts = any(verdicts)
    lines = []
    for row, word in sorted(zip(rows, verdicts, strict=True), key=lambda pair: pair[0].row.system.supervised):
        if row.runs:
            cells = [str(len(row.runs)), *(shown(row, measure, reference) for measure in measures)]
        else:
            cells = [NOT_MEASURED, *("–" for _ in measures)]
        if has_verdicts:
            cells.append(word)
        bold = frozenset(
            at
            for at, measure in enumerate(measures, start=1)
            if row in zero_shot and round(row.mean(measure), 4) == best[measure] and measure != RATIO
        )
        group = SUPERVISED if row.row.system.supervised else ZERO_SHOT
        lines.append(Line(row.name, tuple(cells), bold, group))
    header = ("Algorithm", "runs", *measures, *(["expected"] if has_verdicts else []))
    return Table(title, header, tuple(lines), caption)


def shown(row: Measured, measure: str, reference: Measured | None) -> str:
    mean = row.mean(measure)
    if measure == RATIO:
        return f"{mean:.2f}"
    marks = ""
    if reference is not None and reference.name != row.name and reference.mean(measure) > mean:
        test = seed_test(reference.values(measure), row.values(measure))
        marks = stars(test.p) if test else ""
    return f"{mean:.4f}{marks}"


def expected_table(rows: Sequence[Measured], conditions: Conditions) -> Table | None:
    """Every expected score beside the measured one."""
    lines = []
    for row in {row.name: row for row in rows if row.runs}.values():
        expected = conditions.expected.get(row.name, {})
        for measure in known_measures(rows, list(expected)):
            mean, score = row.mean(measure), expected[measure]
            cells = (measure, f"{mean:.4f}", f"{score:.4f}", f"{mean - score:+.4f}")
            lines.append(Line(row.name, (*cells, verdict(mean, score, conditions.report))))
    if not lines:
        return None
    report = conditions.report
    return Table(
        "Expected scores",
        ("Algorithm", "measure", "measured", "expected", "difference", "verdict"),
        tuple(lines),
        f"OK: within {report.ok:g} of what is expected. Near: within {report.near:g}. Off: farther away.",
    )


def statistics_table(figures: Mapping[str, float]) -> Table:
    lines = tuple(
        Line(name, (f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}",))
        for name, value in figures.items()
    )
    return Table("Table 1: the data set", ("", ""), lines)


def combined(rows: Sequence[Measured]) -> str:
    """Which paths the rows of several paths were made of, in a sentence each."""
    return "".join(
        f" {row.name}: pairs of {', '.join(micol(row).paths)}."
        for row in rows
        if is_micol(row) and row.runs and len(micol(row).paths) > 1
    )


def missing_table(rows: Sequence[Measured]) -> Table | None:
    """Rows that were not measured, and why."""
    lines = tuple(Line(row.name, (row.why_not,)) for row in rows if not row.runs)
    return Table("Not measured", ("Algorithm", "why"), lines) if lines else None


def deviation_table(rows: Sequence[Measured]) -> Table | None:
    """Standard deviations over seeds, of rows that were run more than once."""
    several = [row for row in rows if len(row.runs) > 1]
    if not several:
        return None
    measures = known_measures(rows, (*TABLE_2, *TABLE_3[:-1]))
    lines = tuple(
        Line(row.name, tuple(f"{row.deviation(measure):.4f}" for measure in measures)) for row in several
    )
    return Table("Standard deviations over seeds", ("Algorithm", *measures), lines)


def known_measures(rows: Sequence[Measured], measures: Sequence[str]) -> tuple[str, ...]:
    """Those that every run has: PSP and PSN need labels of training documents."""
    return tuple(name for name in measures if all(name in run for row in rows for run in row.runs))


def paper_tables(rows: Sequence[Measured], conditions: Conditions) -> list[Table]:
    """Tables 2, 3 and 4, those that there is something to show in."""
    reference = reference_of(rows, conditions.report)
    better = f"{reference.name} is significantly better" if reference else "the best MICoL is better"
    caption = (
        "Means over runs with different seeds. Bold: the highest score of zero-shot systems. "
        f"* and **: {better} than this system with p < .05 and p < .01 (two-tailed unpaired t-test; Z-test "
        "against a system of a single run)."
    )
    main = main_rows(rows, conditions.report)
    tables = [score_table("Table 2: P@k and NDCG@k", main, TABLE_2, reference, conditions, caption)]
    if known_measures(rows, TABLE_3):
        caption += f" The higher {RATIO}, the rarer the labels that are right."
        tables.append(score_table("Table 3: PSP@k and PSN@k", main, TABLE_3, reference, conditions, caption))
    paths = path_rows(rows)
    best = best_of([row for row in paths if is_micol(row)])
    if any(is_micol(row) for row in paths):
        tables.append(
            score_table(
                "Table 4: meta-paths and meta-graphs",
                paths,
                TABLE_2,
                best,
                conditions,
                "Bold: the best model. * and **: significantly worse than the model with the best P@1 with "
                f"p < .05 and p < .01.{combined(paths)}",
            )
        )
    return tables
