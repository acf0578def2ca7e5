"""Reading a corpus: micol against a json.loads loop that builds dictionaries, in one run.

python benchmarks/reading.py [--documents 300000 --repeats 5]

The file is synthetic and has the proportions of MAG-CS: texts of 126 words, authors, one of 105 venues,
references and labels. Every repeat runs all ways one after the other, and the best wall-clock time of each
counts. What the compiled scanner costs once is measured apart, in processes of its own.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.json

from micol import Corpus
from micol.machine import machine

RESULTS = Path(__file__).parent / "results"
WORDS_IN_TITLE, WORDS = 10, 126
GOALS = {"all columns": 4.0, "again, from the cache": 20.0}


def write_corpus(path: Path, documents: int) -> None:
    """JSON Lines with power-law words, authors and references."""
    random = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = ["".join(random.choice(letters, size)) for size in random.integers(2, 12, 30_000)]
    n_authors = int(1.2 * documents)

    def some(mean: float, most: int) -> list[str]:
        return [str(10**9 + n) for n in (most * random.random(random.poisson(mean)) ** 2).astype(int)]

    with path.open("w") as stream:
        for number in range(documents):
            chosen = [words[n] for n in (len(words) * random.random(WORDS) ** 3).astype(int)]
            identifier = str(10**9 + number)
            record = {
                "id": identifier,
                "title": " ".join(chosen[:WORDS_IN_TITLE]).capitalize(),
                "abstract": " ".join(chosen[WORDS_IN_TITLE:]).capitalize() + ".",
                "authors": some(3.2, n_authors),
                "venue": f"Venue {int(105 * random.random() ** 2)}",
                "references": [name for name in some(1.9, documents) if name != identifier],
                "labels": some(5.6, 15_809),
            }
            stream.write(json.dumps(record) + "\n")


def json_loop(path: Path) -> dict[str, dict[str, Any]]:
    documents = {}
    with path.open("rb") as stream:
        for line in stream:
            record = json.loads(line)
            documents[record["id"]] = record
    return documents


class Best(NamedTuple):
    """The least seconds of several repeats: on the clock, and of all cores together."""

    wall: float
    cpu: float


def best_times(ways: dict[str, Callable[[], object]], repeats: int) -> dict[str, Best]:
    best = dict.fromkeys(ways, Best(float("inf"), float("inf")))
    for _ in range(repeats):
        for name, way in ways.items():
            gc.collect()
            wall, cpu = time.perf_counter(), time.process_time()
            result = way()
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            del result
            best[name] = Best(min(best[name].wall, wall), min(best[name].cpu, cpu))
    return best


def scanner_start(numba_cache: Path) -> float:
    """Seconds until a new process has scanned its first line."""
    program = (
        "import time; start = time.perf_counter()\n"
        "from micol.scan import scanned\n"
        "from micol.corpus import document_layout, DEFAULT_SCHEMA\n"
        "scanned(b'{\"id\": 1}', 1, 0, document_layout(DEFAULT_SCHEMA))\n"
        "print(time.perf_counter() - start)"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(numba_cache)}
    run = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True)
    return float(run.stdout)


def measure(documents: int, repeats: int, folder: Path) -> dict[str, Any]:
    os.environ["MICOL_CACHE"] = str(folder / "cache")
    other_load = os.getloadavg()[0]
    path = folder / "docs.jsonl"
    write_corpus(path, documents)
    compiled, loaded = scanner_start(folder / "numba"), scanner_start(folder / "numba")

    expected = json_loop(path)
    corpus = Corpus.read(path)  # also makes the cache, and loads the scanner
    assert corpus.ids == list(expected)
    assert corpus.texts() == [f"{record['title']}\n{record['abstract']}" for record in expected.values()]
    authors = [tuple(dict.fromkeys(record["authors"])) for record in expected.values()]
    assert [document.metadata["authors"] for document in corpus] == authors
    del expected, corpus, authors

    def first_read() -> Corpus:
        for file in (folder / "cache" / "tables").iterdir():
            file.unlink()
        return Corpus.read(path)

    best = best_times(
        {
            "json.loads loop": lambda: json_loop(path),
            "pyarrow.json, unchecked": lambda: pyarrow.json.read_json(path),
            "all columns": lambda: Corpus.read(path, cache=False),
            "metadata alone": lambda: Corpus.read(path, cache=False, text=False),
            "all columns, and kept in the cache": first_read,
            "again, from the cache": lambda: Corpus.read(path),
        },
        repeats,
    )
    return {
        "machine": machine("numpy", "numba", "pyarrow"),
        "documents": documents,
        "repeats": repeats,
        "megabytes": round(path.stat().st_size / 1e6),
        "other_load": round(other_load, 1),
        "wall_s": {name: round(seconds.wall, 4) for name, seconds in best.items()},
        "cpu_s": {name: round(seconds.cpu, 4) for name, seconds in best.items()},
        "times_faster_than_json_loop": {
            name: round(best["json.loads loop"].wall / seconds.wall, 1) for name, seconds in best.items()
        },
        "cache_times_faster_than_first_read": round(
            best["all columns, and kept in the cache"].wall / best["again, from the cache"].wall, 1
        ),
        "scanner_compiled_once_s": round(compiled, 2),
        "scanner_loaded_once_a_process_s": round(loaded, 2),
    }


def table(result: dict[str, Any]) -> str:
    wall, cpu, ratios = result["wall_s"], result["cpu_s"], result["times_faster_than_json_loop"]
    rows = [f"| {name} | {wall[name]:.2f} | {cpu[name]:.2f} | {ratios[name]:.1f} |" for name in wall]
    return "\n".join(
        [
            f"{result['documents']:,} documents, {result['megabytes']:,} MB of JSON Lines, best of "
            f"{result['repeats']} repeats; `python benchmarks/reading.py`.",
            "",
            "| | wall s | CPU s | times faster than the loop (wall) |",
            "| --- | ---: | ---: | ---: |",
            *rows,
            "",
            f"The cache is {result['cache_times_faster_than_first_read']:.0f} times faster than reading. "
            f"The scanner takes {result['scanner_loaded_once_a_process_s']:.1f} s to load in a process, "
            f"and {result['scanner_compiled_once_s']:.1f} s when it is compiled, once after installation; "
            "files under 32 MB do without it. "
            f"Machine: {', '.join(f'{key} {value}' for key, value in result['machine'].items())}; "
            f"load by other processes {result['other_load']}.",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=300_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULTS)
    settings = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = measure(settings.documents, settings.repeats, Path(folder))
    settings.output.mkdir(parents=True, exist_ok=True)
    (settings.output / "reading.json").write_text(json.dumps(result, indent=2) + "\n")
    (settings.output / "reading.md").write_text(table(result) + "\n")
    print(table(result))
    reached = {
        "all columns": result["times_faster_than_json_loop"]["all columns"],
        "again, from the cache": result["cache_times_faster_than_first_read"],
    }
    for name, goal in GOALS.items():
        if reached[name] < goal:
            raise SystemExit(f"{name}: only {reached[name]} times faster; the goal is {goal:.0f}")


if __name__ == "__main__":
    main()
