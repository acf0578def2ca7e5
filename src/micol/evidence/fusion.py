"""Fusion: one score from all evidence, with weights learned without labels.

A rough sum, the same for every data set, ranks the labels of some documents that nobody has labelled; what
it puts on top serves as pseudo-labels for a logistic regression over the same evidence. The regression keeps
what the evidence agrees on, drops what speaks against it, and stays near the rough weights where the evidence
cannot tell. Nothing here ever reads a document's labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from micol.evidence.gather import FEATURES, SOURCES, TOGETHER, Gathered, sources_among
from micol.settings import AUTO

# Settled on development sets, on none of which results are reported: benchmarks/settle.py.
ROUGH = {
    "named_rarity": 2.5, "in_title": 3.0, "count": 1.0, "nested": -1.0, "miswritten": -1.0, "topicality": 1.0,
    "seldom_titled": -1.0,
    "near_rarity": 2.0, "share": 1.0,
    "depth": 1.0, "below": 1.0,
    "name": 0.5, "text": 1.0, "sentence": 0.5,
    "similar": 0.25, "linked": 0.5,
    "together": 0.5,
}  # fmt: skip
# The most labels of a practice document that a source or witness names as its best ones.
NAMED_BEST = 3
RIDGE = 0.005
# Evidence that can only speak for a label: a negative weight means that it does not help, so it is left out.
SPEAKS_FOR = ("depth", "below", "name", "text", "sentence", "similar", "linked", "share", "together")
# Witnesses, by whose agreement scores are calibrated.
WITNESSES = (
    ("named in the text", "nearly named"),
    ("meaning of the whole", "best sentence"),
    ("similar documents", "linked documents"),
)
# All of them read the same text, so half of what they say, they say together.
OF_ITS_OWN = 0.5
# An opinion nearer to nothing than so many standard errors is none.
SURE = 3.0
OPINION_RIDGE = 1e-5


@dataclass(frozen=True)
class Fusion:
    """A weight for each feature that the model looks at, and how a score becomes a probability."""

    weights: np.ndarray
    intercept: float
    slope: float
    shift: float
    rejected: tuple[str, ...] = ()
    # What the probabilities of a document add up to, in the mean; a model of an earlier version does not say.
    labels_per_document: float = 0.0

    @property
    def features(self) -> tuple[str, ...]:
        return FEATURES[: len(self.weights)]

    @property
    def sources(self) -> dict[str, tuple[str, ...]]:
        return sources_among(self.features)

    def weight(self, feature: str) -> float:
        return float(self.weights[FEATURES.index(feature)])

    def logits(self, values: np.ndarray) -> np.ndarray:
        logits: np.ndarray = values @ self.weights + self.intercept
        return logits

    def probabilities(self, values: np.ndarray) -> np.ndarray:
        return sigmoid(self.slope * self.logits(values) + self.shift)

    def contributions(self, values: np.ndarray) -> dict[str, float]:
        """What each source adds to the score of one pair."""
        parts = values * self.weights
        return {source: float(parts[columns_of(names)].sum()) for source, names in self.sources.items()}

    def told(self) -> list[str]:
        """The sources, each with the weights of its features."""
        lines = []
        for source, names in self.sources.items():
            weights = {name: self.weight(name) for name in names}
            if any(weights.values()):
                shown = ", ".join(f"{name} {weight:+.2f}" for name, weight in weights.items() if weight)
                lines.append(f"evidence: {source} ({shown})")
            elif source in self.rejected:
                lines.append(f"left out: {source}, which spoke against what the rest agrees on")
            else:
                lines.append(f"silent: {source}, which has nothing to say of these documents")
        features = [name for name in self.rejected if name not in SOURCES]
        lines += [f"left out: {name}, whose weight would be negative" for name in features]
        if self.labels_per_document:
            lines.append(f"scores of a document's labels add up to {self.labels_per_document:.1f}")
        return lines

    def as_dict(self) -> dict[str, Any]:
        return {
            "weights": {
                name: float(weight) for name, weight in zip(self.features, self.weights, strict=True)
            },
            "intercept": self.intercept,
            "slope": self.slope,
            "shift": self.shift,
            "rejected": list(self.rejected),
            "labels_per_document": self.labels_per_document,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Fusion:
        # A model of an earlier version has no weight for what was not looked at then.
        known = stored["weights"]
        looked_at = [name for name in FEATURES if name != TOGETHER or name in known]
        weights = np.array([known.get(name, 0.0) for name in looked_at], np.float32)
        return cls(
            weights,
            stored["intercept"],
            stored["slope"],
            stored["shift"],
            tuple(stored["rejected"]),
            stored.get("labels_per_document", 0.0),
        )


def learn(
    practice: Gathered,
    without: Sequence[str] = (),
    hierarchy: str = AUTO,
    labels_per_document: float = 0,
) -> Fusion:
    """Weights and calibration from the evidence about unlabelled documents.

    `without` names sources to leave out, for ablations; the others are the settings of those names.
    """
    features, places = practice.features, places_left_out(practice.untagged, hierarchy)
    at_odds = [
        source
        for source in sources_among(features)
        if source not in without and not agrees(practice, source, places)
    ]
    left_out = [*places, *(name for source in (*without, *at_odds) for name in SOURCES[source])]
    rough = rough_weights(features, left_out)
    # Of what the rough sum puts on top only the first is sure enough to learn from.
    right = on_top(practice, practice.values @ rough, most=1)
    scale = practice.values.std(axis=0) + 1e-6
    # What is silent here, such as depth among labels without a hierarchy, has no weight.
    used = np.array([name not in left_out for name in features]) & practice.values.any(axis=0)
    rejected = list(at_odds)
    # What the user knows is not put to the test.
    to_prove = [name for name in SPEAKS_FOR if name != "below" or hierarchy == AUTO]
    while True:
        columns = np.flatnonzero(used)
        found = logistic(
            practice.values[:, columns] / scale[columns],
            right.astype(float),
            RIDGE,
            towards=rough[columns] * scale[columns],
        )
        against = columns[found[:-1] < 0]
        worst = [column for column in against if features[column] in to_prove]
        if not worst:
            break
        rejected += [features[column] for column in worst]
        used[worst] = False
    weights = np.zeros(len(features), np.float32)
    weights[columns] = found[:-1] / scale[columns]
    # One label a document cannot show what speaks for further ones, above it: that keeps its rough weight, on
    # the scale of what is learned.
    below = FEATURES.index("below")
    weights[below] = 0.0
    if used[below]:
        others = np.arange(len(features)) != below
        spreads = [(practice.values[:, others] @ some[others]).std() for some in (weights, rough)]
        weights[below] = rough[below] * spreads[0] / max(spreads[1], 1e-9)
    logits = practice.values @ weights + found[-1]
    slope, shift = logistic(logits[:, None].astype(float), agreement(practice.untagged, rough), 0.0)
    slope = max(float(slope), 1e-3)
    if labels_per_document:
        # How many are right is told, so agreement is asked only how steeply the odds rise.
        shift = shift_to_mean(slope * logits, labels_per_document * practice.documents / len(logits))
    sums = float(sigmoid(slope * logits + shift).sum() / practice.documents)
    return Fusion(weights, float(found[-1]), slope, float(shift), tuple(rejected), sums)


def rough_weights(features: Sequence[str], left_out: Sequence[str] = ()) -> np.ndarray:
    return np.array([0.0 if name in left_out else ROUGH.get(name, 0.0) for name in features], np.float32)


def agrees(practice: Gathered, source: str, places: Sequence[str]) -> bool:
    """Whether a source says more for the labels that all others put on top than for the rest.

    `places` are those in the hierarchy that do not count.
    """
    if source in ("nearly named", "place in the hierarchy"):
        # Near names make candidates of labels that nothing else speaks for, so all others seem to be against
        # them; the signs of the weights tell more. Which place counts is asked of its own.
        return True
    columns, features = columns_of(SOURCES[source]), practice.features
    others = on_top(practice, practice.values @ rough_weights(features, [*places, *SOURCES[source]]))
    said = practice.values[:, columns] @ rough_weights(features)[columns]
    if source == "read together":
        # Only what the others put high up is read: what is not would agree with them by that alone.
        read = above_lowest(practice, said)
        others, said = others[read], said[read]
    if not said.any() or others.all() or not others.any():
        return True  # it says nothing, or there is nothing to compare
    return bool(said[others].mean() > said[~others].mean())


def above_lowest(gathered: Gathered, scores: np.ndarray) -> np.ndarray:
    """Which pairs have more than the lowest score of their document."""
    lowest = np.full(gathered.documents, np.inf)
    np.minimum.at(lowest, gathered.rows, scores)
    above: np.ndarray = scores > lowest[gathered.rows]
    return above


def places_left_out(practice: Gathered, hierarchy: str = AUTO) -> tuple[str, ...]:
    """Which of the two places in the hierarchy do not count.

    Where people give special labels alone, that is what is named below a label; where they give the general
    ones as well, depth. Where that cannot be told, both count.
    """
    if hierarchy != AUTO:
        return ("below",) if hierarchy == "special" else ("depth",)
    if not practice.values[:, FEATURES.index("depth")].any():
        return ("below",)  # there is no hierarchy worth the name
    opinions = opinions_of_depth(practice)
    if all(opinion > SURE for opinion in opinions):
        return ("below",)
    return ("depth",) if all(opinion < -SURE for opinion in opinions) else ()


def opinions_of_depth(practice: Gathered) -> list[float]:
    """How much rather meaning, and similar documents, put the deeper of equally named labels on top, in
    standard errors.

    Linked documents are not asked: many documents have none, and their silence would count as an opinion.
    """
    depth = practice.values[:, FEATURES.index("depth")]
    named = practice.values[:, FEATURES.index("named")] > 0
    rough = rough_weights(practice.features)
    by_name, by_meaning, _ = (
        columns_of([name for source in sources for name in SOURCES[source]]) for sources in WITNESSES
    )
    seen = np.stack([practice.values[:, by_name] @ rough[by_name], depth], axis=1)[named]
    opinions = []
    for columns in (by_meaning, columns_of(SOURCES["similar documents"])):
        top = on_top(practice, practice.values[:, columns] @ rough[columns])[named]
        weights = logistic(seen, top.astype(float), OPINION_RIDGE)
        opinions.append(float(weights[1] / standard_errors(seen, weights, OPINION_RIDGE)[1]))
    return opinions


def agreement(practice: Gathered, rough: np.ndarray) -> np.ndarray:
    """The probability that each pair is right, judged by how three witnesses agree.

    Each names its best labels. How often two and all three of them name the same tells how many pairs are
    right and how reliable each witness is (the method of moments for three voters whose errors are
    independent), and so what their votes are worth. As their errors are not independent, votes count for
    less than that; how many pairs are right stays.
    """
    votes = []
    for sources in WITNESSES:
        columns = columns_of([name for source in sources for name in SOURCES[source]])
        scores = practice.values[:, columns] @ rough[columns]
        votes.append(on_top(practice, scores) & (scores > 0))
    cast = np.stack(votes, axis=1).astype(float)
    usual = cast.mean(axis=0)
    away = cast - usual
    pairwise = away.T @ away / len(cast)
    (ab, ac, bc), abc = (pairwise[0, 1], pairwise[0, 2], pairwise[1, 2]), away.prod(axis=1).mean()
    if min(ab, ac, bc, abc) <= 0:
        # One of them is silent or at odds with the others: a plain majority is all there is.
        return (cast.sum(axis=1) >= 2).astype(float)
    skew = abc / np.sqrt(ab * ac * bc)
    prior = (1 - skew / np.sqrt(4 + skew**2)) / 2
    variance = prior * (1 - prior)
    power = np.sqrt(np.array([ab * ac / bc, ab * bc / ac, ac * bc / ab]) / variance)
    if_right = np.clip(usual + (1 - prior) * power, 1e-4, 1 - 1e-4)
    if_wrong = np.clip(usual - prior * power, 1e-4, 1 - 1e-4)
    worth = cast @ np.log(if_right / if_wrong) + (1 - cast) @ np.log((1 - if_right) / (1 - if_wrong))
    odds = OF_ITS_OWN * worth
    return sigmoid(odds + shift_to_mean(odds, prior))


def shift_to_mean(odds: np.ndarray, mean: float) -> float:
    """What to add to all odds so that the mean probability is as wanted, by bisection."""
    low, high = -100.0, 100.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if sigmoid(odds + middle).mean() < mean else (low, middle)
    return low


def columns_of(names: Sequence[str]) -> np.ndarray:
    return np.array([FEATURES.index(name) for name in names])


def on_top(gathered: Gathered, scores: np.ndarray, most: int = NAMED_BEST) -> np.ndarray:
    """Which pairs are among the best of their document: a few, and not more than a third of them.

    Of equal ones the first come first.
    """
    rows = gathered.rows
    begins = np.searchsorted(rows, np.arange(gathered.documents + 1))
    pairs = np.diff(begins)
    counts, some = np.clip(pairs // 3, 1, most), np.flatnonzero(pairs)
    left, best = scores.astype(float), np.full(gathered.documents, -np.inf)
    top = np.zeros(len(rows), bool)
    # Sorting all of them would take many times as long.
    for number in range(most if len(some) else 0):
        best[some] = np.maximum.reduceat(left, begins[some])
        highest = np.flatnonzero((left == best[rows]) & (counts[rows] > number))
        first = highest[np.diff(rows[highest], prepend=-1) > 0]
        top[first] = True
        left[first] = -np.inf
    return top


def logistic(
    features: np.ndarray,
    targets: np.ndarray,
    ridge: float,
    towards: np.ndarray | None = None,
    steps: int = 50,
) -> np.ndarray:
    """Logistic regression by Newton's method: a weight for each feature, then the intercept.

    Targets may be probabilities. The ridge, a share of the number of rows, draws the weights towards given
    ones, or zero; not the intercept.
    """
    rows = np.concatenate([features, np.ones((len(features), 1))], axis=1)
    penalty = np.full(rows.shape[1], ridge * len(rows))
    penalty[-1] = 1e-6
    centre = np.zeros(rows.shape[1])
    if towards is not None:
        centre[:-1] = towards

    def loss(weights: np.ndarray) -> float:
        logits = rows @ weights
        off = weights - centre
        return float(np.logaddexp(0, logits).sum() - targets @ logits + (penalty * off**2).sum() / 2)

    weights = centre.copy()
    lowest = loss(weights)
    for _ in range(steps):
        found = sigmoid(rows @ weights)
        gradient = rows.T @ (found - targets) + penalty * (weights - centre)
        curvature = np.maximum(found * (1 - found), 1e-9)
        step = np.linalg.solve((rows * curvature[:, None]).T @ rows + np.diag(penalty), gradient)
        # A full step may overshoot where nearly all are right already.
        while (now := loss(weights - step)) > lowest and np.abs(step).max() > 1e-9:
            step /= 2
        weights, lowest = weights - step, min(now, lowest)
        if np.abs(step).max() < 1e-6:
            break
    return weights


def standard_errors(features: np.ndarray, weights: np.ndarray, ridge: float) -> np.ndarray:
    """Of the weights that `logistic` has found, the intercept's last."""
    rows = np.concatenate([features, np.ones((len(features), 1))], axis=1)
    found = sigmoid(rows @ weights)
    penalty = np.diag(np.full(rows.shape[1], ridge * len(rows) + 1e-9))
    curvature = (rows * (found * (1 - found))[:, None]).T @ rows + penalty
    errors: np.ndarray = np.sqrt(np.diag(np.linalg.inv(curvature)))
    return errors


def sigmoid(values: np.ndarray) -> np.ndarray:
    positive: np.ndarray = 1 / (1 + np.exp(-np.clip(values, -60, 60)))
    return positive
