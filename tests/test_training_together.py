"""Several processes train as one does."""

from __future__ import annotations

import os
import socket
import tomllib
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import distributed

from micol.rank import team
from micol.rank.losses import info_nce
from processes import CONTEXT, PATIENCE, Command


def environments(number: int, machines: int = 1) -> list[dict[str, str]]:
    """What torchrun tells the processes that it starts on some machines: of each other, and of their GPU."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shared = {"WORLD_SIZE": str(number), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    each = number // machines
    return [{**shared, "RANK": str(rank), "LOCAL_RANK": str(rank % each)} for rank in range(number)]


def train_together(arguments: list[object], folder: Path, machines: int) -> list[Command]:
    """The same command in two processes that know of each other."""
    return [Command(arguments, folder, environment=each) for each in environments(2, machines)]


def random_vectors() -> tuple[torch.Tensor, torch.Tensor]:
    """Anchors and positives of a batch of 16."""
    anchors, positives = torch.randn(2, 16, 8, generator=torch.Generator().manual_seed(0))
    return anchors.requires_grad_(), positives.requires_grad_()


def half_of_a_batch(environment: dict[str, str], output: Path) -> None:
    """What one of two processes computes of the bi-encoder's loss, and of its gradient."""
    os.environ.update(environment)
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    anchors, positives = random_vectors()
    mine = slice(8 * rank, 8 * rank + 8)
    loss = info_nce(anchors[mine], team.everyones(positives[mine]), temperature=0.05)
    loss.backward()
    save_file(
        {"loss": loss.detach()[None], "anchors": anchors.grad[mine], "positives": positives.grad[mine]},
        output / f"{rank}.safetensors",
    )
    distributed.destroy_process_group()


def test_two_processes_have_the_loss_of_one_with_the_doubled_batch(tmp_path: Path) -> None:
    processes = [
        CONTEXT.Process(target=half_of_a_batch, args=(each, tmp_path)) for each in environments(2, machines=2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE)
        assert process.exitcode == 0
    halves = [load_file(tmp_path / f"{rank}.safetensors") for rank in range(2)]
    anchors, positives = random_vectors()
    loss = info_nce(anchors, positives, temperature=0.05)
    loss.backward()
    # Processes that train together take the mean of their losses, and so of their gradients.
    mean = sum(half["loss"].item() for half in halves) / 2
    assert mean == pytest.approx(loss.item(), rel=1e-6)
    for name, whole in (("anchors", anchors), ("positives", positives)):
        gradient = torch.cat([half[name] for half in halves]) / 2
        torch.testing.assert_close(gradient, whole.grad, rtol=1e-5, atol=1e-7)
    # Without the other's positives, each would have half of the negatives and a smaller loss.
    alone = info_nce(anchors[:8], positives[:8], temperature=0.05)
    assert alone.item() < 0.95 * halves[0]["loss"].item()


@pytest.mark.parametrize(
    ("options", "machines"),
    [
        ((), 2),
        (("--gradient-cache", 6), 1),
        (("--architecture", "cross", "--recipe", "paper", "--no-attention-dropout"), 1),
    ],
    ids=["bi on two machines", "bi with gradient caching", "cross"],
)
def test_two_processes_train_as_one_does(
    options: tuple[object, ...],
    machines: int,
    tiny_bert: Path,
    docs_file: Path,
    labels_file: Path,
    tmp_path: Path,
) -> None:
    arguments = [
        *("train", docs_file, "--labels", labels_file, "--path", "P->P", "--base", tiny_bert, *options),
        *("--pairs", 96, "--validation-pairs", 8, "--keep-best", "--batch-size", 16, "--epochs", 2),
        *("--learning-rate", 1e-4, "--no-dropout", "--no-bf16", "--no-evidence"),
    ]
    assert Command([*arguments, "-o", tmp_path / "one"], tmp_path).wait() == 0
    first, second = train_together([*arguments, "-o", tmp_path / "two"], tmp_path, machines)
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
    losses = [
        tomllib.loads((tmp_path / name / "config.toml").read_text())["training"]["final_loss"]
        for name in ("one", "two")
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
