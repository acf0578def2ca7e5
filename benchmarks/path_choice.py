"""How well the path that is chosen without labels agrees with the truth: a table of docs/best.md.

    python benchmarks/path_choice.py

Compares the scores in the training reports of results/best.jsonl with the NDCG@5 of the bi-encoders that were
trained on each path, the mean over seeds in results/classifier.jsonl.
"""

from __future__ import annotations

import re
from pathlib import Path

from rows import read_rows

RESULTS = Path(__file__).parent / "results"
JUDGED = re.compile(r"(?:not )?trained on (\S+): .* score (-?[\d.]+)")
HELPED = "training helped"


def trained() -> dict[str, dict[str, float]]:
    """For each data set the mean NDCG@5 of the default recipe's bi-encoder by path."""
    found: dict[str, dict[str, list[float]]] = {}
    for row in read_rows(RESULTS / "classifier.jsonl"):
        if (row["recipe"], row["architecture"], row["changed"]) == ("best", "bi", "{}"):
            found.setdefault(row["data"], {}).setdefault(row["path"], []).append(row["scores"]["NDCG@5"])
    return {
        data: {path: sum(scores) / len(scores) for path, scores in paths.items()}
        for data, paths in found.items()
    }


def main() -> None:
    from scipy.stats import spearmanr

    truth = trained()
    print("| data | seed | kept | NDCG@5 | best path | its NDCG@5 | paths judged | rank correlation |")
    print("| --- " * 8 + "|")
    for row in read_rows(RESULTS / "best.jsonl"):
        if row["system"] != "best":
            continue
        of_path = truth[row["data"]]
        judged = {found[1]: float(found[2]) for line in row["report"] if (found := JUDGED.match(line))}
        helped = any(line.startswith(HELPED) for line in row["report"])
        kept = max(judged, key=judged.__getitem__) if helped else "untrained"
        best = max(of_path, key=of_path.__getitem__)
        correlation = spearmanr(list(judged.values()), [of_path[path] for path in judged]).statistic
        print(
            f"| {row['data']} | {row['seed']} | {shown(kept)} | {of_path[kept]:.3f} | {shown(best)} "
            f"| {of_path[best]:.3f} | {len(judged)} | {correlation:.2f} |"
        )


def shown(path: str) -> str:
    return path if path == "untrained" else f"`{path}`"


if __name__ == "__main__":
    main()
