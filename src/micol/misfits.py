"""What will go wrong with a corpus, said in words before anyone trains on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from micol.corpus import Corpus
from micol.counts import LinkCounts, NodeCounts, TextCounts
from micol.labels import LabelSpace
from micol.purity import LabelledDocuments

# A value that more than this share of the documents has joins everything with everything.
MOST = 0.5
# Paths through a link field that fewer documents have reach little.
FEW = 0.2
LISTED = 3


def misfits(
    corpus: Corpus,
    texts: TextCounts,
    nodes: Sequence[NodeCounts],
    links: Sequence[LinkCounts],
    labelled: LabelledDocuments,
    space: LabelSpace | None,
    record_keys: Sequence[str] = (),
) -> list[str]:
    """Warnings about what was left out, the metadata, the texts and the labels."""
    document, n = corpus.schema.document, len(corpus)
    found = [*about_skipped(corpus.skipped)]
    for node in nodes:
        found += about_node(node, document, n) if node.edges else [nobody_has(node.field, record_keys)]
    for link in links:
        found += about_link(link, document, n) if link.edges else [nobody_has(link.field, record_keys)]
    if texts.empty_texts:
        found.append(
            f"texts: {texts.empty_texts:,} of {n:,} documents have neither title nor abstract; nothing can "
            "be learnt from them or suggested for them"
        )
    if space is not None:
        found += [*about_labels(labelled, space), *space.warnings[:LISTED]]
        if len(space.warnings) > LISTED:
            found.append(f"{space.source}: {len(space.warnings) - LISTED:,} more of this kind")
    return found


def about_skipped(skipped: Sequence[str]) -> Iterator[str]:
    if skipped:
        more = "; …" if len(skipped) > LISTED else ""
        yield f"left out because of --skip-bad: {len(skipped):,}: {'; '.join(skipped[:LISTED])}{more}"


def nobody_has(field: str, record_keys: Sequence[str]) -> str:
    instead = f" (the first record has {', '.join(record_keys)})" if record_keys else ""
    return f"{field}: no document has any, so paths through it join nothing; check the schema{instead}"


def about_node(node: NodeCounts, document: str, n_documents: int) -> Iterator[str]:
    if n_documents > 1 and node.largest_documents > MOST * n_documents:
        share = node.largest_documents / n_documents
        who = "all" if share == 1 else f"{share:.0%} of the"
        yield (
            f"{node.field}: {who} documents have {node.largest!r}, so that sharing it says nothing; "
            f"{document}{node.letter}{document} joins nearly everything with everything"
        )


def about_link(link: LinkCounts, document: str, n_documents: int) -> Iterator[str]:
    if link.linking < FEW * n_documents:
        yield (
            f"{link.field}: only {link.linking:,} of {n_documents:,} documents have any "
            f"({link.linking / n_documents:.1%}), so that paths through it reach few documents"
        )
    outside = 1 - link.edges_inside / link.edges
    if outside > MOST:
        yield (
            f"{link.field}: {outside:.0%} of the links lead outside the corpus; {document}->{link.letter} "
            f"and {document}<-{link.letter} see only the rest, "
            f"{document}->{link.letter}<-{document} sees them all"
        )


def about_labels(labelled: LabelledDocuments, space: LabelSpace) -> Iterator[str]:
    known = set(space.ids)
    lacking = np.array([label not in known for label in labelled.labels], bool)
    if lacking.any():
        times = np.diff(labelled.with_label.indptr)
        example = labelled.labels[int(np.flatnonzero(lacking)[0])]
        yield (
            f"labels: documents carry {lacking.sum():,} labels that {space.source} lacks, such as "
            f"{example!r} ({times[lacking].sum() / times.sum():.1%} of all assignments); "
            "they can never be suggested"
        )
    wordless = [
        label
        for label, names in zip(space.ids, space.names, strict=True)
        if not any(character.isalnum() for name in names for character in name)
    ]
    if wordless:
        yield (
            f"labels: {len(wordless):,} of {len(space):,} have no name with a letter or digit in it, such as "
            f"{wordless[0]!r}; no text can match them"
        )
