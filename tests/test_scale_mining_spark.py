"""Pair mining on Spark, a real one: the same reachable sets and the same pairs as on the other engines."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from brute_force import PlainNetwork
from large_networks import PAPER, random_paths, random_records, write
from micol.cli.pairs import command
from micol.corpus import Corpus
from micol.errors import MicolError, UsageError
from micol.metapath import MetaPath
from micol.pairs import draw_pairs
from micol.rule import Limits
from micol.scale.draws import reached_by
from micol.scale.duck import duck
from micol.scale.mining import Mine
from micol.scale.spark import session
from micol.scale.spark_engine import Spark
from processes import invoked
from random_networks import SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A JVM that lives for seconds need not optimise itself, nor its queries for large tables.
SHORT_LIVED = {
    "spark.master": "local[2]",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.parquet.compression.codec": "uncompressed",
}


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with session("tests", SHORT_LIVED) as running:
        yield running


class SmallTables(Spark):
    """Keeps tables in the driver: to write and read them costs Spark ten times what their rows do."""

    def store(self, table: str, query: str) -> None:
        self.spark.createDataFrame(self.sql(query).toArrow()).createOrReplaceTempView(table)

    def drop(self, table: str) -> None:
        self.spark.catalog.dropTempView(table)


@pytest.fixture(scope="module")
def engine(spark: SparkSession) -> SmallTables:
    return SmallTables(spark)


@pytest.fixture(scope="module")
def made() -> list[dict[str, Any]]:
    return random_records(random.Random(11), 12)


@pytest.fixture(scope="module")
def docs(made: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> str:
    return write(tmp_path_factory.mktemp("network"), made, files=2)


def test_reachable_sets_are_the_same_in_all_three_engines(
    engine: Spark, made: list[dict[str, Any]], docs: str
) -> None:
    """Of every chain of one union, so that the documents are read once."""
    paths = [*PAPER, *random_paths(random.Random(12), 1)]
    union = "|".join(text for text, _ in paths)
    network, plain = Corpus.from_records(made, SCHEMA).network(), PlainNetwork(made)
    with duck() as other:
        on_spark, on_duck = Mine(engine, [docs], union, SCHEMA), Mine(other, [docs], union, SCHEMA)
        for text, steps in paths:
            path = MetaPath(text)
            found = reached(on_spark, path)
            assert len(found) == len(set(found))
            assert set(found) == plain.pairs(steps) == set(reached(on_duck, path))
            assert set(found) == {(id, other) for id in network.ids for other in path.reachable(network, id)}


def reached(mine: Mine, path: MetaPath) -> list[tuple[str, str]]:
    documents = f"SELECT id AS anchor, id AS node FROM {mine.network.documents}"
    found = reached_by(mine.walks, path.bind(SCHEMA), documents)
    return [(anchor, other) for anchor, other in mine.engine.rows(f"SELECT anchor, positive FROM {found}")]


def test_a_seed_gives_the_same_pairs_on_all_three_engines(
    engine: Spark, made: list[dict[str, Any]], docs: str, tmp_path: Path
) -> None:
    """By trials as well as by listing, of hops and of a meta-graph, whatever the order of rows and files."""
    text, limits = "P(AV)P|P->P<-P", Limits(listed=1, trials=3)
    mined = Mine(engine, [docs], text, SCHEMA).draw(25, seed=5, limits=limits)
    pairs = engine.rows(mined.query)
    assert len(set(pairs)) == 25
    others = write(tmp_path / "others", made[::-1], files=1)
    with duck() as other:
        again = Mine(other, [others], text, SCHEMA).draw(25, seed=5, limits=limits)
        assert other.rows(again.query) == pairs
        assert again[1:] == mined[1:]
    network = Corpus.from_records(made, SCHEMA).network()
    here = draw_pairs(network, text, 25, seed=5, limits=limits)
    assert [(network.ids[a], network.ids[b]) for a, b in zip(here.anchor, here.positive)] == pairs


def test_the_command_writes_a_folder_and_lists_bad_records(spark: SparkSession, tmp_path: Path) -> None:
    bad = [
        {"id": "a", "authors": ["x"]},
        {"id": "b", "authors": ["x"]},
        {"id": None, "authors": ["x"]},
        {"id": "b", "authors": ["y"]},
    ]
    docs = write(tmp_path / "bad", bad)
    arguments = [docs, "--path", "PAP", "--engine", "spark", "--scratch", tmp_path / "scratch"]
    with pytest.raises(MicolError, match=r'part-0.parquet, record 3: the document has no "id"'):
        invoked(command, *arguments)
    said = invoked(command, *arguments, "--skip-bad", "-o", tmp_path / "pairs").stderr
    assert "2 pairs by PAP from 2 of 2 documents" in said
    pairs = {tuple(row.values()) for row in pq.read_table(tmp_path / "pairs").to_pylist()}
    assert pairs == {("a", "b"), ("b", "a")}
    file = f"{docs}/part-0.parquet"
    rejected = pq.read_table(tmp_path / "pairs.rejected.parquet").to_pylist()
    assert [(row["file"], row["record"], row["reason"]) for row in rejected] == [
        (file, 3, 'the document has no "id"'),
        (file, 4, f'the id "b" was already given at {file}, record 2'),
    ]
    assert not list((tmp_path / "scratch").iterdir())
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(MicolError, match=r"Spark: .*broken\.parquet"):
        invoked(command, tmp_path / "broken.parquet", *arguments[1:])
    with pytest.raises(UsageError, match="expected KEY=VALUE"):
        invoked(command, *arguments, "--spark", "fast")
    # The session was running before, and still is.
    assert spark.sql("SELECT 1").collect()
