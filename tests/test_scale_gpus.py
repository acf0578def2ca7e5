"""Tasks of a real Spark, given GPUs that a script has made up: each worker takes the one it was given."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import micol
import world
from micol.cli.suggest import command as suggest
from micol.errors import MicolError
from micol.scale.gpus import gpu_of, place_of
from micol.scale.spark import session
from micol.scale.suggest import each_shard
from processes import invoked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ADDRESSES = ["3", "5"]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One executor with two processors and two GPUs, one of each for a task."""
    folder = tmp_path_factory.mktemp("spark")
    script = folder / "gpus.sh"
    script.write_text(f"#!/bin/sh\necho '{json.dumps({'name': 'gpu', 'addresses': ADDRESSES})}'\n")
    script.chmod(0o755)
    settings = {
        "spark.master": "local-cluster[1,2,600]",
        "spark.executor.memory": "600m",
        "spark.executor.cores": "2",
        "spark.worker.resource.gpu.amount": "2",
        "spark.worker.resource.gpu.discoveryScript": str(script),
        "spark.executor.resource.gpu.amount": "2",
        "spark.task.resource.gpu.amount": "1",
        "spark.task.maxFailures": "1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_WORKER_DIR", str(folder / "work"))
        with session("tests", settings) as running:
            yield running
        end_java()


def end_java() -> None:
    """A Java machine gives its first session's settings to all later ones, which would wait for such GPUs."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    SparkContext._gateway = SparkContext._jvm = None


def test_each_task_takes_the_gpu_that_it_was_given_before_torch_is_loaded(spark: SparkSession) -> None:
    def told(number: int) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        begin = time.time()
        task = TaskContext.get()
        assert task is not None
        gpu = gpu_of(task)
        time.sleep(1)
        row = {
            "begin": begin,
            "end": time.time(),
            "given": task.resources()["gpu"].addresses,
            "taken": gpu,
            "order": os.environ["CUDA_DEVICE_ORDER"],
            "is_loaded": "torch" in sys.modules,
        }
        yield pa.RecordBatch.from_pylist([row])

    columns = "begin double, end double, given array<string>, taken bigint, order string, is_loaded boolean"
    tasks = each_shard(spark, range(4), told, columns, 4).collect()
    assert sorted({task["taken"] for task in tasks}) == [3, 5]
    for task in tasks:
        assert task["given"] == [str(task["taken"])]
        assert (task["order"], task["is_loaded"]) == ("PCI_BUS_ID", False)
        # Two at the same time never have the same.
        others = [other for other in tasks if task["begin"] < other["begin"] < task["end"]]
        assert task["taken"] not in [other["taken"] for other in others]
    assert any(task["begin"] < other["begin"] < task["end"] for task in tasks for other in tasks)


def test_tagging_goes_to_that_gpu_and_to_no_other(
    spark: SparkSession, tiny_bert: Path, docs_file: Path, labels_file: Path, tmp_path: Path
) -> None:
    """Which is not there: the command says so, where to take another, or none, would have gone well."""
    model, docs = tmp_path / "model", tmp_path / "docs.parquet"
    corpus, labels = micol.Corpus.read(docs_file), micol.LabelSpace.read(labels_file)
    micol.train(corpus, labels, "P->P", base=str(tiny_bert), pairs=32, batch_size=32, output=model)
    micol.Corpus.from_records(world.documents(20, seed=5)).write(docs)
    with pytest.raises(MicolError, match=r"gave a task GPU number [35] on .*, where torch sees \d GPUs"):
        invoked(suggest, model, docs, "--engine", "spark", "-o", tmp_path / "out")


@pytest.mark.parametrize(
    ("address", "visible", "place"), [("3", None, 3), ("3", "3", 0), ("0", "1,0", 1), ("GPU-7a", "GPU-7a", 0)]
)
def test_torch_counts_what_is_visible(address: str, visible: str | None, place: int) -> None:
    assert place_of(address, {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}) == place


@pytest.mark.parametrize(
    ("address", "visible", "words"),
    [
        ("2", "0,1", "GPU '2' on .*, where CUDA_VISIBLE_DEVICES=0,1 hides it"),
        ("GPU-7a", None, "no number; have"),
    ],
)
def test_a_gpu_that_cannot_be_found_is_told(address: str, visible: str | None, words: str) -> None:
    with pytest.raises(MicolError, match=words):
        place_of(address, {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible})
