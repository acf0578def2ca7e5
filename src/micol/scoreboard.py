"""Scores of one or more systems, put together for a reader: tables, JSON and a plot."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from micol.breakdown import SLICE_RECALL_AT, Slice, annif_measures
from micol.console import aligned
from micol.evaluation import PLAIN_METRICS, PROPENSITY_METRICS, RECALL_AT, Gains, Judged, gains
from micol.files import replacing
from micol.significance import RESAMPLES, Comparison

RATIO = "PSP@1/P@1"
FILE_SUFFIXES = {".jsonl", ".json", ".gz", ".zst"}
NAME_WIDTH = 18


@dataclass(frozen=True)
class System:
    """One system: its runs (several where it was trained with several seeds) over the same documents."""

    name: str
    files: Sequence[str]
    runs: Sequence[Judged]
    inverse_propensities: np.ndarray | None

    @property
    def depth(self) -> int:
        """The length of the longest list."""
        return max(run.predictions.depth for run in self.runs)

    @cached_property
    def gains(self) -> list[dict[str, Gains]]:
        return [gains(run, self.inverse_propensities) for run in self.runs]

    def run_scores(self, run: int) -> dict[str, float]:
        return with_ratio({name: gain.score for name, gain in self.gains[run].items()})

    @cached_property
    def scores(self) -> dict[str, float]:
        """The mean over the runs."""
        runs = [{name: gain.score for name, gain in run.items()} for run in self.gains]
        return with_ratio({name: float(np.mean([run[name] for run in runs])) for name in runs[0]})

    @cached_property
    def deviations(self) -> dict[str, float]:
        """Standard deviations over the runs; empty for a single run."""
        if len(self.runs) == 1:
            return {}
        runs = [self.run_scores(run) for run in range(len(self.runs))]
        return {name: float(np.std([run[name] for run in runs], ddof=1)) for name in runs[0]}

    @cached_property
    def annif(self) -> dict[str, float]:
        runs = [annif_measures(run) for run in self.runs]
        return {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}


def system_names(systems: Sequence[Sequence[str]]) -> list[str]:
    """Short names that tell systems apart, from their files: `a/run0.jsonl`, `a/run1.jsonl` -> `run x2`."""
    for parts in (1, 2, None):
        names = [_short(files, parts) for files in systems]
        if len(set(names)) == len(names):
            return names
    return [f"{number}: {name}" for number, name in enumerate(names, start=1)]


def _short(files: Sequence[str], parts: int | None) -> str:
    """From the last `parts` parts of the paths (None: all) that the files of a system have in common."""
    stems = []
    for file in files:
        path = Path(file)
        while path.suffix in FILE_SUFFIXES:
            path = path.with_suffix("")
        stems.append("/".join(path.parts[-parts:] if parts else path.parts))
    # Letter by letter: the runs of one system differ in a number at the end of a name.
    common = os.path.commonprefix(stems).rstrip("0123456789-_./") if len(stems) > 1 else stems[0]  # noqa: RUF071
    name = common or stems[0]
    if len(name) > NAME_WIDTH:
        name = f"…{name[1 - NAME_WIDTH :]}"
    return name if len(files) == 1 else f"{name} x{len(files)}"


def with_ratio(scores: dict[str, float]) -> dict[str, float]:
    """Adds the paper's PSP@1/P@1: the higher, the rarer the labels that were found."""
    if "PSP@1" in scores:
        scores[RATIO] = scores["PSP@1"] / scores["P@1"] if scores["P@1"] else math.nan
    return scores


