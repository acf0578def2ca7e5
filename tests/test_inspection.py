"""Counts, coverage, common labels and divergence of paths against brute force; every warning in words."""

from itertools import permutations

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from micol import Corpus, Label, LabelSpace, MetaPath, Schema
from micol.errors import UsageError
from micol.inspection import corresponding_paths, inspect
from micol.inspection_text import as_json, as_text
from micol.metapath import PAPER_PATHS

RECORDS = [
    {
        "id": "a",
        "title": "one two",
        "abstract": "three",
        "authors": ["x", "y"],
        "venue": "v",
        "references": ["b", "far"],
        "labels": ["l1", "l2"],
    },
    {"id": "b", "title": "one", "authors": ["x"], "venue": "v", "references": ["far"], "labels": ["l1"]},
    {"id": "c", "title": "one", "authors": ["y", "x"], "venue": "w", "references": ["a"], "labels": ["l3"]},
    {"id": "d", "abstract": "one two three four", "authors": [], "venue": "w", "references": []},
]


def made(n, seed=0):
    """Documents with every kind of metadata, drawn at random."""
    random = np.random.default_rng(seed)

    def some(prefix, size, up_to):
        return sorted(
            {f"{prefix}{value}" for value in random.integers(size, size=random.integers(up_to + 1))}
        )

    return [
        {
            "id": f"d{i}",
            "title": "some words",
            "authors": some("a", 15, 3),
            "venue": f"v{random.integers(4)}",
            "references": [target for target in some("d", 2 * n, 4) if target != f"d{i}"],
            "labels": some("l", 6, 2),
        }
        for i in range(n)
    ]


def test_the_two_data_tables():
    found = inspect(Corpus.from_records(RECORDS), paths=["PAP"])
    texts = found.texts
    assert (texts.documents, texts.labelled_documents, texts.labels, texts.labels_used) == (4, 3, 3, 3)
    assert texts.labels_per_document == pytest.approx(4 / 3)
    assert texts.words_per_document == pytest.approx((3 + 1 + 1 + 4) / 4)
    assert texts.empty_texts == 0
    authors, venue = found.nodes
    assert authors == ("A", "authors", 2, 5, 3, "x", 3)
    assert (venue.values, venue.edges, venue.documents) == (2, 4, 4)
    (references,) = found.links
    assert references == ("P", "references", 4, 2, 1, 3, 2)


def test_incoming_links_count_as_links():
    corpus = Corpus.from_records(
        [{"id": "a", "title": "t", "citations": ["b", "far"]}, {"id": "b", "title": "t"}]
    )
    (references,) = inspect(corpus, paths=[]).links
    assert references == ("P", "references", 2, 1, 1, 1, 1)


@pytest.mark.parametrize("seed", range(3))
def test_paths_equal_brute_force(seed):
    records = made(40, seed)
    corpus = Corpus.from_records(records)
    network = corpus.network()
    labels = {record["id"]: set(record["labels"]) for record in records}
    found = inspect(corpus, seed=seed)
    assert [report.path for report in found.paths] == [str(path) for path in PAPER_PATHS]
    for report, path in zip(found.paths, PAPER_PATHS, strict=True):
        partners = {d: path.reachable(network, d) for d in labels}
        pairs = sum(map(len, partners.values()))
        assert report.reach.exact
        assert report.reach.documents_with_partner == sum(map(bool, partners.values()))
        assert report.reach.pairs == pairs
        assert report.reach.mean_partners == pytest.approx(pairs / 40)
        common = [bool(labels[d] & labels[p]) for d in labels for p in partners[d] if labels[d] and labels[p]]
        divergences = []
        for d in labels:
            joined = {p for p in partners[d] if labels[p]}
            alike = {p for p in labels if p != d and labels[d] & labels[p]}
            if joined and alike:
                spread = [[(p in side) / len(side) for p in labels] for side in (joined, alike)]
                divergences.append(jensenshannon(*spread) ** 2)
        if common:
            assert report.common_label == pytest.approx((np.mean(common), True))
        assert report.divergence_documents == len(divergences)
        if divergences:
            assert report.divergence_exact
            assert report.divergence.total == pytest.approx(np.mean(divergences), abs=1e-9)
    pairs = [bool(labels[d] & labels[p]) for d, p in permutations(labels, 2) if labels[d] and labels[p]]
    assert found.random_common_label == pytest.approx((np.mean(pairs), True))


