"""The paper's recipe in full on many meta-paths and seeds, trained side by side: rows of docs/results.md.

    python benchmarks/side_by_side.py DATA --architecture bi [--seeds 0 1 2] [--paths P->P …] [--base FOLDER]
                                      [--at-once N]

The same rows as `benchmarks/classifier.py DATA --recipes paper` writes, into the same file, on one GPU in a
fraction of the time: runs with as many steps are trained as one stack (see `stacked`), or as several of at
most N; a stack's rows are written when all of it is trained. `together` in a row says of how many. Paths that
draw the same pairs (where all documents have one venue, P(AV)P and PAP do) are trained once; `pairs_of` in
the row of the second names the first. Runs that are in the results file already are left out.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from math import ceil
from pathlib import Path
from typing import Any

import torch

import micol
from classifier import KEY, RESULTS, DataSet, Run, scored
from micol.classify import Classifier
from micol.metapath import PAPER_PATHS
from micol.pairs import Pairs
from micol.progress import say
from micol.rank.base import resolve_base
from micol.rank.bi_encoder import BiEncoder
from micol.rank.cross_encoder import CrossEncoder
from micol.rank.encoder import Encoder
from micol.settings import Settings, resolve
from micol.training import pair_examples, pairs_for, random_negatives, split
from rows import add_rows, read_rows, tell_left_out
from stacked.encoders import HEAD
from stacked.training import Run as StackedRun
from stacked.training import Training

# The runs that draw the same pairs, and their one training.
Told = tuple[list[Run], StackedRun]


class Rememberer(Encoder):
    """An encoder that cuts each text into tokens once, as the runs have most of their documents in common."""

    def tokenize(self, texts: Sequence[str], limit: int | None = None) -> list[Any]:
        known: dict[Any, Any] = self.__dict__.setdefault("known", {})
        missing = list(dict.fromkeys(text for text in texts if (text, limit) not in known))
        known.update(
            ((text, limit), tokens)
            for text, tokens in zip(missing, super().tokenize(missing, limit), strict=True)
        )
        return [known[text, limit] for text in texts]


def prepared(corpus: micol.Corpus, encoder: Encoder, settings: Settings, pairs: Pairs) -> StackedRun:
    """The examples that `micol train --recipe paper` would train on."""
    train, held = split(pairs, settings)
    assert held is not None
    if settings.architecture == "bi":
        both = (pair_examples(encoder, corpus, pairs, settings) for pairs in (train, held))
        return StackedRun(settings, *both)
    cross = CrossEncoder.untrained(encoder, settings.seed)
    both = (random_negatives(cross, corpus, pairs, settings) for pairs in (train, held))
    return StackedRun(settings, *both, head=cross.head.weight)


def ranker_of(run: StackedRun, encoder: Encoder) -> BiEncoder | CrossEncoder:
    """With the weights that the run has kept."""
    model = copy.deepcopy(encoder.model)
    weights = {name: weight.to(encoder.device) for name, weight in run.best.items()}
    head = weights.pop(HEAD, None)
    model.load_state_dict(weights, strict=False)
    trained = Encoder(model, encoder.tokenizer, encoder.max_tokens)
    if head is None:
        return BiEncoder(trained, "cls")
    cross = CrossEncoder.untrained(trained, run.settings.seed)
    cross.head.load_state_dict({"weight": head})
    return cross


def measured(data: DataSet, encoder: Encoder, runs: Sequence[Told]) -> Iterator[dict[str, Any]]:
    """A row for each of the runs, which are trained together; those with the same pairs have one training."""
    started = time.perf_counter()
    Training(encoder, [run for _, run in runs]).fit()
    seconds = time.perf_counter() - started
    for told, run in runs:
        settings = run.settings
        begun = time.perf_counter()
        model = Classifier.build(data.labels, ranker_of(run, encoder), settings, {}, data.train)
        found = {
            "scores": scored(model, data),
            "pairs": len(run.train) + len(run.validation),
            "together": len(runs),
            "training_seconds": round(seconds, 1),
            "tagging_seconds": round(time.perf_counter() - begun, 1),
            "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        }
        for one in told:
            first = {} if one is told[0] else {"pairs_of": told[0].path}
            yield {**dict(zip(KEY, one.key, strict=True)), **found, **first}


def stacks(runs: Sequence[Told], most: int) -> Iterator[Sequence[Told]]:
    """Runs with as many steps, in stacks that are as large as each other and have `most` runs or fewer."""
    for _, found in groupby(runs, key=lambda pair: pair[1].steps):
        alike = list(found)
        size = ceil(len(alike) / ceil(len(alike) / most))
        yield from (alike[start : start + size] for start in range(0, len(alike), size))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--architecture", choices=("bi", "cross"), required=True)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--paths", nargs="+", default=[str(path) for path in PAPER_PATHS])
    parser.add_argument("--at-once", type=int, default=1_000, metavar="N", help="the most runs of a stack")
    parser.add_argument("--base")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    done = {tuple(row[name] for name in KEY) for row in read_rows(options.output)}
    wanted = [
        Run(options.data, "paper", options.architecture, path, seed, options.base, {})
        for path in options.paths
        for seed in options.seeds
    ]
    new = [run for run in wanted if run.key not in done]
    tell_left_out(options.output, len(wanted) - len(new))
    data = DataSet(options.data)
    limit = resolve(options.architecture, options.paths[0], "paper", {}).max_tokens
    encoder = Rememberer.load(resolve_base(options.base), limit)
    say(f"training on {encoder.device}")
    waiting: dict[tuple[int, bytes, bytes], Told] = {}
    for run in new:
        say(f"preparing {run.path}, seed {run.seed}")
        settings = resolve(run.architecture, run.path, "paper", {"seed": run.seed})
        try:
            pairs = pairs_for(data.train, settings)
            drawn = (run.seed, pairs.anchor.tobytes(), pairs.positive.tobytes())
            if drawn not in waiting:
                waiting[drawn] = ([], prepared(data.train, encoder, settings, pairs))
            waiting[drawn][0].append(run)
        except micol.MicolError as error:
            say(f"{run.path} is left out: {error}")
    in_order = sorted(waiting.values(), key=lambda pair: pair[1].steps)
    for stack in stacks(in_order, options.at_once):
        for row in measured(data, encoder, stack):
            add_rows(options.output, [row])
            say(" ".join(str(row[name]) for name in KEY) + f" P@1 {row['scores']['P@1']:.4f}")


if __name__ == "__main__":
    main()
