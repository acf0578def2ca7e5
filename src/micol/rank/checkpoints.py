"""Where a training is kept while it runs, and how it is gone on with."""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from micol.errors import MicolError
from micol.files import replacing
from micol.rank import team


@dataclass(frozen=True)
class Checkpoints:
    """A folder of checkpoints; whether training goes on from the newest, and whether it logs beside them."""

    folder: Path
    resume: bool = False
    tensorboard: bool = False

    def of(self, part: str) -> Checkpoints:
        """Those of one part of a training, such as the teacher's."""
        return replace(self, folder=self.folder / part)

    def newest(self) -> Path | None:
        """The one to go on from, where that is asked for."""
        return newest_checkpoint(self.folder) if self.resume else None

    @property
    def logs(self) -> Path:
        """MODEL.tensorboard/bi where the checkpoints are in MODEL.training/bi: they outlive them."""
        return self.folder.parent.with_suffix(".tensorboard") / self.folder.name


@contextmanager
def kept_beside(
    output: str | Path | None, run: dict[str, Any], *, resume: bool, tensorboard: bool
) -> Iterator[Checkpoints]:
    """Checkpoints while training runs: beside the output, and gone once the model is saved.

    `run` is what the training is made with; only the same can be gone on with.
    """
    if output is None:
        with tempfile.TemporaryDirectory(prefix="micol-training-") as name:
            yield Checkpoints(Path(name), resume, tensorboard)
        return
    folder = Path(f"{Path(output)}.training")
    if team.is_leader():
        if folder.exists() and not resume:
            shutil.rmtree(folder)
        folder.mkdir(parents=True, exist_ok=True)
        check_same_run(folder, run)
    team.wait()
    try:
        yield Checkpoints(folder, resume, tensorboard)
    except BaseException:
        if team.is_leader() and not any(folder.glob("*/checkpoint-*")):
            shutil.rmtree(folder)
        raise
    if team.is_leader():
        shutil.rmtree(folder)


def check_same_run(folder: Path, run: dict[str, Any]) -> None:
    """Only what was begun with the same data and settings can be gone on with."""
    path = folder / "run.json"
    if not path.is_file():
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(run, indent=2), encoding="utf-8")
        return
    begun = json.loads(path.read_text(encoding="utf-8"))
    for name, value in run.items():
        if begun.get(name) != value:
            raise MicolError(
                f"{folder}: was begun with {name} = {begun.get(name)!r}, now it is {value!r}; "
                "resume with what it was begun with, or train anew without --resume"
            )


@contextmanager
def clear_failures(folder: Path) -> Iterator[None]:
    """Turns a full disk or a full device into a sentence."""
    try:
        yield
    except torch.cuda.OutOfMemoryError as error:
        raise MicolError(
            "the device has too little memory for this batch; lower batch_size, or set gradient_cache"
        ) from error
    except (OSError, SafetensorError) as error:
        raise MicolError(
            f"{folder}: a checkpoint could not be written ({error}); free disk space, then --resume"
        ) from error
    except RuntimeError as error:
        # torch has no type of its own for a checkpoint that it fails to write.
        if not any(writer in str(error) for writer in ("PytorchStreamWriter", "inline_container")):
            raise
        raise MicolError(
            f"{folder}: a checkpoint could not be written; free disk space, then --resume"
        ) from error


def newest_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint that is whole: a process killed while writing leaves one that is not."""
    numbered = [
        (int(path.name.removeprefix("checkpoint-")), path)
        for path in folder.glob("checkpoint-*")
        if path.name.removeprefix("checkpoint-").isdigit()
    ]
    return next((path for _, path in sorted(numbered, reverse=True) if is_whole(path)), None)


def is_whole(checkpoint: Path) -> bool:
    try:
        json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
        with safe_open(checkpoint / "model.safetensors", framework="pt") as weights:
            weights.keys()
        random_states = list(checkpoint.glob("rng_state*.pth"))
        if len(random_states) != team.size():
            return False
        for path in (checkpoint / "optimizer.pt", checkpoint / "scheduler.pt", *random_states):
            # The directory of a zip archive stands at its end, so a cut-off file has none.
            zipfile.ZipFile(path).close()
    except (OSError, ValueError, SafetensorError, zipfile.BadZipFile):
        return False
    return True
