"""micol completion: what a shell needs to complete commands, options and files."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Prints the script that lets SHELL complete micol's commands and options.

    \b
    bash: micol completion bash > ~/.local/share/bash-completion/completions/micol
    zsh:  micol completion zsh > "${fpath[1]}/_micol"
    fish: micol completion fish > ~/.config/fish/completions/micol.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    root = context.find_root().command
    click.echo(kind(root, {}, "micol", "_MICOL_COMPLETE").source())
