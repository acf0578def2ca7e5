"""micol labels: edits touch only what they change."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import micol
import world
from conftest import write_lines
from micol.classify import Classifier
from micol.cli import cli
from micol.errors import MicolError, UsageError
from micol.folder import LabelTable
from micol.rank.cross_encoder import CrossEncoder
from micol.rank.encoder import Encoder
from micol.settings import resolve
from processes import Command


@pytest.fixture(scope="module")
def untouched(
    tiny_bert: Path, docs_file: Path, labels_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """A bi-encoder and a cross-encoder."""
    folder = tmp_path_factory.mktemp("models")
    corpus, labels = micol.Corpus.read(docs_file), micol.LabelSpace.read(labels_file)
    micol.train(corpus, labels, "P->P", base=str(tiny_bert), init_only=True, output=folder / "bi")
    ranker = CrossEncoder.untrained(Encoder.load(tiny_bert, 64), 0)
    Classifier.build(labels, ranker, resolve("cross", "P->P", "best", {}), {}, corpus).save(folder / "cross")
    return {"bi": folder / "bi", "cross": folder / "cross"}


@pytest.fixture
def model(untouched: dict[str, Path], tmp_path: Path) -> Path:
    return shutil.copytree(untouched["bi"], tmp_path / "model")


def run(model: Path, *arguments: object) -> Result:
    return CliRunner().invoke(cli, ["labels", str(model), *map(str, arguments)], catch_exceptions=False)


def vectors(model: Path) -> dict[str, bytes]:
    table = LabelTable.read(model / "labels.parquet")
    assert table.vectors is not None
    return {name: vector.tobytes() for name, vector in zip(table.labels.ids, table.vectors, strict=True)}


def contents(model: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(model)): path.read_bytes()
        for path in model.rglob("*")
        if path.is_file() and path.name != "labels.parquet"
    }


def suggestions(model: Path, documents: Path, without: set[str]) -> list[list[tuple[str, float]]]:
    tagged = micol.load(model).suggest(micol.Corpus.read(documents), limit=100)
    return [
        [(label.id, label.score) for label in document.labels if label.id not in without]
        for document in tagged
    ]


def test_list(model: Path) -> None:
    lines = run(model, "list").stdout.splitlines()
    assert lines[0] == "even  even group"
    assert len(lines) == 14
    words = world.words_of(3)
    assert run(model, "list", "--search", words[1].upper()).stdout == f"t3  {words[0]} {words[1]}\n"
    [record] = map(json.loads, run(model, "list", "--search", words[1], "--json").stdout.splitlines())
    assert record == {
        "id": "t3",
        "names": [f"{words[0]} {words[1]}", words[0]],
        "description": world.label_records()[5]["description"],
        "parents": ["odd"],
    }


def test_list_does_not_load_torch(model: Path) -> None:
    code = f"""
import sys
from micol.cli import cli
try:
    cli(["labels", {str(model)!r}, "list"])
finally:
    assert not {{"torch", "transformers", "numba"}} & set(sys.modules)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) == 14


def test_add_one(model: Path, unseen_file: Path) -> None:
    before, files = vectors(model), contents(model)
    expected = suggestions(model, unseen_file, {"new"})
    words = world.words_of(2)
    result = run(
        model, "add", "--id", "new", "--name", f"{words[4]} {words[5]}", "--name", words[2],
        "--description", "the study of it", "--parent", "odd",
    )  # fmt: skip
    assert result.stdout == "1 added, 1 embedded; the model has 15 labels\n"
    after = vectors(model)
    assert {name: vector for name, vector in after.items() if name != "new"} == before
    assert contents(model) == files
    edited = micol.load(model)
    assert edited.labels[14] == micol.Label(
        "new", (f"{words[4]} {words[5]}", words[2]), "the study of it", ("odd",)
    )
    # The new label is found, and what is said of the others has not moved.
    found = suggestions(model, unseen_file, set())
    assert any("new" in dict(labels) for labels in found)
    assert suggestions(model, unseen_file, {"new"}) == expected
    # Its vector is that of its text.
    assert edited.label_vectors is not None
    fresh = edited.embed([edited.labels[14].text])
    np.testing.assert_array_equal(edited.label_vectors[14], np.asarray(fresh)[0])


def test_add_a_file(model: Path, tmp_path: Path) -> None:
    file = write_lines(
        tmp_path / "more.jsonl",
        [
            {"id": "x", "names": ["ex"], "parents": ["even"]},
            {"id": "y", "names": ["why"], "parents": ["x", "nowhere"]},
        ],
    )
    result = run(model, "add", file)
    assert result.stdout == "2 added, 2 embedded; the model has 16 labels\n"
    assert "1 parents are not in the label space (such as 'nowhere'); left out" in result.stderr
    labels = micol.load(model).labels
    assert labels[labels.position("x")].parents == ("even",)
    assert {labels.ids[position] for position in labels.branch("even")} >= {"x", "y", "t0"}
    (tmp_path / "more.csv").write_text("id,name\nz,zed\n")
    assert run(model, "add", tmp_path / "more.csv").stdout.startswith("1 added, 1 embedded")


