"""The default recipe without a choice made by anyone, against what it is made of: the tables of docs/best.md.

    python benchmarks/best.py DATA [DATA …] [--seeds 0 1 2] [--no-parts] [--base FOLDER] [--output FILE]
    python benchmarks/best.py DATA [DATA …] --reader
    python benchmarks/best.py --table

DATA is a folder with docs.jsonl.gz, labels.jsonl.gz and test_ids.txt. Training sees every document but the
test documents, and no label of any. For the first seed each source of evidence is also left out in turn.
With --reader a cross-encoder is a further source; measured is one training, with and without that source.
What the output has already is left out.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rows import add_rows, read_rows, tell_left_out

RESULTS = Path(__file__).parent / "results" / "best.jsonl"
SHOWN = ("P@1", "P@3", "P@5", "NDCG@3", "NDCG@5", "PSP@1", "PSP@5")
# Names in the text alone: how rare, whether in the title, how often; the cosine of the name breaks ties.
EXACT_NAMES = {"named_rarity": 2.5, "in_title": 1.5, "count": 0.5, "name": 1e-4}
BINS = (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0)
# What measures each system: its scores, and what else there is to tell.
Systems = dict[str, Callable[[], dict[str, Any]]]


@dataclass(frozen=True)
class Data:
    """A data set split as its test_ids.txt says."""

    name: str
    train: Any
    test: Any
    labels: Any

    @classmethod
    def read(cls, folder: Path) -> Data:
        import micol

        corpus = micol.Corpus.read(folder / "docs.jsonl.gz", skip_bad=True)
        chosen = set((folder / "test_ids.txt").read_text(encoding="utf-8").split())
        tested = np.array([identifier in chosen for identifier in corpus.ids])
        train, test = (corpus.select(np.flatnonzero(mask)) for mask in (~tested, tested))
        return cls(folder.name, train, test, micol.LabelSpace.read(folder / "labels.jsonl.gz"))

    def scores(self, ranking: Any) -> dict[str, float]:
        import micol

        top = ranking.top(100)
        predictions = {
            identifier: [self.labels.ids[label] for label in top.row(row)[0]]
            for row, identifier in enumerate(self.test.ids)
        }
        found = micol.evaluate(predictions, self.test, train_labels=self.train.gold)
        return {name: round(value, 4) for name, value in found.items()}


def seconds_of(run: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    return run(), round(time.perf_counter() - started, 1)


@dataclass(frozen=True)
class Trial:
    """The recipe on one data set; what it takes is made when it is first asked for."""

    data: Data
    seed: int
    base: str | None

    @cached_property
    def documents(self) -> list[Any]:
        return list(self.data.test)

    @cached_property
    def trained(self) -> tuple[Any, float]:
        """The model, and the seconds of training."""
        import micol

        return seconds_of(
            lambda: micol.train(self.data.train, self.data.labels, base=self.base, seed=self.seed)
        )

    @cached_property
    def gathered(self) -> tuple[Any, float]:
        """The evidence about the test documents, and the seconds of gathering it."""
        model, _ = self.trained
        return seconds_of(lambda: model.fused.gather(self.documents, model.ranker))

    @cached_property
    def practice(self) -> Any:
        from micol.evidence.fused import practice

        model, _ = self.trained
        return practice(model.fused.memory, model.fused.side, model.ranker, self.seed)

    @cached_property
    def untrained(self) -> Any:
        import micol

        train = self.data.train
        return micol.train(train, self.data.labels, base=self.base, seed=self.seed, init_only=True)

    def whole(self) -> Systems:
        return {"best": lambda: {**self.best(), "encoder_alone_seconds": self.encoder_alone_seconds()}}

    def best(self) -> dict[str, Any]:
        (model, training), (found, tagging) = self.trained, self.gathered
        fusion = model.fused.fusion
        return {
            **self.weighed(fusion.weights),
            "training_seconds": training,
            "tagging_seconds": tagging,
            "report": model.config["report"],
            "calibration": reliability(self.data, found, fusion.probabilities(found.values)),
        }

    def encoder_alone_seconds(self) -> float:
        model, _ = self.trained
        return seconds_of(lambda: model.rank_texts(self.data.test.texts()))[1]

    def parts(self) -> Systems:
        """What the recipe is made of, and what it must never be worse than."""
        from micol.evidence.gather import FEATURES, SOURCES, TOGETHER

        sources = [source for source, names in SOURCES.items() if TOGETHER not in names]
        lexical = {*SOURCES["named in the text"], *SOURCES["nearly named"]}
        others = [name for name in FEATURES if name not in lexical]
        return {
            "rough sum": self.rough_sum,
            **{f"without {source}": partial(self.without, source) for source in sources},
            "without tags of neighbours": self.without_tags,
            "lexical evidence alone": lambda: self.weighed(self.rough(others)),
            "lexical ranking": lambda: self.weighed(
                np.array([EXACT_NAMES.get(name, 0.0) for name in self.gathered[0].features], np.float32)
            ),
            "untrained encoder": lambda: self.scores_of(self.untrained.rank_texts(self.data.test.texts())),
            "without training": self.without_training,
        }

    def rough_sum(self) -> dict[str, Any]:
        from micol.evidence.fusion import places_left_out

        return self.weighed(self.rough(places_left_out(self.practice.untagged)))

    def rough(self, left_out: Sequence[str]) -> np.ndarray:
        from micol.evidence.fusion import rough_weights

        return rough_weights(self.gathered[0].features, left_out)

    def weighed(self, weights: np.ndarray) -> dict[str, Any]:
        found, _ = self.gathered
        return self.scores_of(found.ranking(found.values @ weights))

    def without(self, source: str) -> dict[str, Any]:
        from micol.evidence.fusion import learn

        return self.weighed(learn(self.practice, without=[source]).weights)

    def without_tags(self) -> dict[str, Any]:
        from micol.evidence.fusion import learn

        found = self.gathered[0].untagged
        return self.scores_of(found.ranking(found.values @ learn(self.practice.untagged).weights))

    def without_training(self) -> dict[str, Any]:
        from micol.classify import Classifier
        from micol.settings import resolve

        settings = resolve("bi", "auto", "best", {"seed": self.seed})
        ranker, train = self.untrained.ranker, self.data.train
        model = Classifier.build(self.data.labels, ranker, settings, {}, train)
        return self.scores_of(model.rank(self.documents))

    def scores_of(self, ranking: Any) -> dict[str, Any]:
        return {"scores": self.data.scores(ranking)}


@dataclass(frozen=True)
class ReaderTrial(Trial):
    """The recipe with a cross-encoder as one source of evidence; then the same model without that source."""

    @cached_property
    def trained(self) -> tuple[Any, float]:
        import micol

        train, labels = self.data.train, self.data.labels
        return seconds_of(
            lambda: micol.train(
                train, labels, architecture="cross", evidence=True, base=self.base, seed=self.seed
            )
        )

    @cached_property
    def gathered(self) -> tuple[Any, float]:
        """Read whether the model listens or not: whether it is right to leave that out is to be seen, too."""
        from micol.evidence.gather import Read, gather

        model, _ = self.trained
        fused, documents = model.fused, self.documents

        def read_together() -> Any:
            read = Read.by(model.ranker, documents)
            return fused.reader.read(documents, gather(documents, read, fused.memory, fused.side))

        return seconds_of(read_together)

    @cached_property
    def practice(self) -> Any:
        from micol.evidence.fused import practice

        model, _ = self.trained
        fused = model.fused
        return practice(fused.memory, fused.side, model.ranker, self.seed, fused.reader)

    def whole(self) -> Systems:
        return {"best with the cross-encoder": self.best}

    def parts(self) -> Systems:
        from micol.evidence.gather import TOGETHER

        return {
            "the same without read together": lambda: self.without("read together"),
            "rough sum with read together": self.rough_sum,
            "read together alone": lambda: self.weighed(
                np.array([name == TOGETHER for name in self.gathered[0].features], np.float32)
            ),
        }


def reliability(data: Data, gathered: Any, probabilities: np.ndarray) -> list[dict[str, float]]:
    """For each range of the score how many pairs lie in it, their mean score, and the share of right."""
    gold = [set(labels) for labels in data.test.gold]
    ids, n = data.labels.ids, len(data.labels)
    right = np.array([ids[key % n] in gold[key // n] for key in gathered.keys.tolist()])
    rows = []
    for low, high in pairwise(BINS):
        some = (probabilities >= low) & ((probabilities < high) | (high == 1.0))
        if some.any():
            rows.append(
                {
                    "from": low,
                    "to": high,
                    "pairs": int(some.sum()),
                    "score": round(float(probabilities[some].mean()), 3),
                    "right": round(float(right[some].mean()), 3),
                }
            )
    return rows


def tables(results: Path) -> str:
    """The results as Markdown: each system's mean over seeds, the paths chosen, and the reliability."""
    rows = read_rows(results)
    systems: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        systems.setdefault((row["data"], row["system"]), []).append(row)
    lines = [f"| data | system | seeds | {' | '.join(SHOWN)} |", "| --- " * (len(SHOWN) + 3) + "|"]
    for (data, system), runs in systems.items():
        means = (f"{np.mean([run['scores'][name] for run in runs]):.3f}" for name in SHOWN)
        lines.append(f"| {data} | {system} | {len(runs)} | {' | '.join(means)} |")
    lines += ["", "| data | seed | what the training report says |", "| --- | --- | --- |"]
    for row in rows:
        if row["system"] == "best":
            told = "; ".join(line for line in row["report"] if line.startswith(("trained on", "training")))
            lines.append(f"| {row['data']} | {row['seed']} | {told} |")
    lines += ["", "| data | score | suggestions | mean score | right |", "| --- " * 5 + "|"]
    for row in rows:
        if row["system"] == "best" and row["seed"] == 1:
            for found in row["calibration"]:
                span = f"{found['from']:.2f} to {found['to']:.2f}"
                lines.append(
                    f"| {row['data']} | {span} | {found['pairs']:,} | {found['score']:.3f} | "
                    f"{found['right']:.3f} |"
                )
    return "\n".join(lines)


