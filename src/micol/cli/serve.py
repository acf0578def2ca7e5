"""micol serve: a model as a service, with a page for people."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from micol.errors import MicolError

if TYPE_CHECKING:
    from micol.schema import Schema
    from micol.server.corpus_view import CorpusView

TOKEN = "MICOL_TOKEN"


@click.command("serve")
@click.argument("model_folder", metavar="MODEL")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8080, show_default=True, type=click.IntRange(0, 65535), help="0: any free.")
@click.option("--docs", metavar="DOCS", help="A corpus whose network the page shows.")
@click.option(
    "--schema", "schema_file", metavar="S.toml", help="Which fields are metadata; the default is the paper's."
)
@click.option("--skip-bad", is_flag=True, help="Leave out broken records of DOCS, and say which.")
@click.option("--name", help="What Annif's clients call it.  [default: the folder's name]")
@click.option(
    "--language", default="en", show_default=True, help="Of the labels, as Annif's clients are told."
)
@click.option(
    "--token-file",
    metavar="FILE",
    help=f"Only who has this token may change labels; or set {TOKEN}.",
)
@click.option(
    "--allow-origin", multiple=True, metavar="URL", help="A site whose pages may call this; may be repeated."
)
@click.option("--max-body", default=8, show_default=True, type=click.IntRange(1, 1024), help="MiB a request.")
@click.option(
    "--max-characters", default=100_000, show_default=True, type=click.IntRange(1), help="Of a document."
)
@click.option("--max-documents", default=256, show_default=True, type=click.IntRange(1), help="Of a request.")
@click.option(
    "--max-batch", default=512, show_default=True, type=click.IntRange(1), help="Documents tagged together."
)
@click.option(
    "--max-seconds", default=60.0, show_default=True, type=click.FloatRange(0.1), help="For a request."
)
def command(
    model_folder: str,
    host: str,
    port: int,
    docs: str | None,
    schema_file: str | None,
    skip_bad: bool,
    name: str | None,
    language: str,
    token_file: str | None,
    allow_origin: tuple[str, ...],
    max_body: int,
    max_characters: int,
    max_documents: int,
    max_batch: int,
    max_seconds: float,
) -> None:
    """Serves MODEL: a REST API, Annif's API, and a page to paste documents into.

    Listens on this machine only, unless --host says otherwise; over the network, changing labels needs a
    token. Ctrl-C or SIGTERM ends it once all that was accepted is answered.
    """
    from micol.folder import ModelFolder
    from micol.hub import model_path
    from micol.schema import Schema

    folder = model_path(model_folder)
    is_fetched = folder != Path(model_folder)
    if is_fetched:
        # The hub's cache names folders by commits.
        name = name or Path(model_folder).name
    ModelFolder(folder).read_config()
    # Threads that wait for each other must not keep busy a core that others need: under load, a document
    # then took ten times as long. Read by OpenMP when torch is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    schema = Schema.read(schema_file)
    if name and "/" in name:
        raise MicolError(f"--name {name!r} must have no slash, as it becomes part of addresses")
    token = token_of(token_file)
    try:
        from micol.server.limits import Limits
        from micol.server.run import serve
        from micol.server.service import Options
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn"):
            raise
        raise MicolError(
            f"serving needs the package {error.name}, which is not installed; pip install 'micol[serve]'"
        ) from None
    waiting = max(Limits.waiting, 4 * max_documents)
    limits = Limits(max_body << 20, max_characters, max_documents, waiting, max_batch, max_seconds)
    options = Options(host, name or "", language, token, is_fetched, allow_origin, schema, limits)

    serve(folder, options, port, partial(corpus_of, docs, schema, skip_bad) if docs else None)


def corpus_of(docs: str, schema: Schema, skip_bad: bool) -> CorpusView:
    from micol.corpus import Corpus
    from micol.progress import say_left_out
    from micol.server.corpus_view import CorpusView

    corpus = Corpus.read(docs, schema, skip_bad=skip_bad)
    say_left_out(corpus.skipped)
    return CorpusView(corpus)


def token_of(file: str | None) -> str | None:
    """The token of a file or of the environment; it must be hard to guess."""
    token = os.environ.get(TOKEN)
    source = TOKEN
    if file is not None:
        from micol.files import reading

        with reading(file) as stream:
            token, source = stream.read(4096).decode("utf-8", "replace").strip(), file
    if token is None:
        return None
    if len(token) < 16 or not token.isascii() or not token.isprintable() or " " in token:
        raise MicolError(
            f"{source}: a token has at least 16 printable ASCII characters and no blanks; make one with "
            "`openssl rand -hex 32`"
        )
    return token
