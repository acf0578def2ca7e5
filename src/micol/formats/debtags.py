"""The debtags vocabulary -> labels: what a package does, for whom, and with what."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from micol.errors import MicolError
from micol.formats.deb822 import paragraphs, stanzas
from micol.layout import Problems
from micol.records import Label

PLACES = (Path("/var/lib/debtags/vocabulary"), Path("/usr/share/debtags/vocabulary"))
# Facets that say how a package is made, not what it is about.
FORMAL_FACETS = {
    "implemented-in",
    "interface",
    "iso15924",
    "junior",
    "made-of",
    "privacy",
    "role",
    "scope",
    "special",
    "system",
    "uitoolkit",
}
FORMAL_TAGS = {
    "devel::doc",
    "devel::examples",
    "devel::library",
    "hardware::opengl",
    "suite::debian",
    "suite::gnu",
    "x11::application",
    "x11::library",
}
HOUSEKEEPING = re.compile(r"^(Link:|Please do not tag|This tag will be).*$|Link: \S+", re.MULTILINE)


def installed() -> Path:
    """The vocabulary of Debian's package `debtags`."""
    for place in PLACES:
        if place.exists():
            return place
    raise MicolError(
        f"{PLACES[-1]}: no debtags vocabulary here; run `apt-get install debtags`, or name it with --labels"
    )


def labels(path: str | Path, problems: Problems) -> Iterator[Label]:
    """Every tag with a subject, in the order of the file."""
    facets: dict[str, str] = {}
    for stanza in stanzas(Path(path), {"Facet", "Tag", "Description"}, problems):
        title, text = paragraphs(stanza.get("Description", ""))
        if "Facet" in stanza:
            facets[stanza["Facet"]] = f"{title}: {sentence(text)}" if text else sentence(title)
        elif stanza.get("Tag") and is_subject(stanza["Tag"]):
            tag = stanza["Tag"]
            facet = facets.get(tag.partition("::")[0], "")
            yield Label(tag, names(tag, title), " ".join(filter(None, (facet, subject(text)))))


def is_subject(tag: str) -> bool:
    facet, _, name = tag.partition("::")
    is_unfinished = name.rpartition(":")[2] == "TODO"
    return facet not in FORMAL_FACETS and tag not in FORMAL_TAGS and not is_unfinished


def subject(text: str) -> str:
    """What a tag's description says about its subject, without links and words to those who tag."""
    return " ".join(HOUSEKEEPING.sub("", text).split())


def sentence(text: str) -> str:
    """The text on one line, with a full stop at its end."""
    text = " ".join(text.split())
    return text if not text or text.endswith(".") else f"{text}."


def names(tag: str, title: str) -> tuple[str, ...]:
    """The title without brackets, what stands in them, its parts, and the tag's own word.

    `Text Recognition (OCR)` is also called OCR, `GNU R Development` also GNU R and R, `SSL/TLS` also SSL
    and TLS, `GIF, Graphics Interchange Format` also by either half.
    """
    plain = re.sub(r"[™®!]", "", re.sub(r"\s*\(.*?\)", "", title)).strip()
    bracketed = [part for part in re.findall(r"\((.*?)\)", title) if part != "legacy"]
    topic = plain.removesuffix(" Development")
    found = [plain]
    for name in (topic, *bracketed):
        found += [part.strip() for part in name.split("/")]
    if re.match(r"[A-Z0-9]{2,}, ", plain):
        found += plain.split(", ", 1)
    found += [topic, topic.removeprefix("GNU ")]
    word = re.split(r":+", tag)[-1].replace("-", " ")
    if word.lower() not in (name.lower() for name in found):
        found.append(word)
    return tuple(dict.fromkeys(filter(None, found))) or (tag,)
