"""`micol import`: documents and labels from foreign files."""

from __future__ import annotations

import click

from micol.formats import FORMATS


@click.command(
    "import",
    help=f"""Makes docs.jsonl and labels.jsonl from files of another FORMAT.

    FORMAT is one of {", ".join(FORMATS)}; docs/formats.md tells what each is. SOURCE is a file, plain or
    packed, or a folder of them; debian reads /var/lib/apt/lists by default.
    """,
)
@click.argument("format_name", metavar="FORMAT", type=click.Choice(list(FORMATS)))
@click.argument("sources", metavar="SOURCE...", nargs=-1)
@click.option("-o", "--output", metavar="DIR", required=True, help="Folder for docs.jsonl and labels.jsonl.")
@click.option(
    "--labels",
    metavar="WHAT",
    help="openalex: topics (the default), concepts or keywords. pubmed: MeSH descriptor XML. "
    "annif and csv: the vocabulary. debian: the debtags vocabulary.",
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="FIELD=COLUMN",
    help="csv: the column that a field of documents is in, such as authors=written_by; may be repeated.",
)
@click.option(
    "--separator", default="|", show_default=True, help="csv: what stands between several values of a cell."
)
@click.option("--min-score", type=float, default=0.0, help="openalex: leave out labels that score less.")
@click.option(
    "--language",
    default="en",
    show_default=True,
    help="annif and csv: the language of a SKOS vocabulary's names.",
)
@click.option(
    "--fetch", metavar="SUITE", help="debian: let apt fetch this suite's lists first, such as bookworm."
)
@click.option("--gzip", is_flag=True, help="Write docs.jsonl.gz instead of docs.jsonl.")
@click.option("--skip-bad", is_flag=True, help="Leave bad records out and list them, instead of stopping.")
def command(
    format_name: str,
    sources: tuple[str, ...],
    output: str,
    labels: str | None,
    columns: tuple[str, ...],
    separator: str,
    min_score: float,
    language: str,
    fetch: str | None,
    gzip: bool,
    skip_bad: bool,
) -> None:
    from micol.errors import UsageError
    from micol.formats import module
    from micol.formats.base import Options
    from micol.formats.writing import write
    from micol.progress import say, say_left_out

    if not sources and format_name != "debian":
        raise UsageError(f"micol import {format_name} needs at least one SOURCE: a file or a folder")
    options = Options(
        labels=labels,
        min_score=min_score,
        language=language,
        columns=dict(map(column_of, columns)),
        separator=separator,
        fetch=fetch,
        skip_bad=skip_bad,
    )
    counts = write(module(format_name).read(sources, options), output, options, ".gz" if gzip else "")
    say_left_out(options.skipped)
    for note in options.notes:
        say(f"note: {note}")
    for what, count in counts.items():
        click.echo(f"{what:<10} {count:>12,}")


def column_of(text: str) -> tuple[str, str]:
    """A field and the column that it is in."""
    from micol.errors import UsageError

    field, separator, column = (part.strip() for part in text.partition("="))
    if not (field and separator and column):
        raise UsageError(f"--column must be given as FIELD=COLUMN, such as authors=written_by, got {text!r}")
    return field, column
