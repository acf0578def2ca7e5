"""The hierarchy: depth and what is named below against their definitions; edits that move no other label."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import micol
import world
from micol.evidence.facts import mention_worth
from micol.evidence.fusion import learn, logistic, places_left_out, standard_errors
from micol.evidence.gather import FEATURES, Gathered
from micol.evidence.hierarchy import depths, parents_then, specificity
from micol.records import Label


def space_of(**parents: tuple[str, ...]) -> micol.LabelSpace:
    return micol.LabelSpace.from_labels(Label(id, (id,), parents=above) for id, above in parents.items())


@st.composite
def hierarchies(draw: st.DrawFn) -> list[tuple[int, ...]]:
    """Parents of each label, all of them before it."""
    size = draw(st.integers(1, 12))
    return [
        tuple(draw(st.sets(st.integers(0, label - 1), max_size=3))) if label else () for label in range(size)
    ]


def depth_by_definition(parents: list[tuple[int, ...]], label: int) -> float:
    above = [1 + depth_by_definition(parents, parent) for parent in parents[label]]
    return fmean(above) if above else 0.0


@given(hierarchies(), st.randoms())
def test_depth_is_the_mean_over_the_parents(parents: list[tuple[int, ...]], random) -> None:  # type: ignore[no-untyped-def]
    order = list(range(len(parents)))
    random.shuffle(order)
    place = {label: number for number, label in enumerate(order)}
    shuffled = [tuple(place[parent] for parent in parents[label]) for label in order]
    found = depths(shuffled)
    expected = {place[label]: depth_by_definition(parents, label) for label in order}
    assert found == pytest.approx(expected)


@given(st.lists(st.sets(st.integers(0, 7), max_size=3), min_size=8, max_size=8), st.permutations(range(8)))
def test_circles_end_and_do_not_depend_on_the_order(parents: list[set[int]], order: list[int]) -> None:
    found = depths([tuple(sorted(above)) for above in parents])
    place = {label: number for number, label in enumerate(order)}
    shuffled = depths([tuple(sorted(place[parent] for parent in parents[label])) for label in order])
    assert {label: shuffled[place[label]] for label in range(8)} == pytest.approx(found)


def test_special_labels_stand_above_the_usual_and_general_ones_below() -> None:
    space = space_of(animal=(), dog=("animal",), poodle=("dog",), loose=())
    animal, dog, poodle, loose = specificity(space, space)
    assert animal < dog < poodle
    assert loose == 0
    assert animal + dog + poodle == pytest.approx(0, abs=1e-6)
    for mostly_flat in (space_of(a=(), b=()), space_of(a=(), b=("a",), c=(), d=(), e=())):
        assert not specificity(mostly_flat, mostly_flat).any()


def test_an_edit_of_one_label_moves_no_other() -> None:
    trained = space_of(animal=(), dog=("animal",), poodle=("dog",))
    before = specificity(trained, trained)
    without_dog = space_of(animal=(), poodle=())
    assert specificity(without_dog, trained) == pytest.approx(before[[0, 2]])
    more = space_of(animal=(), dog=("animal",), poodle=("dog",), toy=("poodle",), star=())
    after = specificity(more, trained)
    assert after[:3] == pytest.approx(before)
    assert after[3] > before[2]
    assert after[4] == 0


def test_a_ridge_draws_towards_given_weights() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(400, 3))
    right = (rng.random(400) < 1 / (1 + np.exp(-features @ [1.0, -1.0, 0.0]))).astype(float)
    given_weights = np.array([3.0, 0.0, -2.0])
    assert logistic(features, right, 1e4, given_weights)[:-1] == pytest.approx(given_weights, abs=1e-3)
    free = logistic(features, right, 0.0)
    assert logistic(features, right, 0.0, given_weights) == pytest.approx(free, abs=1e-4)


def evidence(depth_by_meaning: float, depth_by_neighbours: float) -> Gathered:
    """Documents that name eight labels equally; meaning and neighbours each prefer some depth among them."""
    rng = np.random.default_rng(0)
    documents, labels = 500, 16
    size = documents * labels
    values = np.zeros((size, len(FEATURES)), np.float32)
    named = np.tile(np.arange(labels) < 8, documents)
    depth = named * rng.normal(size=size)
    values[:, FEATURES.index("named")] = named
    values[:, FEATURES.index("named_rarity")] = named * rng.uniform(0.4, 0.6, size)
    values[:, FEATURES.index("depth")] = depth
    for name, preference in (("name", depth_by_meaning), ("similar", depth_by_neighbours)):
        values[:, FEATURES.index(name)] = named + preference * depth + rng.normal(size=size)
    return Gathered.without_texts(np.arange(size), values, documents, labels)


@pytest.mark.parametrize(
    ("by_meaning", "by_neighbours", "left_out"),
    [
        (1, 1, ("below",)), (-1, -1, ("depth",)), (1, -1, ()), (-1, 1, ()),
        # What is nearly nothing is no opinion, on whichever side of nothing it is.
        (1, 0.002, ()), (1, -0.002, ()), (-1, 0.002, ()), (-1, -0.002, ()),
    ],
)  # fmt: skip
def test_a_place_is_left_out_only_where_meaning_and_neighbours_are_both_sure(
    by_meaning: float, by_neighbours: float, left_out: tuple[str, ...]
) -> None:
    found = evidence(by_meaning, by_neighbours)
    assert places_left_out(found) == left_out
    assert places_left_out(found, "special") == ("below",)
    assert places_left_out(found, "general") == ("depth",)


def test_labels_without_a_hierarchy_have_nothing_below_them() -> None:
    found = evidence(1, -1)
    found.values[:, FEATURES.index("depth")] = 0
    assert places_left_out(found) == ("below",)


def test_depth_counts_where_both_prefer_it_and_not_where_both_are_against_it() -> None:
    assert learn(evidence(1, 1)).weight("depth") > 0.5
    assert learn(evidence(-1, -1)).weight("depth") == 0


def test_standard_errors_are_the_spread_of_what_is_found() -> None:
    rng = np.random.default_rng(0)
    found, said = [], []
    for _ in range(200):
        features = rng.normal(size=(500, 2))
        right = rng.random(500) < 1 / (1 + np.exp(-features @ [0.7, 0.0] + 0.5))
        found.append(logistic(features, right.astype(float), 0.0))
        said.append(standard_errors(features, found[-1], 0.0))
    assert np.mean(said, axis=0) == pytest.approx(np.std(found, axis=0), rel=0.15)


def test_what_is_named_below_counts_only_where_depth_does_not() -> None:
    depth, below = FEATURES.index("depth"), FEATURES.index("below")
    for preference, counted in ((1, depth), (-1, below)):
        found = evidence(preference, preference)
        rough = found.values[:, FEATURES.index("name")]
        found.values[:, below] = np.maximum(rough, 0)
        weights = learn(found).weights
        assert weights[counted] > 0
        assert weights[depth + below - counted] == 0
        told = "".join(learn(found).told())
        assert f"place in the hierarchy ({FEATURES[counted]} +" in told


def test_what_the_user_says_of_the_hierarchy_is_not_put_to_the_test() -> None:
    for preference in (1, -1):
        found = evidence(preference, preference)
        # A little is named below those that meaning puts last.
        found.values[:, FEATURES.index("below")] = 0.05 * (found.values[:, FEATURES.index("name")] < 0)
        general = learn(found, hierarchy="general")
        assert general.weight("depth") == 0 < general.weight("below")
        assert "below" not in general.rejected
        special = learn(found, hierarchy="special")
        assert special.weight("below") == 0
        assert special.weight("depth") > 0 or "depth" in special.rejected
    assert "below" in learn(found).rejected


def test_the_setting_reaches_the_model(tiny_bert: Path) -> None:
    corpus = micol.Corpus.from_records(world.documents(120))
    labels = micol.LabelSpace.from_labels(
        Label(label["id"], tuple(label["names"]), parents=tuple(label.get("parents", ())))
        for label in world.label_records()
    )
    for said, counted, other in (("general", "below", "depth"), ("special", "depth", "below")):
        model = micol.train(corpus, labels, "PAP", base=str(tiny_bert), pairs=64, hierarchy=said)
        assert model.config["settings"]["hierarchy"] == said
        assert model.fused
        assert model.fused.fusion.weight(other) == 0
        assert counted in "".join(model.config["report"])
    with pytest.raises(micol.MicolError, match="hierarchy must be one of auto, special, general, got 'deep'"):
        micol.train(corpus, labels, "PAP", base=str(tiny_bert), hierarchy="deep")


def test_parents_are_those_that_training_saw() -> None:
    trained = space_of(animal=(), dog=("animal",), poodle=("dog",))
    now = space_of(poodle=("animal",), toy=("poodle",), animal=())
    found = parents_then(now, trained)
    assert found.shape == (3, 3)
    assert found.toarray()[1].tolist() == [0, 0, 1]
    assert found.nnz == 1


@pytest.fixture(scope="module")
def grouped(tiny_bert: Path) -> micol.Classifier:
    """Topics in four groups, by which no document is tagged."""
    labels = [
        Label(record["id"], tuple(record["names"]), record.get("description", ""), (f"group{number % 4}",))
        for number, record in enumerate(world.label_records())
    ]
    groups = [Label(f"group{number}", (f"group of {number}",)) for number in range(4)]
    space = micol.LabelSpace.from_labels([*labels, *groups])
    corpus = micol.Corpus.from_records(world.documents(240))
    return micol.train(corpus, space, base=str(tiny_bert), pairs=64, batch_size=32)


@pytest.fixture(scope="module")
def unseen() -> list[micol.Document]:
    return list(micol.Corpus.from_records(world.documents(40, seed=1, first=240)))


def named_below_of(model: micol.Classifier, documents: list[micol.Document]) -> dict[tuple[int, str], float]:
    gathered = model.fused.gather(documents, model.ranker)
    values = gathered.values[:, FEATURES.index("below")]
    ids = model.labels.ids
    return {
        (int(key) // gathered.labels, ids[int(key) % gathered.labels]): float(value)
        for key, value in zip(gathered.keys, values, strict=True)
    }


def test_the_best_mention_below_speaks_for_the_label_above(
    grouped: micol.Classifier, unseen: list[micol.Document]
) -> None:
    side = grouped.fused.side
    gathered = grouped.fused.gather(unseen, grouped.ranker)
    worth = mention_worth(gathered.mentions, side.facts.rarity, side.facts.topicality)
    expected = dict.fromkeys(named_below_of(grouped, unseen), 0.0)
    for row, label, value in zip(gathered.mentions.rows, gathered.mentions.labels, worth, strict=True):
        for parent in grouped.labels[int(label)].parents:
            if (int(row), parent) in expected:
                expected[int(row), parent] = max(expected[int(row), parent], float(value))
    assert sum(value > 0 for value in expected.values()) > 20
    assert named_below_of(grouped, unseen) == pytest.approx(expected, abs=1e-5)


def test_labels_that_come_and_go_leave_what_is_named_below_others(
    grouped: micol.Classifier, unseen: list[micol.Document], tmp_path: Path
) -> None:
    grouped.save(tmp_path / "model")
    edited = micol.load(tmp_path / "model")
    before = named_below_of(edited, unseen)
    child = next(label for label in edited.labels if label.parents == ("group1",))
    edited.remove_labels([child.id])
    edited.add_labels([Label("new", ("the", "and", child.name), parents=("group1",))])
    after = named_below_of(edited, unseen)
    common = before.keys() & after.keys()
    assert any(before[pair] for pair in common if pair[1] == "group1")
    assert {pair: after[pair] for pair in common} == pytest.approx({pair: before[pair] for pair in common})
    edited.save_labels(tmp_path / "model")
    assert named_below_of(micol.load(tmp_path / "model"), unseen) == pytest.approx(after)


def test_without_a_hierarchy_depth_has_no_weight_and_is_not_called_rejected() -> None:
    flat = evidence(1, 1)
    flat.values[:, FEATURES.index("depth")] = 0
    found = learn(flat)
    assert found.weights[FEATURES.index("depth")] == 0
    assert "place in the hierarchy" not in found.rejected
