"""Is one system better than another? The paper's tests over seeds, and a paired bootstrap over documents."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from micol.errors import MicolError
from micol.evaluation import Gains
from micol.progress import Progress

RESAMPLES = 10_000
# Counts of one batch of resamples: 2 million doubles are 16 MB.
BATCH_ENTRIES = 2_000_000


class SeedTest(NamedTuple):
    """A test over the scores of several runs; NaN where the runs are all alike, so that nothing is tested."""

    name: str  # "t-test" or "Z-test"
    statistic: float
    p: float


class Bootstrap(NamedTuple):
    """What resampling the documents says of a difference of two scores."""

    difference: float
    low: float  # of the 95 % interval
    high: float
    p: float


@dataclass(frozen=True)
class Comparison:
    """One measure of two systems, each a mean over its runs."""

    ours: float
    theirs: float
    bootstrap: Bootstrap
    seeds: SeedTest | None  # None where neither system has more than one run

    @property
    def p(self) -> float:
        """The paper's test where there are runs to test, the bootstrap elsewhere."""
        return self.bootstrap.p if self.seeds is None or math.isnan(self.seeds.p) else self.seeds.p

    @property
    def stars(self) -> str:
        return stars(self.p)


def stars(p: float) -> str:
    """As in the paper: * for p < .05, ** for p < .01."""
    return "**" if p < 0.01 else "*" if p < 0.05 else ""


def t_test(ours: Sequence[float], theirs: Sequence[float]) -> SeedTest:
    """Two-tailed unpaired t-test (Student's, equal variances) of the scores of two systems' runs."""
    from scipy.special import stdtr

    freedom = len(ours) + len(theirs) - 2
    if min(len(ours), len(theirs)) < 2:
        raise MicolError("a t-test needs at least two runs of each system")
    pooled = (np.var(ours, ddof=1) * (len(ours) - 1) + np.var(theirs, ddof=1) * (len(theirs) - 1)) / freedom
    error = math.sqrt(pooled * (1 / len(ours) + 1 / len(theirs)))
    statistic = _over(float(np.mean(ours) - np.mean(theirs)), error)
    return SeedTest("t-test", statistic, float(2 * stdtr(freedom, -abs(statistic))))


def z_test(runs: Sequence[float], constant: float) -> SeedTest:
    """Two-tailed Z-test of a system's runs against the one score of a deterministic system."""
    from scipy.special import ndtr

    if len(runs) < 2:
        raise MicolError("a Z-test needs at least two runs of the system that is not deterministic")
    error = float(np.std(runs, ddof=1)) / math.sqrt(len(runs))
    statistic = _over(float(np.mean(runs)) - constant, error)
    return SeedTest("Z-test", statistic, float(2 * ndtr(-abs(statistic))))


def _over(difference: float, error: float) -> float:
    # Runs that agree to the last digits of a double have no spread to measure a difference by.
    return difference / error if error > 1e-12 else math.nan


def seed_test(ours: Sequence[float], theirs: Sequence[float]) -> SeedTest | None:
    """The paper's choice: t-test between runs, Z-test where one system has a single run, None where both."""
    if len(ours) > 1 and len(theirs) > 1:
        return t_test(ours, theirs)
    if len(ours) > 1:
        return z_test(ours, theirs[0])
    if len(theirs) > 1:
        test = z_test(theirs, ours[0])
        return test._replace(statistic=-test.statistic)
    return None


def paired_bootstrap(
    ours: Mapping[str, Gains], theirs: Mapping[str, Gains], *, resamples: int = RESAMPLES, seed: int = 0
) -> dict[str, Bootstrap]:
    """Draws documents with replacement, the same for both systems, and looks at the difference of scores.

    p is two-tailed: how often a resampled difference strays from the observed one by at least the observed
    one, that is, how often chance alone would make a difference of this size (Efron and Tibshirani 1993).
    """
    names = list(ours)
    documents = len(ours[names[0]].gained)
    # What each document adds to the difference of a measure, and to what was attainable in it.
    ahead = np.stack([ours[name].gained - theirs[name].gained for name in names], axis=1)
    columns = np.hstack([ahead, np.stack([ours[name].attainable for name in names], axis=1)])
    differences = np.empty((resamples, len(names)))
    batch = max(1, min(resamples, BATCH_ENTRIES // documents))
    random = np.random.default_rng(seed)
    with Progress("paired bootstrap", resamples, "resamples") as progress:
        for start in range(0, resamples, batch):
            size = min(batch, resamples - start)
            drawn = random.integers(documents, size=(size, documents), dtype=np.int32)
            times_drawn = np.stack([np.bincount(row, minlength=documents) for row in drawn])
            differences[start : start + size] = _differences(times_drawn.astype(np.float64) @ columns)
            progress.advance(size)
    observed = _differences(columns.sum(0))
    strays = (np.abs(differences - observed) >= np.abs(observed) - 1e-12).sum(0)
    low, high = np.quantile(differences, (0.025, 0.975), axis=0)
    return {
        name: Bootstrap(
            float(observed[at]), float(low[at]), float(high[at]), float((1 + strays[at]) / (1 + resamples))
        )
        for at, name in enumerate(names)
    }


def _differences(sums: np.ndarray) -> np.ndarray:
    """Differences of scores from sums over documents, [..., 2 x measures] -> [..., measures]."""
    measures = sums.shape[-1] // 2
    return sums[..., :measures] / sums[..., measures:]


def mean_gains(runs: Sequence[Mapping[str, Gains]]) -> dict[str, Gains]:
    """The gains of a system's runs, averaged document by document; what is attainable is the same in all."""
    return {
        name: Gains(np.mean([run[name].gained for run in runs], axis=0), runs[0][name].attainable)
        for name in runs[0]
    }


def compare(
    ours: Sequence[Mapping[str, Gains]],
    theirs: Sequence[Mapping[str, Gains]],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, Comparison]:
    """Every measure of two systems, each given as its runs over the same documents."""
    our_mean, their_mean = mean_gains(ours), mean_gains(theirs)
    bootstrap = paired_bootstrap(our_mean, their_mean, resamples=resamples, seed=seed)
    return {
        name: Comparison(
            our_mean[name].score,
            their_mean[name].score,
            bootstrap[name],
            seed_test([run[name].score for run in ours], [run[name].score for run in theirs]),
        )
        for name in our_mean
    }
