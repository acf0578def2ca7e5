"""How far paths reach: against brute force, with and without hubs, from all documents and from samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brute_force import PlainNetwork
from micol.errors import UsageError
from micol.kernels.program import STAMP
from micol.kernels.random import shuffled
from micol.metapath import MetaPath
from micol.reach import PathStatistics, coverage, hub_degree, partners, plan
from random_networks import network_of, paths, records, text_of


@settings(max_examples=100, deadline=None)
@given(records(), paths)
def test_coverage_counts_what_brute_force_finds(made, path):
    counts = [len(PlainNetwork(made).reachable(path, record["id"])) for record in made]
    found = coverage(network_of(made), text_of(path))
    assert found.exact
    assert found.documents_with_partner == sum(count > 0 for count in counts)
    assert found.pairs == sum(counts)
    assert found.mean_partners == pytest.approx(np.mean(counts))
    assert found.hub_only_share == 0


class WithoutHubs(PlainNetwork):
    """The same definition, but nodes between with too many neighbours along a hop beside them are closed."""

    def __init__(self, made, limit):
        super().__init__(made)
        self.limit = limit

    def middles(self, step, letter, a):
        found = super().middles(step, letter, a)
        return {x for x in found if not self.is_closed(step, letter, x)}

    def is_closed(self, step, letter, x):
        kind, _, *arrows = step
        if kind != "links":
            return len(self.row(step, letter, x)) > self.limit
        into = {a for a in self.nodes if self.linked(letter, arrows[0], a, x)}
        return max(len(into), len(self.row(step, letter, x))) > self.limit

    def degree(self, step, x, backwards):
        """Neighbours of a node along the hop of a step that touches it; a meta-graph has none."""
        kind, letters, *arrows = step
        if kind == "node":
            return len(self.values.get((x, letters), ()))
        if kind == "link":
            return sum(self.linked(letters, *arrows, *((a, x) if backwards else (x, a))) for a in self.nodes)
        return 0

    def walk(self, steps, start):
        ends = {start}
        for index, step in enumerate(steps):
            ends = {b for b in self.nodes for a in ends if self.joined(step, a, b)}
            if index + 1 < len(steps):
                following = steps[index + 1]
                ends = {
                    x
                    for x in ends
                    if self.degree(step, x, True) <= self.limit
                    and self.degree(following, x, False) <= self.limit
                }
        return ends


@settings(max_examples=300, deadline=None)
@given(records(), paths, st.integers(0, 4))
def test_without_hubs(made, path, limit):
    network, plain = network_of(made), WithoutHubs(made, limit)
    found = partners(plan(network, MetaPath(text_of(path)), limit), np.arange(len(made)))
    assert found.tolist() == [len(plain.reachable(path, id)) for id in network.ids]


def crowd(documents=400):
    """A venue of all documents, of which some pairs share an author as well."""
    return [{"id": str(n), "title": "t", "venue": "hub", "authors": [f"a{n // 2}"]} for n in range(documents)]


def test_the_share_of_pairs_that_only_hubs_join():
    network = network_of(crowd())
    assert hub_degree(400) == 100
    assert coverage(network, "PVP").hub_only_share == 1
    assert coverage(network, "PAP").hub_only_share == 0
    assert coverage(network, "PVP|PAP").hub_only_share == pytest.approx(1 - 1 / 399)


def test_a_sample_is_scaled_up_and_said_to_be_one():
    network = network_of(crowd())
    found = coverage(network, "PVP", sample=100)
    assert found == PathStatistics(400, 400 * 399, 399.0, exact=False, hub_only_share=1.0)
    assert coverage(network, "PVP", sample=400).exact
    # The budget is spent after the first few hundred documents.
    assert not coverage(network, "PVP", budget=1).exact


def test_an_estimate_comes_from_the_documents_that_the_seed_draws():
    made = [{"id": str(n), "title": "t", "authors": ["a"] if n < 50 else []} for n in range(100)]
    drawn = shuffled(np.arange(100), 3)[:20]
    found = coverage(network_of(made), "PAP", sample=20, seed=3)
    assert found.documents_with_partner == 5 * np.count_nonzero(drawn < 50)
    assert found.mean_partners == 49 * np.count_nonzero(drawn < 50) / 20


def test_a_path_that_joins_nothing():
    found = coverage(network_of([{"id": "a", "title": "t"}]), "PAP")
    assert found == PathStatistics(0, 0, 0.0, exact=True, hub_only_share=0.0)


@pytest.mark.parametrize("position", [-1, 1])
def test_a_position_outside_the_corpus_is_refused(position):
    network = network_of([{"id": "a", "title": "t", "references": ["x"]}])
    with pytest.raises(UsageError, match="position must be from 0 to 0"):
        MetaPath("P->P").reachable_positions(network, position)


def test_a_random_order_puts_every_document_first_as_often():
    firsts = np.bincount([shuffled(np.arange(10), seed)[0] for seed in range(2000)], minlength=10)
    assert abs(firsts - 200).max() < 60
    assert sorted(shuffled(np.arange(1000), 1)) == list(range(1000))


def test_sets_are_forgotten_before_stamps_run_out():
    made = crowd(50)
    network, path = network_of(made), MetaPath("PVPAP")
    bound = plan(network, path)
    expected = partners(bound, np.arange(50))
    bound.scratch.clock[STAMP] = 2**31 - 5
    assert (partners(bound, np.arange(50)) == expected).all()
    assert bound.scratch.clock[STAMP] < 2**30
