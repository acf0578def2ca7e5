"""Training that was interrupted goes on to the same model, or says why it cannot."""

from __future__ import annotations

import json
import random
import shutil
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from micol.rank.checkpoints import is_whole, newest_checkpoint
from processes import Command


class Run:
    """A training that can be interrupted: its command, and the folder where its checkpoints are."""

    def __init__(self, folder: Path, docs: Path, labels: Path, base: Path, *options: object) -> None:
        self.folder, self.model = folder, folder / "model"
        self.checkpoints = folder / "model.training"
        self.arguments = ["train", docs, "--labels", labels, "--path", "P->P", "--base", base, *options]
        self.arguments += ["-o", self.model]

    def start(self, *more: object) -> Command:
        return Command([*self.arguments, *more], self.folder)

    def whole_checkpoints(self) -> list[Path]:
        return [path for path in self.checkpoints.glob("*/checkpoint-*") if is_whole(path)]


INTERRUPTED = {
    "bi": (
        *("--recipe", "paper", "--pairs", 300, "--validation-pairs", 30, "--learning-rate", 0.001),
        *("--epochs", 2, "--checkpoints", 8),
    ),
    "cross": (
        *("--architecture", "cross", "--pairs", 128, "--batch-size", 8, "--negatives", 3),
        *("--epochs", 3, "--learning-rate", 0.001, "--dropout", "--checkpoints", 6),
    ),
}
INTERRUPTED["cross with evidence"] = (*INTERRUPTED["cross"], "--evidence")


@pytest.fixture(scope="module")
def whole_run(
    request: pytest.FixtureRequest,
    tiny_bert: Path,
    docs_file: Path,
    labels_file: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[str, Path]:
    """A training that nothing interrupts."""
    kind: str = request.param
    folder = tmp_path_factory.mktemp(f"whole-{kind}")
    run = Run(folder, docs_file, labels_file, tiny_bert, *INTERRUPTED[kind])
    assert run.start().wait() == 0
    return kind, run.model


def assert_same_model(one: Path, other: Path) -> None:
    files = {str(path.relative_to(one)) for path in one.rglob("*") if path.is_file()}
    assert files == {str(path.relative_to(other)) for path in other.rglob("*") if path.is_file()}
    for name in files:
        if name.endswith(".safetensors"):
            for key, weight in load_file(one / name).items():
                assert torch.equal(weight, load_file(other / name)[key]), (name, key)
        elif name.endswith(("config.toml", "labels.parquet")):
            assert (one / name).read_bytes() == (other / name).read_bytes(), name


@pytest.mark.parametrize("whole_run", list(INTERRUPTED), indirect=True)
def test_killed_at_any_moment_training_resumes_to_the_same_weights(
    whole_run: tuple[str, Path], tiny_bert: Path, docs_file: Path, labels_file: Path, tmp_path: Path
) -> None:
    kind, expected = whole_run
    run = Run(tmp_path, docs_file, labels_file, tiny_bert, *INTERRUPTED[kind])
    generator = random.Random(kind)
    kills = 0
    for attempt in range(4):
        seen = len(run.whole_checkpoints())
        # Half of the kills fall anywhere after a new checkpoint, half while one is being written.
        pause = generator.uniform(0, 0.3)
        writing = attempt % 2 == 1

        def is_time(seen: int = seen, pause: float = pause, writing: bool = writing) -> bool:
            folders = list(run.checkpoints.glob("*/checkpoint-*"))
            if writing:
                return any(not is_whole(path) for path in folders)
            if len(folders) > min(seen, 1):
                time.sleep(pause)
                return True
            return False

        kills += run.start("--resume").kill_when(is_time)
    assert kills >= 2
    assert run.start("--resume").wait() == 0
    assert_same_model(run.model, expected)
    assert not run.checkpoints.exists()


@pytest.mark.parametrize("whole_run", ["bi"], indirect=True)
@pytest.mark.parametrize(
    "damaged", ["model.safetensors", "optimizer.pt", "rng_state.pth", "trainer_state.json"]
)
def test_a_cut_off_checkpoint_is_passed_over(
    damaged: str,
    whole_run: tuple[str, Path],
    interrupted: Path,
    tiny_bert: Path,
    docs_file: Path,
    labels_file: Path,
    tmp_path: Path,
) -> None:
    _, expected = whole_run
    run = Run(tmp_path, docs_file, labels_file, tiny_bert, *INTERRUPTED["bi"])
    shutil.copytree(interrupted, run.checkpoints)
    newest = newest_checkpoint(run.checkpoints / "bi")
    assert newest is not None
    content = (newest / damaged).read_bytes()
    (newest / damaged).write_bytes(content[: len(content) // 2])
    older = newest_checkpoint(run.checkpoints / "bi")
    assert older is not None
    assert older != newest
    # The best checkpoint is known by its path, which is another one here.
    state = json.loads((older / "trainer_state.json").read_text())
    best = run.checkpoints / "bi" / Path(state["best_model_checkpoint"]).name
    (older / "trainer_state.json").write_text(json.dumps({**state, "best_model_checkpoint": str(best)}))
    assert run.start("--resume").wait() == 0
    assert_same_model(run.model, expected)


@pytest.fixture(scope="module")
def interrupted(
    tiny_bert: Path, docs_file: Path, labels_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The checkpoints of a training that was killed after its second one."""
    run = Run(tmp_path_factory.mktemp("interrupted"), docs_file, labels_file, tiny_bert, *INTERRUPTED["bi"])
    assert run.start().kill_when(lambda: len(run.whole_checkpoints()) == 2)
    return run.checkpoints


def test_resuming_with_other_settings_says_what_differs(
    interrupted: Path, tiny_bert: Path, docs_file: Path, labels_file: Path, tmp_path: Path
) -> None:
    run = Run(tmp_path, docs_file, labels_file, tiny_bert, *INTERRUPTED["bi"])
    shutil.copytree(interrupted, run.checkpoints)
    command = run.start("--resume", "--batch-size", 4)
    assert command.wait() == 1
    assert "model.training: was begun with batch_size = 8, now it is 4; resume with what" in command.output
    command = run.start()
    assert command.wait() == 1
    assert "holds checkpoints of a training that was interrupted; go on with --resume" in command.output
    assert run.whole_checkpoints()
