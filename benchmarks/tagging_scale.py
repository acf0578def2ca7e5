"""micol suggest on Spark against the embedded engine, on the same documents in the same run.

    python benchmarks/tagging_scale.py [--documents 1536] [--repeats 1] [--model FOLDER]

Each way tags a quarter of the documents and then all of them, as commands of their own. What they have in
common, such as starting Spark and loading the model, is the time that does not grow with the documents; the
rate is of what does. Looking for repeated ids, which Spark does before it tags, is timed on two million ids.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

import micol
from micol.data import debian
from micol.evidence.memory import DOCUMENTS_FILE
from micol.machine import machine
from micol.progress import say
from micol.scale.shards import Output, Plan
from micol.scale.spark import session
from micol.scale.suggest import repeated_ids
from micol.scale.tagging import Job
from micol.schema import DEFAULT_SCHEMA
from micol.tables import files_of
from micol.tagging import Request

RESULTS = Path(__file__).parent / "results"
MICOL = [sys.executable, "-c", "from micol.cli import main; main()"]
FILES, SHARD = 4, 192
IDS = 2_000_000


@dataclass(frozen=True)
class Way:
    """How documents are tagged, with how many cores."""

    name: str
    cores: int
    engine: str

    def arguments(self, model: Path, docs: Path, output: Path) -> list[str]:
        common = [*MICOL, "suggest", str(model), str(docs), "--batch-size", str(SHARD)]
        if self.engine == "embedded":
            return [*common, "-o", str(output / "out.jsonl")]
        spark = ["--engine", "spark", "--shard-size", str(SHARD)]
        return [*common, *spark, "--spark", f"spark.master=local[{self.cores},4]", "-o", str(output / "out")]


WAYS = tuple(
    Way(f"{name}, {cores} core{'s' * (cores > 1)}", cores, engine)
    for engine, name in (("embedded", "embedded"), ("spark", "Spark"))
    for cores in (1, 2)
)


def prepare(folder: Path, model: Path | None, number: int) -> tuple[Path, dict[str, Path]]:
    """A model of the default recipe that has learned little, and unseen documents as Parquet in folders."""
    files = debian()
    corpus = micol.Corpus.read(files.docs)
    unseen = set(files.test_ids.read_text(encoding="utf-8").split())
    order = sorted(range(len(corpus)), key=lambda position: corpus.ids[position] not in unseen)
    if model is None:
        model = folder / "model"
        seen = corpus.select(order[number:])
        labels = micol.LabelSpace.read(files.labels)
        micol.train(seen, labels, "P->P", pairs=32, batch_size=32, memory=5_000, output=model)
    sets = {}
    for name, size in (("quarter", number // 4), ("all", number)):
        sets[name] = folder / name
        sets[name].mkdir()
        for part in range(FILES):
            corpus.select(order[part:size:FILES]).write(sets[name] / f"docs-{part}.parquet")
    return model, sets


class Watch(threading.Thread):
    """What a command and all that it starts take of the processor, and the memory of its largest worker."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self.process, self.memory, self.done = process, 0, threading.Event()
        self.cpu: dict[int, float] = {}

    def run(self) -> None:
        while not self.done.wait(0.2):
            for pid, cpu in family(self.process).items():
                self.cpu[pid] = cpu
                if is_python(pid):
                    self.memory = max(self.memory, resident(pid))


