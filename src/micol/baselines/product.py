"""What `micol train` and `micol suggest` do for someone who leaves every setting as it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from micol.benchmark.task import DEPTH, Task
from micol.ranking import Ranking


@dataclass(frozen=True)
class Product:
    """The recipe `best`, with candidates, path and evidence of its own choice; not a re-ranker."""

    supervised: ClassVar[bool] = False
    deterministic: ClassVar[bool] = False

    path: str = "auto"
    architecture: str = "bi"
    base: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return f"micol as it comes ({self.architecture}, {self.path})"

    def rank(self, task: Task, seed: int) -> Ranking:
        from micol.training import train

        given = {name: value for name, value in self.settings.items() if name != "recipe"}
        model = train(
            task.train,
            task.labels,
            self.path,
            self.architecture,
            recipe=self.settings.get("recipe", "best"),
            base=task.model(self.base),
            seed=seed,
            **given,
        )
        position = {identifier: at for at, identifier in enumerate(task.labels.ids)}
        return Ranking.from_rows(
            [(position[label.id], label.score) for label in tagged.labels]
            for tagged in model.suggest(task.test, limit=DEPTH)
        )
