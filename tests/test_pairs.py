"""Reachability and drawing against brute force; exact distributions of every method and internal branch."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from brute_force import PlainNetwork, node_first, rarity
from micol import canon, rule
from micol.errors import UsageError
from micol.metapath import PAPER_PATHS, MetaPath
from micol.pairs import METHODS, draw_pairs
from micol.rule import LIMITS, Limits
from random_networks import PAPER_STEPS, network_of, paths, records, text_of

LIST_ALWAYS = Limits(listed=10**9)
PROPOSE = Limits(listed=0, trials=10**6, most=10**6)
COUNT_BACK = PROPOSE._replace(frontier=0)
GIVE_UP_AT_ONCE = Limits(listed=0, trials=1, share=10**9, misses=1)
GIVE_UP_SOON = Limits(listed=0, trials=3, share=10**9, misses=3)
EVERY_LIMIT = [LIMITS, LIST_ALWAYS, GIVE_UP_AT_ONCE, GIVE_UP_SOON, Limits(listed=2, frontier=2, misses=3)]


def id_pairs(network, pairs):
    return [(network.ids[a], network.ids[b]) for a, b in zip(pairs.anchor, pairs.positive)]


@settings(max_examples=60, deadline=None)
@given(records())
def test_the_ten_paths_reach_what_the_definition_says(made):
    network, plain = network_of(made), PlainNetwork(made)
    for path in PAPER_PATHS:
        for id in network.ids:
            assert path.reachable(network, id) == plain.reachable([PAPER_STEPS[str(path)]], id)


@settings(max_examples=200, deadline=None)
@given(records(), paths)
def test_chains_meta_graphs_and_unions_reach_what_the_definition_says(made, path):
    network, plain = network_of(made), PlainNetwork(made)
    meta_path = MetaPath(text_of(path))
    for position, id in enumerate(network.ids):
        found = meta_path.reachable_positions(network, position)
        assert list(found) == sorted(set(found))
        assert {network.ids[other] for other in found} == plain.reachable(path, id)


@settings(max_examples=120, deadline=None)
@given(records(), paths, st.sampled_from(METHODS), st.sampled_from(EVERY_LIMIT), st.integers(0, 2**70))
def test_asking_for_more_than_exist_gives_each_pair_once(made, path, method, limits, seed):
    network, plain = network_of(made), PlainNetwork(made)
    existing = plain.pairs(path)
    for n in {len(existing), len(existing) + 1, 10**12}:
        pairs = draw_pairs(network, text_of(path), n, seed, method, limits=limits)
        assert pairs.exhausted
        assert Counter(id_pairs(network, pairs)) == Counter(existing)


@settings(max_examples=100, deadline=None)
@given(records(), paths, st.sampled_from(METHODS), st.sampled_from(EVERY_LIMIT), st.integers(0, 60))
def test_fewer_than_exist_are_distinct_and_come_in_rounds(made, path, method, limits, n):
    network, plain = network_of(made), PlainNetwork(made)
    existing = plain.pairs(path)
    pairs = draw_pairs(network, text_of(path), n, 7, method, limits=limits)
    assert pairs.exhausted == (n >= len(existing))
    drawn = id_pairs(network, pairs)
    assert len(drawn) == len(set(drawn)) == min(n, len(existing))
    assert set(drawn) <= existing
    # Nobody is an anchor for the k-th time before everybody who can be was one k - 1 times.
    times = Counter()
    rounds = []
    for anchor, _ in drawn:
        times[anchor] += 1
        rounds.append(times[anchor])
    assert all(a <= b for a, b in pairwise(rounds))
    partners = Counter(anchor for anchor, _ in existing)
    whole_rounds = max(rounds, default=1) - 1
    assert all(times[anchor] >= min(whole_rounds, partners[anchor]) for anchor in partners)


@settings(max_examples=50, deadline=None)
@given(records(), paths, st.sampled_from(METHODS))
def test_what_an_anchor_draws_does_not_depend_on_the_others_or_on_n(made, path, method):
    network = network_of(made)
    everything = id_pairs(network, draw_pairs(network, text_of(path), 10**6, 3, method))
    half = id_pairs(network, draw_pairs(network, text_of(path), len(everything) // 2, 3, method))
    assert half == everything[: len(half)]
    for position, id in enumerate(network.ids):
        alone = draw_pairs(network, text_of(path), 10**6, 3, method, documents=np.array([position]))
        assert id_pairs(network, alone) == [pair for pair in everything if pair[0] == id]


# Document d shares a rare author with one document and prolific ones with many, some of them both.
UNEVEN = [
    {"id": "d", "authors": ["rare", "b", "c"], "venue": "v", "references": ["x0", "x1", "x2"]},
    {"id": "e", "authors": ["rare"], "venue": "w", "references": ["x0"]},
    *(
        {"id": f"b{n}", "authors": ["b"], "venue": "v" if n < 4 else "w", "references": ["x1", "x2"][: n % 3]}
        for n in range(7)
    ),
    *({"id": f"bc{n}", "authors": ["b", "c"], "venue": "v", "references": ["x1", "x2"]} for n in range(5)),
]
CASES = {
    "PAP": [[("node", "A")]],
    "P->P<-P": [[("link", "P", "->"), ("link", "P", "<-")]],
    "P(AA)P": [[("nodes", "AA")]],
    "P(AV)P": [[("nodes", "AV")]],
    "P->(PP)<-P": [[("links", "PP", "->", "<-")]],
    "PVPAP": [[("node", "V"), ("node", "A")]],
    "PAPVP": [[("node", "A"), ("node", "V")]],
    "PVP(AV)P": [[("node", "V"), ("nodes", "AV")]],
    "PAP|P->P<-P": [[("node", "A")], [("link", "P", "->"), ("link", "P", "<-")]],
    "P(AV)P|PVPAP": [[("nodes", "AV")], [("node", "V"), ("node", "A")]],
}
COPIES, SEEDS = 250, 8


@pytest.fixture(scope="module")
def uneven():
    """Many copies of the uneven corpus in one network: one call draws for the d of each."""
    copies = [
        {field: renamed(value, copy) for field, value in record.items()}
        for copy in range(COPIES)
        for record in UNEVEN
    ]
    return network_of(copies)


def renamed(value, copy):
    return f"{copy}:{value}" if isinstance(value, str) else [renamed(part, copy) for part in value]


def drawn_for_d(network, path, method, limits, place=0):
    """Which document is drawn for each d, in the round `place`."""
    anchors = np.arange(0, len(network.ids), len(UNEVEN))
    drawn = Counter()
    for seed in range(SEEDS):
        pairs = draw_pairs(network, path, (place + 1) * COPIES, seed, method, anchors, limits)
        positives = pairs.positive[place * COPIES :]
        assert len(positives) == COPIES
        drawn.update(network.ids[position].split(":")[1] for position in positives)
    return drawn


def p_value(drawn, chances):
    assert set(drawn) <= set(chances)
    ids = sorted(chances)
    return chisquare([drawn[id] for id in ids], [float(chances[id]) * drawn.total() for id in ids]).pvalue


def uniform_chances(path):
    partners = PlainNetwork(UNEVEN).reachable(CASES[path], "d")
    return dict.fromkeys(partners, 1 / len(partners))


@pytest.mark.parametrize("limits", [LIST_ALWAYS, PROPOSE], ids=["list", "propose"])
@pytest.mark.parametrize("path", CASES)
def test_positives_are_uniform(uneven, path, limits):
    assert p_value(drawn_for_d(uneven, path, "uniform", limits), uniform_chances(path)) > 1e-3


@pytest.fixture
def each_walk_counts(monkeypatch):
    """No chain is short enough to be walked as a set."""
    canon.KEPT.clear()
    monkeypatch.setattr(rule, "FEW_NODES", 0)
    yield
    canon.KEPT.clear()


@pytest.mark.parametrize("limits", [PROPOSE, COUNT_BACK], ids=["ahead", "back"])
@pytest.mark.parametrize("path", ["PVPAP", "PAPVP", "PVP(AV)P", "P(AV)P|PVPAP"])
def test_positives_are_uniform_where_each_walk_counts(uneven, each_walk_counts, path, limits):
    assert p_value(drawn_for_d(uneven, path, "uniform", limits), uniform_chances(path)) > 1e-3


@pytest.mark.parametrize("limits", [LIST_ALWAYS, PROPOSE], ids=["list", "propose"])
def test_a_second_positive_is_uniform_too(uneven, limits):
    assert p_value(drawn_for_d(uneven, "PAP", "uniform", limits, place=1), uniform_chances("PAP")) > 1e-3


def test_drawing_the_node_first_is_not_uniform(uneven):
    assert p_value(drawn_for_d(uneven, "PAP", "node-first", LIMITS), uniform_chances("PAP")) < 1e-9


@pytest.mark.parametrize("limits", [LIMITS, GIVE_UP_AT_ONCE], ids=["propose", "list"])
@pytest.mark.parametrize("path", CASES)
def test_node_first_draws_a_node_then_a_partner(uneven, path, limits):
    rows = PlainNetwork(UNEVEN).shared_nodes(CASES[path], "d", every_letter=False)
    assert p_value(drawn_for_d(uneven, path, "node-first", limits), node_first(rows)) > 1e-3


@pytest.mark.parametrize("limits", [LIMITS, GIVE_UP_AT_ONCE], ids=["propose", "list"])
@pytest.mark.parametrize("path", CASES)
def test_rarity_weighs_partners_by_the_nodes_they_share(uneven, path, limits):
    rows = PlainNetwork(UNEVEN).shared_nodes(CASES[path], "d", every_letter=True)
    assert p_value(drawn_for_d(uneven, path, "rarity", limits), rarity(rows)) > 1e-3


GOLDEN = [
    ("uniform", LIST_ALWAYS, "38-34 2875-2872 1253-1252 2052-2054 1685-1691 3429-3427 3160-3154 465-475"),
    ("uniform", PROPOSE, "38-30 2875-2877 1253-1259 2052-2048 1685-1681 3429-3421 3160-3156 465-464"),
    ("node-first", LIMITS, "1168-1169 934-935 2325-2324 11-4 1854-1859 1497-1495 1299-1301 2222-2213"),
    ("rarity", LIMITS, "1168-1169 934-935 2325-2324 11-4 1854-1859 1497-1495 1299-1301 2222-2213"),
]


@pytest.mark.parametrize(("method", "limits", "pairs"), GOLDEN)
def test_the_same_seed_gives_these_very_pairs_everywhere(uneven, method, limits, pairs):
    drawn = draw_pairs(uneven, "PVPAP|P->P<-P", 8, 42, method, limits=limits)
    assert " ".join(f"{a}-{b}" for a, b in zip(drawn.anchor, drawn.positive)) == pairs


def test_another_seed_gives_other_pairs_and_another_order(uneven):
    one, other = (draw_pairs(uneven, "PAP", 1000, seed) for seed in (0, 1))
    assert list(one.anchor) != list(other.anchor)
    assert set(id_pairs(uneven, one)) != set(id_pairs(uneven, other))


def test_anchors_come_from_the_given_documents_only_and_positives_from_all(uneven):
    pairs = draw_pairs(uneven, "PAP", 100, documents=np.array([3, 0, 3]))
    assert set(pairs.anchor) == {0, 3}
    assert not set(pairs.positive) <= {0, 3}


def test_no_pairs(uneven):
    assert len(draw_pairs(uneven, "PAP", 0).anchor) == 0
    assert not draw_pairs(uneven, "PAP", 0).exhausted
    assert draw_pairs(uneven, "P->P", 10).exhausted
    assert draw_pairs(uneven, "PAP", 10, documents=np.array([], dtype=int)).exhausted


@pytest.mark.parametrize(
    "arguments",
    [{"method": "nearest"}, {"n": -1}, {"documents": np.array([10**6])}, {"documents": np.array([-1])}],
    ids=["method", "n", "too far", "negative"],
)
def test_impossible_requests_are_refused_in_words(uneven, arguments):
    with pytest.raises(UsageError):
        draw_pairs(uneven, "PAP", **{"n": 5, **arguments})
