"""The commands of an installed Google Cloud CLI: help texts as documents, groups and verbs as labels."""

from __future__ import annotations

import ast
import re
import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from development.common import Made, Record, document, label
from micol.errors import MicolError

# A group or verb of fewer commands is no subject.
MIN_COMMANDS = 4
NOT_YET_RELEASED = ("alpha", "beta", "preview")


@dataclass(frozen=True)
class Help:
    """What a file of the CLI says of its command or group, and which code and flags it has."""

    brief: str
    text: str
    uses: tuple[str, ...]
    flags: tuple[str, ...]


class Loader(yaml.SafeLoader):
    """Their own tags, such as !REF, mean nothing here."""


Loader.add_multi_constructor("!", lambda loader, suffix, node: "")  # type: ignore[no-untyped-call]


def gcloud(root: Path) -> Made:
    surface = root / "lib" / "surface"
    if not surface.is_dir():
        raise MicolError(
            f"{surface}: no such folder; give the folder where the Google Cloud CLI is installed"
        )
    groups: dict[str, Help] = {}
    commands: dict[tuple[str, ...], Help] = {}
    for parts, path in files_of(surface):
        found = help_of(path)
        if found and path.name == "__init__.py":
            groups[".".join(parts)] = found
        elif found and found.brief:
            commands[*parts, path.stem] = found
    return Made(*records(groups, commands))


def files_of(surface: Path) -> Iterator[tuple[tuple[str, ...], Path]]:
    """Every file of a released command or group, with the names of the groups that it stands in."""
    for path in sorted(surface.rglob("*")):
        parts = path.relative_to(surface).parts[:-1]
        hidden = any(
            part.startswith("_") for part in (*parts, path.stem if path.name != "__init__.py" else "")
        )
        if path.suffix in (".py", ".yaml") and parts and not hidden and parts[0] not in NOT_YET_RELEASED:
            yield parts, path


def help_of(path: Path) -> Help | None:
    raw = path.read_text(encoding="utf-8", errors="replace")
    return help_in_code(raw) if path.suffix == ".py" else help_in_yaml(raw)


def help_in_code(raw: str) -> Help:
    """The docstring of the class, or the dictionary of a detailed help."""
    detailed: dict[str, str] = {}
    docstring = ""
    for node in ast.walk(ast.parse(raw)):
        if isinstance(node, ast.ClassDef) and not docstring:
            docstring = ast.get_docstring(node) or ""
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
                if isinstance(key, ast.Constant) and is_text:
                    detailed.setdefault(str(key.value), ast.literal_eval(value))
    brief = detailed.get("brief") or docstring.split("\n\n")[0]
    text = f"{detailed.get('DESCRIPTION') or docstring}\n{detailed.get('EXAMPLES', '')}"
    imports = re.findall(r"^from (googlecloudsdk\.\S+) import (\w+)", raw, re.M)
    uses = {f"{module}.{name}" for module, name in imports if not module.endswith("calliope")}
    flags = set(re.findall(r"'--([a-z][\w-]+)'", raw))
    return Help(one_line(brief), plain(text), tuple(sorted(uses)), tuple(sorted(flags)))


def help_in_yaml(raw: str) -> Help | None:
    try:
        content: Any = yaml.load(raw, Loader)
    except yaml.YAMLError:
        return None
    told = content[0].get("help_text") if isinstance(content, list) and isinstance(content[0], dict) else None
    if not isinstance(told, dict):
        return None
    text = f"{told.get('description') or ''}\n{told.get('examples') or ''}"
    uses = set(re.findall(r"!REF ([\w.]+)", raw))
    flags = set(re.findall(r"arg_name: ([\w-]+)", raw))
    return Help(one_line(told.get("brief") or ""), plain(text), tuple(sorted(uses)), tuple(sorted(flags)))


def records(
    groups: dict[str, Help], commands: dict[tuple[str, ...], Help]
) -> tuple[list[Record], list[Record]]:
    sizes = Counter(".".join(parts[:depth]) for parts in commands for depth in range(1, len(parts)))
    verbs = Counter(parts[-1] for parts in commands)
    labels = {
        group: label(
            group,
            [spoken(" ".join(group.split(".")[-2:]))],
            one_line(groups[group].text)[:600] if group in groups else "",
            [group.rpartition(".")[0]] if "." in group else [],
        )
        for group, size in sizes.items()
        if size >= MIN_COMMANDS
    }
    labels |= {
        f"verb.{verb}": label(f"verb.{verb}", [spoken(verb)])
        for verb, count in verbs.items()
        if count >= MIN_COMMANDS
    }
    documents = []
    for parts, found in commands.items():
        subjects = [".".join(parts[:depth]) for depth in range(1, len(parts))] + [f"verb.{parts[-1]}"]
        documents.append(
            document(
                "/".join(parts),
                found.brief,
                found.text,
                [subject for subject in subjects if subject in labels],
                authors=list(found.flags),
                references=list(found.uses),
            )
        )
    return documents, list(labels.values())


def spoken(name: str) -> str:
    return name.replace("_", " ")


def plain(text: str) -> str:
    return re.sub(r"[ \t]*\n[ \t]*", "\n", textwrap.dedent(str(text)).replace("{command}", "gcloud")).strip()


def one_line(text: Any) -> str:
    return " ".join(str(text).split())
