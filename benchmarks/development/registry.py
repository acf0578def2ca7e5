"""What package registries have in common: many records, readmes as prose, keywords as one says them."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from development.common import Made, Record, document, label, write_lines
from micol.errors import MicolError
from micol.progress import track

AT_ONCE, TRIES, PATIENCE = 32, 3, 60
# Answers that asking again does not change.
GONE = (403, 404, 405, 410, 451)
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


def labelled_by_keywords(packages: Iterable[Record], least: int, prose: Callable[[str], str]) -> Made:
    """Keywords that so many packages have are the labels, under their own names alone."""
    packages = list(packages)
    count = Counter(keyword for package in packages for keyword in spoken(package["keywords"]))
    known = {keyword for keyword, number in count.items() if number >= least}
    documents = [
        document(
            package["name"],
            package["description"],
            text,
            [keyword for keyword in spoken(package["keywords"]) if keyword in known],
            authors=package["people"],
            references=package["dependencies"],
        )
        for package in packages
        if len((text := prose(package["readme"])).split()) >= FEWEST_WORDS
    ]
    return Made(documents, [label(keyword, [keyword]) for keyword in sorted(known)])


def spoken(keywords: Sequence[str]) -> list[str]:
    """As one would write them in a text: `unit-test` is a unit test."""
    words = (re.sub(r"[\s_-]+", " ", keyword).strip().lower() for keyword in keywords)
    return list(dict.fromkeys(word for word in words if len(word) > 1))


def markdown_prose(markdown: str) -> str:
    """The first words of a readme, without code, tables, badges and marks."""
    text = markdown
    for pattern in NOT_PROSE:
        text = pattern.sub("\n", text)
    text = MARKS.sub(" ", ADDRESS.sub("", LINK.sub(r"\1", text)))
    return " ".join(text.split()[:MOST_WORDS])


def once(kept: Path, packages: Callable[[], Iterable[Record]]) -> Iterator[Record]:
    """The packages that an earlier run has kept; found and kept, where none has."""
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_lines(kept, packages())
    with gzip.open(kept, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def all_fetched(names: Sequence[str], fetch: Callable[[str], Record | None]) -> list[Record]:
    """What there is to know of those that have anything to tell."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = track(pool.map(fetch, names), "fetching packages", len(names))
        return [package for package in found if package]


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
