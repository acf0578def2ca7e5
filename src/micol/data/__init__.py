"""The data set that ships with the package: Debian 12, described in debian/README.md."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class DebianPaths(NamedTuple):
    """The files of the Debian data set: documents, labels, and the ids of the documents to tag."""

    docs: Path
    labels: Path
    test_ids: Path


def debian() -> DebianPaths:
    """37,175 Debian packages with debtags; the 1,678 test ids are held out of training."""
    folder = Path(__file__).parent / "debian"
    return DebianPaths(folder / "docs.jsonl.zst", folder / "labels.jsonl", folder / "test_ids.txt")
