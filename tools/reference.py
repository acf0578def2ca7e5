"""The reference of commands and of the Python interface, as Markdown, from the program itself."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import click

import micol
from micol.cli import cli

PROPERTIES = (property, cached_property)
# Within a table, even in code.
PIPE = "\\|"


def commands_page() -> str:
    """Every command with its arguments and options, as `--help` tells them."""
    context = click.Context(cli, info_name="micol")
    lines = [
        "# Commands",
        "Results go to standard output or to `-o`, progress and messages to standard error, and `-` is "
        "standard input. Exit code 0: done; 1: failed, with one sentence that says what to do; 2: misused. "
        "This page is made from the program when the documentation is built.",
    ]
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        lines += command_section(command, click.Context(command, info_name=name, parent=context), 2)
    return "\n\n".join(lines) + "\n"


def command_section(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    yield f"{'#' * level} {context.command_path}"
    yield fenced(command.get_usage(context).removeprefix("Usage: "), "text")
    yield prose(command.help or "")
    if options := list(option_rows(command, context)):
        yield "\n".join(["| option | |", "| --- | --- |", *options])
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from command_section(inner, click.Context(inner, info_name=name, parent=context), level + 1)


def option_rows(command: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record and "--help" not in parameter.opts:
            option, text = record
            yield f"| `{' '.join(option.split()).replace('|', PIPE)}` | {cell(text)} |"


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", PIPE).replace("[", "\\[")


def prose(help_text: str) -> str:
    """Paragraphs as they are; those that click must not wrap (after \\b) as they stand."""
    parts = []
    for paragraph in inspect.cleandoc(help_text).split("\n\n"):
        if paragraph.startswith("\b"):
            parts.append(fenced(paragraph.removeprefix("\b").strip("\n"), "text"))
        else:
            parts.append(paragraph)
    return "\n\n".join(parts)


def fenced(text: str, language: str) -> str:
    return f"```{language}\n{text}\n```"


def python_page() -> str:
    """What `import micol` offers: signatures and docstrings."""
    lines = [
        "# Python",
        "What `import micol` offers; everything else is the inside of the program and may change. This page "
        "is made from the program when the documentation is built.",
    ]
    for name in micol.__all__:
        lines += object_section(name, getattr(micol, name))
    return "\n\n".join(lines) + "\n"


def object_section(name: str, value: Any) -> Iterator[str]:
    yield f"## micol.{name}"
    if not inspect.isclass(value):
        yield fenced(signature(name, value), "python")
        yield documentation(value)
        return
    # What is read, loaded or raised is not made by hand.
    if dataclasses.is_dataclass(value) or not (
        issubclass(value, Exception) or {"read", "load"} & set(vars(value))
    ):
        yield fenced(signature(name, value).removesuffix(" -> None"), "python")
    yield documentation(value)
    for inner, member in public_members(value):
        if isinstance(member, PROPERTIES):
            yield f"**`{name}.{inner}`**: {documentation(member)}"
        else:
            yield fenced(signature(f"{name}.{inner}", getattr(value, inner)), "python")
            yield documentation(getattr(value, inner))


def public_members(kind: type) -> Iterator[tuple[str, Any]]:
    """Methods and properties with a docstring, in the order of the source, inherited ones first."""
    fields = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    ours = [each for each in reversed(kind.__mro__) if each.__module__.startswith("micol")]
    members = {name: member for each in ours for name, member in vars(each).items()}
    for name, member in members.items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if name.startswith("_") or name in fields:
            continue
        if isinstance(member, PROPERTIES) or inspect.isfunction(function):
            documented = member.fget if isinstance(member, property) else function
            if documented is not None and documented.__doc__:
                yield name, member


def signature(name: str, value: Any) -> str:
    """On one line, or with a parameter on each where that would be long."""
    found = inspect.signature(value)
    shown: list[str] = []
    for parameter in found.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        shown.append(parameter_text(parameter))
    returned = "" if found.return_annotation is found.empty else f" -> {plain(found.return_annotation)}"
    line = f"{name}({', '.join(shown)}){returned}"
    if len(line) <= 90:
        return line
    inner = "".join(f"    {each},\n" for each in shown)
    return f"{name}(\n{inner}){returned}"


def parameter_text(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    text = f"{stars}{parameter.name}"
    if parameter.annotation is not parameter.empty:
        text += f": {plain(parameter.annotation)}"
    if parameter.default is not parameter.empty:
        default = repr(parameter.default)
        # A default with fields of its own is told in words.
        text += f" = {default}" if len(default) <= 40 and not default.startswith("<") else " = …"
    return text


def plain(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def documentation(value: Any) -> str:
    text = inspect.getdoc(value)
    assert text, f"{value} has no docstring"
    return text
