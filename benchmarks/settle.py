"""Settles the rough weights of the fused evidence on development sets, none of which is reported on.

    python benchmarks/development_sets.py -o DEV --mesh LABELS --gcloud FOLDER
    python benchmarks/settle.py DEV/wordnet DEV/meshnotes DEV/foldoc DEV/gcloud DEV/npm [--base FOLDER]

The weights begin as published for the plain fused sum (rarity of the name 2.5, in the title 1.5, count 0.5),
at one for all other evidence, and at minus one for what can only speak against a label. One at a time, or all
of the meaning or of the neighbours together, is halved or doubled, and stays so where the rough sum gains a
twentieth of a point in the mean over the sets of all measures that are reported, until no change does; those
that reward rare labels count as much as the others. The weight of rarity is the unit of all and stays. As the
end depends on the order of the changes, eleven random orders are tried, as many at a time as there are
processors; of each weight the median of the eleven ends is kept. What settling is worth on data that it has
not seen is told by leaving out each set in turn: the same on the other sets, then measured on that one.
Vectors are those of the untrained encoder, and no document is tagged: tags share the weight of what
neighbours name. The evidence of each set is kept beside its documents, so that a second run begins at once.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from best import SHOWN, Data
from micol.evaluation import Gold, LabelCounts
from micol.evidence import fusion
from micol.evidence.gather import TOGETHER, Gathered
from micol.files import replacing
from micol.progress import say, track
from poorer import untrained_encoder

RESULTS = Path(__file__).parent / "results" / "settle.jsonl"
PUBLISHED = {"named_rarity": 2.5, "in_title": 1.5, "count": 0.5}
SPEAK_AGAINST = ("nested", "miswritten", "seldom_titled")
UNIT = "named_rarity"
BEGINNING = {
    name: PUBLISHED.get(name, -1.0 if name in SPEAK_AGAINST else 1.0)
    for name in fusion.ROUGH
    if name != TOGETHER
}
TOGETHER_CHANGED = (("name", "text", "sentence"), ("similar", "linked"))
LEAST_GAIN = 0.0005
FACTORS = (2.0, 0.5)
ORDERS = 11
# A weight that hardly matters must not wander off.
LEAST, MOST = 1 / 16, 16.0
DEEPEST = 5
# Half as many documents to practise on as training has.
PRACTICE = 2_500


@dataclass(frozen=True)
class Measures:
    """Judges rankings of the same pairs many times over: what does not change with the scores is kept."""

    begins: np.ndarray  # of each document's pairs
    right: np.ndarray  # of each pair: whether the document has the label,
    reward: np.ndarray  # and what a rare one counts for
    ideal: np.ndarray  # [documents, DEEPEST]: the best attainable DCG
    most_reward: np.ndarray  # [DEEPEST]: the best attainable sums of rewards

    @classmethod
    def of(cls, data: Data, pairs: Gathered) -> Measures:
        gold = Gold.of(data.test)
        if gold.ids != data.test.ids:
            raise ValueError(f"{data.name}: every test document must have a label")
        names = gold.labels.to_pylist()
        rewards = LabelCounts.of(data.train).inverse_propensities(names)
        places = {identifier: place for place, identifier in enumerate(data.labels.ids)}
        of_label = np.zeros(len(places))
        for name, reward in zip(names, rewards, strict=True):
            if name in places:
                of_label[places[name]] = reward
        keys = [
            document * len(places) + places[label]
            for document, labels in enumerate(data.test.gold)
            for label in labels
            if label in places
        ]
        attainable = np.zeros((len(gold.ids), DEEPEST))
        for document, (start, end) in enumerate(zip(gold.indptr, gold.indptr[1:], strict=False)):
            some = np.sort(rewards[gold.codes[start:end]])[::-1][:DEEPEST]
            attainable[document, : len(some)] = some
        return cls(
            np.searchsorted(pairs.rows, np.arange(pairs.documents + 1)),
            np.isin(pairs.keys, keys),
            of_label[pairs.keys % pairs.labels],
            np.cumsum((attainable > 0) / discounts(), axis=1),
            np.cumsum(attainable.sum(axis=0)),
        )

    def scores(self, scores: np.ndarray) -> dict[str, float]:
        """As `micol.evaluate` has them."""
        hits, rewards = np.zeros((2, len(self.begins) - 1, DEEPEST))
        left = scores.astype(np.float64)
        some = np.flatnonzero(np.diff(self.begins))
        rows = np.repeat(np.arange(len(hits)), np.diff(self.begins))
        best = np.full(len(hits), -np.inf)
        for place in range(DEEPEST):
            best[some] = np.maximum.reduceat(left, self.begins[some])
            highest = np.flatnonzero((left == best[rows]) & np.isfinite(left))
            first = highest[np.diff(rows[highest], prepend=-1) > 0]
            hits[rows[first], place] = self.right[first]
            rewards[rows[first], place] = self.reward[first] * self.right[first]
            left[first] = -np.inf
        gains = np.cumsum(hits / discounts(), axis=1) / self.ideal
        found = {f"P@{k}": hits[:, :k].mean() for k in (1, 3, 5)}
        found |= {f"NDCG@{k}": gains[:, k - 1].mean() for k in (3, 5)}
        found |= {f"PSP@{k}": rewards[:, :k].sum() / self.most_reward[k - 1] for k in (1, 5)}
        return {name: float(found[name]) for name in SHOWN}


def discounts() -> np.ndarray:
    return np.log2(np.arange(DEEPEST) + 2)


@dataclass(frozen=True)
class Evidence:
    """A development set with the evidence about its test documents, and about those to practise on."""

    data: Data
    tested: Gathered
    practice: Gathered

    @cached_property
    def measures(self) -> Measures:
        return Measures.of(self.data, self.tested)

    @cached_property
    def places_left_out(self) -> tuple[str, ...]:
        """As the weights decide that settling begins with."""
        use(BEGINNING)
        return fusion.places_left_out(self.practice)

    def rough(self, rough: Mapping[str, float]) -> dict[str, float]:
        """The scores of the rough sum."""
        left_out = self.places_left_out
        use(rough)
        weights = fusion.rough_weights(self.tested.features, left_out)
        return self.measures.scores(self.tested.values @ weights)

    def learned(self, rough: Mapping[str, float]) -> dict[str, float]:
        """The scores of the weights that are learned from the rough ones."""
        use(rough)
        return self.measures.scores(self.tested.values @ fusion.learn(self.practice).weights)


def use(rough: Mapping[str, float]) -> None:
    fusion.ROUGH.clear()
    fusion.ROUGH.update(rough)


@cache
def evidence_of(folder: Path, base: str | None = None) -> Evidence:
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
        arrays |= {name: array.astype(np.float16) for name, array in arrays.items() if "values" in name}
        with replacing(kept) as path, path.open("wb") as file:
            np.savez(file, **arrays)
    with np.load(kept) as stored:
        tested, practice = (as_gathered(stored, name, len(data.labels)) for name in ("tested", "practice"))
    return Evidence(data, tested, practice)


def gathered(data: Data, ranker: Any) -> Evidence:
    from micol.evidence.fused import practice

    fused = fused_around(data, ranker)
    tested = fused.gather(list(data.test), ranker).untagged
    practised = practice(fused.memory, fused.side, ranker, 0, most=PRACTICE).untagged
    return Evidence(data, tested, practised)


def fused_around(data: Data, ranker: Any) -> Any:
    """What a model of the default recipe knows whose encoder is this one."""
    from micol.classify import Classifier
    from micol.settings import resolve

    return Classifier.build(data.labels, ranker, resolve("bi", "auto", "best", {}), {}, data.train).fused


def as_gathered(stored: Mapping[str, Any], name: str, labels: int) -> Gathered:
    keys, values, documents = (stored[f"{name}_{part}"] for part in ("keys", "values", "documents"))
    return Gathered.without_texts(keys, values.astype(np.float32), int(documents), labels)


def mean_of(sets: Sequence[Evidence], rough: Mapping[str, float]) -> float:
    return float(np.mean([mean_of_measures(one.rough(rough)) for one in sets]))


def mean_of_measures(scores: Mapping[str, float]) -> float:
    """Measures that reward rare labels count as much as those that do not."""
    halves = [[name for name in SHOWN if name.startswith("PS") == rewarding] for rewarding in (False, True)]
    return float(np.mean([np.mean([scores[name] for name in half]) for half in halves]))


def settled(folders: Sequence[Path], work: tuple[str | None, int]) -> dict[str, Any]:
    """The weights at which no change helps any more, without a set and by an order of the changes."""
    without, order = work
    sets = [evidence_of(folder) for folder in folders if folder.name != without]
    generator = np.random.default_rng(order)
    rough = BEGINNING
    single = [(name,) for name in rough if name != UNIT]
    changes = [(names, factor) for names in (*TOGETHER_CHANGED, *single) for factor in FACTORS]
    best, improved = mean_of(sets, rough), True
    while improved:
        improved = False
        for number in generator.permutation(len(changes)):
            names, factor = changes[number]
            changed = {**rough, **{name: rough[name] * factor for name in names}}
            if all(LEAST <= abs(changed[name]) <= MOST for name in names):
                found = mean_of(sets, changed)
                if found >= best + LEAST_GAIN:
                    rough, best, improved = changed, found, True
    return {"without": without, "order": order, "mean": round(best, 4), "rough": rough}


def median_of(ends: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    return {name: float(np.median([end["rough"][name] for end in ends])) for name in BEGINNING}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, nargs="+")
    parser.add_argument("--base")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    sets = {folder.name: evidence_of(folder, options.base) for folder in options.data}
    work = list(product((None, *sets), range(ORDERS)))
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(partial(settled, options.data), work)
        rows = list(track(found, "settling", total=len(work), unit="orders"))
    ends = {name: [row for row in rows if row["without"] == name] for name in (None, *sets)}
    weights = median_of(ends[None])
    told = {
        "as they begin": dict.fromkeys(sets, BEGINNING),
        "settled on the others": {name: median_of(ends[name]) for name in sets},
        "settled": dict.fromkeys(sets, weights),
    }
    for weighing, rough in told.items():
        scores = {name: rounded(one.learned(rough[name])) for name, one in sets.items()}
        rows.append({"weights": weighing, "scores": scores, "rough": rough})
    with replacing(options.output) as path:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(json.dumps(weights))


def rounded(scores: Mapping[str, float]) -> dict[str, float]:
    return {name: round(score, 4) for name, score in scores.items()}


if __name__ == "__main__":
    main()
