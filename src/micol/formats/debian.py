"""Debian's packages, from apt's own index files -> documents with debtags as labels.

A source package is often cut into many binary ones that tell the same story (the library, its headers,
its manual), so binaries of one source whose descriptions agree become one document.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from micol.errors import MicolError
from micol.formats import debtags
from micol.formats.base import Imported, Options, Record, document
from micol.formats.deb822 import Stanza, paragraphs, stanzas
from micol.formats.debian_fetch import fetched
from micol.progress import track

LISTS = Path("/var/lib/apt/lists")
# What one package says about others, in the order of how much it needs them.
RELATIONS = ("Depends", "Recommends", "Suggests", "Enhances")
FIELDS = {
    "Package",
    "Source",
    "Maintainer",
    "Section",
    "Description",
    "Description-md5",
    "Tag",
    "Provides",
    *RELATIONS,
}

# Packages that only help an upgrade describe nothing.
TRANSITIONAL = re.compile(r"transitional|transition package|dummy", re.IGNORECASE)
# What accompanies a program or library, by Debian's naming habits.
AUXILIARY = re.compile(
    r"-(dev|docs?|dbg|data|common|bin|examples|tests?|l10n|i18n|locales?|headers|source|man|pic)$"
    r"|-doc-[a-z]+$|^gir1|^monodoc"
)
# Two descriptions agree when most content words of the shorter one are in the other.
AGREEMENT = 0.65
COMMON_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and are as be by can contain contains files for from in is it its libraries library of on or "
        "package packages provide provides that the this to which with you",
    )
)
# A package on which almost everything depends (the C library) tells nothing about those that do.
MAX_DEPENDENTS = 200
# Maintainers who are no persons.
TEAM = re.compile(
    r"team|group|\bmaint(ainer|enance)|debian|packag|project|develop|(task|strike) force|ubuntu|folks|pkg-"
)


@dataclass
class Package:
    """A binary package, as far as a document is made from it."""

    name: str
    source: str
    maintainer: str
    section: str
    title: str
    text: str
    tags: frozenset[str]
    provides: tuple[str, ...]
    relations: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def needs(self) -> tuple[str, ...]:
        """Every package named in a dependency, alternatives and all."""
        return tuple(name for names in self.relations.values() for name in names)

    @property
    def words(self) -> frozenset[str]:
        found = re.findall(r"[a-z0-9-]+", f"{self.title} {self.text}".lower())
        return frozenset(found) - COMMON_WORDS


@dataclass
class Group:
    """The binaries of one source that tell the same story; the first stands for all."""

    chosen: Package
    words: frozenset[str]
    members: list[Package]
    # Tags of the members whose descriptions agree; what an accompanying package has may be about itself.
    tags: set[str]


def read(sources: Sequence[str | Path], options: Options) -> Imported:
    """Reads apt's lists (a folder or files), or fetches them; `options.labels` is the debtags vocabulary."""
    if options.fetch:
        with fetched(options.fetch) as (folder, vocabulary):
            return imported([folder], options.labels or vocabulary, options)
    return imported(sources or [LISTS], options.labels or debtags.installed(), options)


def imported(sources: Sequence[str | Path], vocabulary: str | Path, options: Options) -> Imported:
    # All before the first document: which packages a document stands for depends on all of them.
    tags = {label.id: label for label in debtags.labels(vocabulary, options.problems(vocabulary))}
    groups = grouped(packages(sources, options))
    uploaders = people_by_source(sources, options)
    documents = [described(group, uploaders, references, tags) for group, references in linked(groups)]
    documents.sort(key=lambda record: record["id"])
    used = {tag for record in documents for tag in record["labels"]}
    return Imported(documents, [label for tag, label in tags.items() if tag in used])


def described(
    group: Group, uploaders: dict[str, set[str]], references: Iterable[str], tags: Iterable[str]
) -> Record:
    package = group.chosen
    authors = people(package.maintainer) | uploaders.get(package.source, set())
    return document(
        package.name,
        title=package.title,
        abstract=package.text,
        authors=sorted(authors),
        venue=package.section,
        references=sorted(references),
        labels=sorted(group.tags & set(tags)),
    )


def lists(sources: Sequence[str | Path], kind: str) -> list[Path]:
    """The index files of a kind (Packages, Sources, Translation-en) among files and folders."""
    paths = [Path(source) for source in sources]
    inside = [path for folder in paths if folder.is_dir() for path in sorted(folder.iterdir())]
    named = [path for path in paths if not path.is_dir()]
    return [path for path in (*named, *inside) if re.fullmatch(rf"(.*_)?{kind}(\.\w+)?", path.name)]


def packages(sources: Sequence[str | Path], options: Options) -> list[Package]:
    """Every package that describes something; of several versions the first one counts."""
    indices = lists(sources, "Packages")
    if not indices:
        raise MicolError(
            f"{', '.join(map(str, sources))}: no file named Packages; run `apt-get update`, "
            "or let `--fetch SUITE` do it"
        )
    texts = translations(sources, options)
    if not texts:
        options.notes.append(
            "no Translation-en among the lists, so the texts are one line each; "
            "run `apt-get -o Acquire::Languages=en update`, or use --fetch"
        )
    found: dict[str, Package] = {}
    for path in indices:
        problems = options.problems(path)
        for stanza in track(stanzas(path, FIELDS, problems), f"reading {path.name}", unit="packages"):
            if "Package" in stanza and stanza["Package"] not in found:
                package = package_of(stanza, texts)
                if not TRANSITIONAL.search(package.title):
                    found[package.name] = package
    return list(found.values())


