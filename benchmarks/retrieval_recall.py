"""What retrieval finds: recall of each retriever, and of variants of BM25, on the documents to be tagged.

python benchmarks/retrieval_recall.py [FOLDER ...]

Without a folder: the Debian data that ships with micol. A folder holds docs.jsonl.gz, labels.jsonl.gz and
test_ids.txt, and its name becomes the name of the data.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from micol.corpus import Corpus
from micol.data import DebianPaths, debian
from micol.labels import LabelSpace
from micol.retrieve import BM25, ExactMatcher, retrieve
from micol.retrieve.recall import AT, Recall
from micol.retrieve.stop_words import ENGLISH
from micol.stream import TEXTS_ONLY

RESULTS = Path(__file__).parent / "results"
VARIANTS: dict[str, dict[str, Any]] = {
    "as in the paper": {},
    "repeats=log": {"repeats": "log"},
    "stop words": {"stop_words": ENGLISH},
    "both": {"repeats": "log", "stop_words": ENGLISH},
}


def measure(paths: DebianPaths) -> dict[str, Any]:
    corpus, labels = Corpus.read(paths.docs, TEXTS_ONLY, skip_bad=True), LabelSpace.read(paths.labels)
    ids = paths.test_ids.read_text(encoding="utf-8").split()
    corpus = corpus.select([corpus.position(identifier) for identifier in ids])
    exact, texts, gold = ExactMatcher(labels.names), corpus.texts(), corpus.gold
    result: dict[str, Any] = {"documents": len(corpus), "labels": len(labels), "variants": {}}
    for name, options in VARIANTS.items():
        recall = Recall({identifier: position for position, identifier in enumerate(labels.ids)})
        recall.add(gold, retrieve(texts, exact=exact, bm25=BM25(labels.texts(), **options)))
        result["variants"][name] = {
            retriever: {
                **{f"R@{depth}": round(float(sums[i] / recall.documents), 4) for i, depth in enumerate(AT)},
                "recall": round(float(sums[-1] / recall.documents), 4),
                "labels_a_document": round(recall.sizes[retriever] / recall.documents, 1),
            }
            for retriever, sums in recall.sums.items()
        }
    return result


def table(results: dict[str, Any]) -> str:
    lines = []
    for name, result in results.items():
        lines += [
            f"{name}: {result['documents']:,} documents, {result['labels']:,} labels, BM25 top 50; "
            "`python benchmarks/retrieval_recall.py`.",
            "",
            "| | R@10 | R@50 | R@100 | recall | labels a document |",
            "| --- | ---: | ---: | ---: | ---: | ---: |",
        ]
        first = next(iter(result["variants"].values()))
        rows = {"exact": first["exact"]}
        for variant, found in result["variants"].items():
            rows |= {f"BM25, {variant}": found["BM25"], f"union, {variant}": found["union"]}
        for what, row in rows.items():
            measured = [f"{row[measure]:.4f}" for measure in ("R@10", "R@50", "R@100", "recall")]
            lines.append(f"| {what} | {' | '.join(measured)} | {row['labels_a_document']} |")
        lines.append("")
    return "\n".join(lines).rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--output", type=Path, default=RESULTS)
    settings = parser.parse_args()
    results = {"debian": measure(debian())}
    for folder in settings.folders:
        names = ("docs.jsonl.gz", "labels.jsonl.gz", "test_ids.txt")
        results[folder.name] = measure(DebianPaths(*(folder / name for name in names)))
    settings.output.mkdir(parents=True, exist_ok=True)
    (settings.output / "retrieval_recall.json").write_text(json.dumps(results, indent=2) + "\n")
    (settings.output / "retrieval_recall.md").write_text(table(results) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
