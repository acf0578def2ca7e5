"""Spark: pair mining on as many machines as it runs on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from micol.errors import MicolError
from micol.files import reason
from micol.scale.engine import FILE, RECORD, Column, Engine, Sizes
from micol.scale.output import replacing_table
from micol.scale.spark import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

USABLE = re.compile(r"string|(var)?char\(\d+\)|tinyint|smallint|int|bigint")
LIST = re.compile(r"array<(?P<value>.*)>")
PARTITIONS = "spark.sql.shuffle.partitions"
REMOTE = re.compile(r"[a-zA-Z][\w+.-]+://.*")


class Spark(Engine):
    """Keeps tables as Parquet below `scratch`, a folder that all workers see: none is lost with a worker."""

    name = "Spark"
    sizes = Sizes(anchors=100_000_000, pairs=400_000_000, instances=10_000_000_000)

    def __init__(self, spark: SparkSession, scratch: str | None = None) -> None:
        super().__init__()
        if scratch is None and not str(spark.sparkContext.master).startswith("local"):
            raise MicolError(
                "--engine spark on several machines needs a folder for its tables that all of them see; "
                "give it with --scratch, such as hdfs:///tmp/mining or s3a://bucket/mining"
            )
        self.spark = spark
        self.folder = f"{(scratch or gettempdir()).rstrip('/')}/micol-{uuid4().hex}"

    def sql(self, query: str) -> DataFrame:
        return self.spark.sql(query)

    def read(self, sources: Sequence[str]) -> str:
        files = self.spark.read.options(
            recursiveFileLookup="true", pathGlobFilter="*.parquet", mergeSchema="true"
        )
        name = self.new_name("records")
        files.parquet(*sources).selectExpr(
            "*",
            f"regexp_replace(_metadata.file_path, '^file:/+', '/') AS {FILE}",
            f"_metadata.row_index + 1 AS {RECORD}",
        ).createOrReplaceTempView(name)
        return name

    def columns(self, table: str) -> dict[str, Column]:
        found = {}
        for name, kind in self.spark.table(table).dtypes:
            values = LIST.fullmatch(kind)
            type = values["value"] if values else kind
            usable = USABLE.fullmatch(type) is not None
            found[name] = Column("other" if not usable else "list" if values else "value", type)
        return found

    def view(self, what: str, query: str) -> str:
        name = self.new_name(what)
        self.sql(query).createOrReplaceTempView(name)
        return name

    def store(self, table: str, query: str) -> None:
        rows = self.sql(query)
        rows.write.parquet(f"{self.folder}/{table}")
        # The schema is known: to look for it in the files would be a job of its own.
        self.spark.read.schema(rows.schema).parquet(f"{self.folder}/{table}").createOrReplaceTempView(table)

    def drop(self, table: str) -> None:
        self.spark.catalog.dropTempView(table)
        Files(self.spark).delete(f"{self.folder}/{table}")

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.sql(query).collect()]

    def writes_folder(self, output: str) -> bool:
        return True

    def write(self, query: str, output: str, made_by: dict[str, str]) -> None:
        if REMOTE.fullmatch(output):
            Files(self.spark).replace(self.sql(query), output)
            return
        with replacing_table(output, is_folder=True) as temporary:
            self.sql(query).write.parquet(str(temporary))

    def close(self) -> None:
        """Lets go of all tables."""
        Files(self.spark).delete(self.folder)

    def quoted(self, column: str) -> str:
        return "`" + column.replace("`", "``") + "`"

    def number(self, digits: str) -> str:
        return f"CAST(conv({digits}, 16, 10) AS BIGINT)"

    def quotient(self, dividend: str, divisor: str) -> str:
        return f"({dividend} div {divisor})"

    def each(self, values: str) -> str:
        return f"explode({values})"

    def numbers(self, first: str, last: str) -> str:
        return f"sequence({first}, {last})"


class Files:
    """Folders where Spark keeps its files: HDFS, S3, or whatever its address says."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def at(self, address: str) -> tuple[Any, Any]:
        context: Any = self.spark.sparkContext
        path = context._jvm.org.apache.hadoop.fs.Path(address)
        return path.getFileSystem(context._jsc.hadoopConfiguration()), path

    def delete(self, address: str) -> None:
        system, path = self.at(address)
        system.delete(path, True)

    def replace(self, rows: DataFrame, output: str) -> None:
        """Writes beside the output and renames, so that it appears whole or not at all."""
        room = f"{output.rstrip('/')}.{uuid4().hex}.tmp"
        try:
            rows.write.parquet(room)
            system, path = self.at(output)
            system.delete(path, True)
            system.rename(self.at(room)[1], path)
        finally:
            self.delete(room)


@contextmanager
def spark_engine(settings: Mapping[str, str], scratch: str | None = None) -> Iterator[Spark]:
    """An engine on the cluster that Spark is set up for, or else on this machine."""
    with session("micol pairs", settings) as spark:
        if PARTITIONS not in settings and str(spark.sparkContext.master).startswith("local"):
            # Spark's own number is that of a cluster, and on one machine costs more than it spreads.
            spark.conf.set(PARTITIONS, str(4 * spark.sparkContext.defaultParallelism))
        engine = Spark(spark, scratch)
        try:
            yield engine
        except told() as error:
            raise MicolError(f"Spark: {reason(error).split(' SQLSTATE')[0]}; its log tells more") from error
        finally:
            engine.close()


def told() -> tuple[type[Exception], ...]:
    """What Spark raises."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return (PySparkException, Py4JError)
