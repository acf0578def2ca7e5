"""Base encoder, bi- and cross-encoder for every meta-path: the table of docs/results.md.

    python benchmarks/classifier.py DATA [DATA …] [--recipes best] [--architectures bi cross] [--seeds 0 1 2]
                                    [--paths P->P …] [--base FOLDER] [--jobs 4] [--set name=value …]

DATA is a folder with docs.jsonl.gz, labels.jsonl.gz and test_ids.txt. Training sees every document but the
test documents, and no label of any. A run that is in the results file already is not run again, so an
interrupted table goes on where it stopped. Candidates are the paper's: exact name matches and BM25's top 50.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rows import add_rows, read_rows, tell_left_out

if TYPE_CHECKING:
    import micol

RESULTS = Path(__file__).parent / "results" / "classifier.jsonl"
SHOWN = ("P@1", "P@3", "P@5", "NDCG@3", "NDCG@5", "PSP@1", "PSP@5")
# Paths and architectures are compared by what they teach: without the evidence that the recipe fuses, and
# with pairs and batches as chance has them.
RANKER_ALONE = {"best": {"evidence": False, "sampling": "uniform", "hard_negatives": 0}}
KEY = ("data", "recipe", "architecture", "path", "seed", "changed")


@dataclass(frozen=True)
class Run:
    """One row of the table."""

    data: Path
    recipe: str
    architecture: str
    path: str
    seed: int
    base: str | None
    changed: dict[str, Any]

    @property
    def key(self) -> tuple[Any, ...]:
        changed = json.dumps(self.changed, sort_keys=True)
        return (self.data.name, self.recipe, self.architecture, self.path, self.seed, changed)


class DataSet:
    """A data set split as its test_ids.txt says, with candidates for the test documents."""

    def __init__(self, folder: Path) -> None:
        import numpy as np

        import micol
        from micol.retrieve import BM25, ExactMatcher, retrieve

        corpus = micol.Corpus.read(folder / "docs.jsonl.gz", skip_bad=True)
        self.labels = micol.LabelSpace.read(folder / "labels.jsonl.gz")
        chosen = set((folder / "test_ids.txt").read_text(encoding="utf-8").split())
        tested = np.array([identifier in chosen for identifier in corpus.ids])
        self.train = corpus.select(np.flatnonzero(~tested))
        self.test = corpus.select(np.flatnonzero(tested))
        self.texts = self.test.texts()
        self.candidates = retrieve(
            self.texts, exact=ExactMatcher(self.labels.names), bm25=BM25(self.labels.texts()), bm25_top=50
        ).candidates


_data: dict[Path, DataSet] = {}


def measure(run: Run) -> dict[str, Any]:
    """Trains, ranks the candidates of the test documents, and scores the ranking."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    import torch

    import micol

    data = _data.setdefault(run.data, None) or DataSet(run.data)  # type: ignore[arg-type]
    _data[run.data] = data
    row = dict(zip(KEY, run.key, strict=True))
    started = time.perf_counter()
    try:
        model = micol.train(
            data.train,
            data.labels,
            run.path if run.path != "untrained" else "P->P",
            run.architecture,
            recipe=run.recipe,
            base=run.base,
            init_only=run.path == "untrained",
            seed=run.seed,
            **{**RANKER_ALONE.get(run.recipe, {}), **run.changed},
        )
    except micol.MicolError as error:
        return {**row, "failed": str(error)}
    trained = time.perf_counter()
    return {
        **row,
        "scores": scored(model, data),
        "pairs": model.config["training"].get("pairs_used", 0),
        "training_seconds": round(trained - started, 1),
        "tagging_seconds": round(time.perf_counter() - trained, 1),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }


def scored(model: micol.Classifier, data: DataSet) -> dict[str, float]:
    """How well the model ranks the candidates of the test documents."""
    import micol

    ranking = model.rank_texts(data.texts, data.candidates).top(100)
    ids = data.labels.ids
    predictions = {
        identifier: [ids[label] for label in ranking.row(number)[0]]
        for number, identifier in enumerate(data.test.ids)
    }
    scores = micol.evaluate(predictions, data.test, train_labels=data.train.gold)
    return {name: round(value, 4) for name, value in scores.items()}


def paths_of(folder: Path) -> list[str]:
    from micol.metapath import PAPER_PATHS

    return ["untrained", *map(str, PAPER_PATHS)]


def table(results: Path) -> str:
    """The results as Markdown: a line for each system and path, seeds averaged."""
    systems: dict[tuple[Any, ...], list[dict[str, float]]] = {}
    for row in read_rows(results):
        if "scores" in row:
            key = tuple(row[name] for name in ("data", "recipe", "architecture", "path", "changed"))
            systems.setdefault(key, []).append(row["scores"])
    lines = [
        f"| data | recipe | system | path | seeds | {' | '.join(SHOWN)} |",
        "| --- " * (len(SHOWN) + 5) + "|",
    ]
    for (data, recipe, architecture, path, changed), runs in sorted(systems.items()):
        settings = "" if changed == "{}" else f" with {changed.strip('{}')}"
        means = (f"{sum(run[name] for run in runs) / len(runs):.3f}" for name in SHOWN)
        system = "base encoder" if path == "untrained" else f"{architecture}{settings}"
        shown_path = "" if path == "untrained" else f"`{path}`"
        lines.append(f"| {data} | {recipe} | {system} | {shown_path} | {len(runs)} | {' | '.join(means)} |")
    return "\n".join(lines)


def parse_setting(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    return name, json.loads(value)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, nargs="*")
    parser.add_argument("--table", action="store_true", help="only print the results so far as Markdown")
    parser.add_argument("--recipes", nargs="+", default=["best"])
    parser.add_argument("--architectures", nargs="+", default=["bi", "cross"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--paths", nargs="+")
    parser.add_argument("--base")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--set", nargs="*", default=[], help="settings to change, as name=JSON")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.table:
        print(table(options.output))
        return
    done = {tuple(row[name] for name in KEY) for row in read_rows(options.output)}
    changed = dict(map(parse_setting, options.set))
    runs = [
        Run(folder, recipe, architecture, path, seed, options.base, changed)
        for seed, recipe, folder, architecture in product(
            options.seeds, options.recipes, options.data, options.architectures
        )
        for path in options.paths or paths_of(folder)
        if path != "untrained" or (architecture == "bi" and seed == options.seeds[0])
    ]
    waiting = [run for run in runs if run.key not in done]
    tell_left_out(options.output, len(runs) - len(waiting))
    options.output.parent.mkdir(exist_ok=True)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=context) as pool:
        for finished in as_completed([pool.submit(measure, run) for run in waiting]):
            row = finished.result()
            add_rows(options.output, [row])
            scores = row.get("scores", {})
            shown = f"P@1 {scores['P@1']:.4f} NDCG@5 {scores['NDCG@5']:.4f}" if scores else row["failed"]
            times = f"{row.get('training_seconds')} s + {row.get('tagging_seconds')} s"
            print(*(row[name] for name in KEY), shown, times, flush=True)


if __name__ == "__main__":
    main()
