"""What BM25 would add to the fused evidence as a source of its own: a table of docs/best.md.

    python benchmarks/bm25_source.py DEV/wordnet DEV/meshnotes DEV/foldoc DEV/gcloud DEV/npm [--base FOLDER]

DEV is made by development_sets.py. BM25 of a document with a label's name and description is measured, like a
cosine, against what is usual for the document and then for the label, and added to the rough sum by several
weights. A cell is the mean of all measures that are reported, where those that reward rare labels count as
much as the others, as in settle.py.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from micol.evidence import fusion
from micol.evidence.facts import Standard, moments
from micol.retrieve import BM25
from poorer import as_table
from settle import Evidence, evidence_of, mean_of_measures

WEIGHTS = (0.0, 0.125, 0.25, 0.5, 1.0)
# Documents that tell what is usual for a label.
SAMPLE = 400


def by_bm25(evidence: Evidence) -> np.ndarray:
    """How far above what is usual BM25 of each pair of a test document and a candidate label is."""
    data, pairs = evidence.data, evidence.tested
    index = BM25(data.labels.texts())
    texts = data.train.texts()
    some = np.random.default_rng(0).permutation(len(texts))[:SAMPLE]
    usual, spread = moments(standardised(index, [texts[position] for position in some]))
    labels = pairs.keys % pairs.labels
    scores = standardised(index, data.test.texts())[pairs.rows, labels]
    found: np.ndarray = (scores - usual[labels]) / spread[labels]
    return found


def standardised(index: BM25, texts: Sequence[str]) -> np.ndarray:
    """[texts, labels]: against all labels of the text."""
    found = index.search(texts, top=None)
    scores = np.zeros((len(texts), index.n_labels), np.float32)
    scores[found.rows(), found.labels] = found.scores
    return Standard.of(scores).apply(scores.T, slice(None)).T


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, nargs="+")
    parser.add_argument("--base")
    options = parser.parse_args()
    columns = []
    for folder in options.data:
        evidence = evidence_of(folder, options.base)
        # The weights in use decide here, as they do in a model.
        places = fusion.places_left_out(evidence.practice)
        rough = evidence.tested.values @ fusion.rough_weights(evidence.tested.features, places)
        further = by_bm25(evidence)
        columns.append([mean_of_measures(evidence.measures.scores(rough + w * further)) for w in WEIGHTS])
    names = [folder.name for folder in options.data]
    rows = [
        [f"{weight:g}", *(f"{score:.4f}" for score in (*scores, np.mean(scores)))]
        for weight, scores in zip(WEIGHTS, zip(*columns, strict=True), strict=True)
    ]
    print(as_table(["weight of BM25", *names, "mean"], rows))


if __name__ == "__main__":
    main()
