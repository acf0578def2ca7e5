"""micol serve under load, against micol suggest on the same documents in the same run.

python benchmarks/serving.py                  64 clients for ten minutes, 200-word documents, 453 labels
python benchmarks/serving.py --seconds 60     the same, shorter
python benchmarks/serving.py --gpu            batches against one document at a time, on a GPU

The clients share the machine with the server; what they cost is counted against it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import micol
from micol.data import debian
from micol.machine import machine

RESULTS = Path(__file__).parent / "results"
MICOL = [sys.executable, "-c", "from micol.cli import main; main()"]
WORDS, SHORT_WORDS, LONG_DOCUMENTS = 200, 10, 16
CLIENTS, SHORT_CLIENTS = 64, 4
WARM_UP_SECONDS = 3.0
SECONDS_BETWEEN_SAMPLES = 2.0


def prepare(folder: Path, base: str | None, number: int) -> list[dict[str, str]]:
    """The untrained default encoder as a model of Debian's tags, and documents of 200 words."""
    files = debian()
    corpus = micol.Corpus.read(files.docs)
    labels = micol.LabelSpace.read(files.labels)
    micol.train(corpus.select(range(100)), labels, "P->P", base=base, init_only=True, output=folder / "model")
    words = cycle(" ".join(corpus.texts()).split())
    return [{"id": f"d{n}", "text": " ".join(next(words) for _ in range(WORDS))} for n in range(number)]


class Rate(NamedTuple):
    """How quick, by the clock and by the processor, which other programs do not make run on."""

    documents_per_second: float
    cpu_ms_a_document: float


def suggest_rate(folder: Path, documents: list[dict[str, str]]) -> Rate:
    """The rate of `micol suggest`, its start taken out by a run with few documents."""
    seconds, cpu = {}, {}
    for count in (64, len(documents)):
        file = folder / f"docs{count}.jsonl"
        file.write_text("".join(json.dumps(document) + "\n" for document in documents[:count]))
        started, cpu_before = time.perf_counter(), children_cpu()
        command = [*MICOL, "suggest", str(folder / "model"), str(file)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seconds[count], cpu[count] = time.perf_counter() - started, children_cpu() - cpu_before
    number, whole = len(documents) - 64, len(documents)
    return Rate(number / (seconds[whole] - seconds[64]), 1000 * (cpu[whole] - cpu[64]) / number)


def children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Server:
    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process, self.port = process, port

    def metrics(self) -> dict[str, float]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        return {
            name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")
        }

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self) -> float:
        return self.metrics()["process_resident_memory_bytes"] / 2**20


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Server]:
    command = [*MICOL, "serve", str(folder / "model"), "--port", "0", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(r"at http://127\.0\.0\.1:(\d+)", line):
                break
        else:
            raise SystemExit("the server did not start")
        server = Server(process, int(found[1]))
        wait_until_it_answers(server)
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def wait_until_it_answers(server: Server) -> None:
    for _ in range(200):
        try:
            server.metrics()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit("the server does not answer")


def request(documents: list[dict[str, str]]) -> bytes:
    """A whole request, made beforehand so that clients cost little."""
    body = json.dumps({"documents": documents, "limit": 5}).encode()
    head = (
        "POST /v1/suggest HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Load:
    """Clients of one kind: each asks again as soon as it is answered."""

    def __init__(self, server: Server, requests: list[bytes], clients: int, documents: int = 1) -> None:
        self.server, self.requests, self.clients, self.documents = server, requests, clients, documents
        self.answered: list[tuple[float, float]] = []  # when, and after how many seconds
        self.errors = 0

    async def run(self, until: float) -> None:
        await asyncio.gather(*(self.client(number, until) for number in range(self.clients)))

    async def client(self, number: int, until: float) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port, limit=1 << 20)
        turn = number
        while time.perf_counter() < until:
            started = time.perf_counter()
            writer.write(self.requests[turn % len(self.requests)])
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head)
            await reader.readexactly(int(length[1]) if length else 0)
            self.errors += not head.startswith(b"HTTP/1.1 200")
            self.answered.append((time.perf_counter(), time.perf_counter() - started))
            turn += self.clients
        writer.close()

    def report(self, since: float) -> dict[str, float]:
        counted = [(when, seconds) for when, seconds in self.answered if when >= since]
        span = max(when for when, _ in counted) - since
        latencies = np.array([seconds for _, seconds in counted])
        return {
            "clients": self.clients,
            "documents_a_request": self.documents,
            "requests": len(counted),
            "errors": self.errors,
            "documents_per_second": round(self.documents * len(counted) / span, 1),
            "p50_ms": round(1000 * float(np.quantile(latencies, 0.5)), 1),
            "p99_ms": round(1000 * float(np.quantile(latencies, 0.99)), 1),
            "max_ms": round(1000 * float(latencies.max()), 1),
        }


