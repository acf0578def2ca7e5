"""The driver of tagging on Spark: finds what is left to do, has it done, and tells what came of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from micol import __version__
from micol.errors import MicolError
from micol.files import replacing
from micol.folder import ModelFolder
from micol.progress import Progress, say
from micol.scale.gpus import gpu_of
from micol.scale.shards import Made, Output, Plan
from micol.scale.spark import check_installed, session, settings_of
from micol.scale.tagging import REPEATS, Job, ids_of, tag_shard
from micol.schema import Schema
from micol.tagging import Request, Tally

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator
    from pyspark.sql import DataFrame, SparkSession

SECONDS_BETWEEN_LOOKS = 0.5
# Ids are read in a moment; a few tasks for each core even out what a moment is.
TASKS_A_CORE = 4


@dataclass(frozen=True)
class Summary:
    """What there is to tell once every shard has its part."""

    shards: int
    tally: Tally
    tokens: int
    rejected: int
    noted: int

    @classmethod
    def of(cls, parts: Sequence[Made]) -> Summary:
        tally = sum((made.tally for made in parts), Tally())
        rejected, noted = (sum(getattr(made, name) for made in parts) for name in ("rejected", "noted"))
        return cls(len(parts), tally, parts[0].tokens, rejected, noted)

    def lines(self, output: str) -> Iterator[str]:
        yield from self.tally.lines(self.tokens)
        if self.rejected:
            yield f"{self.rejected:,} records were rejected; {output}/_rejected says which and why"
        if self.noted:
            yield f"{self.noted:,} were tagged without a part that was wrong; they are listed there, too"


def suggest(
    folder: ModelFolder,
    docs: str,
    output: str,
    request: Request,
    schema: Schema,
    batch_size: int,
    shard_size: int,
    spark_settings: Sequence[str] = (),
) -> Summary:
    """Tags the Parquet files of `docs` into parts in `output`; run again, it goes on with what has none."""
    check_installed()
    settings = settings_of(spark_settings)
    plan = Plan.of(docs, shard_size)
    if plan.folder in (place := Path(output).resolve(), *place.parents) and Path(docs).is_dir():
        raise MicolError(f"{output}: lies in the folder of documents; choose a folder outside of it")
    begun_with = {
        "micol": __version__,
        "model": folder.fingerprint(),
        "documents": plan.state,
        "schema": asdict(schema),
        **asdict(request),
        "batch size": batch_size,
        "shard size": shard_size,
    }
    with Output.taken(output, begun_with) as out:
        left = [number for number, shard in enumerate(plan.shards) if out.made(shard) is None]
        if len(left) < len(plan.shards):
            say(f"going on: {len(plan.shards) - len(left):,} of {len(plan.shards):,} shards are done")
        if left:
            out.sweep()
            model, fingerprint = folder.path.resolve(), str(begun_with["model"])
            job = Job(model, fingerprint, plan.folder, plan.shards, out, request, schema, batch_size)
            with in_a_sentence(output), session("micol suggest", settings) as spark:
                run(spark, job, left)
        parts = [made for shard in plan.shards if (made := out.made(shard)) is not None]
        summary = Summary.of(parts)
        if summary.tally.documents + summary.rejected != plan.records:
            raise MicolError(
                f"{output}: holds {summary.tally.documents:,} documents and {summary.rejected:,} rejects of "
                f"{plan.records:,} records; remove it and start afresh"
            )
        out.finish(asdict(summary))
    return summary


def run(spark: SparkSession, job: Job, left: Sequence[int]) -> None:
    """Has the shards tagged that are left, each in a task of its own."""
    if not job.output.repeated.exists():
        with replacing(job.output.repeated) as temporary:
            pq.write_table(repeated_ids(spark, job), temporary, row_group_size=1 << 16)
    documents = spark.sparkContext.accumulator(0)
    tag = partial(tag_in_task, job, documents)
    tasks = each_shard(spark, left, tag, "shard bigint, attempt int", len(left))
    total = sum(len(shard.rows) for shard in job.shards)
    before = total - sum(len(job.shards[number].rows) for number in left)
    with Progress("tagging", total, "documents") as progress:
        progress.begin_at(before)

        def look() -> None:
            if fresh := before + documents.value - progress.done:
                progress.advance(fresh)

        rows = watched(spark, tasks, look)
    again = sum(row["attempt"] > 0 for row in rows)
    if again:
        say(f"{again:,} shards were begun anew, because the worker was lost that had them")


def each_shard(
    spark: SparkSession,
    numbers: Sequence[int],
    work: Callable[[int], Iterator[pa.RecordBatch]],
    columns: str,
    tasks: int,
) -> DataFrame:
    """A table that `work` makes of each number, in so many tasks."""
    positions = spark.range(0, len(numbers), 1, numPartitions=tasks)
    return positions.mapInArrow(partial(in_task, tuple(numbers), work), columns)


def in_task(
    numbers: Sequence[int],
    work: Callable[[int], Iterator[pa.RecordBatch]],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for position in batch.column(0).to_pylist():
            yield from work(numbers[position])


def tag_in_task(job: Job, documents: Accumulator[int], number: int) -> Iterator[pa.RecordBatch]:
    """Tags a shard with the processors, and on the graphics processor, that Spark has set aside for it."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    tag_shard(job, number, context.cpus(), gpu_of(context))
    documents.add(len(job.shards[number].rows))
    columns = [pa.array([number], pa.int64()), pa.array([context.attemptNumber()], pa.int32())]
    yield pa.RecordBatch.from_arrays(columns, ["shard", "attempt"])


