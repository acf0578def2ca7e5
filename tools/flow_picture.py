"""Draws docs/pictures/flow.svg: how documents and labels become suggestions."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

TARGET = Path(__file__).resolve().parent.parent / "docs/pictures/flow.svg"
WIDTH, HEIGHT = 158, 58
STEP, MIDDLE = 188, HEIGHT / 2


class Box(NamedTuple):
    """A value, with the file or command that makes it below its name."""

    column: float
    y: float
    title: str
    note: str
    kind: str = "value"

    @property
    def x(self) -> float:
        return 16 + self.column * STEP


DOCUMENTS = Box(0, 56, "documents", "text and metadata", "given")
NETWORK = Box(1, 56, "network", "network.py")
PAIRS = Box(2, 56, "similar pairs", "metapath.py, pairs.py")
ENCODER = Box(3, 56, "encoder", "training.py, rank/")
LABELS = Box(0, 190, "labels", "names, descriptions", "given")
CANDIDATES = Box(2, 190, "candidates", "retrieve/")
RANKING = Box(3, 190, "ranking", "rank/, evidence/")
SUGGESTIONS = Box(4, 190, "suggestions", "with reasons", "given")
NEW = Box(0, 290, "a new document", "text", "given")
MODEL = Box(4, 56, "model folder", "folder.py")
BOXES = (DOCUMENTS, NETWORK, PAIRS, ENCODER, LABELS, CANDIDATES, RANKING, SUGGESTIONS, NEW, MODEL)
AHEAD = (
    (DOCUMENTS, NETWORK), (NETWORK, PAIRS), (PAIRS, ENCODER), (ENCODER, MODEL), (LABELS, CANDIDATES),
    (CANDIDATES, RANKING), (RANKING, SUGGESTIONS),
)  # fmt: skip
STYLE = """
text { font: 15px system-ui, sans-serif; fill: #1b3a39 } .note { font-size: 12px; fill: #4b6665 }
.stage { font-size: 13px; font-weight: 600; fill: #00695c }
.value { fill: #e0f2f1; stroke: #00897b } .given { fill: #fff8e1; stroke: #c49000 }
path { fill: none; stroke: #546e7a; stroke-width: 1.6; marker-end: url(#tip) }
"""


def drawn() -> str:
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 942 366" role="img" '
        'aria-label="From documents, labels and a new document to suggestions">',
        f"<style>{STYLE}</style>",
        '<defs><marker id="tip" markerWidth="9" markerHeight="9" refX="8" refY="4.5" orient="auto">'
        '<path d="M0 0 9 4.5 0 9z" style="fill:#546e7a;stroke:none;marker-end:none"/></marker></defs>',
        '<rect width="942" height="366" rx="10" style="fill:#ffffff"/>',
        '<text class="stage" x="16" y="32">training, without labels</text>',
        '<text class="stage" x="16" y="166">tagging</text>',
        *map(box, BOXES),
        *(arrow(a.x + WIDTH, a.y + MIDDLE, b.x, b.y + MIDDLE) for a, b in AHEAD),
        arrow(ENCODER.x + WIDTH / 2, ENCODER.y + HEIGHT, RANKING.x + WIDTH / 2, RANKING.y),
        f'<path d="M{NEW.x + WIDTH} {NEW.y + MIDDLE} H{CANDIDATES.x + WIDTH / 2} V{CANDIDATES.y + HEIGHT}"/>',
    ]
    return "\n".join(parts) + "\n</svg>\n"


def box(each: Box) -> str:
    middle = each.x + WIDTH / 2
    return (
        f'<rect class="{each.kind}" x="{each.x}" y="{each.y}" width="{WIDTH}" height="{HEIGHT}" rx="8"/>'
        f'<text x="{middle}" y="{each.y + 25}" text-anchor="middle">{escape(each.title)}</text>'
        f'<text class="note" x="{middle}" y="{each.y + 44}" text-anchor="middle">{escape(each.note)}</text>'
    )


def arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path d="M{x1} {y1} L{x2} {y2}"/>'


if __name__ == "__main__":
    TARGET.write_text(drawn(), encoding="utf-8")
