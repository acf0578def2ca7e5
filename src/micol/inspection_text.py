"""An inspection as tables for a terminal of a hundred columns, and as JSON."""

from __future__ import annotations

import textwrap
from typing import Any

from micol.console import aligned
from micol.inspection import Inspection, PathReport
from micol.purity import Share
from micol.reach import hub_degree

WIDTH = 100
VALUE_WIDTH = 24


def as_text(inspection: Inspection) -> str:
    """The paper's two data tables, the meta-paths, and what to beware of."""
    blocks = [text_table(inspection)]
    if inspection.nodes:
        blocks.append(node_table(inspection))
    if inspection.links:
        blocks.append(link_table(inspection))
    if inspection.paths:
        blocks.append(path_table(inspection))
    if any(report.divergence for report in inspection.paths):
        blocks.append(divergence_table(inspection))
    if inspection.warnings:
        blocks.append("\n".join(map(wrapped, inspection.warnings)))
    return "\n\n".join(blocks) + "\n"


def text_table(inspection: Inspection) -> str:
    texts = inspection.texts
    return aligned(
        [
            ["documents", "with labels", "labels", "in use", "labels/doc", "words/doc"],
            [
                f"{texts.documents:,}",
                f"{texts.labelled_documents:,}",
                f"{texts.labels:,}",
                f"{texts.labels_used:,}",
                f"{texts.labels_per_document:.2f}",
                f"{texts.words_per_document:.2f}" + ("" if texts.words_exact else "~"),
            ],
        ],
        left=0,
    )


def node_table(inspection: Inspection) -> str:
    rows = [["nodes", "values", "edges", "documents with", "most frequent value", "has"]]
    for node in inspection.nodes:
        rows.append(
            [
                f"{node.letter}  {node.field}",
                f"{node.values:,}",
                f"{node.edges:,}",
                of(node.documents, inspection),
                shortened(node.largest),
                of(node.largest_documents, inspection),
            ]
        )
    return aligned(rows)


def link_table(inspection: Inspection) -> str:
    rows = [["links", "edges", "inside", "outside", "ids outside", "documents linking", "linked"]]
    for link in inspection.links:
        outside = link.edges - link.edges_inside
        share = f" ({outside / link.edges:.0%})" if link.edges else ""
        rows.append(
            [
                f"{link.letter}  {link.field}",
                f"{link.edges:,}",
                f"{link.edges_inside:,}",
                f"{outside:,}{share}",
                f"{link.outside:,}",
                of(link.linking, inspection),
                of(link.linked, inspection),
            ]
        )
    return aligned(rows)


def path_table(inspection: Inspection) -> str:
    with_labels = inspection.random_common_label is not None
    head = ["meta-path", "documents", "pairs", "partners", "hubs only"]
    rows = [head + ["common label", "JS"] * with_labels]
    for report in inspection.paths:
        reach = report.reach
        sample = "" if reach.exact else "~"
        row = [
            report.path,
            of(reach.documents_with_partner, inspection) + sample,
            f"{reach.pairs:,}{sample}",
            f"{reach.mean_partners:,.1f}{sample}",
            f"{reach.hub_only_share:.1%}{sample}" if reach.pairs else "-",
        ]
        rows.append(row + [shown(report.common_label), total(report)] * with_labels)
    if with_labels:
        rows.append(["random pairs", "", "", "", "", shown(inspection.random_common_label), ""])
    hubs = hub_degree(inspection.texts.documents)
    notes = (
        "documents: with a partner; partners: mean over all documents; "
        f"hubs: shared by over {hubs:,} documents"
    )
    if "~" in str(rows):
        notes += "\n~: estimated from a sample"
    return f"{aligned(rows)}\n{notes}"


def divergence_table(inspection: Inspection) -> str:
    rows = [["Jensen-Shannon divergence", "1st term", "2nd term", "3rd term", "4th term", "sum", "documents"]]
    for report in inspection.paths:
        if report.divergence is not None:
            sample = "" if report.divergence_exact else "~"
            terms = [f"{term:+.4f}{sample}" for term in report.divergence]
            rows.append([report.path, *terms, total(report), f"{report.divergence_documents:,}"])
    return (
        aligned(rows)
        + "\n0: partners are exactly the documents with a common label; 0.6931 (log 2): no partner is one."
        + "\n2nd: partners without a common label; 4th: documents with a common label that are no partners."
    )


def of(count: int, inspection: Inspection) -> str:
    """A number of documents, and which share of all it is."""
    share = count / max(inspection.texts.documents, 1)
    return f"{count:,} ({'<1%' if 0 < share < 0.005 else f'{share:.0%}'})"


def shown(share: Share | None) -> str:
    return "-" if share is None else f"{share.value:.1%}" + ("" if share.exact else "~")


def total(report: PathReport) -> str:
    if report.divergence is None:
        return "-"
    return f"{report.divergence.total:.4f}" + ("" if report.divergence_exact else "~")


def shortened(value: str) -> str:
    return value if len(value) <= VALUE_WIDTH else f"{value[: VALUE_WIDTH - 1]}…"


def wrapped(warning: str) -> str:
    return textwrap.fill(f"warning: {warning}", WIDTH, subsequent_indent="  ", break_long_words=False)


def as_json(inspection: Inspection) -> dict[str, Any]:
    """The same numbers, with full precision."""
    return {
        **inspection.texts._asdict(),
        "nodes": {node.letter: node._asdict() for node in inspection.nodes},
        "links": {link.letter: link._asdict() for link in inspection.links},
        "paths": {report.path: path_json(report) for report in inspection.paths},
        "random_pairs_with_common_label": share_json(inspection.random_common_label),
        "warnings": list(inspection.warnings),
    }


def path_json(report: PathReport) -> dict[str, Any]:
    divergence = report.divergence
    return {
        **report.reach._asdict(),
        "common_label": share_json(report.common_label),
        "jensen_shannon": None if divergence is None else divergence.total,
        "jensen_shannon_terms": None if divergence is None else list(divergence),
        "jensen_shannon_documents": report.divergence_documents,
        "jensen_shannon_exact": report.divergence_exact,
    }


def share_json(share: Share | None) -> dict[str, Any] | None:
    return None if share is None else {"share": share.value, "exact": share.exact}
