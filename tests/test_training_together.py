"""Several processes train as one does."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from safetensors.torch import load_file

from processes import Command


def train_together(arguments: list[object], folder: Path, number: int = 2) -> list[Command]:
    """The same command in processes that know of each other, as torchrun starts them."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shared = {"WORLD_SIZE": str(number), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return [
        Command(arguments, folder, environment={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)})
        for rank in range(number)
    ]


@pytest.mark.parametrize(
    "options",
    [(), ("--gradient-cache", 6), ("--architecture", "cross", "--recipe", "paper", "--no-attention-dropout")],
    ids=["bi", "bi with gradient caching", "cross"],
)
def test_two_processes_train_as_one_does(
    options: tuple[object, ...], tiny_bert: Path, docs_file: Path, labels_file: Path, tmp_path: Path
) -> None:
    arguments = [
        *("train", docs_file, "--labels", labels_file, "--path", "P->P", "--base", tiny_bert, *options),
        *("--pairs", 96, "--validation-pairs", 8, "--keep-best", "--batch-size", 16, "--epochs", 2),
        *("--learning-rate", 1e-4, "--no-dropout", "--no-bf16", "--no-evidence"),
    ]
    assert Command([*arguments, "-o", tmp_path / "one"], tmp_path).wait() == 0
    first, second = train_together([*arguments, "-o", tmp_path / "two"], tmp_path)
    assert first.wait() == 0, first.output
    assert second.wait() == 0, second.output
    assert first.output.count("model     ") == 1
    assert second.output == ""
    before = load_file(tiny_bert / "model.safetensors")
    one, two = (load_file(tmp_path / name / "encoder" / "model.safetensors") for name in ("one", "two"))
    moved = sum(float((weight - before[name]).square().sum()) for name, weight in one.items())
    apart = sum(float((weight - two[name]).square().sum()) for name, weight in one.items())
    # Adam takes steps of equal size however small a gradient is, so rounding shows.
    assert apart**0.5 < 0.01 * moved**0.5
