"""A model folder: config.toml, encoder/, labels.parquet and a model card. No pickle."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tomli_w

from micol import __version__
from micol.corpus import Corpus
from micol.errors import MicolError
from micol.files import current_umask, replacing
from micol.labels import LabelSpace
from micol.records import Label
from micol.settings import Settings

FORMAT = 1


def resolved_config(
    settings: Settings, training: Mapping[str, Any], corpus: Corpus, labels: LabelSpace
) -> dict[str, Any]:
    """Everything needed to know how a model came about."""
    import torch
    import transformers

    return {
        "format": FORMAT,
        "settings": settings.as_dict(),
        "training": dict(training),
        "data": {
            "documents": len(corpus),
            "documents_sha256": corpus.fingerprint,
            "labels": len(labels),
            "labels_sha256": labels.fingerprint,
        },
        "versions": {
            "micol": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
    }


@dataclass(frozen=True)
class LabelTable:
    """The labels of a model and, for a bi-encoder, their vectors."""

    labels: LabelSpace
    vectors: np.ndarray | None  # float16 [labels, dim]

    def write(self, path: Path) -> None:
        columns: dict[str, Any] = {
            "id": pa.array(self.labels.ids, pa.string()),
            "names": pa.array([list(names) for names in self.labels.names], pa.list_(pa.string())),
            "description": pa.array([label.description for label in self.labels], pa.string()),
            "parents": pa.array([list(label.parents) for label in self.labels], pa.list_(pa.string())),
        }
        if self.vectors is not None:
            flat = pa.array(np.ascontiguousarray(self.vectors, dtype=np.float16).reshape(-1))
            columns["vector"] = pa.FixedSizeListArray.from_arrays(flat, self.vectors.shape[1])
        with replacing(path) as temporary:
            pq.write_table(pa.table(columns), temporary, compression="zstd")

    @classmethod
    def read(cls, path: Path) -> LabelTable:
        try:
            table = pq.read_table(path)
        except (OSError, pa.ArrowInvalid) as error:
            raise MicolError(
                f"{path}: cannot be read as Parquet ({error}); copy the model folder again"
            ) from error
        rows = zip(
            *(table[name].to_pylist() for name in ("id", "names", "description", "parents")), strict=True
        )
        labels = [Label(id_, tuple(names), text, tuple(parents)) for id_, names, text, parents in rows]
        vectors = None
        if "vector" in table.column_names:
            column = table["vector"].combine_chunks()
            vectors = column.flatten().to_numpy().reshape(len(column), column.type.list_size)
        return cls(LabelSpace.from_labels(labels, source=str(path)), vectors)


@dataclass(frozen=True)
class ModelFolder:
    """The files of a model, by name."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.toml"

    @property
    def encoder(self) -> Path:
        return self.path / "encoder"

    @property
    def labels(self) -> Path:
        return self.path / "labels.parquet"

    def write(self, config: dict[str, Any], save_encoder: Callable[[Path], None], labels: LabelTable) -> None:
        """Writes a new folder beside this one, then puts it in its place."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists() and not self.config.is_file():
            raise MicolError(f"{self.path}: exists and is not a model folder; choose another output")
        fresh = ModelFolder(Path(tempfile.mkdtemp(prefix=f".{self.path.name}.", dir=self.path.parent)))
        try:
            fresh.path.chmod(0o777 & ~current_umask())
            save_encoder(fresh.encoder)
            labels.write(fresh.labels)
            fresh.config.write_text(tomli_w.dumps(without_none(config)), encoding="utf-8")
            (fresh.path / "README.md").write_text(model_card(config), encoding="utf-8")
            self.take(fresh.path)
        finally:
            shutil.rmtree(fresh.path, ignore_errors=True)

    def take(self, fresh: Path) -> None:
        """Renames; an older model of that name is removed only once the new one stands."""
        if not self.path.exists():
            fresh.rename(self.path)
            return
        old = self.path.with_name(f".{self.path.name}.old.{os.getpid()}")
        self.path.rename(old)
        try:
            fresh.rename(self.path)
        except OSError:
            old.rename(self.path)
            raise
        shutil.rmtree(old)

    def read_config(self) -> dict[str, Any]:
        if not self.path.is_dir():
            raise MicolError(
                f"{self.path}: no such model folder; make one with `micol train … -o {self.path}`"
            )
        for needed in (
            self.config,
            self.encoder / "config.json",
            self.encoder / "model.safetensors",
            self.labels,
        ):
            if not needed.is_file():
                raise MicolError(
                    f"{needed}: missing, so the model folder is not whole; copy it again or train anew"
                )
        try:
            config = tomllib.loads(self.config.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise MicolError(
                f"{self.config}: not valid TOML ({error}); copy the model folder again"
            ) from error
        if config.get("format") != FORMAT:
            raise MicolError(
                f"{self.config}: format {config.get('format')!r}, but micol {__version__} reads "
                f"format {FORMAT}; use the version named in the file, or train anew"
            )
        return config


def without_none(value: Any) -> Any:
    """TOML has no null: what is None is left out."""
    if isinstance(value, dict):
        return {key: without_none(item) for key, item in value.items() if item is not None}
    return value


def model_card(config: Mapping[str, Any]) -> str:
    """A model card in the hub's form."""
    settings, data = config["settings"], config["data"]
    base = config["training"].get("base", "unknown")
    kind = "bi-encoder" if settings["architecture"] == "bi" else "cross-encoder"
    return f"""---
library_name: micol
pipeline_tag: text-classification
tags: [zero-shot, multi-label, micol]
base_model: {base}
---
# A MICoL {kind}
Tags documents with {data["labels"]:,} labels. It was trained without any labelled document: from
{config["training"].get("pairs_used", 0):,} pairs of similar documents, found by `{settings["path"]}`
in the metadata of {data["documents"]:,} documents.

```python
import micol

model = micol.load("path/to/this/folder")
for tagged in model.suggest([{{"id": "d1", "title": "…", "abstract": "…"}}], limit=5):
    print(tagged.id, [label.name for label in tagged.labels])
```

`encoder/` is an ordinary Hugging Face encoder. All settings, versions and data fingerprints: `config.toml`.
"""
