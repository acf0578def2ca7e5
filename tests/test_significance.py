"""The tests agree with scipy.stats; the bootstrap is fair, seeded, and the same in batches of any size."""

import math

import numpy as np
import pytest
import scipy.stats

from micol import MicolError, significance
from micol.evaluation import Gains
from micol.significance import Bootstrap, Comparison, SeedTest, compare, paired_bootstrap, seed_test, stars


@pytest.mark.parametrize("sizes", [(3, 3), (2, 5), (10, 4)])
def test_t_test_agrees_with_scipy(sizes):
    random = np.random.default_rng(sum(sizes))
    ours, theirs = random.normal(0.5, 0.01, sizes[0]), random.normal(0.49, 0.02, sizes[1])
    expected = scipy.stats.ttest_ind(ours, theirs)
    measured = seed_test(ours, theirs)
    assert measured.name == "t-test"
    assert measured.statistic == pytest.approx(expected.statistic, rel=1e-12)
    assert measured.p == pytest.approx(expected.pvalue, rel=1e-12)


def test_z_test_agrees_with_scipy():
    runs = [0.52, 0.55, 0.51]
    z = (np.mean(runs) - 0.5) / scipy.stats.sem(runs)
    expected = 2 * scipy.stats.norm.sf(abs(z))
    assert seed_test(runs, [0.5]) == pytest.approx(("Z-test", z, expected))
    assert seed_test([0.5], runs) == pytest.approx(("Z-test", -z, expected))


def test_single_runs_have_no_seeds_to_test():
    assert seed_test([0.5], [0.4]) is None
    with pytest.raises(MicolError, match="at least two runs"):
        significance.t_test([0.5], [0.4, 0.3])
    with pytest.raises(MicolError, match="at least two runs"):
        significance.z_test([0.5], 0.4)


@pytest.mark.parametrize("theirs", [[0.4], [0.4, 0.4]])
def test_runs_without_spread_test_nothing(theirs):
    test = seed_test([0.5, 0.5], theirs)
    assert math.isnan(test.p)
    # The documents still tell whether the difference is chance.
    assert Comparison(0.5, 0.4, Bootstrap(0.1, 0.05, 0.15, 0.001), test).stars == "**"


def test_stars_as_in_the_paper():
    assert [stars(p) for p in (0.5, 0.05, 0.049, 0.01, 0.009, math.nan)] == ["", "", "*", "*", "**", ""]
    comparison = Comparison(0.5, 0.4, Bootstrap(0.1, 0.0, 0.2, 0.001), SeedTest("t-test", 2.0, 0.03))
    assert comparison.p == 0.03
    assert comparison.stars == "*"


def system(random, documents, mean, attainable=None):
    gained = (random.random(documents) < mean).astype(float)
    return {"P@1": Gains(gained, np.ones(documents) if attainable is None else attainable)}


def test_bootstrap_agrees_with_scipy_and_the_paired_t_test():
    random = np.random.default_rng(1)
    ours, theirs = system(random, 400, 0.52), system(random, 400, 0.45)
    measured = paired_bootstrap(ours, theirs, seed=3)["P@1"]
    differences = ours["P@1"].gained - theirs["P@1"].gained
    assert measured.difference == pytest.approx(differences.mean())
    interval = scipy.stats.bootstrap(
        (differences,), np.mean, n_resamples=10_000, method="percentile", rng=np.random.default_rng(0)
    ).confidence_interval
    assert (measured.low, measured.high) == pytest.approx((interval.low, interval.high), abs=0.004)
    assert measured.p == pytest.approx(
        scipy.stats.ttest_rel(*(s["P@1"].gained for s in (ours, theirs))).pvalue, abs=0.01
    )


def test_bootstrap_of_a_ratio_resamples_both_sums():
    random = np.random.default_rng(2)
    attainable = random.uniform(1, 9, 300)
    ours = {"PSP@1": Gains(attainable * (random.random(300) < 0.6), attainable)}
    theirs = {"PSP@1": Gains(attainable * (random.random(300) < 0.5), attainable)}
    measured = paired_bootstrap(ours, theirs, resamples=4000, seed=0)["PSP@1"]
    # The same, one resample at a time.
    drawn = np.random.default_rng(0).integers(300, size=(4000, 300), dtype=np.int32)
    slow = [
        (ours["PSP@1"].gained[rows].sum() - theirs["PSP@1"].gained[rows].sum()) / attainable[rows].sum()
        for rows in drawn
    ]
    assert measured.difference == pytest.approx(ours["PSP@1"].score - theirs["PSP@1"].score)
    assert [measured.low, measured.high] == pytest.approx(
        np.quantile(slow, [0.025, 0.975]).tolist(), abs=1e-12
    )


def test_bootstrap_is_the_same_for_a_seed_and_any_batch(monkeypatch):
    random = np.random.default_rng(1)
    ours, theirs = system(random, 50, 0.6), system(random, 50, 0.4)
    once = paired_bootstrap(ours, theirs, resamples=500, seed=7)
    monkeypatch.setattr(significance, "BATCH_ENTRIES", 50 * 7)
    assert paired_bootstrap(ours, theirs, resamples=500, seed=7) == once
    assert paired_bootstrap(ours, theirs, resamples=500, seed=8) != once


def test_equal_systems_do_not_differ():
    ours = system(np.random.default_rng(0), 40, 0.5)
    assert paired_bootstrap(ours, ours, resamples=200)["P@1"] == Bootstrap(0.0, 0.0, 0.0, 1.0)


def test_bootstrap_rejects_as_often_as_it_should():
    """Two systems of equal quality: p < .05 in about one of twenty data sets."""
    random = np.random.default_rng(5)
    rejected = sum(
        paired_bootstrap(system(random, 60, 0.5), system(random, 60, 0.5), resamples=400, seed=i)["P@1"].p
        < 0.05
        for i in range(300)
    )
    assert 4 <= rejected <= 32


def test_runs_are_averaged_document_by_document():
    attainable = np.ones(2)
    ours = [
        {"P@1": Gains(np.array([1.0, 0.0]), attainable)},
        {"P@1": Gains(np.array([1.0, 1.0]), attainable)},
    ]
    theirs = [{"P@1": Gains(np.array([0.0, 0.0]), attainable)}]
    comparison = compare(ours, theirs, resamples=100)["P@1"]
    assert (comparison.ours, comparison.theirs) == (0.75, 0.0)
    assert comparison.bootstrap.difference == 0.75
    assert comparison.seeds.name == "Z-test"
