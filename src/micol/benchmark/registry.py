"""Every system that conditions can name. A new one is a new file in `micol.baselines` and a line here."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, ClassVar, Protocol

from micol.errors import MicolError

if TYPE_CHECKING:
    from micol.benchmark.task import Task
    from micol.ranking import Ranking


class System(Protocol):
    """A dataclass of options, with defaults, that ranks labels for the test documents of a task."""

    # Reads the labels of training documents.
    supervised: ClassVar[bool]
    # The same whatever the seed, so that one run is enough.
    deterministic: ClassVar[bool]

    @property
    def title(self) -> str:
        """What its row is called, where the conditions give no name."""

    def rank(self, task: Task, seed: int) -> Ranking:
        """Labels of each test document, best first: of a re-ranker, its candidates."""


SYSTEMS = {
    "bm25": "micol.baselines.retrieval.Retrieval",
    "doc2vec": "micol.baselines.doc2vec.Doc2Vec",
    "encoder": "micol.baselines.untuned.UntunedEncoder",
    "entail": "micol.baselines.entail.Entail",
    "eda": "micol.baselines.eda.Eda",
    "uda": "micol.baselines.uda.Uda",
    "micol": "micol.baselines.contrastive.Micol",
    "product": "micol.baselines.product.Product",
    "match": "micol.baselines.match.Match",
}


def system_class(kind: str) -> type[System]:
    if kind not in SYSTEMS:
        raise MicolError(f"{kind!r} is no system; there are {', '.join(SYSTEMS)}")
    module, _, name = SYSTEMS[kind].rpartition(".")
    found: type[System] = getattr(importlib.import_module(module), name)
    return found
