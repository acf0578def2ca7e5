"""Foreign files -> ours: one small module a format.

A new format is one new module with `read(sources, options) -> Imported` and one line here.
"""

from __future__ import annotations

import importlib
from types import ModuleType

# The name a user gives -> the module, loaded only when it is asked for.
FORMATS = {
    "annif": "micol.formats.annif",
    "arxiv": "micol.formats.arxiv",
    "csv": "micol.formats.table",
    "debian": "micol.formats.debian",
    "jats": "micol.formats.jats",
    "micol": "micol.formats.release",
    "openalex": "micol.formats.openalex",
    "pubmed": "micol.formats.pubmed",
}


def module(name: str) -> ModuleType:
    """The module that reads a format."""
    return importlib.import_module(FORMATS[name])