def translations(sources: Sequence[str | Path], options: Options) -> dict[str, str]:
    """Long descriptions by the digest that stands for them in Packages."""
    texts = {}
    for path in lists(sources, "Translation-en"):
        for stanza in stanzas(path, {"Description-md5", "Description-en"}, options.problems(path)):
            texts[stanza.get("Description-md5", "")] = stanza.get("Description-en", "")
    return texts


def package_of(stanza: Stanza, texts: dict[str, str]) -> Package:
    description = texts.get(stanza.get("Description-md5", "")) or stanza.get("Description", "")
    title, text = paragraphs(description)
    return Package(
        name=stanza["Package"],
        source=stanza.get("Source", stanza["Package"]).split(" ")[0],
        maintainer=stanza.get("Maintainer", ""),
        section=stanza.get("Section", ""),
        title=title,
        text=text,
        tags=frozenset(tag.strip() for tag in stanza.get("Tag", "").split(",")),
        provides=tuple(names(stanza.get("Provides", ""))),
        relations={field: tuple(names(stanza[field])) for field in RELATIONS if field in stanza},
    )


def names(relation: str) -> Iterator[str]:
    """The packages of `libc6 (>= 2.34), default-mta | mail-transport-agent`, without their versions."""
    for alternative in re.split(r"[,|]", relation):
        if name := re.split(r"[\s(:]", alternative.strip(), maxsplit=1)[0]:
            yield name


def grouped(found: Iterable[Package]) -> list[Group]:
    """One group for each story that a source's packages tell."""
    found = list(found)
    dependents = Counter(
        name
        for package in found
        for name in {
            name for kind, named in package.relations.items() if kind != "Enhances" for name in named
        }
    )
    by_source: dict[str, list[Package]] = defaultdict(list)
    for package in found:
        by_source[package.source].append(package)

    def precedence(package: Package) -> tuple[bool, bool, int, int, str]:
        """What goes by the source's name, or is needed most, speaks for the others."""
        is_auxiliary = bool(AUXILIARY.search(package.name))
        is_namesake = package.name == package.source
        return is_auxiliary, not is_namesake, -dependents[package.name], len(package.name), package.name

    groups: list[Group] = []
    for members in by_source.values():
        groups += stories(sorted(members, key=precedence))
    return groups


def stories(members: Iterable[Package]) -> list[Group]:
    groups: list[Group] = []
    for package in members:
        words = package.words
        shares = [overlap(words, group.words) for group in groups]
        agreeing = [group for group, share in zip(groups, shares, strict=True) if share >= AGREEMENT]
        if AUXILIARY.search(package.name) and groups:
            # What accompanies a program is never a document of its own beside it.
            nearest = groups[shares.index(max(shares))]
            nearest.members.append(package)
            if max(shares) >= AGREEMENT:
                nearest.tags |= package.tags
        elif agreeing:
            agreeing[0].members.append(package)
            agreeing[0].tags |= package.tags
        else:
            groups.append(Group(package, words, [package], set(package.tags)))
    return groups


def overlap(some: frozenset[str], others: frozenset[str]) -> float:
    """The share of the smaller set that is in the other."""
    return len(some & others) / max(1, min(len(some), len(others)))


def linked(groups: Sequence[Group]) -> Iterator[tuple[Group, list[str]]]:
    """Each group with the documents that its packages depend on, beyond its own source."""
    standing_for = {package.name: group.chosen for group in groups for package in group.members}
    providing: dict[str, set[str]] = defaultdict(set)
    for group in groups:
        for package in group.members:
            for virtual in package.provides:
                providing[virtual].add(group.chosen.name)

    def target(name: str) -> Package | None:
        if name in standing_for:
            return standing_for[name]
        # A virtual package means something only where a single document provides it.
        providers = providing.get(name, ())
        return standing_for[next(iter(providers))] if len(providers) == 1 else None

    references: list[set[str]] = []
    for group in groups:
        wanted = (target(name) for package in group.members for name in package.needs)
        references.append({found.name for found in wanted if found and found.source != group.chosen.source})
    count = Counter(name for named in references for name in named)
    for group, named in zip(groups, references, strict=True):
        yield group, [name for name in named if count[name] <= MAX_DEPENDENTS]


def people_by_source(sources: Sequence[str | Path], options: Options) -> dict[str, set[str]]:
    """The uploaders of each source package, which only the Sources index names."""
    indices = lists(sources, "Sources")
    if not indices:
        options.notes.append(
            "no Sources among the lists, so uploaders are missing from the authors; "
            "add a deb-src line to apt's sources and run `apt-get update`, or use --fetch"
        )
    found: dict[str, set[str]] = {}
    for path in indices:
        for stanza in stanzas(path, {"Package", "Uploaders"}, options.problems(path)):
            found.setdefault(stanza.get("Package", ""), people(stanza.get("Uploaders", "")))
    return found


def people(addresses: str) -> set[str]:
    """The persons of `Ada Lovelace (al) <ada@example.org>, Some Team <…>`, in lower case."""
    found = set()
    for name in re.findall(r"([^<>]*)<[^<>]*>", addresses):
        name = re.sub(r"\(.*?\)", " ", name).strip(' \t\n,"')
        if name and not TEAM.search(name.lower()):
            found.add(" ".join(name.lower().split()))
    return found
