"""A model folder: config.toml, encoder/, labels.parquet and a model card. No pickle."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tomli_w

from micol import __version__
from micol.corpus import Corpus
from micol.errors import MicolError
from micol.files import current_umask, reason, replacing
from micol.labels import LAYOUT, LabelSpace
from micol.records import Label
from micol.settings import Settings

FORMAT = 1
VECTOR = "vector"

Embed = Callable[[list[str]], np.ndarray | None]


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
        table = self.labels.table
        if self.vectors is not None:
            flat = pa.array(np.ascontiguousarray(self.vectors, dtype=np.float16).reshape(-1))
            table = table.append_column(
                VECTOR, pa.FixedSizeListArray.from_arrays(flat, self.vectors.shape[1])
            )
        with full_disk_is_a_sentence(path), replacing(path) as temporary:
            pq.write_table(table, temporary, compression="zstd")

    @classmethod
    def read(cls, path: Path, *, vectors: bool = True) -> LabelTable:
        """vectors: False leaves them unread."""
        try:
            file = pq.ParquetFile(path)
            present = [name for name in file.schema_arrow.names if vectors or name != VECTOR]
            table = file.read(present)
        except (OSError, pa.ArrowException) as error:
            raise MicolError(
                f"{path}: cannot be read as Parquet ({reason(error)}); copy the model folder again"
            ) from error
        for name in LAYOUT.columns:
            if name not in table.column_names:
                raise MicolError(
                    f"{path}: no column {name!r}, so this is no label table; copy the model folder again"
                )
        found = None
        if VECTOR in table.column_names:
            column = table[VECTOR].combine_chunks()
            found = column.flatten().to_numpy().reshape(len(column), column.type.list_size)
        plain = table.select(LAYOUT.columns).cast(pa.schema(map(LAYOUT.arrow.field, LAYOUT.columns)))
        return cls(LabelSpace(plain.combine_chunks(), str(path)), found)

    def added(self, labels: Iterable[Label], embed: Embed) -> EditedLabels:
        """With further labels at the end."""
        new = list(labels)
        known = set(self.labels.ids)
        for label in new:
            if label.id in known:
                raise MicolError(f"label {label.id!r} is there already; use update to change it")
        return self.with_labels([*self.labels, *new], embed)

    def updated(self, labels: Iterable[Label], embed: Embed) -> EditedLabels:
        """With labels in the place of those with the same ids."""
        changed = {label.id: label for label in labels}
        for identifier in changed:
            self.labels.position(identifier)
        return self.with_labels([changed.get(label.id, label) for label in self.labels], embed)

    def removed(self, identifiers: Iterable[str]) -> EditedLabels:
        """Without some labels; those below them stay, without that parent."""
        gone = set(identifiers)
        for identifier in gone:
            self.labels.position(identifier)
        if len(gone) == len(self.labels):
            raise MicolError("the last label cannot be removed: a model needs at least one")
        return self.with_labels([label for label in self.labels if label.id not in gone])

    def with_labels(self, labels: Iterable[Label], embed: Embed | None = None) -> EditedLabels:
        """The table of other labels: one whose text was here keeps its vector to the bit."""
        space = LabelSpace.from_labels(labels, source=self.labels.source)
        if self.vectors is None:
            return EditedLabels(LabelTable(space, None), 0)
        texts = space.texts()
        position_of = {text: position for position, text in enumerate(self.labels.texts())}
        kept = np.array([position_of.get(text, -1) for text in texts])
        vectors = self.vectors[kept]
        new = np.flatnonzero(kept < 0)
        if len(new):
            assert embed is not None
            vectors[new] = embed([texts[position] for position in new])
        return EditedLabels(LabelTable(space, vectors), len(new))


class EditedLabels(NamedTuple):
    """A label table after a change, and how many of its labels had to be embedded."""

    table: LabelTable
    embedded: int


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
        self.check_free()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = ModelFolder(Path(tempfile.mkdtemp(prefix=f".{self.path.name}.", dir=self.path.parent)))
        try:
            with full_disk_is_a_sentence(self.path):
                fresh.path.chmod(0o777 & ~current_umask())
                save_encoder(fresh.encoder)
                labels.write(fresh.labels)
                fresh.config.write_text(tomli_w.dumps(without_none(config)), encoding="utf-8")
                (fresh.path / "README.md").write_text(model_card(config), encoding="utf-8")
                on_disk(fresh.path)
            self.take(fresh.path)
        finally:
            shutil.rmtree(fresh.path, ignore_errors=True)

    def check_free(self) -> None:
        """Only an older model may be replaced; better said before training than after it."""
        if self.path.exists() and not self.config.is_file():
            raise MicolError(f"{self.path}: exists and is not a model folder; choose another output")

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

    def fingerprint(self) -> str:
        """sha256 over all that decides what a model suggests."""
        digest = hashlib.sha256()
        for path in (self.config, self.labels, self.encoder / "model.safetensors"):
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()

    def read_config(self) -> dict[str, Any]:
        if not self.path.is_dir():
            raise MicolError(
                f"{self.path}: no such model folder; make one with `micol train … -o {self.path}`"
            )
        for needed in (
            self.config,
            self.encoder / "config.json",
            self.encoder / "model.safetensors",
            self.encoder / "tokenizer.json",
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


@contextmanager
def full_disk_is_a_sentence(path: Path) -> Iterator[None]:
    """Whatever library fails to write, and however it says so."""
    try:
        yield
    except MicolError:
        raise
    except Exception as error:
        # safetensors and tokenizers raise bare exceptions that only name the operating system's error.
        if isinstance(error, OSError) or "os error" in str(error):
            raise MicolError(
                f"{path}: could not be written ({reason(error)}); free disk space or check its rights"
            ) from error
        raise


def on_disk(folder: Path) -> None:
    """Returns once the files of a folder are on the disk, and not on their way there."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


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