def run(options: argparse.Namespace) -> None:
    """Writes a row for each system that the output does not have yet."""
    import torch

    from micol.machine import machine

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else machine()
    done = {(row["data"], row["seed"], row["system"]) for row in read_rows(options.output)}

    def write(trial: Trial, systems: Systems) -> None:
        new = {name: run for name, run in systems.items() if (trial.data.name, trial.seed, name) not in done}
        tell_left_out(options.output, len(systems) - len(new))
        for system, measured in new.items():
            found = measured()
            row = {"data": trial.data.name, "system": system, "seed": trial.seed, **found, "device": device}
            add_rows(options.output, [row])
            shown = " ".join(f"{name} {found['scores'][name]:.4f}" for name in SHOWN)
            print(trial.data.name, trial.seed, system, shown, found.get("training_seconds", ""), flush=True)

    later = []
    for folder in options.data:
        data = Data.read(folder)
        for seed in options.seeds:
            trial = (ReaderTrial if options.reader else Trial)(data, seed, options.base)
            write(trial, trial.whole())
            if seed == options.seeds[0] and not options.no_parts:
                later.append(trial)
    for trial in later:
        write(trial, trial.parts())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, nargs="*")
    parser.add_argument("--table", action="store_true", help="only print the results so far as Markdown")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--base")
    parser.add_argument("--no-parts", action="store_true", help="only the recipe as a whole")
    parser.add_argument("--reader", action="store_true", help="a cross-encoder as one source of evidence")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.table:
        print(tables(options.output))
        return
    run(options)


if __name__ == "__main__":
    main()
