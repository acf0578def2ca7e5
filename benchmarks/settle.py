"""Settles the rough weights of the fused evidence on development sets, none of which is reported on.

    python benchmarks/development_sets.py -o DEV --mesh LABELS --gcloud FOLDER
    python benchmarks/settle.py DEV/wordnet DEV/meshnotes DEV/foldoc DEV/gcloud [--base FOLDER]
    python benchmarks/settle.py DEV/wordnet DEV/meshnotes DEV/foldoc DEV/gcloud --poorer

The weights begin as published for the plain fused sum (rarity of the name 2.5, in the title 1.5, count 0.5),
at one for all other evidence, and at minus one for what can only speak against a label. One at a time, or all
of the meaning or of the neighbours together, is halved or doubled, and stays so where the rough sum gains a
twentieth of a point in the mean of all measures that are reported, over the sets, until no change does. That
of rarity is the unit of all others and stays. As the end depends on the order of the changes, eleven random
orders are tried, as many at a time as there are processors; of their ends that is kept from which the best
weights are learned, by the same mean. A weight that is other than the one in use is put back where what is
learned gains by that. Vectors are those of the untrained encoder. The evidence of each set is kept beside its
documents, so that a second run begins at once. With --poorer, that last step is checked on what it was not
made for: the same sets, with one kind of knowledge after the other taken away (see `poorer`).
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from best import SHOWN, Data
from micol.evaluation import Gold, LabelCounts, gains, judge
from micol.evidence import fusion
from micol.evidence.gather import TOGETHER, Gathered
from micol.files import replacing
from micol.predictions import Predictions
from micol.progress import say, track
from poorer import WAYS, remembering, untrained_encoder

RESULTS = Path(__file__).parent / "results" / "settle.jsonl"
POORER_RESULTS = RESULTS.with_name("settle_poorer.jsonl")
PUBLISHED = {"named_rarity": 2.5, "in_title": 1.5, "count": 0.5}
SPEAK_AGAINST = ("nested", "miswritten", "seldom_titled")
IN_USE = {name: weight for name, weight in fusion.ROUGH.items() if name != TOGETHER}
UNIT = "named_rarity"
TOGETHER_CHANGED = (("name", "text", "sentence"), ("similar", "linked"))
LEAST_GAIN = 0.0005
FACTORS = (2.0, 0.5)
ORDERS = 11
# A weight that hardly matters must not wander off.
LEAST, MOST = 1 / 16, 16.0


@dataclass(frozen=True)
class Evidence:
    """A development set with the evidence about its test documents, and about those to practise on."""

    data: Data
    tested: Gathered
    practice: Gathered

    @cached_property
    def gold(self) -> Gold:
        return Gold.of(self.data.test)

    @cached_property
    def rewards(self) -> np.ndarray:
        return LabelCounts.of(self.data.train).inverse_propensities(self.gold.labels.to_pylist())

    def scores(self, rough: Mapping[str, float], *, learned: bool = False) -> dict[str, float]:
        """Of the rough sum, without the place in the hierarchy that does not count here, or of the weights
        that are learned from it.
        """
        fusion.ROUGH.clear()
        fusion.ROUGH.update(rough)
        if learned:
            weights = fusion.learn(self.practice).weights
        else:
            weights = fusion.rough_weights(self.tested.features, [fusion.place_left_out(self.practice)])
        top = self.tested.ranking(self.tested.values @ weights).top(5)
        predictions = Predictions.from_ranking(top, self.data.test.ids, self.data.labels.ids)
        found = gains(judge(predictions, self.gold), self.rewards)
        return {name: round(found[name].score, 4) for name in SHOWN}


def evidence_of(folder: Path, base: str | None) -> Evidence:
    """Gathered around the untrained encoder, or as an earlier run has kept it."""
    data = Data.read(folder)
    kept = folder / "evidence.npz"
    if not kept.exists():
        say(f"gathering the evidence of {folder}")
        found = gathered(data, untrained_encoder(data, base))
        parts = ("keys", "values", "documents")
        arrays = {
            f"{name}_{part}": getattr(getattr(found, name), part)
            for name in ("tested", "practice")
            for part in parts
        }
        with replacing(kept) as path, path.open("wb") as file:
            np.savez(file, **arrays)
    with np.load(kept) as stored:
        tested, practice = (as_gathered(stored, name, len(data.labels)) for name in ("tested", "practice"))
    return Evidence(data, tested, practice)


def gathered(data: Data, ranker: Any) -> Evidence:
    from micol.classify import Classifier
    from micol.evidence.fused import practice
    from micol.settings import resolve

    model = Classifier.build(data.labels, ranker, resolve("bi", "auto", "best", {}), {}, data.train)
    assert model.fused
    tested = model.fused.gather(list(data.test), ranker)
    return Evidence(data, tested, practice(model.fused.memory, model.fused.side, ranker, 0))


def as_gathered(stored: Mapping[str, Any], name: str, labels: int) -> Gathered:
    keys, values, documents = (stored[f"{name}_{part}"] for part in ("keys", "values", "documents"))
    return Gathered(keys, values, int(documents), labels, *[None] * 4)  # type: ignore[arg-type]


def beginning() -> dict[str, float]:
    return {name: PUBLISHED.get(name, -1.0 if name in SPEAK_AGAINST else 1.0) for name in IN_USE}


def mean_aim(sets: Sequence[Evidence], rough: Mapping[str, float], *, learned: bool = False) -> float:
    scores = [one.scores(rough, learned=learned) for one in sets]
    return float(np.mean([found[name] for found in scores for name in SHOWN]))


def settled(folders: Sequence[Path], order: int) -> dict[str, Any]:
    """The weights at which no change helps any more, with the means of their sum and of what is learned."""
    sets = [evidence_of(folder, None) for folder in folders]
    generator = np.random.default_rng(order)
    rough = beginning()
    single = [(name,) for name in rough if name != UNIT]
    changes = [(names, factor) for names in (*TOGETHER_CHANGED, *single) for factor in FACTORS]
    best, improved = mean_aim(sets, rough), True
    while improved:
        improved = False
        for number in generator.permutation(len(changes)):
            names, factor = changes[number]
            changed = {**rough, **{name: rough[name] * factor for name in names}}
            if all(LEAST <= abs(changed[name]) <= MOST for name in names):
                found = mean_aim(sets, changed)
                if found >= best + LEAST_GAIN:
                    rough, best, improved = changed, found, True
    learned = mean_aim(sets, rough, learned=True)
    return {"order": order, "mean": round(best, 4), "learned": round(learned, 5), "rough": rough}


def best_end(ends: Sequence[Mapping[str, Any]]) -> Mapping[str, float]:
    """The weights from which the best are learned."""
    rough: Mapping[str, float] = max(ends, key=lambda end: end["learned"])["rough"]
    return rough


def put_back(sets: Sequence[Evidence], rough: Mapping[str, float]) -> Mapping[str, float]:
    """With the weights in use for those by whose return what is learned gains, the most by first."""
    best = mean_aim(sets, rough, learned=True)
    while True:
        changed = [{**rough, name: weight} for name, weight in IN_USE.items() if weight != rough[name]]
        found = [mean_aim(sets, weights, learned=True) for weights in changed]
        if not found or max(found) <= best:
            return rough
        rough, best = changed[int(np.argmax(found))], max(found)


def checked_where_poorer(
    folders: Sequence[Path], base: str | None, weights: Mapping[str, Mapping[str, float]]
) -> Iterator[dict[str, Any]]:
    """What is learned from each of the weights, on each development set made poorer in each way."""
    for folder in folders:
        data = Data.read(folder)
        ranker = remembering(untrained_encoder(data, base))
        for way, taken_away in WAYS.items():
            case = gathered(taken_away(data), ranker)
            means = {told: round(mean_aim([case], rough, learned=True), 5) for told, rough in weights.items()}
            say(f"{data.name}, {way}: {means}")
            yield {"data": data.name, "way": way, **means}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, nargs="+")
    parser.add_argument("--base")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--poorer", action="store_true", help="only check what was put back")
    options = parser.parse_args()
    if options.poorer:
        *ends, _, last = map(json.loads, options.output.read_text(encoding="utf-8").splitlines())
        weights = {"end": best_end(ends), "put back": last["rough"]}
        with replacing(POORER_RESULTS) as path, path.open("w", encoding="utf-8") as file:
            for row in checked_where_poorer(options.data, options.base, weights):
                file.write(json.dumps(row) + "\n")
        return
    sets = [evidence_of(folder, options.base) for folder in options.data]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        ends = pool.map(partial(settled, options.data), range(ORDERS))
        rows = list(track(ends, "settling", total=ORDERS, unit="orders"))
    best = put_back(sets, best_end(rows))
    for told, rough in (("beginning", beginning()), ("settled", best)):
        rows.append(
            {
                "weights": told,
                "mean": round(mean_aim(sets, rough), 4),
                "learned": round(mean_aim(sets, rough, learned=True), 5),
                "scores": {one.data.name: one.scores(rough, learned=True) for one in sets},
                "rough": rough,
            }
        )
    options.output.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(json.dumps(best))


if __name__ == "__main__":
    main()
