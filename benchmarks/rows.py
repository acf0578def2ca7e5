"""Results of benchmarks: a JSON line for each system, written as soon as it is measured."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from micol.progress import say


def read_rows(path: Path) -> list[dict[str, Any]]:
    """None where nothing has been measured yet."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def tell_left_out(path: Path, known: int) -> None:
    """Who measures again must not wonder why nothing happens."""
    if known:
        say(f"{path}: has {known:,} of these results already; give another --output to measure them again")


def add_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
