"""Counters in the text format that Prometheus reads."""

from __future__ import annotations

import os
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Histogram:
    """How many values lie below each bound."""

    def __init__(self, bounds: Iterable[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str, labels: str = "") -> Iterator[str]:
        below = 0
        comma = "," if labels else ""
        for bound, count in zip((*self.bounds, "+Inf"), self.counts, strict=True):
            below += count
            yield f'{name}_bucket{{{labels}{comma}le="{bound}"}} {below}'
        braces = f"{{{labels}}}" if labels else ""
        yield f"{name}_sum{braces} {self.total:.6f}"
        yield f"{name}_count{braces} {below}"


class Metrics:
    """What the server counts; every method may be called from any thread."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.started = time.time()
        self.requests: Counter[tuple[str, str, int]] = Counter()  # method, route, status
        self.seconds: dict[str, Histogram] = {}  # by route
        self.batch_sizes, self.batch_seconds = Histogram(SIZES), Histogram(SECONDS)
        self.documents = self.edits = 0
        self.queue_length: Callable[[], int] = lambda: 0
        self.gauges: dict[str, tuple[str, Callable[[], float]]] = {}

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        with self.lock:
            self.requests[method, route, status] += 1
            if route not in self.seconds:
                self.seconds[route] = Histogram(SECONDS)
            self.seconds[route].add(seconds)

    def batch(self, documents: int, seconds: float) -> None:
        with self.lock:
            self.documents += documents
            self.batch_sizes.add(documents)
            self.batch_seconds.add(seconds)

    def edit(self) -> None:
        with self.lock:
            self.edits += 1

    def text(self) -> str:
        with self.lock:
            return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield from head("micol_requests_total", "counter", "Requests answered.")
        for (method, route, status), count in sorted(self.requests.items()):
            labels = labelled({"method": method, "route": route, "status": str(status)})
            yield f"micol_requests_total{{{labels}}} {count}"
        yield from head("micol_request_seconds", "histogram", "From a request's first byte to its answer.")
        for route, histogram in sorted(self.seconds.items()):
            yield from histogram.lines("micol_request_seconds", labelled({"route": route}))
        yield from head("micol_batch_documents", "histogram", "Documents tagged together.")
        yield from self.batch_sizes.lines("micol_batch_documents")
        yield from head("micol_batch_seconds", "histogram", "What a batch took.")
        yield from self.batch_seconds.lines("micol_batch_seconds")
        yield from single("micol_documents_total", "counter", "Documents tagged.", self.documents)
        yield from single("micol_label_edits_total", "counter", "Changes to the labels.", self.edits)
        yield from single("micol_waiting_documents", "gauge", "Documents in the queue.", self.queue_length())
        for name, (about, value) in self.gauges.items():
            yield from single(name, "gauge", about, value())
        yield from single(
            "process_start_time_seconds", "gauge", "When the server started.", round(self.started, 3)
        )
        yield from single(
            "process_resident_memory_bytes", "gauge", "Memory of the process.", resident_bytes()
        )


def head(name: str, kind: str, about: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"


def single(name: str, kind: str, about: str, value: float) -> Iterator[str]:
    yield from head(name, kind, about)
    yield f"{name} {value}"


def labelled(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items())


def escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def resident_bytes() -> int:
    """Memory in use, where the system tells it; 0 elsewhere."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