def ids_in_task(job: Job, number: int) -> Iterator[pa.RecordBatch]:
    yield from ids_of(job.documents, job.shards[number], number).to_batches()


def repeated_ids(spark: SparkSession, job: Job) -> pa.Table:
    """Every record whose id an earlier one has, in the order of files and rows, and where that one is."""
    from pyspark.sql import functions as F

    numbers = range(len(job.shards))
    tasks = min(len(numbers), TASKS_A_CORE * spark.sparkContext.defaultParallelism)
    columns = "id string, shard bigint, row bigint"
    ids = each_shard(spark, numbers, partial(ids_in_task, job), columns, tasks)
    first = F.min(F.struct("shard", "row")).alias("first")
    twice = ids.groupBy("id").agg(first, F.count("*").alias("times")).where("times > 1").cache()
    if twice.isEmpty():
        return REPEATS.empty_table()
    again = ids.join(twice, "id").where("shard != first.shard or row != first.row")
    places = [F.col("first.shard").alias("first_shard"), F.col("first.row").alias("first_row")]
    found: pa.Table = again.select("shard", "row", *places).orderBy("shard", "row").toArrow()
    return found.cast(REPEATS)


def watched(spark: SparkSession, tasks: DataFrame, look: Callable[[], None]) -> list[Any]:
    """The rows of a table, while someone looks how far it is."""
    with ThreadPoolExecutor(1) as pool:
        rows = pool.submit(tasks.collect)
        try:
            while wait([rows], SECONDS_BETWEEN_LOOKS).not_done:
                look()
        except BaseException:
            spark.sparkContext.cancelAllJobs()
            raise
        look()
        return rows.result()


@contextmanager
def in_a_sentence(output: str) -> Iterator[None]:
    """What fails on a worker comes back as pages of two languages' traces."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        ours = re.search(r"micol\.errors\.\w+: (.+)", str(error))
        if ours:
            raise MicolError(ours[1]) from error
        python = re.search(r"^\s*(\w+(?:Error|Exception): .+)$", str(error), re.MULTILINE)
        why = python[1] if python else str(error).strip().split("\n")[0]
        raise MicolError(
            f"Spark has given up ({why}); what is done is kept in {output}, and the same command goes on "
            "from there"
        ) from error
