"""micol pairs: documents that a meta-path joins, drawn at random."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from micol.cli.options import spark_option
from micol.errors import MicolError, UsageError
from micol.progress import say, say_left_out

if TYPE_CHECKING:
    import pyarrow as pa

    from micol.metapath import MetaPath
    from micol.network import Network
    from micol.pairs import Method, Pairs
    from micol.scale.engine import Engine
    from micol.schema import Schema


@click.command("pairs")
@click.argument("docs", nargs=-1, required=True)
@click.option("--path", "text", required=True, metavar="PATH", help="The meta-path, such as 'P->P<-P'.")
@click.option(
    "-n", "number", default=50_000, show_default=True, type=click.IntRange(1), help="How many pairs to draw."
)
@click.option(
    "--seed", default=0, show_default=True, help="The same seed gives the same pairs, whatever runs it."
)
@click.option(
    "--schema", "schema_file", metavar="S.toml", help="Which fields are metadata; the default is the paper's."
)
@click.option(
    "--method",
    default="uniform",
    show_default=True,
    type=click.Choice(["uniform", "node-first", "rarity"]),
    help="How a positive is drawn from all that its anchor reaches: each alike, by a random shared node, "
    "or by weights that favour rare shared nodes.",
)
@click.option("--skip-bad", is_flag=True, help="Leave out broken records, and say which.")
@click.option(
    "--engine",
    type=click.Choice(["embedded", "duckdb", "spark"]),
    default="embedded",
    show_default=True,
    help="What runs it: this process, with the network in its memory; DuckDB, with the network on the disk; "
    "or Spark, on one machine or many. For DuckDB and Spark, DOCS is Parquet, files or folders of them.",
)
@click.option("--memory-limit", metavar="SIZE", help="DuckDB: how much memory it may take, such as 3GB.")
@click.option(
    "--scratch",
    metavar="DIR",
    help="DuckDB and Spark: where tables are kept meanwhile, on a cluster such that all machines see them.  "
    "[default: beside the output]",
)
@spark_option
@click.option(
    "-o",
    "--output",
    metavar="PAIRS.parquet",
    help="Write columns anchor and positive here; without it, lines of two ids are printed. DuckDB writes a "
    "folder of files if the name does not end in .parquet, and Spark always does.",
)
def command(
    docs: Sequence[str],
    text: str,
    number: int,
    seed: int,
    schema_file: str | None,
    method: Method,
    skip_bad: bool,
    engine: str,
    memory_limit: str | None,
    scratch: str | None,
    spark_settings: Sequence[str],
    output: str | None,
) -> None:
    """Draws pairs of similar documents from DOCS: an anchor, and a positive that the meta-path leads to.

    Each draw of an anchor gives one positive. All pairs are distinct; if fewer exist than are asked for, all
    of them are given. The same seed gives the same pairs on every engine.

    With --skip-bad, DuckDB and Spark list broken records in PAIRS.rejected.parquet, beside the output.
    """
    from micol.metapath import MetaPath
    from micol.schema import DEFAULT_SCHEMA, Schema

    output = None if output == "-" else output
    schema = Schema.read(schema_file) if schema_file else DEFAULT_SCHEMA
    path = MetaPath(text)
    # A wrong path is told before a large file is read.
    path.bind(schema)
    check_options(engine, method, memory_limit, scratch, spark_settings, output)
    if engine == "embedded":
        draw_here(docs, path, number, seed, schema, method, skip_bad, output)
    else:
        # What does not fit the memory is large: a disk that has room for the output is the best guess.
        scratch = scratch or (output and folder_of(output))
        with started(engine, memory_limit, scratch, spark_settings) as running:
            mine(running, docs, path, number, seed, schema, skip_bad, output)


def check_options(
    engine: str,
    method: Method,
    memory_limit: str | None,
    scratch: str | None,
    spark_settings: Sequence[str],
    output: str | None,
) -> None:
    if engine == "embedded" and output is not None and not output.endswith(".parquet"):
        raise UsageError(f"{output}: pairs are written as Parquet; give a name that ends in .parquet")
    if engine != "embedded" and method != "uniform":
        raise UsageError(f"--engine {engine} has --method uniform only; {method} needs the embedded engine")
    for option, value, engines in (
        ("--memory-limit", memory_limit, ("duckdb",)),
        ("--scratch", scratch, ("duckdb", "spark")),
        ("--spark", spark_settings, ("spark",)),
    ):
        if value and engine not in engines:
            raise UsageError(f"{option} is for --engine {' and '.join(engines)}, not for {engine}")


def draw_here(
    docs: Sequence[str],
    path: MetaPath,
    number: int,
    seed: int,
    schema: Schema,
    method: Method,
    skip_bad: bool,
    output: str | None,
) -> None:
    """Draws with the network in the memory of this process."""
    import numpy as np

    from micol.corpus import Corpus

    corpus = Corpus.read(list(docs), schema, skip_bad=skip_bad, text=False)
    say_left_out(corpus.skipped)
    network = corpus.network()
    # After the corpus, whose errors need not wait for the compiler to load.
    from micol.compiled import compiling_is_told
    from micol.pairs import draw_pairs, why_none

    with compiling_is_told():
        pairs = draw_pairs(network, path, number, seed, method)
    if not len(pairs.anchor):
        raise MicolError(f"{corpus.source}: {path} joins no two documents: {why_none(network, path)}")
    table = id_table(network, pairs)
    if output is None:
        print_lines(zip(*(column.to_pylist() for column in table)))
    else:
        write(table, output, made_by(path, method, seed))
    anchors = len(np.unique(pairs.anchor))
    summarise(path, len(pairs.anchor), anchors, network.n_documents, number if pairs.exhausted else None)


def folder_of(output: str) -> str:
    """The folder that a file, or a folder, is in; it may be on another machine."""
    return output.rstrip("/").rpartition("/")[0] or "."


def started(
    engine: str, memory_limit: str | None, scratch: str | None, spark_settings: Sequence[str]
) -> AbstractContextManager[Engine]:
    if engine == "duckdb":
        from micol.scale.duck import duck

        return duck(memory_limit, scratch)
    from micol.scale.spark import settings_of
    from micol.scale.spark_engine import spark_engine

    return spark_engine(settings_of(spark_settings), scratch)


def mine(
    engine: Engine,
    docs: Sequence[str],
    path: MetaPath,
    number: int,
    seed: int,
    schema: Schema,
    skip_bad: bool,
    output: str | None,
) -> None:
    """Draws on a relational engine."""
    from micol.pairs import why_joined_by_none
    from micol.scale.mining import Mine
    from micol.scale.output import check_replaceable

    if output is not None and engine.writes_folder(output):
        check_replaceable(Path(output))
    found = Mine(engine, docs, path, schema, skip_bad=skip_bad)
    say_left_out(found.rejects.messages)
    if found.rejects.number > len(found.rejects.messages):
        say(f"left out by --skip-bad: {found.rejects.number - len(found.rejects.messages):,} more")
    if found.rejects.number and output is not None:
        rejected = f"{output.removesuffix('.parquet')}.rejected.parquet"
        engine.write(found.rejects.query, rejected, {})
        say(f"what was left out, and why, is in {rejected}")
    pairs = found.draw(number, seed)
    if not pairs.pairs:
        why = why_joined_by_none(schema, path, found.network.is_empty)
        raise MicolError(f"{found.source}: {path} joins no two documents: {why}")
    if output is None:
        print_lines(engine.rows(pairs.query))
    else:
        engine.write(pairs.query, output, made_by(path, "uniform", seed))
    summarise(path, pairs.pairs, pairs.anchors, found.n_documents, number if pairs.exhausted else None)


def made_by(path: MetaPath, method: Method, seed: int) -> dict[str, str]:
    return {"path": str(path), "method": method, "seed": str(seed)}


def summarise(path: MetaPath, pairs: int, anchors: int, documents: int, asked_too_many: int | None) -> None:
    say(f"{pairs:,} pairs by {path} from {anchors:,} of {documents:,} documents")
    if asked_too_many is not None:
        say(f"asked for {asked_too_many:,}: these are all the pairs there are")


def id_table(network: Network, pairs: Pairs) -> pa.Table:
    import pyarrow as pa

    ids = pa.array(network.ids, pa.string())
    return pa.table(
        {"anchor": ids.take(pa.array(pairs.anchor)), "positive": ids.take(pa.array(pairs.positive))}
    )


def write(table: pa.Table, output: str, made_by: dict[str, str]) -> None:
    import pyarrow.parquet as pq

    from micol.files import replacing

    with replacing(output) as temporary:
        pq.write_table(table.replace_schema_metadata(made_by), temporary)


def print_lines(pairs: Iterable[tuple[str, ...]]) -> None:
    lines = ["\t".join(pair) for pair in pairs]
    for line in lines:
        if line.count("\t") > 1 or "\n" in line:
            raise MicolError(f"an id of {line!r} has a tab or a line break; write to a file with -o instead")
    sys.stdout.write("".join(f"{line}\n" for line in lines))
