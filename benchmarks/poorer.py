"""The fused ranking where data are poorer, against what it must never be worse than: tables of docs/best.md.

    python benchmarks/poorer.py DATA [DATA …] [--ways "names alone" …] [--base FOLDER] [--output FILE]
    python benchmarks/poorer.py --table

Nobody's data are whole: labels may have no descriptions, no second names or no hierarchy, documents no
metadata, no titles or nothing but titles, and collections may be small. Each is taken away in turn; the
poorest have a thousand documents without metadata, and labels with one name and nothing else. The encoder is
the untrained one, so that two CPU cores do: what is checked is how evidence is weighed. Where labels have a
hierarchy, whole or with one name each, the worth of the setting of that name is measured, too. What the
output has already is left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from best import EXACT_NAMES, SHOWN, Data
from micol.settings import CHOICES
from rows import add_rows, read_rows, tell_left_out

RESULTS = Path(__file__).parent / "results" / "poorer.jsonl"
TABLED = ("P@1", "NDCG@5", "PSP@1", "PSP@5")
FUSED, LEXICAL, UNTRAINED = "fused", "lexical ranking", "untrained encoder"
ABOVE = "above both on"
SAID = CHOICES["hierarchy"]
# Where it is measured what saying so is worth.
TOLD = ("as it is", "names alone")
FEW_LABELS, FEW_DOCUMENTS, SEED = 400, 1_000, 5


def with_documents(data: Data, change: Callable[[Any], Any]) -> Data:
    """With each document changed; those without a text, and tests without a label, are left out."""
    import micol

    known = set(data.labels.ids)

    def changed(corpus: Any, *, tested: bool) -> Any:
        records = []
        for document in map(change, corpus):
            labels = [label for label in document.labels if label in known]
            if document.text and (labels or not tested):
                texts = {"id": document.id, "title": document.title, "abstract": document.abstract}
                records.append({**texts, **document.metadata, "labels": labels})
        return micol.Corpus.from_records(records)

    return replace(data, train=changed(data.train, tested=False), test=changed(data.test, tested=True))


def with_labels(data: Data, change: Callable[[Any], Any]) -> Data:
    import micol

    return replace(data, labels=micol.LabelSpace.from_labels(map(change, data.labels)))


def names_alone(data: Data) -> Data:
    return with_labels(data, lambda label: replace(label, names=label.names[:1], description=""))


def flat(data: Data) -> Data:
    return with_labels(data, lambda label: replace(label, parents=()))


def no_metadata(data: Data) -> Data:
    return with_documents(data, lambda document: replace(document, metadata={}))


def titles_alone(data: Data) -> Data:
    return with_documents(data, lambda document: replace(document, abstract=""))


def no_titles(data: Data) -> Data:
    return with_documents(data, lambda document: replace(document, title=""))


def few_labels(data: Data) -> Data:
    import micol

    kept = set(np.random.default_rng(SEED).permutation(data.labels.ids)[:FEW_LABELS].tolist())
    some = [
        replace(label, parents=tuple(parent for parent in label.parents if parent in kept))
        for label in data.labels
        if label.id in kept
    ]
    return with_documents(replace(data, labels=micol.LabelSpace.from_labels(some)), lambda document: document)


def few_documents(data: Data) -> Data:
    some = np.sort(np.random.default_rng(SEED).permutation(len(data.train))[:FEW_DOCUMENTS])
    return replace(data, train=data.train.select(some))


WAYS: dict[str, Callable[[Data], Data]] = {
    "as it is": lambda data: data,
    "names alone": names_alone,
    "no hierarchy": flat,
    "no metadata": no_metadata,
    f"{FEW_LABELS} labels": few_labels,
    f"{FEW_DOCUMENTS:,} documents": few_documents,
    "no titles": no_titles,
    "titles alone": titles_alone,
    "poorest": lambda data: few_documents(no_metadata(flat(names_alone(data)))),
}


def untrained_encoder(data: Data, base: str | None) -> Any:
    import micol

    return micol.train(data.train, data.labels, base=base, init_only=True).ranker


def remembering(encoder: Any) -> Any:
    """The encoder, which reads each text once: what is taken away mostly leaves the texts as they are."""
    known: dict[str, np.ndarray] = {}
    read = encoder.vectors

    def vectors(texts: Sequence[str], what: str | None = None) -> np.ndarray:
        new = list(dict.fromkeys(text for text in texts if text not in known))
        known.update(zip(new, read(new, what), strict=True))
        return np.stack([known[text] for text in texts]) if texts else read([])

    encoder.vectors = vectors
    return encoder


def measure(data: Data, encoder: Any, *, told: bool) -> Iterator[tuple[str, dict[str, float]]]:
    """The scores of the fused ranking and of its rivals; where it is told, of what is said of a hierarchy."""
    from micol.classify import Classifier
    from micol.evidence.fused import practice
    from micol.evidence.fusion import learn
    from micol.settings import resolve

    settings = resolve("bi", "auto", "best", {})
    model = Classifier.build(data.labels, encoder, settings, {}, data.train)
    assert model.fused
    found = model.fused.gather(list(data.test), encoder)
    yield FUSED, data.scores(found.ranking(model.fused.fusion.logits(found.values)))
    by_names = np.array([EXACT_NAMES.get(name, 0.0) for name in found.features], np.float32)
    yield LEXICAL, data.scores(found.ranking(found.values @ by_names))
    yield UNTRAINED, data.scores(model.rank_texts(data.test.texts()))
    if told and found.values[:, found.features.index("depth")].any():
        evidence = practice(model.fused.memory, model.fused.side, encoder, settings.seed)
        for hierarchy in SAID:
            weights = learn(evidence, hierarchy=hierarchy).weights
            yield hierarchy, data.scores(found.ranking(found.values @ weights))


def tables(results: Path) -> str:
    """As Markdown: P@1 at a glance, all of it, and what the setting of the hierarchy is worth."""
    cells: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for row in read_rows(results):
        cells.setdefault((row["data"], row["way"]), {})[row["system"]] = row["scores"]
    both = {cell: compared(systems) for cell, systems in cells.items() if FUSED in systems}
    names = list(dict.fromkeys(data for data, _ in both))
    ways = list(dict.fromkeys(way for _, way in both))
    glance = [[way, *(both[data, way]["P@1"] for data in names)] for way in ways]
    whole = [[data, way, *found.values()] for (data, way), found in both.items()]
    said = [
        [data, way, hierarchy, *(f"{systems[hierarchy][name]:.3f}" for name in TABLED)]
        for (data, way), systems in cells.items()
        for hierarchy in SAID
        if hierarchy in systems
    ]
    return "\n\n".join(
        as_table(titles, rows)
        for titles, rows in (
            (["what is left", *names], glance),
            (["data", "what is left", *TABLED, ABOVE], whole),
            (["data", "what is left", "hierarchy", *TABLED], said),
        )
    )


def compared(systems: dict[str, dict[str, float]]) -> dict[str, str]:
    """The fused ranking / the better of the two others, and on how many measures it is above."""
    fused = systems[FUSED]
    other = {name: max(systems[LEXICAL][name], systems[UNTRAINED][name]) for name in SHOWN}
    above = sum(fused[name] > other[name] for name in SHOWN)
    shown = {name: f"{fused[name]:.3f} / {other[name]:.3f}" for name in TABLED}
    return {**shown, ABOVE: f"{above} of {len(SHOWN)}"}


def as_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["---"] * len(titles)
    return "\n".join(f"| {' | '.join(row)} |" for row in (titles, lines, *rows))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, nargs="*")
    parser.add_argument("--table", action="store_true", help="only print the results so far as Markdown")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--base")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.table:
        print(tables(options.output))
        return
    done = {(row["data"], row["way"]) for row in read_rows(options.output)}
    for folder in options.data:
        whole = Data.read(folder)
        encoder = remembering(untrained_encoder(whole, options.base))
        new = [way for way in options.ways if (whole.name, way) not in done]
        tell_left_out(options.output, len(options.ways) - len(new))
        for way in new:
            found = dict(measure(WAYS[way](whole), encoder, told=way in TOLD))
            told = {"data": whole.name, "way": way}
            rows = [{**told, "system": system, "scores": scores} for system, scores in found.items()]
            add_rows(options.output, rows)
            for system, scores in found.items():
                shown = " ".join(f"{scores[name]:.4f}" for name in SHOWN)
                print(whole.name, way, system, shown, flush=True)


if __name__ == "__main__":
    main()
