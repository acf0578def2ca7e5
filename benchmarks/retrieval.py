"""Retrieval: BM25 against bm25s, exact matching against Aho-Corasick libraries and a plain trie, in one run.

pip install --group benchmark
python benchmarks/retrieval.py [--repeats 5]

Texts are Debian package descriptions, which ship with micol, joined and cut to length. Every repeat runs all
ways one after the other on one thread, and the least CPU time of each counts. All ways must find the same.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

# Before numpy and its friends are loaded.
os.environ.update({f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")})

import ahocorasick
import ahocorasick_rs
import bm25s
import numpy as np

from micol.corpus import Corpus
from micol.data import debian
from micol.machine import machine
from micol.progress import say
from micol.retrieve import BM25, ExactMatcher
from micol.retrieve.stop_words import ENGLISH
from micol.retrieve.tokens import words

RESULTS = Path(__file__).parent / "results"
LABELS, QUERIES, TOP = 17_963, 2_500, 100
NAMES, DOCUMENTS, LENGTH = 90_000, 5_000, 200
EXACT_GOAL = 8_000  # documents a second
REBUILD_LABELS, REBUILD_GOAL = 100_000, 2.0  # seconds
LIBRARIES = ("numpy", "numba", "bm25s", "ahocorasick_rs", "pyahocorasick")

WORD_OR_SIGN = re.compile(r"\w+|\W")

Match = Counter[int]  # name -> occurrences


def text_words() -> list[str]:
    """All words of the descriptions in order, as written, ASCII alone, which all libraries read alike."""
    text = " ".join(Corpus.read(debian().docs).texts())
    return text.encode("ascii", "ignore").decode().split()


def documents_of(stream: list[str], number: int, length: int, rng: np.random.Generator) -> list[str]:
    starts = rng.integers(0, len(stream) - length, number)
    return [" ".join(stream[start : start + length]) for start in starts]


def label_texts(stream: list[str], number: int, rng: np.random.Generator) -> list[str]:
    """Names and descriptions as long as those of MeSH: 27 words on average."""
    lengths = np.clip(rng.gamma(1.6, 17, number), 1, 150).astype(int)
    starts = rng.integers(0, len(stream) - 150, number)
    return [" ".join(stream[start : start + length]) for start, length in zip(starts, lengths)]


def phrases(stream: list[str], number: int, rng: np.random.Generator) -> list[str]:
    """Distinct names: a fifth of them single words, the others two to four words that follow each other, and
    that neither begin nor end with a stop word.
    """
    single = sorted({bare(word) for word in stream} - ENGLISH - {""})
    found = dict.fromkeys(rng.choice(single, number // 5, replace=False).tolist())
    while len(found) < number:
        start, size = int(rng.integers(0, len(stream) - 4)), int(rng.choice([2, 3, 4], p=[0.6, 0.3, 0.1]))
        phrase = bare(" ".join(stream[start : start + size]))
        if not {phrase.split(" ")[0], phrase.split(" ")[-1], phrase} & {*ENGLISH, ""}:
            found[phrase] = None
    return list(found)


def bare(text: str) -> str:
    return text.lower().strip(" .,;:!?()[]\"'")


def is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def on_boundaries(text: str, start: int, end: int) -> bool:
    if start > 0 and is_word(text[start]) and is_word(text[start - 1]):
        return False
    return not (end < len(text) and is_word(text[end - 1]) and is_word(text[end]))


def with_ahocorasick_rs(names: list[str]) -> Callable[[list[str]], list[Match]]:
    automaton = ahocorasick_rs.AhoCorasick(
        names, implementation=ahocorasick_rs.Implementation.ContiguousNFA, store_patterns=False
    )

    def match(texts: list[str]) -> list[Match]:
        found = []
        for text in texts:
            text = text.lower()
            hits = automaton.find_matches_as_indexes(text, overlapping=True)
            found.append(Counter(name for name, start, end in hits if on_boundaries(text, start, end)))
        return found

    return match


def with_pyahocorasick(names: list[str]) -> Callable[[list[str]], list[Match]]:
    automaton = ahocorasick.Automaton()
    for number, name in enumerate(names):
        automaton.add_word(name, (number, len(name)))
    automaton.make_automaton()

    def match(texts: list[str]) -> list[Match]:
        found = []
        for text in texts:
            text = text.lower()
            hits = ((name, last + 1 - length, last + 1) for last, (name, length) in automaton.iter(text))
            found.append(Counter(name for name, start, end in hits if on_boundaries(text, start, end)))
        return found

    return match


def with_trie(names: list[str]) -> Callable[[list[str]], list[Match]]:
    trie: dict[Any, Any] = {}
    for number, name in enumerate(names):
        node = trie
        for piece in WORD_OR_SIGN.findall(name):
            node = node.setdefault(piece, {})
        node[None] = number

    def match(texts: list[str]) -> list[Match]:
        found = []
        for text in texts:
            parts, hits = WORD_OR_SIGN.findall(text.lower()), []
            for start, part in enumerate(parts):
                node, end = trie.get(part), start
                while node is not None:
                    if None in node:
                        hits.append(node[None])
                    end += 1
                    node = node.get(parts[end]) if end < len(parts) else None
            found.append(Counter(hits))
        return found

    return match


def least_cpu_seconds(ways: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    best = dict.fromkeys(ways, float("inf"))
    for repeat in range(repeats):
        for name, way in ways.items():
            say(f"repeat {repeat + 1}: {name}")
            start = time.process_time()
            way()
            best[name] = min(best[name], time.process_time() - start)
    return best


def exact_speed(stream: list[str], repeats: int, rng: np.random.Generator) -> dict[str, Any]:
    half = len(stream) // 2
    names = phrases(stream[:half], NAMES, rng)
    texts = documents_of(stream[half:], DOCUMENTS, LENGTH, rng)
    peers = {
        "ahocorasick_rs": with_ahocorasick_rs(names),
        "pyahocorasick": with_pyahocorasick(names),
        "plain Python trie": with_trie(names),
    }
    matcher = ExactMatcher([[name] for name in names])
    matches = matcher.match(texts)
    ours = [set(matches.labels[start:end].tolist()) for start, end in pairwise(matches.indptr)]
    for name, peer in peers.items():
        assert [set(found) for found in peer(texts)] == ours, name
    ways = {"micol": lambda: matcher.match(texts, threads=1)}
    ways |= {name: (lambda peer=peer: peer(texts)) for name, peer in peers.items()}
    seconds = least_cpu_seconds(ways, repeats)
    return {
        "names": len(names),
        "documents": DOCUMENTS,
        "words_a_document": LENGTH,
        "matches_a_document": round(len(matches.labels) / DOCUMENTS, 1),
        "documents_per_cpu_s": {name: round(DOCUMENTS / value) for name, value in seconds.items()},
    }


def bm25_speed(stream: list[str], repeats: int, rng: np.random.Generator) -> dict[str, Any]:
    labels = label_texts(stream, LABELS, rng)
    texts = documents_of(stream, QUERIES, 212, rng)
    ours = BM25(labels)
    # Each distinct word counts once, as in the paper's sum; bm25s gets the words ready made.
    queries = [sorted(set(words(text))) for text in texts]
    peers = {}
    for backend in ("numba", "numpy"):
        peer = bm25s.BM25(method="lucene", k1=1.5, b=0.75, backend=backend)
        peer.index([words(text) for text in labels], show_progress=False)
        peers[backend] = peer

    def search(backend: str) -> Any:
        return peers[backend].retrieve(queries, k=TOP, show_progress=False, n_threads=0)

    ranking = ours.search(texts, TOP)
    # Labels of (nearly) one score may change places, so the scores are compared.
    scores = ranking.scores.reshape(QUERIES, TOP)
    agreement = {backend: float(np.abs(search(backend).scores * 2.5 / scores - 1).max()) for backend in peers}
    assert max(agreement.values()) < 1e-5, agreement
    ways = {
        "micol, from texts": lambda: ours.search(texts, TOP, threads=1),
        "bm25s (numba), from words": lambda: search("numba"),
        "bm25s (numpy), from words": lambda: search("numpy"),
    }
    seconds = least_cpu_seconds(ways, repeats)
    return {
        "labels": LABELS,
        "words_a_label": round(sum(len(text.split()) for text in labels) / LABELS, 1),
        "queries": QUERIES,
        "words_a_query": 212,
        "top": TOP,
        "greatest_relative_difference_of_scores": max(agreement.values()),
        "queries_per_cpu_s": {name: round(QUERIES / value) for name, value in seconds.items()},
    }


def growth(labels: int) -> dict[str, Any]:
    """Index and search a label space in this process: CPU seconds and peak memory."""
    rng = np.random.default_rng(1)
    stream = text_words()
    texts, names = label_texts(stream, labels, rng), phrases(stream, min(labels // 4, 200_000), rng)
    # Three names a label, made distinct by a number.
    of_label = [[f"{names[(i + k) % len(names)]} {i}" for k in range(3)] for i in range(labels)]
    documents = documents_of(stream, 1_000, LENGTH, rng)
    BM25(texts[:10]).search(documents[:10])
    ExactMatcher(of_label[:10]).match(documents[:10])

    def timed(way: Callable[[], Any]) -> tuple[Any, float]:
        start = time.process_time()
        result = way()
        return result, round(time.process_time() - start, 3)

    bm25, bm25_build = timed(lambda: BM25(texts))
    matcher, exact_build = timed(lambda: ExactMatcher(of_label))
    _, bm25_search = timed(lambda: bm25.search(documents, 50, threads=1))
    _, exact_search = timed(lambda: matcher.match(documents, threads=1))
    arrays = [*bm25.index, *bm25.vocabulary, *matcher.table, *matcher.owners]
    return {
        "labels": labels,
        "names": 3 * labels,
        "build_bm25_s": bm25_build,
        "build_exact_s": exact_build,
        "bm25_documents_per_s": round(len(documents) / bm25_search),
        "exact_documents_per_s": round(len(documents) / exact_search),
        "indices_mb": round(sum(array.nbytes for array in arrays) / 1e6),
        "peak_mb_of_the_process": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def growth_apart(labels: int) -> dict[str, Any]:
    """In a process of its own, so that memory is its own."""
    say(f"a space of {labels:,} labels")
    run = subprocess.run([sys.executable, __file__, "--growth", str(labels)], check=True, capture_output=True)
    result: dict[str, Any] = json.loads(run.stdout)
    return result


def table(result: dict[str, Any]) -> str:
    bm25, exact = result["bm25"], result["exact"]
    peer = bm25["queries_per_cpu_s"]["bm25s (numba), from words"]
    rate = exact["documents_per_cpu_s"]["micol"]
    return "\n".join(
        [
            f"One thread, least CPU time of {result['repeats']} repeats; `python benchmarks/retrieval.py`.",
            "",
            f"BM25: {bm25['queries']:,} documents of {bm25['words_a_query']} words as queries against "
            f"{bm25['labels']:,} labels of {bm25['words_a_label']} words, top {bm25['top']}; the scores "
            f"agree to {bm25['greatest_relative_difference_of_scores']:.0e}.",
            "",
            "| | queries a CPU second | against bm25s (numba) |",
            "| --- | ---: | ---: |",
            *(f"| {name} | {n:,} | {n / peer:.1f} |" for name, n in bm25["queries_per_cpu_s"].items()),
            "",
            f"Exact matching: {exact['names']:,} names, {exact['documents']:,} documents of "
            f"{exact['words_a_document']} words, {exact['matches_a_document']} names found in each; "
            "all find the same.",
            "",
            "| | documents a CPU second | times slower |",
            "| --- | ---: | ---: |",
            *(f"| {name} | {n:,} | {rate / n:.1f} |" for name, n in exact["documents_per_cpu_s"].items()),
            "",
            "Larger label spaces (27 words and three names a label), CPU seconds, memory of both indices:",
            "",
            "| labels | names | index BM25 | index names | BM25 docs/s | exact docs/s | memory |",
            "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
            *(
                f"| {row['labels']:,} | {row['names']:,} | {row['build_bm25_s']:.2f} s | "
                f"{row['build_exact_s']:.2f} s | {row['bm25_documents_per_s']:,} | "
                f"{row['exact_documents_per_s']:,} | {row['indices_mb']:,} MB |"
                for row in result["growth"]
            ),
            "",
            f"Machine: {', '.join(f'{key} {value}' for key, value in result['machine'].items())}; load by "
            f"other processes {result['other_load']}.",
        ]
    )


def shortcomings(result: dict[str, Any]) -> list[str]:
    speeds = result["bm25"]["queries_per_cpu_s"]
    ours, rate = speeds.pop("micol, from texts"), result["exact"]["documents_per_cpu_s"]["micol"]
    rebuilt = next(row for row in result["growth"] if row["labels"] == REBUILD_LABELS)
    seconds = rebuilt["build_bm25_s"] + rebuilt["build_exact_s"]
    checks = {
        f"BM25: {ours} queries a second, bm25s {max(speeds.values())}": ours >= max(speeds.values()),
        f"exact matching: {rate} documents a second, the goal is {EXACT_GOAL}": rate >= EXACT_GOAL,
        f"indexing {REBUILD_LABELS} labels: {seconds} s, the goal is {REBUILD_GOAL}": seconds < REBUILD_GOAL,
    }
    return [what for what, reached in checks.items() if not reached]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--growth", type=int, help="Only index this many labels, and print what it took.")
    parser.add_argument("--output", type=Path, default=RESULTS)
    settings = parser.parse_args()
    if settings.growth:
        print(json.dumps(growth(settings.growth)))
        return
    other_load, rng, stream = os.getloadavg()[0], np.random.default_rng(0), text_words()
    result = {
        "machine": machine(*LIBRARIES),
        "other_load": round(other_load, 1),
        "repeats": settings.repeats,
        "bm25": bm25_speed(stream, settings.repeats, rng),
        "exact": exact_speed(stream, settings.repeats, rng),
        "growth": [growth_apart(labels) for labels in (10_000, REBUILD_LABELS, 1_000_000)],
    }
    settings.output.mkdir(parents=True, exist_ok=True)
    (settings.output / "retrieval.json").write_text(json.dumps(result, indent=2) + "\n")
    (settings.output / "retrieval.md").write_text(table(result) + "\n")
    print(table(result))
    for shortcoming in shortcomings(result):
        raise SystemExit(shortcoming)


if __name__ == "__main__":
    main()
