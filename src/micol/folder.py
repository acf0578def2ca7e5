"""A model folder: config.toml, encoder/, labels.parquet, what evidence needs, and a model card. No pickle."""

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
import pyarrow.compute as pc
import pyarrow.parquet as pq
import tomli_w

from micol import __version__
from micol.card import model_card
from micol.corpus import Corpus
from micol.errors import MicolError
from micol.files import current_umask, reason, replacing
from micol.labels import LAYOUT, LabelSpace
from micol.records import Label
from micol.settings import Settings

FORMAT = 2
VECTOR, NAME_VECTOR = "vector", "name_vector"
ENCODER, CROSS_ENCODER, MEMORY = "encoder", "cross_encoder", "memory"
ENCODER_FILES = ("config.json", "model.safetensors", "tokenizer.json")
CROSS_ENCODER_FILES = (*ENCODER_FILES, "head.safetensors")

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
        "schema": {
            "nodes": dict(corpus.schema.nodes),
            "links": dict(corpus.schema.links),
            "document": corpus.schema.document,
        },
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
    """The labels of a model; a bi-encoder's with vectors, one that fuses evidence with their names' too."""

    labels: LabelSpace
    vectors: np.ndarray | None  # float16 [labels, dim]
    name_vectors: np.ndarray | None = None  # float16 [labels, dim]

    def write(self, path: Path) -> None:
        table = self.labels.table
        for name, vectors in ((VECTOR, self.vectors), (NAME_VECTOR, self.name_vectors)):
            if vectors is not None:
                flat = pa.array(np.ascontiguousarray(vectors, dtype=np.float16).reshape(-1))
                table = table.append_column(name, pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1]))
        with full_disk_is_a_sentence(path), replacing(path) as temporary:
            # Vectors are as good as random numbers: neither a dictionary nor compression makes them shorter.
            pq.write_table(
                table,
                temporary,
                use_dictionary=False,
                write_statistics=False,
                compression={
                    leaf: "none" if leaf.startswith((VECTOR, NAME_VECTOR)) else "zstd"
                    for leaf in leaves(table)
                },
            )

    @classmethod
    def read(cls, path: Path, *, vectors: bool = True) -> LabelTable:
        """vectors: False leaves them unread."""
        try:
            file = pq.ParquetFile(path)
            present = [
                name for name in file.schema_arrow.names if vectors or name not in (VECTOR, NAME_VECTOR)
            ]
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
        found = {}
        for name in (VECTOR, NAME_VECTOR):
            if name in table.column_names:
                column = table[name].combine_chunks()
                found[name] = column.flatten().to_numpy().reshape(len(column), column.type.list_size)
        plain = table.select(LAYOUT.columns).cast(pa.schema(map(LAYOUT.arrow.field, LAYOUT.columns)))
        return cls(LabelSpace(plain.combine_chunks(), str(path)), found.get(VECTOR), found.get(NAME_VECTOR))

    def added(self, labels: Iterable[Label], embed: Embed) -> EditedLabels:
        """With further labels at the end."""
        new = self._checked(labels)
        known = pc.is_in(new.table["id"], self.labels.table["id"].combine_chunks())
        if pc.any(known).as_py():
            twice = new.table["id"].filter(known)[0].as_py()
            raise MicolError(f"label {twice!r} is there already; use update to change it")
        table = pa.concat_tables([self.labels.table, new.table])
        vectors, name_vectors = self.vectors, self.name_vectors
        if vectors is not None:
            vectors = np.concatenate([vectors, embedded(embed, new.texts())])
        if name_vectors is not None:
            name_vectors = np.concatenate([name_vectors, embedded(embed, preferred(new))])
        return self._edited(table, vectors, name_vectors, len(new))

    def updated(self, labels: Iterable[Label], embed: Embed) -> EditedLabels:
        """With labels in the place of those with the same ids; one whose text stays keeps its vector."""
        new = self._checked(labels)
        positions = np.array([self.labels.position(name) for name in new.ids], np.int64)
        rows = np.arange(len(self.labels))
        rows[positions] = len(self.labels) + np.arange(len(new))
        table = pa.concat_tables([self.labels.table, new.table]).take(pa.array(rows))
        if self.vectors is None:
            return self._edited(table, None, None, 0)
        before, after = self.labels.texts(), new.texts()
        changed = [row for row, position in enumerate(positions) if before[position] != after[row]]
        vectors = self.vectors.copy()
        name_vectors = None if self.name_vectors is None else self.name_vectors.copy()
        if changed:
            vectors[positions[changed]] = embedded(embed, [after[row] for row in changed])
            if name_vectors is not None:
                names = preferred(new)
                name_vectors[positions[changed]] = embedded(embed, [names[row] for row in changed])
        return self._edited(table, vectors, name_vectors, len(changed))

    def removed(self, identifiers: Iterable[str]) -> EditedLabels:
        """Without some labels; those below them stay, without that parent."""
        keep = np.ones(len(self.labels), bool)
        keep[[self.labels.position(identifier) for identifier in identifiers]] = False
        if not keep.any():
            raise MicolError("the last label cannot be removed: a model needs at least one")
        vectors, name_vectors = (
            None if column is None else column[keep] for column in (self.vectors, self.name_vectors)
        )
        return self._edited(self.labels.table.filter(pa.array(keep)), vectors, name_vectors, 0)

    def _checked(self, labels: Iterable[Label]) -> LabelSpace:
        """New labels, whose parents may be old ones."""
        return LabelSpace.from_labels(labels, source=self.labels.source, other_parents=self.labels.ids)

    def _edited(
        self, table: pa.Table, vectors: np.ndarray | None, name_vectors: np.ndarray | None, embedded: int
    ) -> EditedLabels:
        space = LabelSpace.from_table(table, self.labels.source)
        return EditedLabels(LabelTable(space, vectors, name_vectors), embedded)


