"""micol push: a model folder to the hub."""

from __future__ import annotations

from pathlib import Path

import click

from micol.progress import say


@click.command("push")
@click.argument("model_folder", metavar="MODEL")
@click.argument("repository", metavar="OWNER/NAME")
@click.option(
    "--public", is_flag=True, help="Let everybody see a repository that is new; else it is private."
)
@click.option("--message", default="A micol model", show_default=True, help="What the commit says.")
def command(model_folder: str, repository: str, public: bool, message: str) -> None:
    """Uploads MODEL to the hub as OWNER/NAME, with its model card, in one commit.

    Afterwards `micol suggest OWNER/NAME …` and `micol.load("OWNER/NAME")` find it there. The token is that
    of `hf auth login`, or HF_TOKEN; the hub is huggingface.co, or HF_ENDPOINT.
    """
    from micol.folder import ModelFolder
    from micol.hub import push

    folder = Path(model_folder)
    if "evidence" in ModelFolder(folder).read_config():
        say(
            f"note: {folder / 'memory'} goes with it: texts of documents that it was trained on "
            "(`micol train --no-evidence` keeps none)"
        )
    click.echo(push(folder, repository, public=public, message=message))
