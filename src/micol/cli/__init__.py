"""The command: one small module a verb, loaded only when it is called."""

from __future__ import annotations

import difflib
import importlib
import os
import sys

import click

from micol.errors import MicolError, UsageError

# In the order in which a newcomer needs them.
VERBS = (
    "inspect", "pairs", "train", "suggest", "candidates", "evaluate", "labels", "serve", "benchmark",
    "import", "push", "doctor", "completion",
)  # fmt: skip


class Listing(click.Group):
    """Lists its commands with the whole first sentence of their help, where click cuts it to fit a line."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A command that does not exist is told together with the nearest that do."""
        names = self.list_commands(ctx)
        if args and args[0] not in names and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], names)
            guess = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}."
            ctx.fail(f"No such command {args[0]!r}; {guess}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, command.get_short_help_str(limit=1_000)) for name, command in commands if command]
            )


class Verbs(Listing):
    """Finds `micol VERB` in `micol.cli.VERB` (`import_` where the verb is a Python keyword)."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        module = importlib.import_module(f"micol.cli.{'import_' if name == 'import' else name}")
        command: click.Command = module.command
        return command


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="micol")
def cli() -> None:
    """Tags documents with labels from a large taxonomy, without labelled training documents.

    DOCS and LABELS are JSON Lines (also .gz, .zst) or Parquet, one record a document or label:

    \b
    {"id": "d1", "title": "…", "abstract": "…", "authors": ["a1"], "references": ["d7"]}
    {"id": "l3", "names": ["Webgraph", "web graph"], "description": "…", "parents": ["l1"]}

    LABELS may be CSV, SKOS or MeSH, too, and `micol import` reads other documents.
    """


def main() -> None:
    """Runs the command; a failure is one sentence on standard error and exit code 1 (2: misused)."""
    try:
        cli(standalone_mode=True)
    except MicolError as error:
        print(f"micol: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except BrokenPipeError:
        # The reader (`| head`) has gone; point stdout elsewhere so that the interpreter's flush is silent.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        what = f"{error.filename or 'output'}: {error.strerror or error}"
        print(f"micol: {what}; check the path, its rights and the space on the disk", file=sys.stderr)
        sys.exit(1)
