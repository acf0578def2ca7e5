"""Documents in a folder of Parquet files, cut into shards, and the folder that has a part for each of them.

A part appears whole or not at all, under a name that only its shard has, and says in its metadata what it was
made of. So a shard that is tagged again, by whatever worker, changes nothing, and one that has its part need
not be tagged again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from micol.errors import MicolError, UsageError
from micol.files import damaged, replacing
from micol.partial import check_same, opened
from micol.tables import files_of, is_parquet
from micol.tagging import Tally, rows_of

METADATA = b"micol"


@dataclass(frozen=True)
class Shard:
    """Some rows of a file."""

    file: str  # below the folder of documents
    first: int
    stop: int

    @property
    def rows(self) -> range:
        return range(self.first, self.stop)

    @property
    def part(self) -> str:
        """The name of its part in the output: where the file is, and from which row on."""
        return f"{self.file.removesuffix('.parquet')}-{self.first:09}.parquet"

    @property
    def rejects(self) -> str:
        return f"{self.part.removesuffix('.parquet')}.jsonl"


@dataclass(frozen=True)
class Plan:
    """All shards of some documents, in the order of file names and rows."""

    folder: Path
    shards: tuple[Shard, ...]
    # What tells whether the documents have changed.
    state: str

    @classmethod
    def of(cls, source: str, size: int) -> Plan:
        """Cuts files into shards of `size` rows."""
        files = [Path(file) for file in files_of(source)]
        if not all(map(is_parquet, files)):
            raise UsageError(
                f"{source}: --engine spark reads Parquet, a file or a folder of them; write it as such, for "
                'instance with micol.Corpus.read("docs.jsonl").write("docs.parquet")'
            )
        folder = Path(source) if Path(source).is_dir() else Path(source).parent
        shards, states, documents = [], hashlib.sha256(), 0
        for file in files:
            name, rows, status = file.relative_to(folder).as_posix(), rows_of(file), file.stat()
            states.update(f"{name}\n{rows}\n{status.st_size}\n{status.st_mtime_ns}\n".encode())
            shards += [Shard(name, first, min(first + size, rows)) for first in range(0, rows, size)]
            documents += rows
        if not shards:
            raise MicolError(f"{source}: no documents in it; expected Parquet files with a record for each")
        state = f"{len(files):,} files, {documents:,} records, {states.hexdigest()[:16]}"
        return cls(folder.resolve(), tuple(shards), state)

    @property
    def records(self) -> int:
        return sum(len(shard.rows) for shard in self.shards)


@dataclass(frozen=True)
class Made:
    """What a part says of itself."""

    run: str
    shard: Shard
    tally: Tally
    tokens: int  # of a text that the model reads
    rejected: int  # records that are not in it
    noted: int  # records that are in it although something about them was wrong

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: bytes) -> Made:
        record = json.loads(text)
        shard, tally = Shard(**record.pop("shard")), Tally(**record.pop("tally"))
        return cls(shard=shard, tally=tally, **record)


@dataclass(frozen=True)
class Output:
    """The folder of parts, and beside them, under names that no reader of tables takes for data, the rest."""

    path: Path
    # Stands for all that decides what the parts hold; two runs that share it make the same parts.
    run: str

    @classmethod
    @contextmanager
    def taken(cls, path: str | Path, begun_with: Mapping[str, Any]) -> Iterator[Output]:
        """The folder, for this process alone: to begin, or to go on with what was begun in the same way."""
        folder = Path(path).resolve()
        run = hashlib.sha256(json.dumps(begun_with, sort_keys=True).encode()).hexdigest()
        output = cls(folder, run)
        if folder.exists() and not (folder.is_dir() and (output.begun.exists() or holds_no_data(folder))):
            raise MicolError(
                f"{path}: exists and is not the output of an earlier run; choose a folder that does not exist"
            )
        folder.mkdir(parents=True, exist_ok=True)
        with opened(folder / "_lock") as lock:
            if output.begun.exists():
                before = json.loads(output.begun.read_text(encoding="utf-8"))
                check_same(str(path), before, begun_with, f"remove {path}")
            else:
                with replacing(output.begun) as temporary:
                    temporary.write_text(json.dumps(begun_with, indent=2), encoding="utf-8")
            yield output
            Path(lock.name).unlink()

    @property
    def begun(self) -> Path:
        return self.path / "_begun.json"

    @property
    def repeated(self) -> Path:
        """Records whose id was given before: worked out once for all shards, before the first is tagged."""
        return self.path / "_repeated"

    @property
    def rejected(self) -> Path:
        return self.path / "_rejected"

    @property
    def success(self) -> Path:
        return self.path / "_SUCCESS"

    def made(self, shard: Shard) -> Made | None:
        """What the part of a shard says of itself; None where it has none yet."""
        path = self.path / shard.part
        try:
            text = pq.read_metadata(path).metadata.get(METADATA)
        except FileNotFoundError:
            return None
        except (OSError, pa.ArrowException) as error:
            raise damaged(path, error) from error
        made = Made.from_json(text) if text else None
        if made is None or made.run != self.run or made.shard != shard:
            raise MicolError(
                f"{path}: was not made by this run from rows {shard.first:,} to {shard.stop:,} of "
                f"{shard.file}; remove it to have them tagged, or choose another output"
            )
        return made

    def write(self, shard: Shard, table: pa.Table, rejects: Sequence[Mapping[str, Any]], made: Made) -> None:
        """Puts a part in its place, after what was rejected: where the part is, the rejects are."""
        if rejects:
            with replacing(self.rejected / shard.rejects) as temporary:
                lines = "".join(f"{json.dumps(reject, ensure_ascii=False)}\n" for reject in rejects)
                temporary.write_text(lines, encoding="utf-8")
        with replacing(self.path / shard.part) as temporary:
            pq.write_table(
                table.replace_schema_metadata({METADATA: made.as_json()}), temporary, compression="zstd"
            )

    def sweep(self) -> None:
        """Removes what writers have left behind that were killed."""
        for path in self.path.rglob(".*.tmp"):
            path.unlink(missing_ok=True)

    def finish(self, summary: Mapping[str, Any]) -> None:
        with replacing(self.success) as temporary:
            temporary.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")


def holds_no_data(folder: Path) -> bool:
    return all(path.name.startswith(("_", ".")) for path in folder.iterdir())
