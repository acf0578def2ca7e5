"""How well `micol import debian --fetch bookworm` makes the shipped Debian data set again.

    python benchmarks/debian_reproduction.py [DIR]

Compares the shipped set with DIR, the output of an earlier import, or with a fresh one.
Writes benchmarks/results/debian_reproduction.json and .md.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from micol.data import debian
from micol.files import reading

RESULTS = Path(__file__).parent / "results"
Records = dict[str, dict[str, Any]]


def records(path: Path) -> Records:
    with reading(path) as stream:
        return {record["id"]: record for record in map(json.loads, stream)}


def shared(shipped: Records, made: Records, equal: Callable[[Any, Any], bool]) -> float:
    """The share of the records in both sets that are equal in some respect."""
    both = shipped.keys() & made.keys()
    return sum(equal(shipped[key], made[key]) for key in both) / len(both)


def same(*fields: str) -> Callable[[Any, Any], bool]:
    return lambda some, other: all(some.get(field) == other.get(field) for field in fields)


def compared(folder: Path) -> dict[str, float]:
    shipped, made = records(debian().docs), records(folder / "docs.jsonl")
    labels, labels_made = records(debian().labels), records(folder / "labels.jsonl")
    links = {(key, target) for key, record in shipped.items() for target in record["references"]}
    links_made = {(key, target) for key, record in made.items() for target in record["references"]}
    return {
        "documents shipped": len(shipped),
        "documents made": len(made),
        "documents in both": len(shipped.keys() & made.keys()),
        "equal title, abstract, section": shared(shipped, made, same("title", "abstract", "venue")),
        "equal authors": shared(shipped, made, same("authors")),
        "equal labels": shared(shipped, made, same("labels")),
        "equal references": shared(shipped, made, same("references")),
        "references in both / in either": len(links & links_made) / len(links | links_made),
        "labels shipped": len(labels),
        "labels made": len(labels_made),
        "equal names and description": shared(labels, labels_made, same("names", "description")),
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(name)
        if len(sys.argv) == 1:
            micol = Path(sys.executable).with_name("micol")
            subprocess.run([micol, "import", "debian", "--fetch", "bookworm", "-o", name], check=True)
        result = compared(folder)
    machine = f"Python {platform.python_version()}, {platform.system()}"
    RESULTS.mkdir(exist_ok=True)
    content = json.dumps({"machine": machine, "agreement": result}, indent=2)
    (RESULTS / "debian_reproduction.json").write_text(content + "\n", encoding="utf-8")
    rows = [
        f"| {what} | {value:,} |" if value > 1 else f"| {what} | {value:.1%} |"
        for what, value in result.items()
    ]
    table = [
        "| what | agreement |",
        "| --- | --- |",
        *rows,
        "",
        f"Made by `{Path(__file__).name}` ({machine}).",
    ]
    (RESULTS / "debian_reproduction.md").write_text("\n".join(table) + "\n", encoding="utf-8")
    print("\n".join(table))


if __name__ == "__main__":
    main()
