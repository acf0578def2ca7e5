"""PubMed baseline and update files (pubmed26n0001.xml.gz) -> documents with MeSH headings as labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from micol.files import reading
from micol.formats import mesh
from micol.formats.base import Gathered, Imported, Options, Record, Seen, document, files
from micol.formats.markup import flat, records
from micol.layout import RecordError
from micol.records import Label

ROOTS = ("PubmedArticleSet", "MedlineCitationSet")
TAGS = ("PubmedArticle", "PubmedBookArticle", "DeleteCitation")


def read(sources: Sequence[str | Path], options: Options) -> Imported:
    """`options.labels` may name a MeSH descriptor file; else labels are gathered from the records."""
    headings = Gathered()
    documents = newest(files(sources, {".xml"}), headings, options)
    if not options.labels:
        return Imported(documents, headings)
    vocabulary = options.labels
    return Imported(documents, described_labels(vocabulary, headings, options))


def described_labels(vocabulary: str, headings: Gathered, options: Options) -> Iterator[Label]:
    """The descriptor file's labels, then those of the records that it does not know (another year's)."""
    known = set()
    for label in mesh.labels(vocabulary, options.problems(vocabulary)):
        known.add(label.id)
        yield label
    yield from (label for label in headings if label.id not in known)


def newest(paths: Sequence[Path], headings: Gathered, options: Options) -> Iterator[Record]:
    """Records from the last file to the first, so that a later revision or deletion counts."""
    seen = Seen()
    for path in reversed(paths):
        for record in articles(path, headings, seen, options):
            if seen.add(record["id"]):
                yield record


def articles(path: Path, headings: Gathered, seen: Seen, options: Options) -> Iterator[Record]:
    problems = options.problems(path)
    with reading(path) as stream:
        for element in records(stream, TAGS, problems, roots=ROOTS):
            try:
                if element.tag == "PubmedArticle":
                    yield article(element, headings)
                elif element.tag == "DeleteCitation":
                    for number in element.findall("PMID"):
                        seen.add(flat(number))
            except RecordError as error:
                problems.add(element.sourceline or 1, error)


def article(element: Any, headings: Gathered) -> Record:
    citation = element.find("MedlineCitation")
    if citation is None:
        raise RecordError("the PubmedArticle has no MedlineCitation", "repair the record")
    return document(
        flat(citation.find("PMID")),
        title=flat(citation.find("Article/ArticleTitle")),
        abstract=abstract(citation.findall("Article/Abstract/AbstractText")),
        authors=map(author, citation.findall("Article/AuthorList/Author")),
        venue=flat(citation.find("MedlineJournalInfo/MedlineTA"))
        or flat(citation.find("Article/Journal/Title")),
        references=map(flat, element.iterfind("PubmedData//ReferenceList//ArticleId[@IdType='pubmed']")),
        labels=subjects(citation.findall("MeshHeadingList/MeshHeading/DescriptorName"), headings),
    )


def abstract(parts: Iterable[Any]) -> str:
    """A structured abstract's parts in one text, each after its label."""
    texts = []
    for part in parts:
        text, label = flat(part), part.get("Label", "")
        if text:
            texts.append(f"{label}: {text}" if label else text)
    return " ".join(texts)


def author(element: Any) -> str:
    """`Last, First or initials`; a group by its name."""
    last = flat(element.find("LastName"))
    first = flat(element.find("ForeName")) or flat(element.find("Initials"))
    return ", ".join(filter(None, (last, first))) or flat(element.find("CollectiveName"))


def subjects(names: Iterable[Any], headings: Gathered) -> Iterator[str]:
    for name in names:
        if identifier := name.get("UI"):
            yield headings.add(identifier, flat(name))
