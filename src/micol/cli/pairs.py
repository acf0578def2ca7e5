"""micol pairs: documents that a meta-path joins, drawn at random."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from micol.errors import MicolError, UsageError
from micol.progress import say, say_left_out

if TYPE_CHECKING:
    import pyarrow as pa

    from micol.metapath import MetaPath
    from micol.network import Network
    from micol.pairs import Method, Pairs


@click.command("pairs")
@click.argument("docs", nargs=-1, required=True)
@click.option("--path", "text", required=True, metavar="PATH", help="The meta-path, such as 'P->P<-P'.")
@click.option(
    "-n", "number", default=50_000, show_default=True, type=click.IntRange(1), help="How many pairs to draw."
)
@click.option(
    "--seed", default=0, show_default=True, help="The same seed gives the same pairs on every machine."
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
    "-o",
    "--output",
    metavar="PAIRS.parquet",
    help="Write columns anchor and positive here; without it, lines of two ids are printed.",
)
def command(
    docs: Sequence[str],
    text: str,
    number: int,
    seed: int,
    schema_file: str | None,
    method: Method,
    skip_bad: bool,
    output: str | None,
) -> None:
    """Draws pairs of similar documents from DOCS: an anchor, and a positive that the meta-path leads to.

    Each draw of an anchor gives one positive. All pairs are distinct; if fewer exist than are asked for, all
    of them are given.
    """
    from micol.corpus import Corpus
    from micol.metapath import MetaPath
    from micol.schema import DEFAULT_SCHEMA, Schema

    if output not in (None, "-") and not str(output).endswith(".parquet"):
        raise UsageError(f"{output}: pairs are written as Parquet; give a name that ends in .parquet")
    schema = Schema.read(schema_file) if schema_file else DEFAULT_SCHEMA
    path = MetaPath(text)
    # A wrong path is told before a large file is read.
    path.bind(schema)
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
    if output in (None, "-"):
        print_lines(table)
    else:
        write(table, str(output), {"path": str(path), "method": method, "seed": str(seed)})
    summarise(network, path, pairs, number)


def summarise(network: Network, path: MetaPath, pairs: Pairs, asked: int) -> None:
    import numpy as np

    anchors = len(np.unique(pairs.anchor))
    say(f"{len(pairs.anchor):,} pairs by {path} from {anchors:,} of {network.n_documents:,} documents")
    if pairs.exhausted:
        say(f"asked for {asked:,}: these are all the pairs there are")


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


def print_lines(table: pa.Table) -> None:
    lines = [f"{anchor}\t{positive}" for anchor, positive in zip(*(column.to_pylist() for column in table))]
    for line in lines:
        if line.count("\t") > 1 or "\n" in line:
            raise MicolError(f"an id of {line!r} has a tab or a line break; write to a file with -o instead")
    sys.stdout.write("".join(f"{line}\n" for line in lines))
