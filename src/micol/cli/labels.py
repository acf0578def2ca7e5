"""micol labels: the label space of a trained model, shown and edited."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from micol.cli import Listing
from micol.errors import UsageError
from micol.progress import say_warnings

if TYPE_CHECKING:
    import numpy as np

    from micol.folder import EditedLabels, Embed, LabelTable
    from micol.records import Label


@click.group("labels", cls=Listing)
@click.argument("model", metavar="MODEL")
@click.pass_context
def command(context: click.Context, model: str) -> None:
    """Shows and edits the labels of a trained MODEL; only what has changed is embedded again."""
    from micol.hub import model_path

    # Only a folder can be edited; what the hub has is only shown.
    context.obj = model_path(model) if context.invoked_subcommand == "list" else Path(model)


class Given(NamedTuple):
    """What the options say about labels: a file of them, or a single one."""

    file: str | None
    id: str | None
    names: tuple[str, ...]
    description: str | None
    parents: tuple[str, ...]

    def check(self) -> None:
        if self.file is not None and any(self[1:]):
            raise UsageError("a FILE of labels and the description of a single one exclude each other")
        if not all(name.strip() for name in self.names):
            raise UsageError("a --name is empty; give every label a name")
        if self.id is not None and self.id in self.parents:
            raise UsageError(f"label {self.id!r} cannot be its own --parent")


def describing(edit: Callable[[Path, Given], None]) -> Callable[..., None]:
    """Options for a file of labels or a single one, which `edit` gets together."""
    options: list[Callable[[Callable[..., None]], Callable[..., None]]] = [
        click.argument("file", required=False),
        click.option("--id", "id", metavar="ID", help="A single label instead of a FILE of them."),
        click.option("--name", "names", multiple=True, help="Its name; if repeated, the first is preferred."),
        click.option("--description", help="Its description."),
        click.option("--parent", "parents", multiple=True, metavar="ID", help="A parent; may be repeated."),
        click.pass_obj,
    ]

    @wraps(edit)
    def command(model: Path, **given: Any) -> None:
        described = Given(**given)
        described.check()
        edit(model, described)

    described_by: Callable[..., None] = command
    for option in reversed(options):
        described_by = option(described_by)
    return described_by


@command.command("list")
@click.option("--search", metavar="TEXT", help="Only labels with this in their id or a name, in any case.")
@click.option("--json", "as_json", is_flag=True, help="Print whole records, as a label file holds them.")
@click.pass_obj
def list_labels(model: Path, search: str | None, as_json: bool) -> None:
    """Prints id and preferred name of each label."""
    sought = (search or "").casefold()
    for label in table_of(model, vectors=False).labels:
        if any(sought in text.casefold() for text in (label.id, *label.names)):
            record = json.dumps(asdict(label), ensure_ascii=False)
            sys.stdout.write(f"{record if as_json else f'{label.id}  {label.name}'}\n")


@command.command("add")
@describing
def add(model: Path, given: Given) -> None:
    """Adds labels: those of FILE, of any kind that `micol train` reads, or a single one."""
    from micol.records import Label

    table = table_of(model)
    if given.file is not None:
        new = read(given.file, table)
    elif given.id is not None and given.names:
        check_parents(given.parents, table)
        new = [Label(given.id, given.names, given.description or "", given.parents)]
    else:
        raise UsageError("what to add must be given: a FILE of labels, or --id with at least one --name")
    save(model, table, table.added(new, encoder_of(model)), f"{len(new):,} added")


@command.command("update")
@describing
def update(model: Path, given: Given) -> None:
    """Changes labels: each of FILE takes the place of that with its id, or what is given of a single one."""
    table = table_of(model)
    if given.file is not None:
        changed = read(given.file, table)
    elif given.id is not None and (given.names or given.description is not None or given.parents):
        check_parents(given.parents, table)
        label = table.labels[table.labels.position(given.id)]
        changed = [
            replace(
                label,
                names=given.names or label.names,
                description=label.description if given.description is None else given.description,
                parents=given.parents or label.parents,
            )
        ]
    else:
        raise UsageError("what to change must be given: a FILE of labels, or --id and what is new about it")
    save(model, table, table.updated(changed, encoder_of(model)), f"{len(changed):,} changed")


@command.command("remove")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.pass_obj
def remove(model: Path, ids: Sequence[str]) -> None:
    """Removes labels by id; those below them stay, without that parent."""
    table = table_of(model)
    save(model, table, table.removed(ids), f"{len(set(ids)):,} removed")


def table_of(model: Path, *, vectors: bool = True) -> LabelTable:
    from micol.folder import LabelTable, ModelFolder

    folder = ModelFolder(model)
    folder.read_config()
    return LabelTable.read(folder.labels, vectors=vectors)


def read(file: str, table: LabelTable) -> list[Label]:
    """The labels of a file, whose parents may be labels of the model."""
    from micol.labels import LabelSpace

    space = LabelSpace.read(file, other_parents=table.labels.ids)
    say_warnings(space.warnings, file)
    return list(space)


def check_parents(parents: Iterable[str], table: LabelTable) -> None:
    for parent in parents:
        table.labels.position(parent)


def encoder_of(model: Path) -> Embed:
    """Embeds texts; the model, which takes seconds to load, is loaded only if there are any."""

    def embed(texts: list[str]) -> np.ndarray | None:
        from micol.classify import load

        return load(model).embed(texts)

    return embed


def save(model: Path, before: LabelTable, edited: EditedLabels, what: str) -> None:
    from micol.folder import ModelFolder
    from micol.labels import shared_names

    labels = edited.table.labels
    edited.table.write(ModelFolder(model).labels)
    known_before = shared_names(before.labels.table)
    say_warnings(warning for warning in labels.warnings if warning not in known_before)
    embedded = (
        "a cross-encoder keeps no vectors" if before.vectors is None else f"{edited.embedded:,} embedded"
    )
    click.echo(f"{what}, {embedded}; the model has {len(labels):,} labels")
