"""How far scores can be taken for probabilities, found out and told: a table of docs/calibration.md.

    python benchmarks/calibration.py DATA [DATA …] [--base FOLDER] [--output FILE]
    python benchmarks/calibration.py --table

Scores are those of the default recipe around the untrained encoder, which two CPU cores read with. They are
measured twice: as they are, and as if the user had said how many labels people give a document
(--labels-per-document: the mean over the test documents). *Off* is how far scores are from the share that is
right, in the mean over all suggestions that score .2 or more, taken by ranges of the score. What the output
has already is left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from best import Data, reliability
from poorer import as_table, untrained_encoder
from rows import add_rows, read_rows, tell_left_out
from settle import fused_around

RESULTS = Path(__file__).parent / "results" / "calibration.jsonl"
FOUND_OUT, TOLD = "found out", "told"
# Most pairs score next to nothing, and are of no interest to anyone.
LEAST_SCORE = 0.2
# Where the range around one half begins.
HALF = 0.4


def measure(data: Data, ranker: Any) -> Iterator[dict[str, Any]]:
    from micol.evidence.fused import practice
    from micol.evidence.fusion import learn

    fused = fused_around(data, ranker)
    pairs = fused.gather(list(data.test), ranker)
    evidence = practice(fused.memory, fused.side, ranker, 0)
    given = sum(map(len, data.test.gold)) / len(data.test)
    for number, said in ((0.0, FOUND_OUT), (given, TOLD)):
        fusion = learn(evidence, labels_per_document=number)
        yield {
            "labels per document": said,
            "given": round(given, 2),
            "expected": round(fusion.labels_per_document, 2),
            "bins": reliability(data, pairs, fusion.probabilities(pairs.values)),
        }


def off(bins: Sequence[Mapping[str, float]]) -> float:
    seen = [found for found in bins if found["from"] >= LEAST_SCORE]
    apart = sum(found["pairs"] * abs(found["score"] - found["right"]) for found in seen)
    return apart / max(sum(found["pairs"] for found in seen), 1)


def table(results: Path) -> str:
    cells: dict[str, dict[str, dict[str, Any]]] = {}
    for row in read_rows(results):
        cells.setdefault(row["data"], {})[row["labels per document"]] = row
    rows = []
    for data, said in cells.items():
        found, told = said[FOUND_OUT], said[TOLD]
        rows.append(
            [
                data,
                f"{found['given']:.1f}",
                f"{found['expected']:.1f}",
                *(f"{off(some['bins']):.2f}" for some in (found, told)),
                *(around_half(some["bins"]) for some in (found, told)),
            ]
        )
    titles = ["data", "labels given", "found out", "off", "off, told", "right of .4 to .6", "right, told"]
    return as_table(titles, rows)


def around_half(bins: Sequence[Mapping[str, float]]) -> str:
    """The share of right ones among those whose score is about one half."""
    return next((f"{found['right']:.2f}" for found in bins if found["from"] == HALF), "none")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, nargs="*")
    parser.add_argument("--table", action="store_true", help="only print the results so far as Markdown")
    parser.add_argument("--base")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.table:
        print(table(options.output))
        return
    done = {row["data"] for row in read_rows(options.output)}
    tell_left_out(options.output, sum(folder.name in done for folder in options.data))
    for folder in options.data:
        if folder.name not in done:
            data = Data.read(folder)
            rows = [
                {"data": data.name, **row} for row in measure(data, untrained_encoder(data, options.base))
            ]
            add_rows(options.output, rows)
    print(table(options.output))


if __name__ == "__main__":
    main()
