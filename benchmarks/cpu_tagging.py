"""Tagging on a CPU: micol's arithmetics against plain float32 encoding by sentence-transformers.

    python benchmarks/cpu_tagging.py [--repeats 5] [--rivals]

The peer is sentence-transformers as it comes: float32, batches of 32, all cores, the same encoder
(all-MiniLM-L6-v2, cut at 256 tokens) and the same documents. Every repeat runs all ways one after the other,
and the quickest of each counts: by the clock with all cores, and by CPU time with one thread, which other
programs on the machine disturb least. Rankings are compared on all test documents of the Debian data set.
With --rivals, ONNX Runtime and OpenVINO run along (see cpu_rivals.py for what to install).
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

import cpu_rivals
import micol
from micol.data import debian
from micol.machine import machine
from micol.progress import say
from micol.rank.base import resolve_base
from micol.rank.bi_encoder import BiEncoder
from micol.rank.encoder import Encoder
from micol.rank.runtime import VARIABLE
from micol.ranking import rank_by_cosine
from micol.retrieve import BM25, ExactMatcher, retrieve

RESULTS = Path(__file__).parent / "results"
MAX_TOKENS = 256
DOCUMENTS = {"descriptions": 192, "256 tokens": 96}
PEER, OURS, TAGGING = (
    "sentence-transformers, float32",
    "micol, int8",
    "micol, int8, tagging by the encoder alone",
)
PRECISIONS = {"micol, float32": "float32", "micol, bfloat16": "bfloat16", OURS: "int8"}
SPEED_GOAL, PRECISION_GOAL = 2.5, 0.005

Encode = Callable[[list[str]], np.ndarray]


def settled(base: str, precision: str) -> BiEncoder:
    os.environ[VARIABLE] = precision
    encoder = Encoder.load(base, MAX_TOKENS)
    encoder.settle()
    del os.environ[VARIABLE]
    return BiEncoder(encoder, "mean")


def long_texts(texts: list[str], number: int, encoder: Encoder) -> list[str]:
    """Descriptions joined until they fill the encoder."""
    joined, stream = [], iter(texts)
    for _ in range(number):
        text = next(stream)
        while not encoder.count_longer([text], MAX_TOKENS - 2):
            text += f"\n{next(stream)}"
        joined.append(text)
    return joined


def measured(
    ways: dict[str, Callable[[list[str]], Any]], texts: list[str], repeats: int
) -> dict[str, dict[str, float]]:
    """Seconds of each way by the clock and of the CPU: the least of interleaved repeats."""
    seconds: dict[str, dict[str, float]] = {name: {"wall": np.inf, "cpu": np.inf} for name in ways}
    for repeat in range(-1, repeats):  # the first is for warming up
        for name, way in ways.items():
            wall, cpu = time.perf_counter(), time.process_time()
            way(texts)
            taken = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
            if repeat >= 0:
                seconds[name] = {clock: min(seconds[name][clock], taken[clock]) for clock in taken}
    return seconds


def speed(
    samples: dict[str, list[str]], ways: dict[str, Callable[[list[str]], Any]], clock: str, repeats: int
) -> dict[str, Any]:
    """Documents a second of every way, and how many times the peer's that is."""
    rates: dict[str, Any] = {name: {} for name in ways}
    for kind, texts in samples.items():
        say(f"timing {kind} with {torch.get_num_threads()} thread(s)")
        seconds = measured(ways, texts, repeats)
        for name in ways:
            rates[name][kind] = {
                "documents_per_second": round(len(texts) / seconds[name][clock], 1),
                "ratio": round(seconds[PEER][clock] / seconds[name][clock], 2),
            }
    return rates


def quality(test: micol.Corpus, labels: micol.LabelSpace, ways: dict[str, Encode]) -> dict[str, Any]:
    """How well each way ranks the candidates of the test documents, and how near its vectors are."""
    texts, label_texts = test.texts(), labels.texts()
    candidates = retrieve(texts, exact=ExactMatcher(labels.names), bm25=BM25(label_texts)).candidates
    found: dict[str, Any] = {}
    peer_vectors, peer_tops = np.empty(0), np.empty(0)
    for name, encode in ways.items():
        say(f"ranking by {name}")
        vectors = encode(texts)
        ranking = rank_by_cosine(vectors, encode(label_texts).astype(np.float16), candidates)
        rows = [ranking.row(row)[0] for row in range(len(test))]
        predictions = {
            identifier: [labels.ids[label] for label in row]
            for identifier, row in zip(test.ids, rows, strict=True)
        }
        tops = np.array([row[0] if len(row) else -1 for row in rows])
        if name == PEER:
            peer_vectors, peer_tops = vectors, tops
        cosines = (vectors * peer_vectors).sum(axis=1)
        scores = micol.evaluate(predictions, test)
        found[name] = {
            **{measure: round(scores[measure], 4) for measure in ("P@1", "NDCG@5")},
            "least_cosine": round(float(cosines.min()), 4),
            "mean_cosine": round(float(cosines.mean()), 4),
            "same_top": round(float((tops == peer_tops).mean()), 4),
        }
    return found


