"""Models go to a hub and come back from it: the real client against a small hub on this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import micol
import small_hub
from micol.card import model_card
from micol.errors import UsageError
from micol.folder import ModelFolder
from micol.hub import model_path, push
from serving import STARTED

NAME = "library/subjects"


@pytest.fixture(scope="module")
def hub() -> Iterator[small_hub.Hub]:
    with small_hub.running() as hub:
        yield hub


@pytest.fixture(scope="module")
def model(
    tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path, docs_file: Path, labels_file: Path
) -> Path:
    folder = tmp_path_factory.mktemp("pushed") / "model"
    micol.train(
        micol.Corpus.read(docs_file), micol.LabelSpace.read(labels_file), "P->P", base=str(tiny_bert),
        pairs=64, batch_size=16, output=folder,
    )  # fmt: skip
    return folder


def run(arguments: list[object], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, as the client reads where the hub is when it is loaded."""
    return subprocess.run(
        [sys.executable, "-m", "micol.cli", *map(str, arguments)],
        cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "HF_HOME": str(folder / "cache"), "HF_HUB_OFFLINE": "0", **environment},
    )  # fmt: skip


@pytest.mark.slow
def test_a_model_goes_to_the_hub_and_comes_back(
    hub: small_hub.Hub, model: Path, unseen_file: Path, tmp_path: Path
) -> None:
    there = {"HF_ENDPOINT": hub.url, "HF_TOKEN": small_hub.TOKEN}
    pushed = run(["push", model, NAME], tmp_path, **there)
    assert pushed.returncode == 0, pushed.stderr
    assert pushed.stdout == f"{hub.url}/{NAME}\n"
    assert "texts of documents" in pushed.stderr
    assert hub.private[NAME]
    here = {path.relative_to(model).as_posix() for path in model.rglob("*") if path.is_file()}
    assert set(hub.files[NAME]) == here
    card = hub.files[NAME]["README.md"].decode()
    assert f'micol.load("{NAME}")' in card
    assert "base_model" not in card  # a folder on this disk means nothing there
    assert "14 labels" in card
    assert all(line in card for line in ModelFolder(model).read_config()["report"])

    again = run(["push", model, NAME], tmp_path, **there)
    assert again.returncode == 0, again.stderr

    output = tmp_path / "suggested.jsonl"
    suggested = run(["suggest", NAME, unseen_file, "-o", output], tmp_path, **there)
    assert suggested.returncode == 0, suggested.stderr
    expected = [tagged.id for tagged in micol.load(model).suggest(micol.Corpus.read(unseen_file))]
    assert [json.loads(line)["id"] for line in output.open(encoding="utf-8")] == expected

    # What was fetched once is there without a network.
    kept = run(["labels", NAME, "list"], tmp_path, HF_HUB_OFFLINE="1")
    assert kept.returncode == 0, kept.stderr
    assert "even group" in kept.stdout
    labels_cannot_be_changed(tmp_path)


def labels_cannot_be_changed(folder: Path) -> None:
    """The server does not edit what the hub's client keeps."""
    serving = subprocess.Popen(
        [sys.executable, "-m", "micol.cli", "serve", NAME, "--port", "0"],
        cwd=folder, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "HF_HOME": str(folder / "cache"), "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    try:
        assert serving.stderr is not None
        (address,) = STARTED.findall(next(line for line in serving.stderr if STARTED.search(line)))
        assert "from the hub cannot be changed" in next(serving.stderr)
        refused = httpx.Client(transport=httpx.HTTPTransport(retries=10)).post(
            f"{address}/v1/labels", json={"labels": [{"id": "x", "names": ["x"]}]}
        )
        assert refused.status_code == 403, refused.text
    finally:
        serving.terminate()
        assert serving.wait(60) == 0


@pytest.mark.slow
def test_what_goes_wrong_is_one_sentence(hub: small_hub.Hub, model: Path, tmp_path: Path) -> None:
    cases = [
        (
            ["suggest", "library/nothing", "x.jsonl"],
            {"HF_ENDPOINT": hub.url},
            "no such model; check the name",
        ),
        (["suggest", "library/nothing", "x.jsonl"], {"HF_HUB_OFFLINE": "1"}, "the hub cannot be reached"),
        (["push", model, "library/other"], {"HF_ENDPOINT": hub.url}, "hf auth login"),
        (
            ["push", model, "library/other"],
            {"HF_ENDPOINT": "http://127.0.0.1:9"},
            "the hub cannot be reached",
        ),
    ]
    for arguments, environment, sentence in cases:
        done = run(arguments, tmp_path, **environment)
        assert done.returncode == 1, (arguments, done.stderr)
        assert sentence in done.stderr, done.stderr
        assert "Traceback" not in done.stderr, done.stderr


def test_a_folder_here_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "owner/name").mkdir(parents=True)
    assert model_path("owner/name") == Path("owner/name")
    assert model_path("no-owner") == Path("no-owner")
    assert model_path("/an/absolute/path") == Path("/an/absolute/path")


def test_a_repository_has_an_owner(model: Path) -> None:
    with pytest.raises(UsageError, match="OWNER/NAME"):
        push(model, "subjects")


def test_a_card_that_was_edited_stays(model: Path, tmp_path: Path) -> None:
    from micol.hub import card

    copy = ModelFolder(shutil.copytree(model, tmp_path / "copy"))
    config = copy.read_config()
    assert (copy.path / "README.md").read_text(encoding="utf-8") == model_card(config)
    (copy.path / "README.md").write_text("---\nlicense: cc0-1.0\n---\nMine", encoding="utf-8")
    assert card(copy, config, NAME).endswith(b"Mine")
