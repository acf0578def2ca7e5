"""Pair mining on DuckDB and Spark against the embedded engine, on a network of up to ten million documents.

python benchmarks/mining_scale.py [--engine embedded,duckdb,spark] [--partitions 1,2,4] [--path PAP,...]

Makes a synthetic network in four partitions of 2.5 million documents each, whose venues, authors and
references have power-law degrees: the largest venue has a tenth of the documents, the most cited document is
cited by four in a hundred. Draws 50,000 pairs by each path from the first one, two and four partitions. A
measurement is a process of its own, as a user starts it: reading, drawing and writing are all in it. What has
been measured is kept in results/mining_scale.json and not measured again, so that it can be run in pieces.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from micol.machine import machine

RESULTS = Path(__file__).parent / "results"
PARTITION = 2_500_000
PARTITIONS = (1, 2, 4)
PATHS = ("PAP", "PVP", "P->P<-P", "P(AA)P")
ENGINES = ("embedded", "duckdb", "spark")
PAIRS = 50_000
MEMORY_LIMIT = "3GB"
VENUES, LABS, LAB_AUTHORS, TOPIC = 2_000, 50_000, 20, 500
ENGINE_NAMES = {"embedded": "embedded", "duckdb": f"DuckDB, {MEMORY_LIMIT}", "spark": "Spark, local"}


# The network.


def skewed(generator: np.random.Generator, n: int, size: int, exponent: float) -> np.ndarray:
    """Numbers below n; the k-th is drawn with a probability that falls like k ** -exponent."""
    return (n * generator.random(size) ** (1 / (1 - exponent))).astype(np.int64)


def names(prefix: str, numbers: np.ndarray) -> pa.Array:
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "")


def lists(counts: np.ndarray, values: pa.Array) -> pa.ListArray:
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), values)


def make_partition(number: int, path: Path) -> None:
    """Documents that cite those of this partition and of the ones before it."""
    generator = np.random.default_rng(number)
    known, first = (number + 1) * PARTITION, number * PARTITION
    documents = np.arange(first, known)
    lab = skewed(generator, (number + 1) * LABS, PARTITION, 0.3)
    n_authors = generator.integers(1, 6, PARTITION)
    members = skewed(generator, LAB_AUTHORS, int(n_authors.sum()), 0.4)
    authors = np.repeat(lab, n_authors) * LAB_AUTHORS + members
    n_cited = generator.integers(0, 11, PARTITION)
    citing = np.repeat(documents, n_cited)
    count = len(citing)
    # Near documents share a topic, which is a run of numbers; the popular ones are cited by everybody.
    near = citing // TOPIC * TOPIC + skewed(generator, TOPIC, count, 0.5)
    popular = skewed(generator, known, count, 0.75) * 7_919 % known
    cited = np.where(generator.random(count) < 0.6, near, popular)
    # Nobody cites oneself.
    cited = np.where(cited == citing, (citing + 1) % known, cited)
    table = pa.table(
        {
            "id": names("W", documents),
            "authors": lists(n_authors, names("A", authors)),
            "venue": names("V", skewed(generator, VENUES, PARTITION, 0.7)),
            "references": lists(n_cited, names("W", cited)),
        }
    )
    pq.write_table(table, path)


def make_network(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(max(PARTITIONS)):
        path = folder / f"part-{number}.parquet"
        if not path.exists():
            print("making", path, flush=True)
            make_partition(number, path.with_suffix(".tmp"))
            path.with_suffix(".tmp").rename(path)


# Measuring.


class Watch(threading.Thread):
    """The CPU seconds of a process and its children, and the largest memory that they take together."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self.process, self.peak = process, 0
        self.seconds: dict[int, float] = {}
        self.start()

    def run(self) -> None:
        # Looked at from outside: what a child's child has used is told to nobody when it is left behind.
        while True:
            members = family(self.process)
            self.peak = max(self.peak, sum(map(resident, members)))
            self.seconds |= {member: seconds for member in members if (seconds := cpu_seconds(member))}
            time.sleep(0.1)


def family(process: int) -> list[int]:
    children = content(f"/proc/{process}/task/{process}/children").split()
    return [process, *(member for child in children for member in family(int(child)))]


