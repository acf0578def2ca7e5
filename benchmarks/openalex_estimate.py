"""How many machines and hours OpenAlex takes, from rates that were measured: the tables of docs/scaling.md.

python benchmarks/openalex_estimate.py            prints them
python benchmarks/openalex_estimate.py --write    puts them in the page, between its two comments
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent.parent / "docs" / "scaling.md"
BEGIN, END = "<!-- begin of benchmarks/openalex_estimate.py -->\n", "<!-- end -->\n"

WORKS, REFERENCES = 250_000_000, 2_000_000_000
# What whoever has OpenAlex may have: machines with so many cores each, or GPUs.
MACHINES, CORES, GPUS = 10, 32, 8
TEST_DOCUMENTS = 1_678  # of the Debian data set, in best.jsonl and best_cpu.jsonl
PAPER_PAIRS = 3 * 50_000  # three epochs
REFERENCES_TRIED = 5  # a document, in the network of mining_scale.py
NAMES = {"duckdb": "DuckDB", "spark": "Spark"}
HOUR, DAY = 3600, 86_400


def read(name: str) -> Any:
    text = (RESULTS / name).read_text(encoding="utf-8")
    return json.loads(text) if name.endswith(".json") else [json.loads(line) for line in text.splitlines()]


@dataclass(frozen=True)
class Tagging:
    """Documents a second, of about 100 tokens, where nothing else is said."""

    two_cores: float
    # By the processor's seconds, whatever others had of them meanwhile: one worker, and one of two.
    core: float
    core_alone_on_spark: float
    core_on_spark: float
    start: float  # seconds
    worker: float  # gigabytes
    output: float  # bytes a document
    ids: float  # looked through a second, on two cores
    longer: float  # how many times as long 256 tokens take
    gpu: float
    gpu_large: float  # of 189 tokens, by an encoder of SciBERT's size alone
    repeats: dict[tuple[str, int], list[float]]  # engine and cores -> what each repeat gave by itself

    @classmethod
    def measured(cls) -> Tagging:
        scale = read("tagging_scale.json")
        ways = {(way["engine"], way["cores"]): way for way in scale["ways"].values()}
        spark = ways["spark", 2]
        alone = read("cpu_tagging.json")["one_thread"]["micol, int8, tagging by the encoder alone"]
        short, long = (alone[kind]["documents_per_second"] for kind in ("descriptions", "256 tokens"))
        return cls(
            TEST_DOCUMENTS / on_cpu()["tagging_seconds"],
            ways["embedded", 1]["documents_per_cpu_second"],
            ways["spark", 1]["documents_per_cpu_second"],
            spark["documents_per_cpu_second"],
            spark["start_cpu_seconds"],
            spark["gigabytes_a_process"],
            spark["bytes_a_document"],
            scale["ids_per_second"],
            short / long,
            TEST_DOCUMENTS / max(row["tagging_seconds"] for row in on_gpu() if "tagging_seconds" in row),
            read("encoder_speed.json")["bi_tagging"]["documents_per_second"],
            {key: way["documents_per_cpu_second_of_each_run"] for key, way in ways.items()},
        )

    def measured_rows(self) -> Iterator[tuple[str, ...]]:
        yield (
            "tagging, default recipe, 100 tokens",
            "two cores, embedded",
            f"{self.two_cores:.0f} documents/s: {self.two_cores * DAY / 1e6:.1f} million a day",
            "best_cpu",
        )
        yield (
            "the same, in one run",
            "one core, embedded / Spark",
            f"{self.core:.0f} / {self.core_alone_on_spark:.0f} documents a CPU second; in three repeats "
            f"{spread(self.repeats['embedded', 1])} / {spread(self.repeats['spark', 1])}",
            "tagging_scale",
        )
        yield (
            "the same",
            "two cores, Spark",
            f"{self.core_on_spark:.0f} documents a CPU second ({spread(self.repeats['spark', 2])}), after "
            f"{self.start:.0f} CPU s to start; "
            f"{self.worker:.1f} GB a worker",
            "tagging_scale",
        )
        yield (
            "the same",
            "one H200, embedded",
            f"{self.gpu:,.0f} documents/s: {self.gpu * DAY / 1e6:.0f} million a day",
            "best",
        )
        yield (
            "tagging by an encoder of SciBERT's size alone, 189 tokens",
            "one H200",
            f"{self.gpu_large:,.0f} documents/s",
            "encoder_speed",
        )
        yield (
            "256 tokens instead of 100, encoder alone",
            "one core",
            f"{self.longer:.2f} times as long",
            "cpu_tagging",
        )
        yield "looking for repeated ids", "two cores, Spark", f"{self.ids:,.0f} ids/s", "tagging_scale"

    @property
    def slowest(self) -> float:
        """Who plans is not served by the best of several repeats."""
        return min(self.repeats["spark", 2])

    def estimated_rows(self) -> Iterator[tuple[str, ...]]:
        ids = WORKS / self.ids * 2 / HOUR
        yield (
            "repeated ids",
            f"{millions(WORKS)} / {self.ids:,.0f} ids/s x 2 cores",
            f"{ids:.1f} core hours",
            on_machines(ids),
        )
        for tokens, times in (("100", 1.0), ("256", self.longer)):
            hours = WORKS / self.slowest * times / HOUR
            by = "" if times == 1 else f" x {times:.2f}"
            yield (
                f"tagging on CPUs, {tokens} tokens",
                f"{millions(WORKS)} / {self.slowest:.0f} a CPU second, the slowest repeat{by}",
                f"{hours:,.0f} core hours",
                on_machines(hours),
            )
        for what, rate in (
            ("tagging on GPUs, 100 tokens", self.gpu),
            ("tagging on GPUs, SciBERT's size, 189 tokens", self.gpu_large),
        ):
            hours = WORKS / rate / HOUR
            yield (
                what,
                f"{millions(WORKS)} / {rate:,.0f} a GPU and second",
                f"{hours:.0f} GPU hours",
                on_gpus(hours),
            )
        yield (
            "what it writes",
            f"{millions(WORKS)} x {self.output:.0f} bytes",
            f"{WORKS * self.output / 1e9:.0f} GB",
            "",
        )


@dataclass(frozen=True)
class Training:
    """It learns from as many pairs, and remembers as many documents, however many there are."""

    gpu: float  # seconds of the default recipe
    cpu: float
    pairs: float  # a second, by an encoder of SciBERT's size on a GPU

    @classmethod
    def measured(cls) -> Training:
        pairs = read("encoder_speed.json")["bi_training"]["pairs_per_second"]
        return cls(max(row["training_seconds"] for row in on_gpu()), on_cpu()["training_seconds"], pairs)

    def measured_rows(self) -> Iterator[tuple[str, ...]]:
        yield "training, default recipe", "one H200", f"{self.gpu:.0f} s", "best"
        yield "the same", "two cores", f"{self.cpu / 60:.0f} minutes", "best_cpu"
        yield (
            "training an encoder of SciBERT's size",
            "one H200",
            f"{self.pairs:,.0f} pairs/s",
            "encoder_speed",
        )

    def estimated_rows(self) -> Iterator[tuple[str, ...]]:
        yield "training, default recipe", "does not grow with the corpus", f"{self.gpu:.0f} s", "one GPU"
        yield (
            "training, paper's recipe, SciBERT's size",
            f"{PAPER_PAIRS:,} pairs / {self.pairs:,.0f} a second",
            f"{PAPER_PAIRS / self.pairs / 60:.1f} minutes",
            "one GPU",
        )


def on_gpu() -> list[Any]:
    """Runs of the default recipe on the Debian data set and an H200."""
    return [row for row in read("best.jsonl") if row["data"] == "debian" and "training_seconds" in row]


def on_cpu() -> Any:
    """The same on two cores."""
    (row,) = (row for row in read("best_cpu.jsonl") if (row["data"], row["system"]) == ("debian", "best"))
    return row


def millions(number: int) -> str:
    return f"{number // 10**6:,} million"


def on_machines(core_hours: float) -> str:
    return f"{duration(core_hours / (MACHINES * CORES))} on {MACHINES} machines of {CORES} cores"


def on_gpus(gpu_hours: float) -> str:
    return f"{duration(gpu_hours / GPUS)} on {GPUS} GPUs"


def spread(rates: list[float]) -> str:
    return f"{min(rates):.0f} to {max(rates):.0f}"


def duration(hours: float) -> str:
    return f"{hours:.1f} hours" if hours >= 1 else f"{max(1, round(hours * 60))} min"


@dataclass(frozen=True)
class Mining:
    """CPU seconds that a path takes at the beginning, and for each document more; and in which memory."""

    engine: str
    path: str
    documents: int
    fixed: float
    each: float
    gigabytes: float

    @classmethod
    def measured(cls) -> list[Mining]:
        """A line through the least and the most documents that were tried."""
        runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for row in read("mining_scale.json")["rows"]:
            runs.setdefault((row["engine"], row["path"]), []).append(row)
        found = []
        for (engine, path), rows in runs.items():
            few, many = (end(rows, key=lambda row: row["documents"]) for end in (min, max))
            if few is many:
                continue
            each = (many["cpu_s"] - few["cpu_s"]) / (many["documents"] - few["documents"])
            fixed = few["cpu_s"] - each * few["documents"]
            found.append(cls(engine, path, many["documents"], fixed, each, many["peak_gb"]))
        return found

    def measured_row(self) -> tuple[str, ...]:
        total = self.fixed + self.each * self.documents
        return (
            f"50,000 pairs by `{self.path}` of {millions(self.documents)} documents",
            f"two cores, {NAMES.get(self.engine, self.engine)}",
            f"{total:.0f} CPU s; {self.each * 1e6:.1f} for each million more; {self.gigabytes:.1f} GB",
            "mining_scale",
        )

    @property
    def more(self) -> float:
        """How many times as many references there are as in the network that was tried."""
        return REFERENCES / WORKS / REFERENCES_TRIED if "->" in self.path else 1.0

    def hours(self) -> float:
        return (max(self.fixed, 0) + self.each * WORKS * self.more) / HOUR

    def estimated_row(self) -> tuple[str, ...]:
        more = self.more
        hours = self.hours()
        denser = f" x {more:.1f} for more references" if more > 1 else ""
        return (
            f"50,000 pairs by `{self.path}`",
            f"{max(self.fixed, 0):.0f} s + {WORKS // 10**6} x {self.each * 1e6:.1f} CPU s{denser}",
            f"{hours:.1f} core hours",
            on_machines(hours),
        )


def tables() -> str:
    tagging, training, mining = Tagging.measured(), Training.measured(), Mining.measured()
    on_spark = [one for one in mining if one.engine == "spark"]
    measured = [
        *(one.measured_row() for one in mining),
        *training.measured_rows(),
        *tagging.measured_rows(),
    ]
    estimated = [
        *(one.estimated_row() for one in on_spark),
        *training.estimated_rows(),
        *tagging.estimated_rows(),
    ]
    return "\n".join(
        [
            "### Measured",
            *lines(("what", "on", "measured", "file"), measured),
            "",
            f"### Computed: {millions(WORKS)} works, {millions(REFERENCES)} references",
            *lines(("step", "arithmetic", "work", "for instance"), estimated),
            "",
            conclusion(tagging, on_spark),
            "",
        ]
    )


def conclusion(tagging: Tagging, mining: list[Mining]) -> str:
    drawing = sum(one.hours() for one in mining)
    on_cores = WORKS / tagging.slowest * tagging.longer / HOUR + drawing
    gpu_hours = WORKS / tagging.gpu * tagging.longer / HOUR
    return (
        f"So OpenAlex, if each of its texts had 256 tokens, would take {MACHINES} machines of {CORES} cores "
        f"about {on_cores / (MACHINES * CORES):.0f} hours, or {GPUS} GPUs "
        f"about {gpu_hours / GPUS:.0f}: nearly all of it for tagging, {drawing:.1f} core hours for pairs by "
        f"{len(mining)} paths."
    )


def lines(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    for row in (head, ("---",) * len(head), *rows):
        yield f"| {' | '.join(row)} |".replace("  ", " ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables in the page")
    text = tables()
    if not parser.parse_args().write:
        print(text, end="")
        return
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}{text}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
