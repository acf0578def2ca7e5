"""Arrays that several systems need, kept on disk so that a run that goes on later finds them."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from micol.files import replacing

Arrays = Mapping[str, np.ndarray]


class KeptArrays:
    """A folder of named arrays, each under everything that decides what is in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, name: str, decides: Mapping[str, Any], make: Callable[[], Arrays]) -> Arrays:
        """The arrays kept under `name` and `decides`; made, and kept, where there are none."""
        path = self.folder / f"{name}-{digest(decides)}.npz"
        found = self.load(path)
        if found is not None:
            return found
        made = make()
        with replacing(path, durable=False) as temporary, temporary.open("wb") as file:
            np.savez(file, **dict(made))  # type: ignore[arg-type]
        return made

    def load(self, path: Path) -> Arrays | None:
        try:
            with np.load(path, allow_pickle=False) as stored:
                return dict(stored)
        except (OSError, ValueError, EOFError, zipfile.BadZipFile):
            return None  # never kept, or damaged: it can be made again


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