def run(repeats: int, with_rivals: bool) -> dict[str, Any]:
    files, base = debian(), resolve_base(None)
    corpus, labels = micol.Corpus.read(files.docs), micol.LabelSpace.read(files.labels)
    tested = [corpus.position(name) for name in files.test_ids.read_text(encoding="utf-8").split()]
    test = corpus.select(tested)
    others = corpus.select(np.setdiff1d(np.arange(len(corpus)), tested)[: cpu_rivals.CALIBRATION_TEXTS])
    threads, load = torch.get_num_threads(), os.getloadavg()[0]

    peer = SentenceTransformer(base, device="cpu")
    assert peer.max_seq_length == MAX_TOKENS
    ours = {name: settled(base, precision) for name, precision in PRECISIONS.items()}
    encoder = ours["micol, float32"].encoder
    ways: dict[str, Encode] = {PEER: lambda texts: peer.encode(texts, show_progress_bar=False)}
    ways |= {name: ranker.vectors for name, ranker in ours.items()}
    model = micol.train(corpus, labels, "P->P", init_only=True, max_tokens=MAX_TOKENS)

    def tag(texts: list[str]) -> list[Any]:
        records = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
        return list(model.suggest(micol.Corpus.from_records(records), limit=5))

    shuffled = [test.texts()[i] for i in np.random.default_rng(0).permutation(len(test))]
    samples = {
        "descriptions": shuffled[: DOCUMENTS["descriptions"]],
        "256 tokens": long_texts(shuffled, DOCUMENTS["256 tokens"], encoder),
    }
    result: dict[str, Any] = {
        "command": f"python benchmarks/cpu_tagging.py{' --rivals' * with_rivals}",
        "machine": machine("torch", "transformers", "sentence-transformers", "numba"),
        "other_load": round(load, 1),
        "threads": threads,
        "repeats": repeats,
        "documents": {
            kind: {"number": len(texts), "mean_tokens": mean_tokens(texts, encoder)}
            for kind, texts in samples.items()
        },
    }
    for name, number, clock in (("all_cores", threads, "wall"), ("one_thread", 1, "cpu")):
        torch.set_num_threads(number)
        rivals = cpu_rivals.rivals(base, encoder, others.texts(), number) if with_rivals else {}
        ways |= {rival: padded.vectors for rival, padded in rivals.items()}
        result[name] = speed(samples, {**ways, TAGGING: tag}, clock, repeats)
    torch.set_num_threads(threads)
    result["quality"] = quality(test, labels, ways)
    return result


def mean_tokens(texts: list[str], encoder: Encoder) -> int:
    return round(float(np.mean([len(tokens) + 2 for tokens in encoder.tokenize(texts)])))


def table(result: dict[str, Any]) -> str:
    kinds = result["documents"]
    described = " and ".join(
        f"{kind['number']} documents of {kind['mean_tokens']} tokens" for kind in kinds.values()
    )
    lines = [
        f"{described.capitalize()} on average, from the Debian data set; all-MiniLM-L6-v2, least of "
        f"{result['repeats']} interleaved repeats; `{result['command']}`. Ratios are against "
        "sentence-transformers in the same run; tagging takes retrieval and ranking along, the others only "
        "encode.",
    ]  # fmt: skip
    for name, title in (
        ("all_cores", f"Documents a second by the clock, {result['threads']} threads"),
        ("one_thread", "Documents a CPU second, one thread"),
    ):
        header = " | ".join(f"{kind} | ratio" for kind in kinds)
        lines += ["", f"{title}:", "", f"| | {header} |", f"| --- {'| ---: | ---: ' * len(kinds)}|"]
        for way, rates in result[name].items():
            cells = (f"{rates[kind]['documents_per_second']:,} | {rates[kind]['ratio']}" for kind in kinds)
            lines.append(f"| {way} | {' | '.join(cells)} |")
    lines += [
        "",
        "Rankings of all 1,678 test documents' candidates, and vectors beside those of the peer:",
        "",
        "| | P@1 | NDCG@5 | least cosine | mean cosine | same first label |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        *(f"| {way} | {' | '.join(map(str, row.values()))} |" for way, row in result["quality"].items()),
        "",
        f"Machine: {', '.join(f'{key} {value}' for key, value in result['machine'].items())}; load by other "
        f"processes {result['other_load']}.",
    ]
    return "\n".join(lines)


def shortcomings(result: dict[str, Any]) -> list[str]:
    found = [
        f"{way}: {rates[kind]['ratio']} times the peer on {kind} ({name}), the goal is {SPEED_GOAL}"
        for name in ("all_cores", "one_thread")
        for way, rates in result[name].items()
        if way in (OURS, TAGGING)
        for kind in rates
        if rates[kind]["ratio"] < SPEED_GOAL
    ]
    lost = result["quality"][PEER]["P@1"] - result["quality"][OURS]["P@1"]
    return found + ([f"int8 loses {lost} of P@1"] if lost > PRECISION_GOAL else [])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rivals", action="store_true", help="time ONNX Runtime and OpenVINO, too")
    parser.add_argument("--output", type=Path, default=RESULTS)
    settings = parser.parse_args()
    if settings.rivals and not cpu_rivals.are_installed():
        raise SystemExit(f"pip install {' '.join(cpu_rivals.LIBRARIES)}")
    result = run(settings.repeats, settings.rivals)
    settings.output.mkdir(parents=True, exist_ok=True)
    (settings.output / "cpu_tagging.json").write_text(json.dumps(result, indent=2) + "\n")
    (settings.output / "cpu_tagging.md").write_text(table(result) + "\n")
    print(table(result))
    for shortcoming in shortcomings(result):
        raise SystemExit(shortcoming)


if __name__ == "__main__":
    main()
