"""`make demo`: the whole job on the Debian packages that ship with micol, on a CPU, in a few minutes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import micol
from micol.console import aligned
from micol.data import debian
from micol.explain import Explainer
from micol.inspection import inspect
from micol.inspection_text import as_text
from micol.progress import say
from micol.records import Tagged

PATHS = ("P->P", "PAP", "PVP")
SHOWN_METRICS = ("P@1", "P@3", "P@5", "NDCG@3", "NDCG@5")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=6_000, help="unlabelled documents to train on")
    parser.add_argument("--pairs", type=int, default=1_024, help="training pairs")
    parser.add_argument("--test", type=int, default=600, help="unseen documents to tag")
    parser.add_argument("--output", type=Path, default=Path("demo-output"), help="folder for the model")
    options = parser.parse_args()

    say("\n1. The data: Debian packages, their metadata, and 453 debtags as labels")
    files = debian()
    corpus = micol.Corpus.read(files.docs)
    labels = micol.LabelSpace.read(files.labels)
    unseen = set(files.test_ids.read_text(encoding="utf-8").split())
    is_unseen = np.array([identifier in unseen for identifier in corpus.ids])
    unlabelled = np.random.default_rng(0).permutation(np.flatnonzero(~is_unseen))
    training = corpus.select(np.sort(unlabelled[: options.documents]))
    test = corpus.select(np.flatnonzero(is_unseen)[: options.test])
    print(as_text(inspect(training, labels, [micol.MetaPath(path) for path in PATHS])))

    say("\n2. Training without a label: a meta-path is chosen, an encoder trained, evidence weighed")
    settings: dict[str, Any] = {"max_tokens": 128}
    untrained = micol.train(training, labels, init_only=True, **settings)
    model = micol.train(
        training, labels, output=options.output / "model",
        pairs=options.pairs, batch_size=64, **settings,
    )  # fmt: skip
    for line in model.config["report"]:
        print(f"- {line}")

    say(f"\n3. Tagging {len(test):,} packages that training has not seen")
    rows = [["", *SHOWN_METRICS]]
    best: list[Tagged] = []
    for name, classifier in (("untrained encoder", untrained), ("micol", model)):
        best = list(classifier.suggest(test, limit=5))
        scores = micol.evaluate(best, test)
        rows.append([name, *(f"{scores[metric]:.3f}" for metric in SHOWN_METRICS)])
    print(aligned(rows))

    say("\n4. Some of them, with the reasons for their labels (* = the packagers chose it too)")
    explainer = Explainer(model)
    for tagged in some_of(best):
        document = test[test.position(tagged.id)]
        print(f"\n{document.id}: {document.title}")
        for label, reason in zip(tagged.labels[:3], explainer.explain(document, tagged.labels), strict=False):
            star = "*" if label.id in document.labels else " "
            print(f"  {star} {label.score:.2f}  {label.name:<28.28}  {reason.sentence(document.text)}")

    model_folder = options.output / "model"
    say(f"\nThe model is in {model_folder}. Tag your own documents with it:")
    say(f"  .venv/bin/micol suggest {model_folder} YOUR_DOCS.jsonl")


def some_of(tagged: list[Tagged], count: int = 5) -> list[Tagged]:
    """Evenly spread over the documents, so that they differ from each other."""
    return tagged[:: max(1, len(tagged) // count)][:count]


if __name__ == "__main__":
    main()
