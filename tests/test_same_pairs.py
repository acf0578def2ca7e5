"""A seed gives the very same pairs, in the same order, on the embedded engine and on DuckDB.

Spark draws what DuckDB draws, and what the embedded engine draws: tests/test_scale_mining_spark.py.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from large_networks import GIVE_UP_SOON, LIST_ALWAYS, random_paths, random_records, write
from micol import canon, rule
from micol.canon import buffers
from micol.cli.pairs import command
from micol.corpus import Corpus
from micol.kernels.hashing import hasher, keys_of, order_keys
from micol.kernels.random import in_parts
from micol.metapath import PAPER_PATHS
from micol.network import Network
from micol.pairs import draw_pairs
from micol.rule import LIMITS, Limits
from micol.scale.duck import Duck, duck
from micol.scale.mining import Mine
from processes import invoked
from random_networks import SCHEMA

SOME_TRIALS = Limits(listed=3, trials=40)
EVERY_LIMIT = [
    LIMITS,
    LIST_ALWAYS,
    GIVE_UP_SOON,
    SOME_TRIALS,
    Limits(listed=0, trials=300),
    Limits(listed=0, trials=300, frontier=0),
]
PAPER_TEXTS = list(map(str, PAPER_PATHS))


@pytest.fixture(scope="module")
def engine() -> Iterator[Duck]:
    with duck("500MB") as running:
        yield running


def embedded(network: Network, text: str, n: int, seed: int, limits: Limits) -> tuple[list[Any], bool]:
    pairs = draw_pairs(network, text, n, seed, limits=limits)
    named = [(network.ids[a], network.ids[b]) for a, b in zip(pairs.anchor, pairs.positive, strict=True)]
    return named, pairs.exhausted


def relational(
    engine: Duck, docs: str, text: str, n: int, seed: int, limits: Limits
) -> tuple[list[Any], bool]:
    mined = Mine(engine, [docs], text, SCHEMA).draw(n, seed, limits)
    return engine.rows(mined.query), mined.exhausted


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    made=st.integers(0, 2**32),
    seed=st.integers(-(2**70), 2**70),
    n=st.sampled_from([3, 20, 10**6]),
    limits=st.sampled_from(EVERY_LIMIT),
    few_nodes=st.sampled_from([0, 1, 200]),
)
def test_random_networks_and_paths(
    engine: Duck,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    made: int,
    seed: int,
    n: int,
    limits: Limits,
    few_nodes: int,
) -> None:
    """Where chains are walked as sets and where each walk counts; below and above what there is."""
    monkeypatch.setattr(rule, "FEW_NODES", few_nodes)
    chance = random.Random(made)
    records = random_records(chance, 2)
    docs = write(tmp_path, records, files=2)
    # The embedded engine reads them in another order.
    network = Corpus.from_records(chance.sample(records, len(records)), SCHEMA).network()
    for text in [chance.choice(PAPER_TEXTS), random_paths(chance, 1)[0][0]]:
        found = embedded(network, text, n, seed, limits)
        assert found == relational(engine, docs, text, n, seed, limits)


HUB_DOCUMENTS = 700


@pytest.fixture(scope="module")
def hubs() -> list[dict[str, Any]]:
    """One venue has most documents, one document is cited by all, one cites all; names of many alphabets."""
    chance = random.Random(6)
    ids = [f"{'dDäß漢'[number % 5]}{number}" for number in range(HUB_DOCUMENTS)]
    outside = [f"x{number}" for number in range(40)]
    records: list[dict[str, Any]] = []
    for id in ids:
        cited = [ids[0], *chance.sample(ids, 4), *chance.sample(outside, 2)]
        records.append(
            {
                "id": id,
                "authors": [f"ä{int(40 * chance.random() ** 4)}" for _ in range(3)],
                "venue": ["v"] if chance.random() < 0.9 else ["v", "w"],
                "references": [other for other in cited if other != id],
            }
        )
    records[1]["references"] = [id for id in ids if id != ids[1]]
    return records


@pytest.mark.parametrize("text", [*PAPER_TEXTS, "PAPVP", "PVPAP", "PVP|P->P<-P", "P(AV)P|P->P|PAP", "P->PAP"])
def test_networks_with_hubs(engine: Duck, tmp_path: Path, hubs: list[dict[str, Any]], text: str) -> None:
    """Under the limits that everybody has: anchors with few instances, and with many."""
    docs = write(tmp_path, hubs, files=3)
    network = Corpus.from_records(hubs, SCHEMA).network()
    n = {"P(AV)P": 1_500, "PVPAP": 40}.get(text, 300)
    assert embedded(network, text, n, 11, LIMITS) == relational(engine, docs, text, n, 11, LIMITS)


def test_anchors_of_the_hubs_have_trials_and_lists(hubs: list[dict[str, Any]]) -> None:
    """So the test above is one of both: other limits give other pairs."""
    network = Corpus.from_records(hubs, SCHEMA).network()
    for text in ("PVP", "PAP", "PVPAP"):
        pairs = embedded(network, text, 300, 11, LIMITS)
        assert pairs != embedded(network, text, 300, 11, LIST_ALWAYS)
    pairs = embedded(network, "P->P", 300, 11, LIMITS)
    assert pairs != embedded(network, "P->P", 300, 11, Limits(listed=0))


def test_the_command_prints_the_same(tmp_path: Path, hubs: list[dict[str, Any]]) -> None:
    arguments = [write(tmp_path, hubs, files=2), "--path", "P->P<-P", "-n", 1_000, "--seed", 3]
    printed = invoked(command, *arguments).stdout
    assert len(printed.splitlines()) == 1_000
    assert invoked(command, *arguments, "--engine", "duckdb").stdout == printed


@given(st.lists(st.text(max_size=200), min_size=1, max_size=20))
def test_keys_are_those_of_md5(names: list[str]) -> None:
    names = [name.encode("utf-8", "ignore").decode() for name in names]
    found = keys_of(*buffers(pa.array(names, pa.string())), hasher())
    assert [int(key) for key in found] == [
        int(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:15], 16) for name in names
    ]


def test_any_document_may_come_first_and_second_and_pairs_of_them_alike() -> None:
    """The order of anchors and of lists, over many seeds."""
    keys = keys_of(*buffers(pa.array([f"doc-{number}" for number in range(7)])), hasher())
    items = np.arange(len(keys))
    firsts, pairs = np.zeros(7), np.zeros((7, 7))
    for seed in range(40_000):
        numbers = order_keys(keys, items, np.array(rule.order_of_anchors(seed)))
        (order,) = in_parts(items, numbers)
        firsts[order[0]] += 1
        pairs[order[0], order[1]] += 1
    assert chisquare(firsts).pvalue > 1e-3
    assert chisquare(pairs[~np.eye(7, dtype=bool)]).pvalue > 1e-3


def test_what_is_made_for_a_network_goes_with_it() -> None:
    network = Corpus.from_records([{"id": "a", "authors": ["x"]}, {"id": "b", "authors": ["x"]}]).network()
    draw_pairs(network, "PAP", 1)
    kept = len(canon.KEPT)
    del network
    assert len(canon.KEPT) == kept - 1
