"""micol inspect: what a corpus has to offer, before anything is trained on it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click


@click.command("inspect")
@click.argument("docs", nargs=-1, required=True)
@click.option("--labels", "labels_file", metavar="LABELS", help="The label space.")
@click.option(
    "--schema", "schema_file", metavar="S.toml", help="Which fields are metadata; the default is the paper's."
)
@click.option(
    "--path",
    "paths",
    multiple=True,
    metavar="PATH",
    help="A meta-path to follow; may be repeated. Default: the paper's ten.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON in place of tables.")
@click.option(
    "--seed", default=0, show_default=True, help="Decides which documents and pairs samples are made of."
)
@click.option("--skip-bad", is_flag=True, help="Leave out broken records, and say which.")
@click.option("-o", "--output", metavar="FILE", help="Write the result here, not to standard output.")
def command(
    docs: Sequence[str],
    labels_file: str | None,
    schema_file: str | None,
    paths: Sequence[str],
    as_json: bool,
    seed: int,
    skip_bad: bool,
    output: str | None,
) -> None:
    """Counts documents, labels, metadata and links of DOCS, and shows for each meta-path what it joins.

    Where documents carry `labels`, it also shows how often joined documents have a label in common, and how
    far training on such pairs is from training with labels. Warnings say what will go wrong.
    """
    from micol import inspection_text
    from micol.corpus import Corpus
    from micol.files import put_text
    from micol.inspection import inspect
    from micol.labels import LabelSpace
    from micol.metapath import MetaPath
    from micol.schema import Schema

    schema = Schema.read(schema_file)
    # A wrong path is told before a large file is read.
    wanted = [MetaPath(path) for path in paths]
    for path in wanted:
        path.bind(schema)
    space = LabelSpace.read(labels_file, skip_bad=skip_bad) if labels_file else None
    corpus = Corpus.read(list(docs), schema, skip_bad=skip_bad)
    found = inspect(corpus, space, wanted or None, seed, _record_keys(docs[0]))
    if as_json:
        text = json.dumps(inspection_text.as_json(found), indent=2, ensure_ascii=False) + "\n"
    else:
        text = inspection_text.as_text(found)
    put_text(text, output)


def _record_keys(path: str) -> list[str]:
    """The fields of the first record of a JSON Lines file; none where that cannot be told."""
    from micol.files import open_bytes

    if ".json" not in Path(path).name or not Path(path).is_file():
        return []
    with open_bytes(path) as file:
        try:
            record = json.loads(file.readline())
        except ValueError:
            return []
    return list(record) if isinstance(record, dict) else []