def test_update_embeds_only_what_has_changed(model: Path, unseen_file: Path, tmp_path: Path) -> None:
    before = vectors(model)
    expected = suggestions(model, unseen_file, {"t3"})
    result = run(model, "update", "--id", "t3", "--description", "something else")
    assert result.stdout == "1 changed, 1 embedded; the model has 14 labels\n"
    after = vectors(model)
    assert [name for name in before if after[name] != before[name]] == ["t3"]
    assert suggestions(model, unseen_file, {"t3"}) == expected
    label = micol.load(model).labels[5]
    assert (label.names, label.parents) == ((" ".join(world.words_of(3)[:2]), world.words_of(3)[0]), ("odd",))
    # Parents and further names are no part of the text.
    assert "0 embedded" in run(model, "update", "--id", "t3", "--parent", "even").stdout
    assert "0 embedded" in run(model, "update", "--id", "t3", *("--name", label.name, "--name", "n")).stdout
    assert vectors(model) == after
    assert micol.load(model).labels[5].parents == ("even",)
    # A file that repeats all labels changes the one that differs.
    labels = world.label_records()
    labels[7]["description"] = "new"
    result = run(model, "update", write_lines(tmp_path / "labels.jsonl", labels))
    assert result.stdout == "14 changed, 2 embedded; the model has 14 labels\n"
    assert {name for name in before if vectors(model)[name] != before[name]} <= {"t3", "t5"}


def test_remove(model: Path, unseen_file: Path) -> None:
    before = vectors(model)
    expected = suggestions(model, unseen_file, {"t3", "odd"})
    result = run(model, "remove", "t3", "odd")
    assert result.stdout == "2 removed, 0 embedded; the model has 12 labels\n"
    assert vectors(model) == {name: vector for name, vector in before.items() if name not in ("t3", "odd")}
    assert suggestions(model, unseen_file, set()) == expected
    labels = micol.load(model).labels
    assert labels[labels.position("t5")].parents == ()


def test_a_cross_encoder_has_nothing_to_embed(untouched: dict[str, Path], tmp_path: Path) -> None:
    model = shutil.copytree(untouched["cross"], tmp_path / "model")
    result = run(model, "add", "--id", "new", "--name", "brand new")
    assert result.stdout == "1 added, a cross-encoder keeps no vectors; the model has 15 labels\n"
    assert len(micol.load(model).labels) == 15


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add", "--id", "t3", "--name", "x"], "label 't3' is there already; use update to change it"),
        (
            ["add", "--id", "x"],
            "what to add must be given: a FILE of labels, or --id with",
        ),
        (["add", "file", "--id", "x"], "exclude each other"),
        (["add", "--id", "x", "--name", "y", "--parent", "no"], "no label has the id 'no'"),
        (["add", "--id", "x", "--name", "  "], "a --name is empty"),
        (["update", "--id", "t3", "--parent", "t3"], "'t3' cannot be its own --parent"),
        (["update", "--id", "x", "--name", "y"], "no label has the id 'x'"),
        (["update", "--id", "t3"], "what to change must be given"),
        (["remove", "t3", "x"], "no label has the id 'x'"),
        (
            ["remove", "even", "odd", *(f"t{topic}" for topic in range(12))],
            "the last label cannot be",
        ),
    ],
)
def test_what_makes_no_sense_changes_nothing(
    untouched: dict[str, Path], arguments: list[str], message: str
) -> None:
    before = (untouched["bi"] / "labels.parquet").read_bytes()
    with pytest.raises((MicolError, UsageError), match=message):
        run(untouched["bi"], *arguments)
    assert (untouched["bi"] / "labels.parquet").read_bytes() == before


def test_a_name_that_stands_for_two_labels_is_told_once(model: Path) -> None:
    name = " ".join(world.words_of(3)[:2])
    result = run(model, "add", "--id", "twin", "--name", name)
    assert f"warning: the name '{name}' stands for 2 labels: t3, twin" in result.stderr
    assert run(model, "add", "--id", "other", "--name", "other").stderr == ""


def test_a_full_disk_leaves_the_labels_as_they_were(model: Path, tmp_path: Path) -> None:
    before = (model / "labels.parquet").read_bytes()
    command = Command(["labels", model, "add", "--id", "x", "--name", "y"], tmp_path, largest_file=500)
    assert command.wait() == 1
    assert "labels.parquet: could not be written" in command.output
    assert (model / "labels.parquet").read_bytes() == before
    assert len(list(model.iterdir())) == len(list((model.parent / "model").iterdir()))
    assert not list(model.glob(".*"))


def test_a_folder_that_is_no_model_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(MicolError, match="no such model folder"):
        run(tmp_path / "nowhere", "list")
