"""The retrieval stage alone: candidates in the order in which they were found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from micol.benchmark.task import Task
from micol.ranking import Ranking


@dataclass(frozen=True)
class Retrieval:
    """Labels that a document names, then the others by BM25; or the order of the file of candidates."""

    supervised: ClassVar[bool] = False
    deterministic: ClassVar[bool] = True

    @property
    def title(self) -> str:
        return "Retrieval alone"

    def rank(self, task: Task, seed: int) -> Ranking:
        return task.candidates
