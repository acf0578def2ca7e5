"""Pictures of the comparison: all systems, all paths, and paths put together (the paper's appendix)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from micol.benchmark.results import Measured
from micol.benchmark.tables import TABLE_2, is_micol, is_variant, micol

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {
    "bi": "#3b6ea8",
    "cross": "#b4532a",
    "product": "#6b4c9a",
    "other": "#7a7a7a",
    "supervised": "#4f8a4f",
}
ARCHITECTURE_NAMES = {"bi": "Bi-Encoder", "cross": "Cross-Encoder"}


def overview(rows: Sequence[Measured], measures: Sequence[str] = ("P@1", "NDCG@5")) -> Figure:
    """Each system's scores with deviations, in the order of the table."""
    from matplotlib.figure import Figure

    rows = [row for row in rows if row.runs]
    figure = Figure(figsize=(9.5, 0.34 * len(rows) + 1.3), layout="constrained")
    both = np.atleast_1d(figure.subplots(1, len(measures), sharey=True))
    heights = np.arange(len(rows))[::-1]
    for axes, measure in zip(both, measures, strict=True):
        for height, row in zip(heights, rows, strict=True):
            mean, deviation = row.mean(measure), row.deviation(measure)
            axes.barh(height, mean, xerr=deviation or None, color=colour(row), capsize=2)
            axes.annotate(
                f"{mean:.3f}", (mean + deviation, height), xytext=(5, 0),
                textcoords="offset points", va="center", fontsize=8,
            )  # fmt: skip
        axes.set_yticks(heights, [row.name for row in rows], fontsize=8)
        axes.set(title=measure)
        axes.margins(x=0.18)
        axes.grid(axis="x", alpha=0.3)
        axes.set_axisbelow(True)
    return figure


def colour(row: Measured) -> str:
    if row.row.system.supervised:
        return COLOURS["supervised"]
    if is_micol(row):
        return COLOURS[micol(row).architecture]
    return COLOURS.get(row.row.kind, COLOURS["other"])


def paths(rows: Sequence[Measured], measures: Sequence[str] = ("P@1", "NDCG@5")) -> Figure | None:
    """Each path in both architectures, beside the encoder before training."""
    from matplotlib.figure import Figure

    trained = [row for row in rows if is_variant(row) and row.runs]
    if not trained:
        return None
    names = list(dict.fromkeys(micol(row).path for row in trained))
    figure = Figure(figsize=(9.5, 4.2), layout="constrained")
    both = np.atleast_1d(figure.subplots(1, len(measures)))
    for axes, measure in zip(both, measures, strict=True):
        for shift, architecture in ((-0.1, "bi"), (0.1, "cross")):
            mine = [row for row in trained if micol(row).architecture == architecture]
            if mine:
                axes.errorbar(
                    [names.index(micol(row).path) + shift for row in mine],
                    [row.mean(measure) for row in mine],
                    [row.deviation(measure) for row in mine],
                    fmt="o", capsize=3, color=COLOURS[architecture], label=ARCHITECTURE_NAMES[architecture],
                )  # fmt: skip
        for row in rows:
            if row.row.kind == "encoder" and row.runs:
                axes.axhline(
                    row.mean(measure), color=COLOURS["other"], linestyle="--", label="before training"
                )
        axes.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=8)
        axes.set(title=measure)
        axes.grid(axis="y", alpha=0.3)
    both[0].legend(fontsize=8)
    return figure


def combination(rows: Sequence[Measured]) -> Figure | None:
    """Paths alone and their pairs together, a panel for each such row: the figure of the appendix."""
    from matplotlib.figure import Figure

    combined = [row for row in rows if is_micol(row) and row.runs and len(micol(row).paths) > 1]
    if not combined:
        return None
    figure = Figure(figsize=(4.8 * len(combined), 3.6), layout="constrained")
    for axes, whole in zip(np.atleast_1d(figure.subplots(1, len(combined))), combined, strict=True):
        system = micol(whole)
        parts = [
            row
            for row in rows
            if is_micol(row)
            and row.runs
            and micol(row).path in system.paths
            and (micol(row).architecture, micol(row).settings) == (system.architecture, system.settings)
        ]
        bars = [*((micol(row).path, row) for row in parts), ("together", whole)]
        width = 0.8 / len(bars)
        for number, (name, row) in enumerate(bars):
            at = np.arange(len(TABLE_2)) + (number - (len(bars) - 1) / 2) * width
            errors = [row.deviation(measure) for measure in TABLE_2] if len(row.runs) > 1 else None
            axes.bar(
                at, [row.mean(measure) for measure in TABLE_2], width, yerr=errors, label=name, capsize=2
            )
        axes.set_xticks(range(len(TABLE_2)), TABLE_2)
        axes.set(title=ARCHITECTURE_NAMES[system.architecture], ylim=(0, None))
        axes.legend(fontsize=8)
        axes.grid(axis="y", alpha=0.3)
        axes.set_axisbelow(True)
    return figure
