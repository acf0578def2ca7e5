"""The default recipe without a choice made by anyone, against what it is made of: the tables of docs/best.md.

    python benchmarks/best.py DATA [DATA …] [--seeds 0 1 2] [--no-parts] [--base FOLDER] [--output FILE]
    python benchmarks/best.py DATA [DATA …] --reader
    python benchmarks/best.py --table

DATA is a folder with docs.jsonl.gz, labels.jsonl.gz and test_ids.txt. Training sees every document but the
test documents, and no label of any. For the first seed each source of evidence is also left out in turn.
With --reader a cross-encoder is a further source; measured is one training, with and without that source.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "best.jsonl"
SHOWN = ("P@1", "P@3", "P@5", "NDCG@3", "NDCG@5", "PSP@1", "PSP@5")
# Names in the text alone: how rare, whether in the title, how often; the cosine of the name breaks ties.
EXACT_NAMES = {"named_rarity": 2.5, "in_title": 1.5, "count": 0.5, "name": 1e-4}
BINS = (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0)


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


def measure(data: Data, seed: int, base: str | None, write: Callable[..., None]) -> Callable[[], None]:
    """Trains and tags; returns what measures the parts of the model, for when there is time."""
    import micol
    from micol.classify import Classifier
    from micol.evidence.fused import practice
    from micol.evidence.fusion import learn, places_left_out, rough_weights
    from micol.evidence.gather import FEATURES, SOURCES, sources_among
    from micol.settings import resolve

    model, training = seconds_of(lambda: micol.train(data.train, data.labels, base=base, seed=seed))
    fused, ranker, documents = model.fused, model.ranker, list(data.test)
    gathered, tagging = seconds_of(lambda: fused.gather(documents, ranker))
    _, encoder_alone = seconds_of(lambda: model.rank_texts(data.test.texts()))
    write(
        "best", data.scores(gathered.ranking(fused.fusion.logits(gathered.values))),
        training_seconds=training, tagging_seconds=tagging, encoder_alone_seconds=encoder_alone,
        report=model.config["report"],
        calibration=reliability(data, gathered, fused.fusion.probabilities(gathered.values)),
    )  # fmt: skip

    def parts() -> None:
        evidence = practice(fused.memory, fused.side, ranker, seed)
        rough = rough_weights(gathered.features, places_left_out(evidence))
        write("rough sum", data.scores(gathered.ranking(gathered.values @ rough)))
        for source in sources_among(gathered.features):
            without = learn(evidence, without=[source])
            write(f"without {source}", data.scores(gathered.ranking(without.logits(gathered.values))))
        lexical = {*SOURCES["named in the text"], *SOURCES["nearly named"]}
        alone = rough_weights(gathered.features, [name for name in FEATURES if name not in lexical])
        write("lexical evidence alone", data.scores(gathered.ranking(gathered.values @ alone)))
        by_names = np.array([EXACT_NAMES.get(name, 0.0) for name in gathered.features], np.float32)
        write("lexical ranking", data.scores(gathered.ranking(gathered.values @ by_names)))
        untrained = micol.train(data.train, data.labels, base=base, seed=seed, init_only=True)
        write("untrained encoder", data.scores(untrained.rank_texts(data.test.texts())))
        settings = resolve("bi", "auto", "best", {"seed": seed})
        fused_untrained = Classifier.build(data.labels, untrained.ranker, settings, {}, data.train)
        write("without training", data.scores(fused_untrained.rank(documents)))

    return parts


def measure_reader(data: Data, seed: int, base: str | None, write: Callable[..., None]) -> None:
    """The recipe with a cross-encoder as one source of evidence; then the same model without that source."""
    import micol
    from micol.evidence.fused import practice
    from micol.evidence.fusion import learn, places_left_out, rough_weights
    from micol.evidence.gather import TOGETHER, gather

    model, training = seconds_of(
        lambda: micol.train(
            data.train, data.labels, architecture="cross", evidence=True, base=base, seed=seed
        )
    )
    fused, ranker, documents = model.fused, model.ranker, list(data.test)
    found, gathering = seconds_of(lambda: gather(documents, fused.memory, fused.side, ranker))
    # Read whether the model listens or not: whether it is right to leave that out is to be seen, too.
    read, reading = seconds_of(lambda: fused.reader.read(documents, found))
    write(
        "best with the cross-encoder", data.scores(read.ranking(fused.fusion.logits(read.values))),
        training_seconds=training, tagging_seconds=round(gathering + reading, 1), reading_seconds=reading,
        report=model.config["report"],
        calibration=reliability(data, read, fused.fusion.probabilities(read.values)),
    )  # fmt: skip
    evidence = practice(fused.memory, fused.side, ranker, seed, fused.reader)
    without = learn(evidence, without=["read together"])
    write("the same without read together", data.scores(read.ranking(without.logits(read.values))))
    rough = rough_weights(read.features, places_left_out(evidence))
    write("rough sum with read together", data.scores(read.ranking(read.values @ rough)))
    alone = read.values[:, read.features.index(TOGETHER)]
    write("read together alone", data.scores(read.ranking(alone)))


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
    rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
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


def run(
    folders: Sequence[Path],
    seeds: Sequence[int],
    base: str | None,
    output: Path,
    *,
    with_parts: bool,
    with_reader: bool,
) -> None:
    import torch

    from micol.machine import machine

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else machine()
    later = []
    with output.open("a", encoding="utf-8") as file:
        for folder in folders:
            data = Data.read(folder)
            for seed in seeds:

                def write(
                    system: str, scores: dict[str, float], *, data: Data = data, seed: int = seed, **more: Any
                ) -> None:
                    row = {"data": data.name, "system": system, "seed": seed, "scores": scores, **more}
                    file.write(json.dumps({**row, "device": device}, ensure_ascii=False) + "\n")
                    file.flush()
                    shown = " ".join(f"{name} {scores[name]:.4f}" for name in SHOWN)
                    print(data.name, seed, system, shown, more.get("training_seconds", ""), flush=True)

                if with_reader:
                    measure_reader(data, seed, base, write)
                    continue
                parts = measure(data, seed, base, write)
                if seed == seeds[0] and with_parts:
                    later.append(parts)
        for parts in later:
            parts()


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
    run(
        options.data,
        options.seeds,
        options.base,
        options.output,
        with_parts=not options.no_parts,
        with_reader=options.reader,
    )


if __name__ == "__main__":
    main()