class EditedLabels(NamedTuple):
    """A label table after a change, and how many of its labels had to be embedded."""

    table: LabelTable
    embedded: int


def leaves(table: pa.Table) -> list[str]:
    """What Parquet calls the columns of a table: those of lists by the path to their values."""
    return [
        column.name if pa.types.is_string(column.type) else f"{column.name}.list.element"
        for column in table.schema
    ]


def preferred(labels: LabelSpace) -> list[str]:
    return [names[0] for names in labels.names]


def embedded(embed: Embed, texts: list[str]) -> np.ndarray:
    vectors = embed(texts)
    assert vectors is not None
    return vectors


@dataclass(frozen=True)
class ModelFolder:
    """The files of a model, by name."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.toml"

    @property
    def encoder(self) -> Path:
        return self.path / ENCODER

    @property
    def cross_encoder(self) -> Path:
        """Where a cross-encoder is one source of the evidence: `encoder` is the bi-encoder then."""
        return self.path / CROSS_ENCODER

    @property
    def labels(self) -> Path:
        return self.path / "labels.parquet"

    @property
    def memory(self) -> Path:
        return self.path / MEMORY

    def write(
        self, config: dict[str, Any], labels: LabelTable, parts: Mapping[str, Callable[[Path], None]]
    ) -> None:
        """Writes a new folder beside this one, then puts it in its place. Each part writes a folder in it."""
        self.check_free()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = ModelFolder(Path(tempfile.mkdtemp(prefix=f".{self.path.name}.", dir=self.path.parent)))
        try:
            with full_disk_is_a_sentence(self.path):
                fresh.path.chmod(0o777 & ~current_umask())
                for name, save in parts.items():
                    save(fresh.path / name)
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
        decisive = (self.config, self.labels, self.encoder / "model.safetensors")
        weights = sorted(self.cross_encoder.glob("*.safetensors"))
        for path in (*decisive, *weights, *sorted(self.memory.glob("*"))):
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()

    def read_config(self) -> dict[str, Any]:
        if self.path.is_file():
            raise MicolError(
                f"{self.path}: is a file, but a model folder was expected, as `micol train` writes it"
            )
        if not self.path.is_dir():
            raise MicolError(
                f"{self.path}: no such model folder; make one with `micol train … -o {self.path}`"
            )
        check_whole([self.config, *(self.encoder / name for name in ENCODER_FILES), self.labels])
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
        if "reader" in config:
            check_whole(self.cross_encoder / name for name in CROSS_ENCODER_FILES)
        return config


def check_whole(needed: Iterable[Path]) -> None:
    for path in needed:
        if not path.is_file():
            raise MicolError(
                f"{path}: missing, so the model folder is not whole; copy it again or train anew"
            )


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
    """Returns once the files of a folder are on the disk, and not on their way there, as ordinary files."""
    for path in folder.rglob("*"):
        if path.is_file():
            # safetensors makes private files; a model is shared with whoever may read its folder.
            path.chmod(0o666 & ~current_umask())
            with path.open("rb") as file:
                os.fsync(file.fileno())


def without_none(value: Any) -> Any:
    """TOML has no null: what is None is left out."""
    if isinstance(value, dict):
        return {key: without_none(item) for key, item in value.items() if item is not None}
    return value