def run_loads(loads: list[Load], seconds: float) -> tuple[list[dict[str, float]], list[float]]:
    """What each load saw after warming up, and the server's memory meanwhile."""
    memory: list[float] = []

    async def watch(until: float) -> None:
        while time.perf_counter() < until:
            await asyncio.sleep(SECONDS_BETWEEN_SAMPLES)
            memory.append(await asyncio.to_thread(loads[0].server.memory_mb))

    async def all_at_once() -> float:
        started = time.perf_counter()
        until = started + WARM_UP_SECONDS + seconds
        await asyncio.gather(watch(until), *(load.run(until) for load in loads))
        return started + WARM_UP_SECONDS

    since = asyncio.run(all_at_once())
    return [load.report(since) for load in loads], memory


def memory_growth(memory: list[float]) -> dict[str, float]:
    """The first and the last fifth of the run: what grows without end grows from one to the other."""
    fifth = max(1, len(memory) // 5)
    first, last = float(np.median(memory[:fifth])), float(np.median(memory[-fifth:]))
    return {"first_mb": round(first, 1), "last_mb": round(last, 1), "growth_mb": round(last - first, 1)}


def measure(folder: Path, base: str | None, seconds: float) -> dict[str, Any]:
    documents = prepare(folder, base, 1600)
    one_each = [request([document]) for document in documents]
    before = suggest_rate(folder, documents)
    with serving(folder) as server:
        cpu_before = server.cpu_seconds()
        [load], memory = run_loads([Load(server, one_each, CLIENTS)], seconds)
        batches = server.metrics()
        cpu = (server.cpu_seconds() - cpu_before) / batches["micol_documents_total"]
    after = suggest_rate(folder, documents)
    with serving(
        folder, "--max-seconds", "600"
    ) as server:  # 1,024 documents wait: on a slow machine, for long
        short = [
            request([{"text": " ".join(document["text"].split()[:SHORT_WORDS])}]) for document in documents
        ]
        long = [request(documents[at : at + LONG_DOCUMENTS]) for at in range(0, 1600, LONG_DOCUMENTS)]
        loads = [Load(server, short, SHORT_CLIENTS), Load(server, long, CLIENTS, LONG_DOCUMENTS)]
        (short_ones, long_ones), _ = run_loads(loads, max(10.0, seconds / 10))
    rates = [before.documents_per_second, after.documents_per_second]
    cpu_of_suggest = (before.cpu_ms_a_document + after.cpu_ms_a_document) / 2
    return {
        "seconds": seconds,
        "suggest_documents_per_second": [round(rate, 1) for rate in rates],
        "load": load,
        "share_of_suggest": round(load["documents_per_second"] / (sum(rates) / 2), 3),
        "cpu_ms_a_document": {"suggest": round(cpu_of_suggest, 1), "serve": round(1000 * cpu, 1)},
        "documents_a_batch": round(
            batches["micol_batch_documents_sum"] / batches["micol_batch_documents_count"], 1
        ),
        "memory": memory_growth(memory),
        "mixed": {"short": short_ones, "long": long_ones},
    }


def measure_gpu(folder: Path, base: str | None, seconds: float) -> dict[str, Any]:
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("--gpu needs a GPU that torch can use")
    one_each = [request([document]) for document in prepare(folder, base, 1600)]
    result: dict[str, Any] = {"seconds": seconds, "gpu": torch.cuda.get_device_name()}
    for name, clients, options in (
        ("one at a time, 1 client", 1, ()),
        ("one at a time, 64 clients", CLIENTS, ("--max-batch", "1")),
        ("batches, 64 clients", CLIENTS, ()),
        ("batches, 256 clients", 4 * CLIENTS, ()),
    ):
        with serving(folder, *options) as server:
            [result[name]], _ = run_loads([Load(server, one_each, clients)], seconds)
    alone = result["one at a time, 64 clients"]["documents_per_second"]
    best = max(result[f"batches, {clients} clients"]["documents_per_second"] for clients in (64, 256))
    return {**result, "times": round(best / alone, 1)}


def table(result: dict[str, Any]) -> str:
    load, memory, cpu = result["load"], result["memory"], result["cpu_ms_a_document"]
    before, after = result["suggest_documents_per_second"]
    rows = [
        f"{WORDS}-word documents, 453 labels, {CLIENTS} clients for {result['seconds']:g} s on the server's "
        "own machine; `python benchmarks/serving.py`.",
        "",
        "| | |",
        "| --- | ---: |",
        f"| `micol suggest`, before and after, documents a second | {before}, {after} |",
        f"| `micol serve`, documents a second | {load['documents_per_second']} |",
        f"| CPU ms a document, `suggest` and `serve` | {cpu['suggest']}, {cpu['serve']} |",
        f"| share | {100 * result['share_of_suggest']:.0f} % |",
        f"| requests, errors | {load['requests']:,}, {load['errors']} |",
        f"| p50, p99 | {load['p50_ms']:.0f} ms, {load['p99_ms']:.0f} ms |",
        f"| documents a batch | {result['documents_a_batch']} |",
        f"| memory, first and last fifth of the run | {memory['first_mb']:.0f}, {memory['last_mb']:.0f} MB |",
        "",
        f"Short requests ({SHORT_WORDS} words, {SHORT_CLIENTS} clients) among long ones ({LONG_DOCUMENTS} "
        f"documents of {WORDS} words each, {CLIENTS} clients):",
        "",
        "| | requests | errors | p50 ms | p99 ms |",
        "| --- | ---: | ---: | ---: | ---: |",
        *(
            f"| {kind} | {seen['requests']:,} | {seen['errors']} | {seen['p50_ms']:,.0f} "
            f"| {seen['p99_ms']:,.0f} |"
            for kind, seen in result["mixed"].items()
        ),
    ]
    return "\n".join(rows)


def table_gpu(result: dict[str, Any]) -> str:
    rows = [
        f"On a GPU ({result['gpu']}); `python benchmarks/serving.py --gpu`.",
        f"Batches reach {result['times']} times the throughput of one at a time.",
        "",
        "| | documents a second | p50 ms | p99 ms | errors |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, seen in result.items():
        if isinstance(seen, dict) and "p50_ms" in seen:
            rows.append(
                f"| {name} | {seen['documents_per_second']:,.0f} | {seen['p50_ms']:.1f} "
                f"| {seen['p99_ms']:.1f} | {seen['errors']} |"
            )
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, help="of load  [default: 600, on a GPU 20 each]")
    parser.add_argument("--gpu", action="store_true", help="batches against one at a time")
    parser.add_argument("--base", help="encoder folder  [default: all-MiniLM-L6-v2]")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args()
    name = "serving_gpu" if options.gpu else "serving"
    with tempfile.TemporaryDirectory() as folder:
        if options.gpu:
            result = measure_gpu(Path(folder), options.base, options.seconds or 20)
        else:
            result = measure(Path(folder), options.base, options.seconds or 600)
    result["machine"] = machine("torch", "transformers", "fastapi", "uvicorn")
    text = table_gpu(result) if options.gpu else table(result)
    about = ", ".join(f"{key} {value}" for key, value in result["machine"].items())
    text = f"{text}\n\nMachine: {about}.\n"
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n")
    (options.output / f"{name}.md").write_text(text)
    print(text)


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main()
