"""micol pairs --engine spark while its processes are killed: the same pairs as if nothing had happened."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from large_networks import write
from micol.cli.pairs import command
from processes import PATIENCE, Command, below, invoked

# One executor, a process of its own; JVMs that live for seconds need not optimise themselves.
CLUSTER = {
    "spark.master": "local-cluster[1,1,600]",
    "spark.executor.memory": "600m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
}


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Documents that cite so many others that positives are drawn by trials, not from a list."""
    chance = random.Random(7)
    ids = [f"d{number}" for number in range(400)]
    records = [
        {"id": id, "references": [other for other in chance.sample(ids, 300) if other != id]} for id in ids
    ]
    return write(tmp_path_factory.mktemp("docs"), records)


def pairs_of(output: Path) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in pq.read_table(output).to_pylist()]


def is_drawing(scratch: Path) -> bool:
    """Whether trials are being drawn now: Spark works on such a table until it has moved it out of there."""
    return any(scratch.glob("micol-*/trials_*/_temporary"))


def lose_the_executor(mining: Command, scratch: Path) -> None:
    """Kills the executor while it has a task: stopped first, it cannot finish in between."""
    deadline = time.monotonic() + PATIENCE
    while True:
        assert mining.process.is_alive(), mining.output
        assert time.monotonic() < deadline
        if not is_drawing(scratch):
            time.sleep(0.002)
            continue
        (executor,) = below(mining.process.pid, b"CoarseGrainedExecutorBackend")
        os.kill(executor, signal.SIGSTOP)
        time.sleep(0.5)
        if is_drawing(scratch):
            os.kill(executor, signal.SIGKILL)
            return
        os.kill(executor, signal.SIGCONT)


@pytest.mark.slow
def test_drivers_and_executors_are_killed_and_the_pairs_are_the_same(docs: str, tmp_path: Path) -> None:
    usual = ["pairs", docs, "--path", "P->P", "-n", 150, "--seed", 5]
    undisturbed = tmp_path / "undisturbed.parquet"
    invoked(command, *usual[1:], "--engine", "duckdb", "-o", undisturbed)
    embedded = tmp_path / "embedded.parquet"
    invoked(command, *usual[1:], "-o", embedded)
    assert pairs_of(embedded) == pairs_of(undisturbed)

    output, scratch, log = tmp_path / "spark" / "pairs", tmp_path / "scratch", tmp_path / "log"
    log.mkdir()
    settings = {
        **CLUSTER,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": log.as_uri(),
    }
    options = [option for key, value in settings.items() for option in ("--spark", f"{key}={value}")]
    on_spark = [*usual, "--engine", "spark", "--scratch", scratch, "-o", output, *options]
    places = {"SPARK_WORKER_DIR": str(tmp_path / "work")}

    killed = Command(on_spark, tmp_path, environment=places)
    started: set[int] = set()

    def drawing_began() -> bool:
        started.update(below(killed.process.pid, b"org.apache.spark") if is_drawing(scratch) else ())
        return bool(started)

    assert killed.kill_when(drawing_began), killed.output
    assert not output.exists()
    wait_for_the_end(started)

    again = Command(on_spark, tmp_path, environment=places)
    for leftover in scratch.iterdir():
        leftover.rename(tmp_path / "left by the driver that was killed")
    lose_the_executor(again, scratch)
    assert not output.exists()
    assert again.wait() == 0, again.output
    assert "150 pairs by P->P from" in again.output
    assert pairs_of(output) == pairs_of(undisturbed)
    assert [path.name for path in output.parent.iterdir()] == [output.name]
    assert not list(scratch.iterdir())
    check_history(max(log.iterdir(), key=lambda path: path.stat().st_mtime_ns))


def wait_for_the_end(processes: set[int]) -> None:
    """The JVMs of a driver that was killed go, too."""
    deadline = time.monotonic() + PATIENCE
    while any(b"org.apache.spark" in command_line(pid) for pid in processes):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def check_history(log: Path) -> None:
    """Spark's own record: a task was lost with its executor, and done by another that took its place."""
    events = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    ends = [event for event in events if event["Event"] == "SparkListenerTaskEnd"]
    lost = [end for end in ends if end["Task End Reason"]["Reason"] == "ExecutorLostFailure"]
    assert len(lost) == 1
    by = {
        (end["Stage ID"], end["Task Info"]["Index"]): end["Task Info"]["Executor ID"]
        for end in ends
        if end["Task End Reason"]["Reason"] == "Success"
    }
    task = lost[0]["Stage ID"], lost[0]["Task Info"]["Index"]
    assert (lost[0]["Task Info"]["Executor ID"], by[task]) == ("0", "1")
    # Before as well as after it, there was work.
    assert set(by.values()) == {"0", "1"}
