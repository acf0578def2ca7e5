"""What further sources would add to the fused evidence: a table of docs/best.md.

    python benchmarks/further_sources.py DEV/wordnet DEV/meshnotes DEV/foldoc DEV/gcloud DEV/npm
    python benchmarks/further_sources.py --table

DEV is made by development_sets.py: no set that results are reported on is looked at. Each source is added to
the rough sum without tags, whose weights stay as they are, by several weights:

BM25                    of the document with a label's name and description
meaning of the similar  the cosine of similar documents' mean vector with a label's name and description
meaning of the linked   the same for linked documents
what the similar mean   what similar documents name, and what stands out in their meaning, as if it was named
tags of neighbours      what similar and linked documents would be tagged with, in the place of what they
                        name: the weight is its share of theirs

All are measured against what is usual for the document and for the label. A cell of the table is the mean of
all measures that are reported, where those that reward rare labels count as much as the others, as in
settle.py. What the output has already is left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from best import Data
from micol.evidence import fusion
from micol.evidence.facts import Standard, moments
from micol.evidence.gather import NEARBY, SHARE_OF_TAGS, Gathered, lift
from micol.progress import say
from micol.retrieve import BM25
from micol.sparse import Entries
from poorer import as_table, untrained_encoder
from rows import add_rows, read_rows, tell_left_out
from settle import PRACTICE, Measures, fused_around, mean_of_measures

RESULTS = Path(__file__).parent / "results" / "further_sources.jsonl"
NONE = "none"
WEIGHTS = (0.125, 0.25, 0.5, 1.0)
# A label stands out in the meaning of a document by so many spreads, of its name and its text together.
STANDS_OUT = 4.0
AT_ONCE = 500


def by_bm25(data: Data, fused: Any, pairs: Gathered) -> np.ndarray:
    index, memory = BM25(data.labels.texts()), fused.memory

    def standardised(texts: Sequence[str]) -> np.ndarray:
        found = index.search(texts, top=None)
        scores = np.zeros((len(texts), index.n_labels), np.float32)
        scores[found.rows(), found.labels] = found.scores
        return against_all(scores, scores)

    usual, spread = moments(standardised([memory.texts[int(position)] for position in memory.sample]))
    labels = pairs.keys % pairs.labels
    scores = standardised(data.test.texts())[pairs.rows, labels]
    found: np.ndarray = (scores - usual[labels]) / spread[labels]
    return found


def by_mean_vector(fused: Any, pairs: Gathered, near: csr_array, near_sample: csr_array) -> np.ndarray:
    """`near` has the weights of the documents near each document; documents without any get nothing."""
    memory, labels = fused.memory, pairs.keys % pairs.labels
    texts = fused.side.text_vectors.astype(np.float32)
    background = memory.background_texts.astype(np.float32)

    def standardised(weights: csr_array) -> np.ndarray:
        vectors = weights @ memory.wide
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        return against_all(vectors @ texts.T, vectors @ background.T)

    usual, spread = moments(standardised(near_sample[np.diff(near_sample.indptr) > 0]))
    has_any = (np.diff(near.indptr) > 0)[pairs.rows]
    scores = standardised(near)[pairs.rows, labels]
    return np.where(has_any, (scores - usual[labels]) / spread[labels], 0)


def by_what_they_mean(fused: Any, pairs: Gathered, near: csr_array) -> np.ndarray:
    memory, facts = fused.memory, fused.side.facts
    kinds = [
        (
            vectors.astype(np.float32).T,
            background.astype(np.float32).T,
            getattr(facts, f"{kind}_mean"),
            getattr(facts, f"{kind}_spread"),
        )
        for kind, vectors, background in (
            ("name", fused.side.name_vectors, memory.background_names),
            ("text", fused.side.text_vectors, memory.background_texts),
        )
    ]
    parts = []
    for start in range(0, len(memory.wide), AT_ONCE):
        some = memory.wide[start : start + AT_ONCE]
        meant = sum(
            (against_all(some @ vectors, some @ background) - usual) / spread
            for vectors, background, usual, spread in kinds
        )
        parts.append(csr_array(np.maximum(meant - STANDS_OUT, 0)))
    said = csr_array(facts.mentions.T + vstack(parts))
    found = (near @ said).tocoo()
    borrowed = Entries.of(found.row, found.col, found.data, pairs.documents, pairs.labels)
    usual = np.asarray(said.sum(axis=0)).ravel() / said.shape[0]
    return lift(borrowed.at(pairs.keys), usual[pairs.keys % pairs.labels])


def against_all(scores: np.ndarray, background: np.ndarray) -> np.ndarray:
    """Scores [documents, labels] against what is usual for each document."""
    return Standard.of(background).apply(scores.T, slice(None)).T


def further_sources(data: Data, fused: Any, pairs: Gathered) -> Iterator[tuple[str, np.ndarray]]:
    memory, documents = fused.memory, list(data.test)
    sample = [memory.documents[int(position)] for position in memory.sample]
    similar = memory.similar(pairs.vectors, memory.own_positions(documents))
    similar_sample = memory.similar(memory.wide[memory.sample], memory.sample)
    yield "BM25", by_bm25(data, fused, pairs)
    yield "meaning of the similar", by_mean_vector(fused, pairs, similar, similar_sample)
    linked, linked_sample = memory.linked(documents), memory.linked(sample)
    if linked_sample.nnz:
        yield "meaning of the linked", by_mean_vector(fused, pairs, linked, linked_sample)
    yield "what the similar mean", by_what_they_mean(fused, pairs, similar)


def measured(folder: Path, base: str | None) -> Iterator[dict[str, Any]]:
    from micol.evidence.fused import practice

    data = Data.read(folder)
    encoder = untrained_encoder(data, base)
    fused = fused_around(data, encoder)
    tagged = fused.gather(list(data.test), encoder)
    pairs = tagged.untagged
    places = fusion.places_left_out(practice(fused.memory, fused.side, encoder, 0, most=PRACTICE).untagged)
    weights = fusion.rough_weights(pairs.features, places)
    rough = pairs.values @ weights
    by_tags = (tagged.values - pairs.values)[:, NEARBY] / SHARE_OF_TAGS @ weights[NEARBY]
    measures = Measures.of(data, pairs)

    def row(source: str, weight: float, scores: np.ndarray) -> dict[str, Any]:
        found = {name: round(score, 4) for name, score in measures.scores(scores).items()}
        return {"data": data.name, "source": source, "weight": weight, "scores": found}

    yield row(NONE, 0.0, rough)
    for source, values in (*further_sources(data, fused, pairs), ("tags of neighbours", by_tags)):
        for weight in WEIGHTS:
            yield row(source, weight, rough + weight * values)


def table(results: Path) -> str:
    means: dict[tuple[str, float], dict[str, float]] = {}
    for row in read_rows(results):
        means.setdefault((row["source"], row["weight"]), {})[row["data"]] = mean_of_measures(row["scores"])
    names = list(means[NONE, 0.0])
    alone = means[NONE, 0.0]
    rows = []
    for (source, weight), found in means.items():
        # What says nothing of a set changes nothing there.
        cells = [found.get(name, alone[name]) for name in names]
        rows.append([source, f"{weight:g}", *(f"{cell:.4f}" for cell in (*cells, np.mean(cells)))])
    return as_table(["further source", "weight", *names, "mean"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, nargs="*")
    parser.add_argument("--table", action="store_true", help="only print the results so far as Markdown")
    parser.add_argument("--base")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    done = {row["data"] for row in read_rows(options.output)}
    new = [folder for folder in options.data if folder.name not in done]
    tell_left_out(options.output, len(options.data) - len(new))
    for folder in new:
        rows = list(measured(folder, options.base))
        add_rows(options.output, rows)
        say(f"{folder.name}: {mean_of_measures(rows[0]['scores']):.4f} without a further source")
    print(table(options.output))


if __name__ == "__main__":
    main()
