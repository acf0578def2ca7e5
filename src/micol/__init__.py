"""Zero-shot tagging of documents with labels from a large taxonomy, learned from metadata alone."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # The same as below, for programs that check types.
    from micol.classify import Classifier as Classifier
    from micol.classify import load as load
    from micol.corpus import Corpus as Corpus
    from micol.errors import MicolError as MicolError
    from micol.evaluation import evaluate as evaluate
    from micol.labels import LabelSpace as LabelSpace
    from micol.metapath import MetaPath as MetaPath
    from micol.records import Document as Document
    from micol.records import Label as Label
    from micol.records import Suggestion as Suggestion
    from micol.records import Tagged as Tagged
    from micol.schema import Schema as Schema
    from micol.training import train as train

__version__ = "0.1.0"

# Loaded on first use, so that importing micol stays instant and torch loads only where a model runs.
_EXPORTS = {
    "Classifier": "micol.classify",
    "Corpus": "micol.corpus",
    "Document": "micol.records",
    "Label": "micol.records",
    "LabelSpace": "micol.labels",
    "MetaPath": "micol.metapath",
    "MicolError": "micol.errors",
    "Schema": "micol.schema",
    "Suggestion": "micol.records",
    "Tagged": "micol.records",
    "evaluate": "micol.evaluation",
    "load": "micol.classify",
    "train": "micol.training",
}
__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'micol' has no attribute {name!r}")
    return getattr(importlib.import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *_EXPORTS]
