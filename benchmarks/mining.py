"""Pairs by each of the paper's ten meta-paths: micol against a dictionary-of-sets miner, in one run.

python benchmarks/mining.py [--pairs 55000] [--cap 60]

Makes synthetic corpora of the size of the paper's MAG-CS and PubMed training sets: the same numbers of
documents, authors, venues and edges, power-law degrees, and labs that share authors, venues and references.
Measures, after loading:
- seconds for the pairs of each path, micol and baseline; the baseline stops at the cap, and then its time is
  a lower bound of what it needs;
- the peak memory of a process that reads the PubMed-sized corpus and draws by all ten paths;
- growth: the same work on a tenth of MAG-CS, on MAG-CS, and on ten times as many documents.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from micol.corpus import Corpus
from micol.metapath import PAPER_PATHS
from micol.network import Network
from micol.pairs import draw_pairs

RESULTS = Path(__file__).parent / "results"
REPEATS = 3
FACTORS = (0.1, 1, 10)
LAB_AUTHORS = 20  # people who publish together
TOPIC_LABS = 3  # labs that cite the same papers


class Size(NamedTuple):
    documents: int
    authors: int
    author_edges: int
    venues: int
    links: int

    def times(self, factor: float) -> Size:
        """More of all but the venues, which do not grow with a corpus."""
        return Size(*(n if name == "venues" else int(n * factor) for name, n in self._asdict().items()))


SIZES = {
    "MAG-CS": Size(634_874, 762_259, 2_047_166, 105, 1_219_234),
    "PubMed": Size(808_692, 2_068_411, 5_391_314, 150, 3_615_220),
}


# Synthetic corpora.


def skewed(generator: np.random.Generator, n: int | np.ndarray, size: int, exponent: float) -> np.ndarray:
    """Numbers below n; the k-th is drawn with a probability that falls like k ** -exponent."""
    return (n * generator.random(size) ** (1 / (1 - exponent))).astype(np.int64)


def exactly(wanted: int, required: np.ndarray, draw: Callable[[int], np.ndarray]) -> np.ndarray:
    """Distinct keys, the required ones among them, as many as wanted."""
    keys = np.unique(required)
    while len(keys) < wanted:
        new = np.setdiff1d(draw(2 * (wanted - len(keys)) + 1000), keys)
        keys = np.concatenate([keys, np.random.default_rng(0).permutation(new)[: wanted - len(keys)]])
    return np.sort(keys)


def make_corpus(size: Size, path: Path, seed: int = 0) -> None:
    """Writes documents with authors, a venue and references, and no text, as Parquet."""
    generator = np.random.default_rng(seed)
    documents, labs = size.documents, size.authors // LAB_AUTHORS
    lab = skewed(generator, labs, documents, 0.5)
    home = skewed(generator, size.venues, labs, 0.5)
    venue = np.where(
        generator.random(documents) < 0.6, home[lab], skewed(generator, size.venues, documents, 0.5)
    )

    def authorships(count: int) -> np.ndarray:
        document = skewed(generator, documents, count, 0.2)
        member = skewed(generator, LAB_AUTHORS, count, 0.5)
        return document * size.authors + lab[document] * LAB_AUTHORS + member

    every_author = generator.integers(0, documents, size.authors) * size.authors + np.arange(size.authors)
    written = exactly(size.author_edges, every_author, authorships)

    # Documents of one topic stand together in `by_topic`.
    topic = lab // TOPIC_LABS
    by_topic = np.argsort(topic, kind="stable")
    sizes = np.bincount(topic, minlength=topic.max() + 1)
    starts = np.cumsum(sizes) - sizes
    popular = generator.permutation(documents)

    def citations(count: int) -> np.ndarray:
        source = skewed(generator, documents, count, 0.5)
        near = by_topic[starts[topic[source]] + skewed(generator, sizes[topic[source]], count, 0.5)]
        far = popular[skewed(generator, documents, count, 0.7)]
        target = np.where(generator.random(count) < 0.7, near, far)
        return (source * documents + target)[source != target]

    cited = exactly(size.links, np.empty(0, np.int64), citations)
    ids = names("d", documents)
    table = pa.table(
        {
            "id": ids,
            "title": pa.array(["title"] * documents),
            "authors": lists(documents, *divmod(written, size.authors), names("a", size.authors)),
            "venue": names("v", size.venues).take(pa.array(venue)),
            "references": lists(documents, *divmod(cited, documents), ids),
        }
    )
    pq.write_table(table, path)


def names(prefix: str, count: int) -> pa.StringArray:
    return pa.array([f"{prefix}{number}" for number in range(count)], pa.string())


def lists(rows: int, row: np.ndarray, column: np.ndarray, values: pa.StringArray) -> pa.ListArray:
    """A list of values for each row, from edges sorted by row."""
    offsets = np.searchsorted(row, np.arange(rows + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values.take(pa.array(column)))


# The baseline: dictionaries of sets, a set of partners built for each anchor, then a random choice.


class SetMiner:
    def __init__(self, path: Path) -> None:
        table = pq.read_table(path)
        self.neighbours: dict[str, dict[str, set[str]]] = {}
        ids = table["id"].to_pylist()
        for letter, field in (("A", "authors"), ("V", "venue"), (">", "references")):
            self.neighbours[letter] = {id: as_set(value) for id, value in zip(ids, table[field].to_pylist())}
        for letter, back in (("A", "a"), ("V", "v"), (">", "<")):
            inverse: dict[str, set[str]] = {}
            for id, values in self.neighbours[letter].items():
                for value in values:
                    inverse.setdefault(value, set()).add(id)
            self.neighbours[back] = inverse
        self.ids = ids

    def partners(self, path: str, document: str) -> set[str]:
        hops = HOPS[path]
        if len(hops) == 1:
            found = set(self.neighbours[hops[0]].get(document, ()))
        else:
            first, back, *second = hops
            mine = self.neighbours[first].get(document, set())
            found = set()
            for node in mine:
                found |= self.neighbours[back].get(node, set())
            if second:
                kind, least = second
                others = self.neighbours[kind]
                own = others.get(document, set())
                found = {other for other in found if len(own & others.get(other, set())) >= int(least)}
        found.discard(document)
        return found

    def draw(self, path: str, n: int, cap: float) -> tuple[int, float]:
        """How many pairs were drawn, in how many CPU seconds."""
        generator = random.Random(0)
        began = time.process_time()
        anchors = self.ids[:]
        generator.shuffle(anchors)
        pairs = []
        for anchor in anchors:
            if len(pairs) == n or time.process_time() - began > cap:
                break
            partners = self.partners(path, anchor)
            if partners:
                pairs.append((anchor, generator.choice(list(partners))))
        return len(pairs), time.process_time() - began


# To the shared node, back, and the relation of which two documents must share so many.
HOPS: dict[str, tuple[str, ...]] = {
    "P->P": (">",),
    "P<-P": ("<",),
    "PAP": ("A", "a"),
    "PVP": ("V", "v"),
    "P->P<-P": (">", "<"),
    "P<-P->P": ("<", ">"),
    "P(AA)P": ("A", "a", "A", "2"),
    "P(AV)P": ("A", "a", "V", "1"),
    "P->(PP)<-P": (">", "<", ">", "2"),
    "P<-(PP)->P": ("<", ">", "<", "2"),
}


def as_set(value: str | list[str] | None) -> set[str]:
    return {value} if isinstance(value, str) else set(value or ())


# Measuring.


class Timing(NamedTuple):
    wall: float
    cpu: float


def timed(work: Callable[[], object], repeats: int = REPEATS) -> Timing:
    """The quickest of a few runs: what else the machine does only adds."""
    walls, cpus = [], []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return Timing(min(walls), min(cpus))


def load(path: Path) -> tuple[Network, Timing, Timing]:
    corpora: list[Corpus] = []
    networks: list[Network] = []
    reading = timed(lambda: corpora.append(Corpus.read(path, text=False, cache=False)), 1)
    building = timed(lambda: networks.append(corpora[0].network()), 1)
    return networks[0], reading, building


def warm_up(network: Network) -> None:
    """Compiles the kernels, which happens once on a machine."""
    draw_pairs(network, "PAP", 10)


def paths_of(network: Network, pairs: int) -> Iterator[tuple[str, Timing, int, bool]]:
    for path in PAPER_PATHS:
        drawn = draw_pairs(network, path, pairs)
        seconds = timed(partial(draw_pairs, network, path, pairs))
        yield str(path), seconds, len(drawn.anchor), drawn.exhausted


def measure_size(name: str, path: Path, pairs: int, cap: float) -> dict[str, object]:
    network, reading, building = load(path)
    warm_up(network)
    rows = {}
    for meta_path, seconds, drawn, exhausted in paths_of(network, pairs):
        rows[meta_path] = {"pairs": drawn, "exhausted": exhausted, "wall": seconds.wall, "cpu": seconds.cpu}
        print(name, meta_path, rows[meta_path], flush=True)
    del network
    began = time.process_time()
    miner = SetMiner(path)
    baseline_loading = time.process_time() - began
    for meta_path, row in rows.items():
        drawn, seconds = miner.draw(meta_path, pairs, cap)
        row |= {"baseline_pairs": drawn, "baseline_cpu": seconds, "baseline_capped": seconds > cap}
        print(name, meta_path, "baseline", drawn, round(seconds, 1), flush=True)
    return {
        "size": SIZES[name]._asdict(),
        "reading": reading._asdict(),
        "building": building._asdict(),
        "baseline_loading_cpu": baseline_loading,
        "paths": rows,
    }


def measure_memory(path: Path, pairs: int) -> dict[str, float]:
    """In a process of its own, so that nothing else counts."""
    command = [sys.executable, __file__, "--memory-of", str(path), "--pairs", str(pairs)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def memory_of(path: Path, pairs: int) -> dict[str, float]:
    before = peak_gb()
    network, _, _ = load(path)
    loaded = peak_gb()
    for meta_path in PAPER_PATHS:
        draw_pairs(network, meta_path, pairs)
    return {"libraries_gb": before, "loaded_gb": loaded, "peak_gb": peak_gb()}


def peak_gb() -> float:
    """Linux' own high-water mark of this program; getrusage would count the parent at the fork, too."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e9


