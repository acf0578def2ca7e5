"""Plain tables that read well in a terminal and in a log."""

from __future__ import annotations

from collections.abc import Sequence

MARKS = "*+~"


def aligned(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Columns side by side: the first `left` ones to the left, the others to the right.

    Marks behind a number (stars, as in the paper) hang beyond its column's edge, so that digits stay in line.
    """
    hanging = [max(map(_marks, column)) for column in zip(*rows, strict=True)]
    padded = [
        [cell + " " * (hang - _marks(cell)) for cell, hang in zip(row, hanging, strict=True)] for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*padded, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if at < left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in padded
    ]
    return "\n".join(line.rstrip() for line in lines)


def _marks(cell: str) -> int:
    return len(cell) - len(cell.rstrip(MARKS))