def test_samples_are_marked_and_decided_by_the_seed():
    corpus = Corpus.from_records(made(900))
    first, again, other = (inspect(corpus, paths=["PVP"], seed=seed) for seed in (1, 1, 2))
    assert as_json(first) == as_json(again)
    assert as_json(first) != as_json(other)
    (report,) = first.paths
    assert not report.common_label.exact
    assert not report.divergence_exact
    assert report.divergence_documents <= 300
    assert "~: estimated from a sample" in as_text(first)


def test_paths_of_another_schema():
    schema = Schema({"U": "user", "H": "hashtags"}, {"R": "replies"}, "D")
    assert corresponding_paths(schema, ["H"]) == [
        *("D->R", "D<-R", "DUD", "DHD", "D->R<-D", "D<-R->D", "D(HH)D", "D(UH)D", "D->(RR)<-D", "D<-(RR)->D")
    ]
    records = [
        {"id": "a", "text": "t", "user": "u", "hashtags": ["x", "y"], "replies": ["b"]},
        {"id": "b", "text": "t", "user": "u", "hashtags": ["x", "y"]},
    ]
    found = inspect(Corpus.from_records(records, schema))
    reached = {report.path: report.reach.pairs for report in found.paths}
    assert reached[str(MetaPath("D(HH)D"))] == 2
    assert reached["D->R"] == 1
    assert str(MetaPath("D(UU)D")) not in reached


def test_without_labels_nothing_is_said_of_labels():
    found = inspect(Corpus.from_records([{**record, "labels": []} for record in RECORDS]))
    assert found.random_common_label is None
    assert all(report.common_label is None for report in found.paths)
    assert "common label" not in as_text(found)


def test_a_path_that_does_not_fit_is_told():
    with pytest.raises(UsageError, match="no letter 'X'"):
        inspect(Corpus.from_records(RECORDS), paths=["PXP"])


def warnings(records, space=None, schema=None, **options):
    corpus = Corpus.from_records(records, schema) if schema else Corpus.from_records(records)
    return inspect(corpus, space, paths=[], **options).warnings


def test_a_healthy_corpus_has_no_warnings():
    healthy = [
        {
            "id": f"d{i}",
            "title": "t",
            "authors": [f"a{i % 3}"],
            "venue": f"v{i % 4}",
            "references": [f"d{i - 1}"],
        }
        for i in range(1, 10)
    ]
    space = LabelSpace.from_labels([Label("l1", ("Label",))])
    assert warnings(healthy, space) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"venue": "same"},
            "venue: all documents have 'same', so that sharing it says nothing; PVP joins nearly",
        ),
        (
            {"references": ["out1", "out2"]},
            "references: 100% of the links lead outside the corpus; P->P and P<-P",
        ),
        (
            {"references": []},
            "references: no document has any, so paths through it join nothing; check the schema",
        ),
        ({"title": "", "abstract": ""}, "texts: 4 of 4 documents have neither title nor abstract"),
    ],
)
def test_warns_in_words(change, sentence):
    assert any(sentence in warning for warning in warnings([{**record, **change} for record in RECORDS]))


def test_warns_of_a_value_that_most_documents_have():
    records = [{"id": f"d{i}", "title": "t", "venue": "big" if i < 6 else f"v{i}"} for i in range(10)]
    assert any("venue: 60% of the documents have 'big'" in warning for warning in warnings(records))


def test_warns_where_few_documents_link():
    records = [{"id": f"d{i}", "title": "t", "references": ["d1"] if i == 0 else []} for i in range(10)]
    assert any(
        "references: only 1 of 10 documents have any (10.0%)" in warning for warning in warnings(records)
    )


def test_names_the_fields_that_records_have_instead():
    (warning,) = (
        w
        for w in warnings([{"id": "a", "title": "t"}], record_keys=["id", "title", "writers"])
        if "authors" in w
    )
    assert warning.endswith("check the schema (the first record has id, title, writers)")


def test_warns_of_labels():
    space = LabelSpace.from_labels([Label("l1", ("Label",)), Label("odd", ("???",))])
    found = warnings(RECORDS, space)
    assert any(
        "documents carry 2 labels that labels lacks, such as 'l2' (50.0% of all" in warning
        for warning in found
    )
    assert any(
        "1 of 2 have no name with a letter or digit in it, such as 'odd'" in warning for warning in found
    )


def test_tables_fit_a_terminal():
    text = as_text(inspect(Corpus.from_records(made(60))))
    assert max(map(len, text.splitlines())) <= 100
    for word in (
        "documents",
        "authors",
        "references",
        "P->(PP)<-P",
        "random pairs",
        "Jensen-Shannon",
        "4th term",
    ):
        assert word in text
