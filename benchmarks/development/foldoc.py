"""The Free On-line Dictionary of Computing: documents are entries, labels their categories."""

from __future__ import annotations

import gzip
import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from development.common import Made, document, label, unpacked
from micol.progress import track

DICTD_DIGITS = {
    digit: value
    for value, digit in enumerate(string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/")
}
# At the start of an entry or of one of its numbered senses: `<networking, hardware>`.
CATEGORIES = re.compile(r"^((?:\d+\. ?)?)<([A-Za-z][\w ,'/+-]*)> ?")
CROSS_REFERENCE = re.compile(r"\{([^{}]*)\}")
# A cross reference to a page elsewhere: {A paper (http://…)}, {news:comp.lang.c}.
ADDRESS = re.compile(r" ?\(?(?:\w+://|news:|mailto:|/pub/)[^\s)]*\)?")
DATE = re.compile(r"\(\d{4}-\d\d-\d\d\)$")
# What is left of a sentence that was nothing but an address.
LONE_STOP = re.compile(r"(?:^| )\.(?= |$)")
SENTENCE_END = re.compile(r"(?<=[\w)\"']{2}[.!?]) +(?=[A-Z\"(]|\d\. )")
MIN_ENTRIES = 3
# A shorter entry merely points to another one.
MIN_ENTRY_WORDS = 8


@dataclass(frozen=True)
class Entry:
    """An entry of the dictionary without its markup."""

    headwords: tuple[str, ...]
    body: str
    categories: tuple[str, ...]
    references: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Entry:
        """Headwords, a line each; after an empty line the indented body, in paragraphs."""
        head, _, rest = text.strip("\n").partition("\n\n")
        headwords = tuple(line.strip() for line in head.split("\n") if line.strip())
        paragraphs = (" ".join(block.split()) for block in re.split(r"\n\s*\n", rest))
        categories: list[str] = []
        kept: list[str] = []
        for paragraph in paragraphs:
            if found := CATEGORIES.match(paragraph):
                categories += (" ".join(name.split()).lower() for name in found[2].split(","))
                paragraph = found[1] + paragraph[found.end() :]
            kept.append(DATE.sub("", paragraph).strip())
        marked = " ".join(filter(None, kept))
        targets = (target for target in CROSS_REFERENCE.findall(marked) if not ADDRESS.search(target))
        body = CROSS_REFERENCE.sub(lambda found: ADDRESS.sub("", found[1]), marked)
        return cls(
            headwords,
            LONE_STOP.sub("", " ".join(body.split())),
            tuple(dict.fromkeys(filter(None, categories))),
            tuple(dict.fromkeys(map(key, filter(None, targets)))),
        )

    @property
    def first_sentence(self) -> str:
        return SENTENCE_END.split(re.sub(r"^1\. ?", "", self.body), maxsplit=1)[0]


def key(name: str) -> str:
    """A name as an identifier: lists of identifiers are separated by white space."""
    return "_".join(name.lower().split())


def dictd_number(digits: str) -> int:
    """Offsets and lengths in a dictd index have the digits of base64."""
    value = 0
    for digit in digits:
        value = value * 64 + DICTD_DIGITS[digit]
    return value


def dictd_texts(index: str, data: bytes) -> Iterator[str]:
    """Every text of a dictionary once, although an index leads to it by each of its headwords."""
    places: dict[int, int] = {}
    for line in index.split("\n"):
        if line and not line.startswith("00-database"):
            _, offset, length = line.split("\t")
            places[dictd_number(offset)] = dictd_number(length)
    for start, size in sorted(places.items()):
        yield data[start : start + size].decode("utf-8", errors="replace")


def foldoc(downloads: Path) -> Made:
    with unpacked("dict-foldoc", downloads) as root:
        folder = root / "usr/share/dictd"
        index = (folder / "foldoc.index").read_text(encoding="utf-8")
        data = gzip.decompress((folder / "foldoc.dict.dz").read_bytes())
    texts = track(dictd_texts(index, data), "reading FOLDOC", unit="entries")
    return dictionary_set([entry for entry in map(Entry.parse, texts) if entry.headwords])


def dictionary_set(entries: Iterable[Entry]) -> Made:
    """Entries by their first headword; those that explain a category describe its label instead."""
    by_id: dict[str, Entry] = {}
    standing_for: dict[str, str] = {}
    count: Counter[str] = Counter()
    for entry in entries:
        id = key(entry.headwords[0])
        if id not in by_id and len(entry.body.split()) >= MIN_ENTRY_WORDS:
            by_id[id] = entry
            count.update(entry.categories)
            for headword in entry.headwords:
                standing_for.setdefault(key(headword), id)
    frequent = dict.fromkeys(sorted(name for name, number in count.items() if number >= MIN_ENTRIES))
    explained = {name: standing_for[key(name)] for name in frequent if key(name) in standing_for}
    explaining = set(explained.values())
    labels = [
        label(key(name), [name], by_id[explained[name]].first_sentence if name in explained else "")
        for name in frequent
    ]
    documents = [
        document(
            id,
            ", ".join(entry.headwords),
            entry.body,
            [key(name) for name in entry.categories if name in frequent],
            references=[standing_for.get(target, target) for target in entry.references],
        )
        for id, entry in by_id.items()
        if id not in explaining
    ]
    return Made(documents, labels)