@dataclass(frozen=True)
class Scoreboard:
    """All there is to say of a system, and of the systems it is compared with."""

    ours: System
    others: Sequence[System]
    comparisons: Sequence[Mapping[str, Comparison]]  # one for each of `others`
    slices: Sequence[Slice]
    training_documents: int | None
    resamples: int = RESAMPLES
    annif_names: bool = False
    warnings: Sequence[str] = field(default_factory=list)

    @property
    def _systems(self) -> list[System]:
        return [self.ours, *self.others]

    def as_json(self) -> dict[str, Any]:
        """Measures by name, then how they came about; numbers that do not exist are null."""
        judged = self.ours.runs[0]
        result: dict[str, Any] = {**self.ours.scores, **(self.ours.annif if self.annif_names else {})}
        result |= {
            "files": list(self.ours.files),
            "documents": len(judged.gold),
            "documents_without_gold_labels": len(judged.gold.without_labels),
            "documents_without_predictions": max(len(run.missing) for run in self.ours.runs),
            "predicted_documents_unknown": max(len(run.unknown) for run in self.ours.runs),
            "repeated_labels": max(run.predictions.repeated_labels for run in self.ours.runs),
            "longest_list": self.ours.depth,
            "gold_labels": len(judged.gold.labels),
            "training_documents": self.training_documents,
            "slices": [part._asdict() for part in self.slices],
        }
        if self.ours.deviations:
            result["runs"] = [self.ours.run_scores(run) for run in range(len(self.ours.runs))]
            result["standard_deviations"] = self.ours.deviations
        result["against"] = [
            {
                **other.scores,
                "files": list(other.files),
                "standard_deviations": other.deviations,
                "comparison": {name: _comparison_json(comparison) for name, comparison in measures.items()},
            }
            for other, measures in zip(self.others, self.comparisons, strict=True)
        ]
        result["warnings"] = list(self.warnings)
        return _without_nan(result)

    def as_text(self) -> str:
        """Tables for a terminal of a hundred columns."""
        blocks = [self._head(), self._table(PLAIN_METRICS)]
        short = [f"{system.name} {system.depth}" for system in self._systems if system.depth < max(RECALL_AT)]
        if short:
            blocks[-1] += f"\n(longest lists: {', '.join(short)}; recall beyond that says no more)"
        if "PSP@1" in self.ours.scores:
            blocks.append(self._table((*PROPENSITY_METRICS, RATIO)))
        if self.others:
            blocks.append(
                f"* and **: {self.ours.name} is significantly better (p < .05 and p < .01); "
                "+ and ++: significantly worse"
            )
        if self.annif_names:
            blocks.append(self._annif_table())
        blocks.append(self._slice_table())
        for other, measures in zip(self.others, self.comparisons, strict=True):
            blocks.append(self._comparison_table(other, measures))
        return "\n\n".join(blocks) + "\n"

    def _head(self) -> str:
        gold = self.ours.runs[0].gold
        lines = [
            f"documents judged: {len(gold):,}, with {gold.sizes.mean():.2f} gold labels each, "
            f"of {len(gold.labels):,} different ones"
        ]
        if gold.without_labels:
            lines.append(f"documents without gold labels, left out: {len(gold.without_labels):,}")
        if self.training_documents is not None:
            lines.append(f"propensities from the labels of {self.training_documents:,} training documents")
        return "\n".join(lines)

    def _table(self, metrics: Sequence[str]) -> str:
        rows = [["", *metrics]]
        for number, system in enumerate(self._systems):
            marks = (
                {name: _mark(found) for name, found in self.comparisons[number - 1].items()} if number else {}
            )
            rows.append(
                [system.name, *(f"{system.scores[name]:.4f}{marks.get(name, '')}" for name in metrics)]
            )
            if system.deviations:
                rows.append(["  deviation", *(f"{system.deviations[name]:.4f}" for name in metrics)])
        return aligned(rows)

    def _annif_table(self) -> str:
        rows = [["measures as Annif names and defines them", *(system.name for system in self._systems)]]
        for name in self.ours.annif:
            values = [system.annif[name] for system in self._systems]
            counts = name.startswith(("True", "False", "Documents"))
            rows.append([name, *(f"{value:,.0f}" if counts else f"{value:.4f}" for value in values)])
        return aligned(rows)

    def _slice_table(self) -> str:
        of = "the evaluated documents" if self.training_documents is None else "the training documents"
        rows = [["", "labels", "frequency", "gold", *(f"R@{k}" for k in SLICE_RECALL_AT)]]
        for part in self.slices:
            span = (
                f"{part.rarest:,}" if part.rarest == part.commonest else f"{part.rarest:,}-{part.commonest:,}"
            )
            recall = [f"{part.recall[k]:.4f}" for k in SLICE_RECALL_AT]
            rows.append([part.name, f"{part.labels:,}", span, f"{part.assignments:,}", *recall])
        return (
            f"{self.ours.name}: labels by their frequency in {of}; R@k of all gold labels of a slice\n"
            + aligned(rows)
        )

    def _comparison_table(self, other: System, measures: Mapping[str, Comparison]) -> str:
        test = next(iter(measures.values())).seeds
        seeds = f"; {test.name} over {len(self.ours.runs)} and {len(other.runs)} runs" if test else ""
        title = f"{self.ours.name} against {other.name}: {self.resamples:,} paired bootstrap resamples{seeds}"
        rows = [["", "difference", "95 % interval", "bootstrap p", *([f"{test.name} p"] if test else [])]]
        for name, found in measures.items():
            bootstrap = found.bootstrap
            row = [name, f"{bootstrap.difference:+.4f}", f"{bootstrap.low:+.4f} to {bootstrap.high:+.4f}"]
            ps = [bootstrap.p, *([found.seeds.p] if found.seeds else [])]
            rows.append([*row, *map(_p, ps)])
        return f"{title}\n" + aligned(rows)

    def plot(self, path: str | Path) -> None:
        """Scores of all systems, and recall of frequent and rare labels of the first, as a picture."""
        from matplotlib.figure import Figure

        systems = self._systems
        metrics = [name for name in self.ours.scores if name != RATIO]
        figure = Figure(figsize=(max(9.0, 0.75 * len(metrics) + 3.5), 4.4), layout="constrained")
        scores, recall = figure.subplots(1, 2, width_ratios=[3, 1])
        width = 0.8 / len(systems)
        for number, system in enumerate(systems):
            at = np.arange(len(metrics)) + (number - (len(systems) - 1) / 2) * width
            errors = [system.deviations[name] for name in metrics] if system.deviations else None
            heights = [system.scores[name] for name in metrics]
            bars = scores.bar(at, heights, width, yerr=errors, label=system.name, capsize=2)
            if len(systems) <= 2:
                scores.bar_label(bars, [f"{height:.2f}" for height in heights], fontsize=7, padding=2)
        scores.set_xticks(np.arange(len(metrics)), metrics, rotation=45, ha="right")
        scores.set(ylabel="score", title=f"{len(self.ours.runs[0].gold):,} documents", ylim=(0, None))
        scores.margins(y=0.12)
        if len(systems) > 1:
            scores.legend(fontsize=8)
        # Shades of one colour: the systems have the others.
        for k, shade in zip(SLICE_RECALL_AT, ("0.75", "0.55", "0.3", "0.0"), strict=True):
            found = [part.recall[k] for part in self.slices]
            recall.plot([part.name for part in self.slices], found, "o-", color=shade, label=f"R@{k}")
        recall.set(ylabel="gold labels found", title=f"{self.ours.name}: frequent to rare", ylim=(0, None))
        recall.margins(x=0.15, y=0.12)
        recall.legend(fontsize=8)
        for axes in (scores, recall):
            axes.grid(axis="y", alpha=0.3)
            axes.set_axisbelow(True)
        with replacing(path) as temporary:
            figure.savefig(temporary, format=Path(path).suffix.lstrip(".") or "png", dpi=150)


def _p(p: float) -> str:
    return "runs alike" if math.isnan(p) else "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def _mark(comparison: Comparison) -> str:
    better = comparison.ours > comparison.theirs
    return comparison.stars if better else comparison.stars.replace("*", "+")


def _comparison_json(comparison: Comparison) -> dict[str, Any]:
    seeds = comparison.seeds
    return {
        "difference": comparison.bootstrap.difference,
        "low": comparison.bootstrap.low,
        "high": comparison.bootstrap.high,
        "bootstrap_p": comparison.bootstrap.p,
        "test": seeds.name if seeds else None,
        "test_p": seeds.p if seeds else None,
        "stars": comparison.stars,
    }


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _without_nan(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_without_nan(entry) for entry in value]
    return None if isinstance(value, float) and math.isnan(value) else value
