"""npm: readmes of packages without a scope are the documents, their authors' keywords the labels."""

from __future__ import annotations

import gzip
import io
import json
import re
import subprocess
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

from development.common import Made, Record, document, label, write_lines
from micol.errors import MicolError
from micol.progress import track

# Its lists name the packages that are downloaded, or depended on, the most.
LISTED_BY = "npm-high-impact"
LISTED = re.compile(r"^ *'([^'@][^']*)',?$", re.MULTILINE)
# A package with more in it than this is left out: its readme is not worth the way.
MOST_BYTES = 2_000_000
AT_ONCE, TRIES, PATIENCE = 32, 3, 60
# Answers that asking again does not change.
GONE = (403, 404, 405, 410, 451)
MIN_PACKAGES = 8
FEWEST_WORDS, MOST_WORDS = 30, 200
NOT_PROSE = tuple(
    re.compile(pattern, flags)
    for pattern, flags in (
        (r"```.*?```|~~~.*?~~~|<!--.*?-->", re.DOTALL),
        (r"<(style|script|table|pre)\b.*?</\1>", re.DOTALL | re.IGNORECASE),
        (r"</?[a-zA-Z][^>]*>", 0),
        (r"!\[[^\]]*\](\([^)]*\)|\[[^\]]*\])", 0),
        (r"^ {4,}.*$|^\t.*$|^\s*\|.*$|^\s*\[[^\]]+\]:.*$|^[=\-*_ ]{3,}$", re.MULTILINE),
    )
)
ADDRESS = re.compile(r"\w+://\S+")
LINK = re.compile(r"\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])")
MARKS = re.compile(r"^\s*(#+|[-*+>]|\d+\.)\s+|[`*]+|\s#+$", re.MULTILINE)


def npm(downloads: Path) -> Made:
    """Keywords that several packages have are the labels, under their own names alone."""
    packages = list(kept_packages(downloads))
    count = Counter(keyword for package in packages for keyword in keywords(package))
    known = {keyword for keyword, number in count.items() if number >= MIN_PACKAGES}
    documents = [
        document(
            package["name"],
            package["description"],
            text,
            [keyword for keyword in keywords(package) if keyword in known],
            authors=package["people"],
            references=package["dependencies"],
        )
        for package in packages
        if len((text := prose(package["readme"])).split()) >= FEWEST_WORDS
    ]
    return Made(documents, [label(keyword, [keyword]) for keyword in sorted(known)])


def keywords(package: Record) -> list[str]:
    """As one would write them in a text: `unit-test` is a unit test."""
    spoken = (re.sub(r"[\s_-]+", " ", keyword).strip().lower() for keyword in package["keywords"])
    return list(dict.fromkeys(keyword for keyword in spoken if len(keyword) > 1))


def prose(markdown: str) -> str:
    """The first words of a readme, without code, tables, badges and marks."""
    text = markdown
    for pattern in NOT_PROSE:
        text = pattern.sub("\n", text)
    text = MARKS.sub(" ", ADDRESS.sub("", LINK.sub(r"\1", text)))
    return " ".join(text.split()[:MOST_WORDS])


def kept_packages(downloads: Path) -> Iterator[Record]:
    """What is known of the packages that have keywords and a readme; fetched, unless an earlier run has."""
    kept = downloads / "npm.jsonl.gz"
    if not kept.exists():
        downloads.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="micol-") as name:
            names = listed_names(Path(name))
        registry = told_by_npm("config", "get", "registry").strip().rstrip("/")
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = pool.map(lambda name: fetched(registry, name), names)
            some = [package for package in track(found, "fetching packages", len(names)) if package]
        write_lines(kept, some)
    with gzip.open(kept, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def listed_names(folder: Path) -> list[str]:
    told_by_npm("pack", LISTED_BY, "--silent", "--pack-destination", str(folder))
    (archive,) = folder.glob("*.tgz")
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


def got(address: str) -> bytes | None:
    """None where there is nothing."""
    left = TRIES
    while True:
        try:
            with urlopen(address, timeout=PATIENCE) as answer:
                return bytes(answer.read())
        except OSError as error:
            if isinstance(error, HTTPError) and error.code in GONE:
                return None
            left -= 1
            if not left:
                told = f"{address}: could not be fetched ({error}); run the same command again later"
                raise MicolError(told) from error
