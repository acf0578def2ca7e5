"""How long functions are: the median, and the longest, so that it can be compared with other codebases."""

from __future__ import annotations

import ast
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def lengths(folder: Path) -> dict[str, int]:
    """Lines of each function, docstring and signature included."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                found[f"{path.relative_to(folder)}:{node.lineno} {node.name}"] = (
                    node.end_lineno - node.lineno + 1
                )
    return found


if __name__ == "__main__":
    measured = lengths(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "src/micol")
    print(f"{len(measured):,} functions, median {statistics.median(measured.values()):g} lines")
    for name in sorted(measured, key=lambda name: -measured[name])[:10]:
        print(f"{measured[name]:>5}  {name}")
