"""JATS articles (files, folders, tar archives of them) -> documents with author keywords as labels."""

from __future__ import annotations

import lzma
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from lxml import etree

from micol.files import damaged, reading, suffixes
from micol.formats.base import Gathered, Imported, Options, Record, document, files
from micol.formats.markup import flat, records
from micol.layout import Problems, RecordError

EXTENSIONS = {".xml", ".nxml"}
ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
META = "{*}front/{*}article-meta"


def read(sources: Sequence[str | Path], options: Options) -> Imported:
    keywords = Gathered()
    return Imported(documents(sources, keywords, options), keywords)


def documents(sources: Sequence[str | Path], keywords: Gathered, options: Options) -> Iterator[Record]:
    for source in sources:
        if str(source).endswith(ARCHIVES):
            yield from archived(source, keywords, options)
            continue
        for path in files([source], EXTENSIONS):
            with reading(path) as stream:
                yield from articles(stream, keywords, options.problems(path))


def archived(path: str | Path, keywords: Gathered, options: Options) -> Iterator[Record]:
    """The articles of an archive, read front to back without unpacking it."""
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                if member.isfile() and suffixes(member.name)[0] in EXTENSIONS:
                    content = archive.extractfile(member)
                    if content is not None:
                        problems = options.problems(f"{path}/{member.name}")
                        yield from articles(content, keywords, problems)
    except (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        raise damaged(path, error) from error


def articles(stream: IO[bytes], keywords: Gathered, problems: Problems) -> Iterator[Record]:
    is_empty, before = True, len(problems.skipped)
    for element in records(stream, ["{*}article"], problems):
        is_empty = False
        try:
            yield article(element, keywords)
        except RecordError as error:
            problems.add(element.sourceline or 1, error)
    if is_empty and len(problems.skipped) == before:
        problems.add(1, RecordError("no <article> in the file", "give JATS files only"))


def article(element: Any, keywords: Gathered) -> Record:
    meta = element.find(META)
    if meta is None:
        raise RecordError("the article has no <article-meta>", "give JATS files only")
    abstracts = meta.findall("{*}abstract")
    # Digests and graphical abstracts carry a type; the abstract proper does not.
    proper = next((item for item in abstracts if not item.get("abstract-type")), None)
    return document(
        identifier(meta),
        title=flat(meta.find("{*}title-group/{*}article-title"), leave_out=("xref", "fn")),
        abstract="" if proper is None else " ".join(paragraphs(proper)) or flat(proper),
        authors=map(author, meta.iterfind("{*}contrib-group/{*}contrib[@contrib-type='author']")),
        venue=flat(element.find("{*}front/{*}journal-meta//{*}journal-title")),
        references=map(reference, element.iterfind("{*}back//{*}ref-list/{*}ref")),
        labels=subjects(meta, keywords),
    )


def identifier(meta: Any) -> str:
    """The DOI, or the PubMed Central number, in lower case."""
    ids = {item.get("pub-id-type"): flat(item).lower() for item in meta.findall("{*}article-id")}
    number = ids.get("pmcid") or ids.get("pmc") or ""
    found = ids.get("doi") or (number if number.startswith("pmc") or not number else f"pmc{number}")
    if not found:
        raise RecordError("the article has neither a DOI nor a PMC number", "give it an <article-id>")
    return found


def paragraphs(element: Any) -> Iterator[str]:
    """The paragraphs of an abstract; a section's title stands before its first, as in `Methods: We …`."""
    title = ""
    for child in element.iterchildren("{*}title", "{*}p", "{*}sec", "{*}list", "{*}list-item"):
        kind = etree.QName(child).localname
        if kind == "title":
            # The abstract's own title says no more than "Abstract".
            title = "" if etree.QName(element).localname == "abstract" else flat(child).rstrip(":. ")
            continue
        for text in [flat(child)] if kind == "p" else paragraphs(child):
            if text:
                yield f"{title}: {text}" if title else text
                title = ""


def author(element: Any) -> str:
    """`Surname, Given names`; a group by its name."""
    name = next(element.iterfind(".//{*}name"), None) if element.find("{*}collab") is None else None
    if name is None:
        return flat(element.find("{*}collab"), leave_out=("contrib-group",))
    return ", ".join(filter(None, (flat(name.find("{*}surname")), flat(name.find("{*}given-names")))))


def reference(element: Any) -> str:
    """The DOI of a cited work, in lower case, or else its PubMed number."""
    ids: dict[str, str] = {}
    for item in element.iterfind(".//{*}pub-id"):
        ids.setdefault(item.get("pub-id-type", ""), flat(item).lower())
    return ids.get("doi") or ids.get("pmid") or ""


def subjects(meta: Any, keywords: Gathered) -> Iterator[str]:
    """Keywords that differ in case alone are one label."""
    for keyword in meta.iterfind("{*}kwd-group//{*}kwd"):
        if name := flat(keyword):
            yield keywords.add(name.lower(), name)
