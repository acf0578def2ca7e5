"""What several test modules share: a small world of documents and labels, and tiny real encoders."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

import micol
import world
from pages import ROOT

if TYPE_CHECKING:
    from micol.benchmark.task import Task

pytest_plugins = ["serving"]  # fixtures with real servers

# Tiny matrices are multiplied quicker by one thread than by several that wait for each other.
os.environ.update(OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1")

# Where a change is judged, the same examples are tried each time; at a desk, new ones.
settings.register_profile("judged", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("judged")


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.fixture
def benchmarks_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return world.save_bert(tmp_path_factory.mktemp("encoders") / "bert")


@pytest.fixture(scope="session")
def tiny_roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return world.save_roberta(tmp_path_factory.mktemp("encoders") / "roberta")


@pytest.fixture(scope="session")
def labels_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lines(tmp_path_factory.mktemp("world") / "labels.jsonl", world.label_records())


@pytest.fixture(scope="session")
def docs_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lines(tmp_path_factory.mktemp("world") / "docs.jsonl", world.documents(240))


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory: pytest.TempPathFactory, docs_file: Path, labels_file: Path) -> Path:
    """Documents, labels and the ids of the test documents, laid out as benchmarks read them."""
    folder = tmp_path_factory.mktemp("world") / "small"
    folder.mkdir()
    for source in (docs_file, labels_file):
        (folder / f"{source.name}.gz").write_bytes(gzip.compress(source.read_bytes()))
    lines = docs_file.read_text(encoding="utf-8").splitlines()
    ids = [json.loads(line)["id"] for line in lines[:40]]
    (folder / "test_ids.txt").write_text("\n".join(ids), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def unseen_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents that no model of the tests was trained on."""
    return write_lines(
        tmp_path_factory.mktemp("world") / "unseen.jsonl", world.documents(120, seed=1, first=240)
    )


@pytest.fixture(scope="session")
def corpus(docs_file: Path) -> micol.Corpus:
    return micol.Corpus.read(docs_file)


@pytest.fixture(scope="session")
def labels(labels_file: Path) -> micol.LabelSpace:
    return micol.LabelSpace.read(labels_file)


@pytest.fixture(scope="session")
def unseen(unseen_file: Path) -> micol.Corpus:
    return micol.Corpus.read(unseen_file)


@pytest.fixture(scope="session")
def task(
    tmp_path_factory: pytest.TempPathFactory, docs_file: Path, unseen_file: Path, labels_file: Path
) -> Task:
    from systems import task_in

    return task_in(tmp_path_factory.mktemp("task"), docs_file, unseen_file, labels_file)


@pytest.fixture(scope="session")
def untuned(task: Task, tiny_bert: Path) -> float:
    """What the untuned encoder reaches on the task."""
    from systems import untuned_precision

    return untuned_precision(task, tiny_bert)