def family(process: int) -> dict[int, float]:
    """A process and its descendants, and the seconds of the processor that each has used."""
    parents, cpu = {}, {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            fields = (path / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parents[int(path.name)] = int(fields[1])
        cpu[int(path.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    found, before = {process}, set()
    while found != before:
        before = set(found)
        found |= {pid for pid, parent in parents.items() if parent in found}
    return {pid: cpu[pid] for pid in found if pid in cpu}


def is_python(pid: int) -> bool:
    try:
        return "python" in Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        return False


def resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


class Run(NamedTuple):
    """Seconds of the clock and of the processor, bytes of the largest worker, and bytes of the output."""

    seconds: float
    cpu: float
    memory: int
    output: int


def run(way: Way, model: Path, docs: Path, number: int) -> Run:
    """A command that tags all of `docs`."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(way.cores), "TOKENIZERS_PARALLELISM": "false"}
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        process = subprocess.Popen(
            way.arguments(model, docs, Path(folder)), env=environment, stderr=subprocess.PIPE, text=True
        )
        watch = Watch(process.pid)
        watch.start()
        _, said = process.communicate()
        seconds = time.perf_counter() - started
        watch.done.set()
        assert process.returncode == 0, said
        assert f"{number:,} documents tagged" in said, said
        if way.engine == "spark":
            rows = sum(pq.read_metadata(file).num_rows for file in files_of(Path(folder) / "out"))
            assert rows == number
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    return Run(seconds, sum(watch.cpu.values()), watch.memory, size)


def ids_a_second(folder: Path) -> int:
    """How many ids are looked through for repeated ones, on two cores, once Spark is started and warm."""
    docs = folder / "ids"
    docs.mkdir()
    for part in range(FILES):
        names = [f"https://openalex.org/W{number}" for number in range(part, IDS, FILES)]
        pq.write_table(pa.table({"id": names}), docs / f"docs-{part}.parquet")
    plan = Plan.of(str(docs), 16_384)
    job = Job(folder, "", plan.folder, plan.shards, Output(folder, ""), Request(), DEFAULT_SCHEMA, 1)
    with session("ids", {"spark.master": "local[2,4]"}) as spark:
        assert not len(repeated_ids(spark, replace(job, shards=job.shards[:4])))
        started = time.perf_counter()
        assert not len(repeated_ids(spark, job))
        return round(IDS / (time.perf_counter() - started))


def measure(model: Path, sets: dict[str, Path], number: int, repeats: int) -> dict[str, dict[str, Any]]:
    """The quickest of interleaved repeats counts."""
    runs: dict[tuple[str, str], list[Run]] = {}
    for _ in range(repeats):
        for way in WAYS:
            for name, docs in sets.items():
                size = number // 4 if name == "quarter" else number
                found = run(way, model, docs, size)
                runs.setdefault((way.name, name), []).append(found)
                say(f"{way.name}: {size:,} documents in {found.seconds:.1f} s, {found.cpu:.1f} s of CPU")
    return {way.name: summary(way, runs[way.name, "quarter"], runs[way.name, "all"], number) for way in WAYS}


def summary(way: Way, quarter: list[Run], whole: list[Run], number: int) -> dict[str, Any]:
    few, many = (min(run.seconds for run in runs) for runs in (quarter, whole))
    few_cpu, many_cpu = (min(run.cpu for run in runs) for runs in (quarter, whole))
    more = number - number // 4
    return {
        "engine": way.engine,
        "cores": way.cores,
        "documents_per_second": round(more / (many - few), 1),
        "documents_per_cpu_second": round(more / (many_cpu - few_cpu), 1),
        "documents_per_cpu_second_of_each_run": [
            round(more / (all_of_them.cpu - some.cpu), 1)
            for some, all_of_them in zip(quarter, whole, strict=True)
        ],
        "start_seconds": round(few - (many - few) / 3, 1),
        "start_cpu_seconds": round(few_cpu - (many_cpu - few_cpu) / 3, 1),
        "seconds": {"quarter": round(few, 1), "all": round(many, 1)},
        "cpu_seconds": {"quarter": round(few_cpu, 1), "all": round(many_cpu, 1)},
        "gigabytes_a_process": round(whole[-1].memory / 1e9, 2),
        "bytes_a_document": round(whole[-1].output / number),
    }


def table(result: dict[str, Any]) -> str:
    """By the processor's seconds alone: those of the clock are in the JSON, and others' work is in them."""
    lines = [
        f"{result['documents']:,} packages of the Debian data set, {FILES} Parquet files, shards of {SHARD}; "
        f"all-MiniLM-L6-v2 with fused evidence (the default recipe, {result['memory']:,} documents "
        f"remembered); `{result['command']}`. Seconds are of the processor, for other programs used the "
        f"machine, too; the least of {result['repeats']} repeats counts, and what each gave by itself is "
        "shown: differences smaller than that spread mean nothing.",
        "",
        "| | documents a CPU second | each repeat | start, CPU s | GB a process | bytes a document |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, way in result["ways"].items():
        each = ", ".join(f"{rate:.1f}" for rate in way["documents_per_cpu_second_of_each_run"])
        lines.append(
            f"| {name} | {way['documents_per_cpu_second']:.1f} | {each} | {way['start_cpu_seconds']:.1f} | "
            f"{way['gigabytes_a_process']:.1f} | {way['bytes_a_document']} |"
        )
    about = ", ".join(f"{key} {value}" for key, value in result["machine"].items())
    load = f"; load by other processes {result['other_load']}"
    ids = f"Looking for repeated ids before tagging: {result['ids_per_second']:,} ids a second on two cores"
    ids += f" (each time: {', '.join(f'{rate:,}' for rate in result['ids_per_second_of_each_run'])})."
    return "\n".join([*lines, "", ids, "", f"Machine: {about}{load}."]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--documents", type=int, default=1_536)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--model", type=Path, help="a model folder  [default: one is made]")
    options = parser.parse_args()
    load = round(os.getloadavg()[0], 1)
    with tempfile.TemporaryDirectory() as folder:
        model, sets = prepare(Path(folder), options.model, options.documents)
        ways = measure(model, sets, options.documents, options.repeats)
        memory = pq.read_metadata(model / "memory" / DOCUMENTS_FILE).num_rows
        ids = ids_a_second(Path(folder))
    result = {
        "command": "python benchmarks/tagging_scale.py",
        "machine": machine("torch", "transformers", "pyspark", "pyarrow"),
        "other_load": load,
        "documents": options.documents,
        "memory": memory,
        "repeats": options.repeats,
        "ids_per_second": ids,
        "ids_per_second_of_each_run": [ids],
        "ways": ways,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "tagging_scale.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    text = table(result)
    (RESULTS / "tagging_scale.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