def measure_growth(folder: Path, pairs: int) -> list[dict[str, object]]:
    """CPU seconds for all ten paths, with as many pairs, and with pairs in proportion to documents."""
    rows: list[dict[str, object]] = []
    for factor in FACTORS:
        path = folder / f"{factor}.parquet"
        make_corpus(SIZES["MAG-CS"].times(factor), path)
        network, _, building = load(path)
        path.unlink()
        warm_up(network)
        row: dict[str, object] = {"documents": network.n_documents, "building_cpu": building.cpu}
        for name, n in (("same_pairs", pairs), ("pairs_in_proportion", int(pairs * factor))):
            row[name] = {str(p): timed(partial(draw_pairs, network, p, n)).cpu for p in PAPER_PATHS}
        rows.append(row)
        print("growth", row, flush=True)
    return rows


def machine() -> dict[str, object]:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "")
    libraries = {name: version(name) for name in ("numpy", "scipy", "numba", "pyarrow")}
    return {
        "cpu": model or platform.processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **libraries,
    }


# Reporting.


def total(found: dict, key: str) -> float:
    return sum(row[key] for row in found["paths"].values())


def report(results: dict) -> str:
    lines = [
        f"{results['pairs']:,} pairs by each path, after loading; seconds, the quickest of {REPEATS} runs of "
        "micol, one run of the baseline (dictionaries of sets). `python benchmarks/mining.py`.",
    ]
    for name, found in results["sizes"].items():
        size = found["size"]
        lines += [
            "",
            f"{name} size: {size['documents']:,} documents, {size['authors']:,} authors, "
            f"{size['author_edges']:,} authorships, {size['venues']} venues, {size['links']:,} links.",
            "",
            "| path | micol, wall | micol, CPU | baseline, CPU | times faster |",
            "| --- | ---: | ---: | ---: | ---: |",
        ]
        for path, row in found["paths"].items():
            bound = "over " if row["baseline_capped"] else ""
            lines.append(
                f"| `{path}` | {row['wall']:.2f} | {row['cpu']:.2f} | {bound}{row['baseline_cpu']:.1f} "
                f"| {bound}{row['baseline_cpu'] / row['cpu']:,.0f} |"
            )
        ours, theirs = total(found, "cpu"), total(found, "baseline_cpu")
        bound = "over " if any(row["baseline_capped"] for row in found["paths"].values()) else ""
        lines += [
            f"| all ten | {total(found, 'wall'):.2f} | {ours:.2f} | {bound}{theirs:.1f} "
            f"| {bound}{theirs / ours:,.0f} |",
            "",
            f"Loading, CPU: micol reads metadata from Parquet in {found['reading']['cpu']:.1f} s and builds "
            f"the network in {found['building']['cpu']:.1f} s; the baseline takes "
            f"{found['baseline_loading_cpu']:.1f} s.",
        ]
    memory = results["memory"]
    lines += [
        "",
        f"Peak memory of a process that reads the PubMed-sized corpus and draws by all ten paths: "
        f"{memory['peak_gb']:.2f} GB ({memory['libraries_gb']:.2f} GB of it before reading, "
        f"{memory['loaded_gb']:.2f} GB once the network is built).",
        "",
        "Growth, CPU seconds for all ten paths, and times the row above:",
        "",
        f"| documents | network | {results['pairs']:,} pairs | pairs in proportion |",
        "| ---: | ---: | ---: | ---: |",
    ]
    before: list[float] = []
    for row in results["growth"]:
        values = [
            row["building_cpu"],
            sum(row["same_pairs"].values()),
            sum(row["pairs_in_proportion"].values()),
        ]
        cells = [
            f"{value:.2f}" + (f" ({value / old:.1f}x)" if before else "")
            for value, old in zip(values, before or values)
        ]
        lines.append(f"| {row['documents']:,} | {' | '.join(cells)} |")
        before = values
    described = ", ".join(f"{key} {value}" for key, value in results["machine"].items())
    return "\n".join([*lines, "", f"Machine: {described}.", ""])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=55_000)
    parser.add_argument("--cap", type=float, default=60, help="seconds after which the baseline stops")
    parser.add_argument("--memory-of", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of:
        print(json.dumps(memory_of(arguments.memory_of, arguments.pairs)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        results: dict = {"pairs": arguments.pairs, "machine": machine(), "sizes": {}}
        for name, size in SIZES.items():
            path = folder / f"{name}.parquet"
            make_corpus(size, path)
            if name == "PubMed":
                results["memory"] = measure_memory(path, arguments.pairs)
                print(results["memory"], flush=True)
            results["sizes"][name] = measure_size(name, path, arguments.pairs, arguments.cap)
            path.unlink()
        results["growth"] = measure_growth(folder, arguments.pairs)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "mining.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (RESULTS / "mining.md").write_text(report(results), encoding="utf-8")
    print(report(results))


if __name__ == "__main__":
    main()
