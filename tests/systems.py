"""What the tests of the systems have in common: a task, and how well a system does on it."""

from __future__ import annotations

import json
from pathlib import Path

from micol.baselines.untuned import UntunedEncoder
from micol.benchmark.conditions import Candidates
from micol.benchmark.kept import KeptArrays
from micol.benchmark.task import Task
from micol.corpus import Corpus
from micol.labels import LabelSpace

TRAINING = {
    "recipe": "paper", "pairs": 600, "batch_size": 16, "epochs": 4, "learning_rate": 3e-3, "keep_best": False,
    "checkpoints": 0, "max_tokens": 48, "attention_dropout": False, "bf16": False, "pooling": "mean",
}  # fmt: skip


def task_in(folder: Path, docs_file: Path, unseen_file: Path, labels_file: Path) -> Task:
    """The small world, with every label a candidate of every document: chance is right once in 14 times."""
    test, labels = Corpus.read(unseen_file), LabelSpace.read(labels_file)
    with (folder / "candidates.json").open("w") as file:
        for document in test.ids:
            file.write(json.dumps({"paper": document, "predicted_label": labels.ids}) + "\n")
    source = Candidates(file=folder / "candidates.json")
    return Task(Corpus.read(docs_file), test, labels, KeptArrays(folder / "cache"), source)


def precision(task: Task, system: object, seed: int = 0) -> float:
    return task.scores(system.rank(task, seed))["P@1"]  # type: ignore[attr-defined]


def untuned_precision(task: Task, tiny_bert: Path) -> float:
    return precision(task, UntunedEncoder(base=str(tiny_bert), pooling="mean", max_tokens=48))
