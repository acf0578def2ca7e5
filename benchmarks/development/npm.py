"""npm: readmes of packages without a scope are the documents, their authors' keywords the labels."""

from __future__ import annotations

import io
import json
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from development.common import Made, Record
from development.registry import all_fetched, got, labelled_by_keywords, markdown_prose, once
from micol.errors import MicolError

# Its lists name the packages that are downloaded, or depended on, the most.
LISTED_BY = "npm-high-impact"
LISTED = re.compile(r"^ *'([^'@][^']*)',?$", re.MULTILINE)
# A package with more in it than this is left out: its readme is not worth the way.
MOST_BYTES = 2_000_000
MIN_PACKAGES = 8


def npm(downloads: Path) -> Made:
    return labelled_by_keywords(kept_packages(downloads), MIN_PACKAGES, markdown_prose)


def kept_packages(downloads: Path) -> Iterator[Record]:
    return once(downloads / "npm.jsonl.gz", packages)


def packages() -> list[Record]:
    registry = told_by_npm("config", "get", "registry").strip().rstrip("/")
    return all_fetched(listed_names(), partial(fetched, registry))


def listed_names() -> list[str]:
    with tempfile.TemporaryDirectory(prefix="micol-") as name:
        told_by_npm("pack", LISTED_BY, "--silent", "--pack-destination", name)
        (archive,) = Path(name).glob("*.tgz")
        with tarfile.open(archive) as packed:
            names = LISTED.findall(packed.extractfile("package/lib/top.js").read().decode())  # type: ignore[union-attr]
    if not names:
        raise MicolError(f"{LISTED_BY} lists no packages where it used to; look for another list of names")
    return sorted(set(names))


def told_by_npm(*arguments: str) -> str:
    try:
        done = subprocess.run(["npm", *arguments], capture_output=True, text=True)
    except FileNotFoundError as error:
        raise MicolError("npm is needed to fetch packages; please install it (Debian: npm)") from error
    if done.returncode:
        raise MicolError(
            f"npm {' '.join(arguments)} failed: {(done.stderr.strip() or 'no reason').splitlines()[-1]}"
        )
    return done.stdout


def fetched(registry: str, name: str) -> Record | None:
    """None for packages that are gone, say nothing, or are too large."""
    told = got(f"{registry}/{quote(name)}/latest")
    latest: dict[str, Any] = json.loads(told) if told else {}
    words = latest.get("keywords")
    where = latest.get("dist", {})
    if not isinstance(words, list) or not words or where.get("unpackedSize", 0) > MOST_BYTES:
        return None
    packed = got(where["tarball"])
    readme = readme_of(packed) if packed else ""
    if not readme:
        return None
    people = [latest.get("author"), *(latest.get("contributors") or []), *(latest.get("maintainers") or [])]
    return {
        "name": name,
        "description": str(latest.get("description") or ""),
        "keywords": [word for word in words if isinstance(word, str)],
        "people": [one["name"] for one in people if isinstance(one, dict) and one.get("name")],
        "dependencies": sorted(latest.get("dependencies") or {}),
        "readme": readme,
    }


def readme_of(packed: bytes) -> str:
    try:
        with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
            for member in archive:
                if member.isfile() and re.fullmatch(r"[^/]+/readme(\.\w+)?", member.name, re.IGNORECASE):
                    return archive.extractfile(member).read().decode("utf-8", "replace")  # type: ignore[union-attr]
    except (tarfile.TarError, EOFError, OSError):
        pass  # a package that cannot be opened has no readme to offer
    return ""