def content(path: str) -> str:
    """Of a file that may be gone."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""


def resident(process: int) -> int:
    """Memory of its own: pages of files that it looks at can be let go at any time."""
    found = content(f"/proc/{process}/status").partition("RssAnon:")[2].split()
    return int(found[0]) * 1024 if found else 0


def cpu_seconds(process: int) -> float:
    fields = content(f"/proc/{process}/stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def measure(engine: str, path: str, partitions: int, folder: Path) -> dict[str, object]:
    output = folder / f"pairs-{engine}.parquet"
    command = [sys.executable, "-m", "micol.cli", "pairs"]
    command += [str(folder / f"part-{number}.parquet") for number in range(partitions)]
    name, _, limit = engine.partition("-")
    command += ["--path", path, "-n", str(PAIRS), "--engine", name, "-o", str(output)]
    if name == "duckdb":
        command += ["--memory-limit", limit or MEMORY_LIMIT, "--scratch", str(folder)]
    if engine == "spark":
        command += ["--spark", "spark.driver.memory=4g", "--scratch", str(folder)]
    # Every run of the embedded engine is a first one, which finds no cache of documents.
    cache = folder / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    environment = os.environ | {"MICOL_CACHE": str(cache)}
    began = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    watch = Watch(process.pid)
    _, said = process.communicate()
    wall = time.perf_counter() - began
    if process.returncode:
        raise SystemExit(said)
    return {
        "engine": engine,
        "path": path,
        "documents": partitions * PARTITION,
        "pairs": PAIRS,
        "cpu_s": round(sum(watch.seconds.values()), 1),
        "wall_s": round(wall, 1),
        "peak_gb": round(watch.peak / 1e9, 2),
        "said": said.strip().splitlines()[-1],
    }


# Reporting.


def found_for(rows: list[dict], engine: str, path: str, documents: int) -> dict | None:
    return next(
        (row for row in rows if (row["engine"], row["path"], row["documents"]) == (engine, path, documents)),
        None,
    )


def cell(row: dict | None, key: str) -> str:
    return "" if row is None else f"{row[key]:,.{1 if key == 'peak_gb' else 0}f}"


def growth(rows: list[dict], engine: str, path: str) -> float | None:
    """The exponent of cost in the number of documents, from the smallest to the largest."""
    costs = sorted(
        (row["documents"], row["cpu_s"]) for row in rows if (row["engine"], row["path"]) == (engine, path)
    )
    if len(costs) < 2:
        return None
    (fewest, cheap), *_, (most, dear) = costs
    return float(np.log(dear / cheap) / np.log(most / fewest))


def switching(rows: list[dict]) -> Iterator[str]:
    """When another engine than the embedded one pays."""
    most = max(row["documents"] for row in rows)
    peaks = {e: [r["peak_gb"] for r in rows if (r["engine"], r["documents"]) == (e, most)] for e in ENGINES}
    yield (
        f"The embedded engine holds the whole network, {max(peaks['embedded']) / most * 1e6:.2f} GB for each "
        "million documents, and then draws by any path in a moment. DuckDB reads only what a path needs, for "
        "each path anew: it pays for a single path, and where memory is short. Spark takes "
        f"{ratios(rows):.0f} times the CPU seconds of DuckDB at {most:,} documents: it pays where one "
        "machine's disk or patience ends."
    )


def ratios(rows: list[dict]) -> float:
    """What Spark takes at the largest size for what DuckDB takes, over the paths that both have drawn by."""
    most = max(row["documents"] for row in rows)
    both = [(found_for(rows, "spark", path, most), found_for(rows, "duckdb", path, most)) for path in PATHS]
    pairs = [(spark["cpu_s"], duck["cpu_s"]) for spark, duck in both if spark and duck]
    return sum(spark for spark, _ in pairs) / sum(duck for _, duck in pairs) if pairs else float("nan")


def report(results: dict) -> str:
    rows = results["rows"]
    sizes = sorted({row["documents"] for row in rows})
    engines = [engine for engine in ENGINES if any(row["engine"] == engine for row in rows)]
    lines = [
        f"{PAIRS:,} pairs by `micol pairs`, reading and writing included, from a synthetic network of "
        "documents with one venue, and three authors and five references on average. CPU seconds, wall "
        f"seconds and peak memory (GB) of a process of its own. DuckDB is allowed {MEMORY_LIMIT}. "
        "`python benchmarks/mining_scale.py`.",
        "",
        "| path | documents | " + " | ".join(f"{ENGINE_NAMES[e]}: CPU | wall | GB" for e in engines) + " |",
        "| --- | ---: |" + " ---: | ---: | ---: |" * len(engines),
    ]
    for path in PATHS:
        for documents in sizes:
            cells = [
                cell(found_for(rows, engine, path, documents), key)
                for engine in engines
                for key in ("cpu_s", "wall_s", "peak_gb")
            ]
            if any(cells):
                lines.append(f"| `{path}` | {documents:,} | {' | '.join(cells)} |")
    lines += ["", "Cost grows with the number of documents to the power of:", ""]
    lines += ["| path | " + " | ".join(ENGINE_NAMES[engine] for engine in engines) + " |"]
    lines += ["| --- |" + " ---: |" * len(engines)]
    for path in PATHS:
        powers = [growth(rows, engine, path) for engine in engines]
        lines.append(f"| `{path}` | " + " | ".join("" if p is None else f"{p:.2f}" for p in powers) + " |")
    lines += ["", *switching(rows)]
    for row in rows:
        if row["engine"].startswith("duckdb-"):
            lines += [
                "",
                f"`{row['path']}` from {row['documents']:,} documents with DuckDB allowed "
                f"{row['engine'].removeprefix('duckdb-')}: {row['cpu_s']:.0f} CPU seconds, "
                f"{row['wall_s']:.0f} wall seconds, {row['peak_gb']:.1f} GB.",
            ]
    machine_line = ", ".join(f"{key} {value}" for key, value in results["machine"].items())
    return "\n".join([*lines, "", f"Machine: {machine_line}.", ""])


def plot(results: dict, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(11, 4))
    colours = dict(zip(ENGINES, ("tab:green", "tab:blue", "tab:orange")))
    for panel, key, title in ((panels[0], "cpu_s", "CPU seconds"), (panels[1], "peak_gb", "peak memory, GB")):
        for engine in ENGINES:
            for meta_path, marker in zip(PATHS, "osv^"):
                found = [found_for(results["rows"], engine, meta_path, k * PARTITION) for k in PARTITIONS]
                points = [(row["documents"], row[key]) for row in found if row]
                if points:
                    panel.plot(*zip(*points), marker=marker, color=colours[engine], alpha=0.8,
                               label=f"{ENGINE_NAMES[engine]}: {meta_path}")  # fmt: skip
        panel.set(xscale="log", yscale="log", xlabel="documents", title=title)
    low, high = PARTITION, max(PARTITIONS) * PARTITION
    panels[0].plot([low, high], [10, 10 * high / low], color="grey", linestyle=":", label="linear")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="center right", fontsize=7)
    figure.tight_layout(rect=(0, 0, 0.82, 1))
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--engine", default=",".join(ENGINES), help="duckdb-1GB: DuckDB with another limit of memory"
    )
    parser.add_argument("--partitions", default=",".join(map(str, PARTITIONS)))
    parser.add_argument("--path", default=",".join(PATHS))
    parser.add_argument("--folder", type=Path, default=Path("build/mining_scale"), help="for the network")
    arguments = parser.parse_args()
    results_file = RESULTS / "mining_scale.json"
    results: dict = {"rows": []}
    if results_file.exists():
        results = json.loads(results_file.read_text(encoding="utf-8"))
    results["machine"] = machine("duckdb", "pyspark", "numba", "pyarrow")
    make_network(arguments.folder)
    for partitions in map(int, arguments.partitions.split(",")):
        for path in arguments.path.split(","):
            for engine in arguments.engine.split(","):
                if found_for(results["rows"], engine, path, partitions * PARTITION):
                    continue
                results["rows"].append(measure(engine, path, partitions, arguments.folder))
                print(results["rows"][-1], flush=True)
                results_file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    results_file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (RESULTS / "mining_scale.md").write_text(report(results), encoding="utf-8")
    plot(results, RESULTS / "mining_scale.png")
    print(report(results))


if __name__ == "__main__":
    main()
