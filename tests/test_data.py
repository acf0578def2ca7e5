"""The data set that ships."""

from __future__ import annotations

from micol.corpus import Corpus
from micol.data import debian
from micol.labels import LabelSpace


def test_the_debian_set_is_whole():
    paths = debian()
    corpus, labels = Corpus.read(paths.docs), LabelSpace.read(paths.labels)
    test_ids = paths.test_ids.read_text().split()
    assert (len(corpus), len(labels), len(test_ids)) == (37_175, 453, 1_678)
    assert set(test_ids) <= set(corpus.ids)
    gold = {label for tags in corpus.gold for label in tags}
    assert gold == set(labels.ids)
    # Every reference leads to a document of the set.
    _, targets = corpus.lists("references")
    assert set(targets.to_pylist()) <= set(corpus.ids)


def test_it_is_small_enough_to_ship():
    assert sum(path.stat().st_size for path in debian()) < 6_000_000
