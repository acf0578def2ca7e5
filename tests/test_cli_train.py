"""micol train: every setting is an option, and a wrong request is told before the work begins."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import micol
import world
from conftest import write_lines
from micol.cli import cli
from micol.cli.train import HELP
from micol.errors import MicolError, UsageError
from micol.settings import Settings, resolve

QUICK = ("--pairs", "32", "--batch-size", "16")


def train(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["train", *map(str, arguments)], catch_exceptions=False)


@pytest.fixture
def usual(tiny_bert: Path, docs_file: Path, labels_file: Path) -> list[object]:
    return [docs_file, "--labels", labels_file, "--base", tiny_bert, "--path", "P->P"]


def config(model: Path) -> dict[str, Any]:
    return tomllib.loads((model / "config.toml").read_text(encoding="utf-8"))


def test_a_model_is_trained_and_its_making_told(usual: list[object], tmp_path: Path) -> None:
    result = train(*usual, *QUICK, "--learning-rate", "1e-3", "-o", tmp_path / "model")
    lines = result.stdout.splitlines()
    assert lines[:4] == [
        f"model     {tmp_path / 'model'}",
        "settings  recipe best with pairs 32, batch_size 16, learning_rate 0.001",
        "labels    14",
        "pairs     32 by P->P",
    ]
    assert lines[4].startswith("loss      ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]
    assert (tmp_path / "model" / "training.png").read_bytes().startswith(b"\x89PNG")
    saved = config(tmp_path / "model")
    given = {"pairs": 32, "batch_size": 16, "learning_rate": 1e-3}
    assert saved["settings"] == resolve("bi", "P->P", "best", given).as_dict()
    assert saved["training"]["pairs_used"] == 32
    assert saved["data"]["documents"] == 240
    assert set(saved["versions"]) == {"micol", "python", "torch", "transformers"}
    assert list(micol.load(tmp_path / "model").suggest(world.documents(24)))


def test_every_setting_is_an_option_with_its_own_words() -> None:
    settings = {field.name for field in dataclasses.fields(Settings)} - {"architecture", "path", "recipe"}
    assert set(HELP) == settings
    text = " ".join(train("--help").stdout.split())
    for name in settings:
        assert f"--{name.replace('_', '-')} " in text
    assert "[default: 256; cross: 32]" in text
    assert text.count("[default: ") >= len(settings)


def test_options_reach_the_settings(usual: list[object], tmp_path: Path) -> None:
    options = {
        "pairs": 16, "sampling": "rarity", "title_pairs": 0.5, "max_tokens": 32, "pooling": "cls",
        "batch_size": 8, "gradient_cache": 4, "epochs": 2, "learning_rate": 1e-4, "warmup": 0.2,
        "weight_decay": 0.01, "temperature": 0.1, "interpolate": 0.9, "checkpoints": 2, "bm25_top": 10,
        "dense_top": 5, "seed": 3, "validation_pairs": 4,
    }  # fmt: skip
    flags = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
    train(*usual, *flags, "--keep-best", "--no-bf16", "--dropout", "-o", tmp_path / "model")
    saved = config(tmp_path / "model")["settings"]
    expected = {**options, "keep_best": True, "bf16": False, "dropout": True, "compile": False}
    assert {name: saved[name] for name in expected} == expected


def test_the_untrained_base_can_be_a_model(usual: list[object], tiny_bert: Path, tmp_path: Path) -> None:
    result = train(*usual, "--init-only", "-o", tmp_path / "model")
    assert f"untrained {tiny_bert}" in result.stdout
    assert not (tmp_path / "model" / "training.png").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


def test_pairs_from_a_file(usual: list[object], docs_file: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.parquet"
    drawn = CliRunner().invoke(cli, ["pairs", str(docs_file), "--path", "PAP", "-n", "48", "-o", str(pairs)])
    assert drawn.exit_code == 0
    without_path = usual[:-2]
    result = train(*without_path, "--pairs-file", pairs, "--batch-size", 16, "-o", tmp_path / "model")
    assert "pairs     48 by pairs.parquet" in result.stdout
    pq.write_table(pa.table({"anchor": ["d0"], "positive": ["nowhere"]}), pairs)
    with pytest.raises(MicolError, match=r"pairs.parquet: the positive 'nowhere' is no document of"):
        train(*without_path, "--pairs-file", pairs, "-o", tmp_path / "other")
    pq.write_table(pa.table({"from": ["d0"], "to": ["d1"]}), pairs)
    with pytest.raises(MicolError, match=r"pairs.parquet: no column 'anchor' of document ids; expect"):
        train(*without_path, "--pairs-file", pairs, "-o", tmp_path / "other")
    pairs.write_bytes(b"not parquet")
    with pytest.raises(MicolError, match=r"pairs.parquet: cut short or damaged"):
        train(*without_path, "--pairs-file", pairs, "-o", tmp_path / "other")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "pairs.parquet"]


def test_documents_can_be_left_out_of_training(usual: list[object], tmp_path: Path) -> None:
    (tmp_path / "test.txt").write_text("".join(f"d{number}\n" for number in range(200, 240)))
    result = train(*usual, *QUICK, "--exclude-ids", tmp_path / "test.txt", "-o", tmp_path / "model")
    assert "40 documents left out of training, 200 remain" in result.stderr
    assert config(tmp_path / "model")["data"]["documents"] == 200
    (tmp_path / "test.txt").write_text("nowhere\n")
    with pytest.raises(MicolError, match=r"test.txt: lists no document of .*; expected one id a line"):
        train(*usual, "--exclude-ids", tmp_path / "test.txt", "-o", tmp_path / "other")
    (tmp_path / "test.txt").write_text("".join(f"d{number}\n" for number in range(240)))
    with pytest.raises(MicolError, match=r"test.txt: lists every document of"):
        train(*usual, "--exclude-ids", tmp_path / "test.txt", "-o", tmp_path / "other")


def test_bad_records_and_ambiguous_names_are_told(tiny_bert: Path, tmp_path: Path) -> None:
    docs = tmp_path / "docs.jsonl"
    docs.write_text("".join(json.dumps(record) + "\n" for record in world.documents(48)) + "{\n")
    labels = write_lines(
        tmp_path / "labels.jsonl",
        [{"id": "a", "names": ["web"]}, {"id": "b", "names": ["web"]}, {"id": "c", "names": []}],
    )
    arguments = [docs, "--labels", labels, "--base", tiny_bert, "--path", "P->P", "--init-only"]
    with pytest.raises(MicolError, match=r"labels.jsonl:3: the label 'c' has no name"):
        train(*arguments, "-o", tmp_path / "model")
    result = train(*arguments, "--skip-bad", "-o", tmp_path / "model")
    assert result.stderr.count("stands for 2 labels: a, b") == 1
    assert "left out by --skip-bad" in result.stderr
    assert "docs.jsonl:49: not valid JSON" in result.stderr
    labels.write_text("")
    with pytest.raises(MicolError, match=r"labels.jsonl: no labels in it"):
        train(*arguments, "--skip-bad", "-o", tmp_path / "other")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--path", "P->"], "P->"),
        (["--path", "PXP"], "X"),
        (["--epochs", "0"], "epochs must be above 0, got 0"),
        (["--teacher", "bi"], "teacher is a setting of the cross-encoder"),
        (["--pooling", "max"], "pooling must be one of auto, cls, mean, got 'max'"),
    ],
)
def test_a_wrong_request_is_told_before_anything_is_read(
    options: list[str], message: str, tmp_path: Path
) -> None:
    arguments = ["nowhere.jsonl", "--labels", "nowhere.jsonl", "--path", "P->P", *options]
    with pytest.raises(UsageError, match=message):
        train(*arguments, "-o", tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_what_is_missing_is_told(usual: list[object], tmp_path: Path) -> None:
    assert train(*usual).exit_code == 2
    (tmp_path / "photos").mkdir()
    with pytest.raises(MicolError, match="photos: exists and is not a model folder; choose another output"):
        train("nowhere.jsonl", *usual[1:], "-o", tmp_path / "photos")
    with pytest.raises(MicolError, match="no such file"):
        train("nowhere.jsonl", *usual[1:], "-o", tmp_path / "model")


def test_an_unknown_base_says_how_to_provide_one(usual: list[object], tmp_path: Path) -> None:
    with pytest.raises(MicolError, match=r"no/such-model: the encoder cannot be loaded .*micol\[minilm\]"):
        train(*usual, "--base", "no/such-model", "--init-only", "-o", tmp_path / "model")
    with pytest.raises(MicolError, match=r"no config.json, so this is not a model folder"):
        train(*usual, "--base", tmp_path, "--init-only", "-o", tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_schema_names_other_metadata(tiny_bert: Path, labels_file: Path, tmp_path: Path) -> None:
    records = [
        {"id": record["id"], "title": record["title"], "section": record["authors"]}
        for record in world.documents(60)
    ]
    docs = write_lines(tmp_path / "docs.jsonl", records)
    (tmp_path / "schema.toml").write_text('[nodes]\nS = "section"\n')
    result = train(
        docs, "--labels", labels_file, "--base", tiny_bert, "--schema", tmp_path / "schema.toml",
        "--path", "PSP", *QUICK, "-o", tmp_path / "model",
    )  # fmt: skip
    assert "by PSP" in result.stdout


def test_tensorboard_logs_stay_beside_the_model(usual: list[object], tmp_path: Path) -> None:
    train(*usual, *QUICK, "--tensorboard", "-o", tmp_path / "model")
    assert list((tmp_path / "model.tensorboard" / "bi").glob("events.*"))
    assert not (tmp_path / "model.training").exists()


def settings_table() -> str:
    """The table of docs/training.md: what each recipe sets, and what it means."""
    columns = [
        resolve(architecture, "", recipe, {}).as_dict()
        for architecture in ("bi", "cross")
        for recipe in ("paper", "best")
    ]
    lines = []
    for name, meaning in HELP.items():
        values = (written(column[name]) for column in columns)
        lines.append(f"| `{name}` | {' | '.join(values)} | {meaning} |")
    return "\n".join(lines)


def written(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def test_the_docs_list_every_setting_as_it_is() -> None:
    page = Path(__file__).parent.parent / "docs" / "training.md"
    assert settings_table() in page.read_text(encoding="utf-8"), f"the table should be\n{settings_table()}"
