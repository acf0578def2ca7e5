"""What a worker does: reads a shard, leaves out what cannot be used, tags the rest, writes its part."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from micol import columns, parquet, tables
from micol.corpus import RELEASE_KEYS, Corpus, document_layout, finished
from micol.errors import MicolError
from micol.folder import ModelFolder
from micol.layout import LINE, Layout, Problems, RecordError
from micol.scale.shards import Made, Output, Shard
from micol.schema import Schema
from micol.tagging import Request, Tagger, Tally, even_batches

IDS = Layout("document", texts=(), lists=(), release_keys=RELEASE_KEYS)
REPEATS = pa.schema([(name, pa.int64()) for name in ("shard", "row", "first_shard", "first_row")])


@dataclass(frozen=True)
class Job:
    """All that workers have to know; what they have to share lies in folders that all of them see."""

    model: Path
    model_fingerprint: str
    documents: Path
    shards: tuple[Shard, ...]
    output: Output
    request: Request
    schema: Schema
    batch_size: int


class Rejects(Problems):
    """Lists what is wrong with records of a file, by their numbers."""

    def __init__(self, file: str) -> None:
        super().__init__(file, skip_bad=True, unit="record")
        self.found: list[tuple[int, str]] = []

    def add(self, number: int, error: RecordError) -> None:
        self.found.append((number, error.problem))


def tag_shard(job: Job, number: int, cpus: int, gpu: int | None) -> Made:
    """Tags a shard, unless another worker has meanwhile, and returns what its part says."""
    shard = job.shards[number]
    made = job.output.made(shard)
    if made is not None:
        return made
    corpus, rejects = read_shard(job, number)
    tagger = tagger_on(job, cpus, gpu)
    records: list[dict[str, Any]] = []
    tally = Tally()
    for batch in even_batches([corpus] if len(corpus) else [], job.batch_size, None):
        tagged, told = tagger.records(batch)
        records += tagged
        tally += told
    noted = len({reject["record"] for reject in rejects if reject["tagged"]})
    left_out = len(shard.rows) - len(corpus)
    made = Made(job.output.run, shard, tally, tagger.text_tokens, left_out, noted)
    job.output.write(shard, part_table(records, job.request), rejects, made)
    return made


def tagger_on(job: Job, cpus: int, gpu: int | None) -> Tagger:
    """The model, on as many processors, or on the graphics processor, as a task may use."""
    import torch

    pa.set_cpu_count(cpus)
    torch.set_num_threads(cpus)
    if gpu is not None:
        if gpu >= torch.cuda.device_count():
            raise MicolError(
                f"Spark gave a task GPU number {gpu} on {socket.gethostname()}, where torch sees "
                f"{torch.cuda.device_count()} GPUs; install torch for CUDA there, or ask Spark for no GPUs"
            )
        torch.cuda.set_device(gpu)
    return tagger_of(job.model, job.model_fingerprint, job.request, gpu)


@cache
def tagger_of(model: Path, fingerprint: str, request: Request, gpu: int | None) -> Tagger:
    """The model, loaded once in the life of a worker (once for each GPU that it is sent to)."""
    from micol.classify import load

    if not model.is_dir() or ModelFolder(model).fingerprint() != fingerprint:
        raise MicolError(
            f"{model}: is not the same model on {socket.gethostname()} as where the run was started; put the "
            "model folder on a file system that all machines see"
        )
    return Tagger(load(model), request)


def read_shard(job: Job, number: int) -> tuple[Corpus, list[dict[str, Any]]]:
    """The documents of a shard that can be tagged, and what is wrong with others, or with a part of them."""
    shard = job.shards[number]
    path = seen(job.documents / shard.file)
    layout, problems = document_layout(job.schema), Rejects(str(path))
    try:
        pieces = parquet.read(path, layout, problems, quiet=True, rows=shard.rows)
        table = columns.concatenated(pieces, layout.arrow)
    except MicolError as error:
        if is_passing(error):
            raise
        nothing = Corpus(finished(layout.arrow.empty_table(), layout), job.schema, str(path))
        return nothing, [reject(shard, shard.first + 1, len(shard.rows), str(error), False)]
    table = without_repeats(table, job, number, problems)
    table = tables.checked(table, layout, problems)
    used = set(table[LINE].to_pylist())
    rejects = [reject(shard, row, 1, why, row in used) for row, why in sorted(problems.found)]
    return Corpus(finished(table, layout), job.schema, str(path)), rejects


def seen(path: Path) -> Path:
    """A file that the driver has seen must not pass for a broken one where it is out of sight."""
    if not path.is_file():
        raise MicolError(
            f"{path}: {socket.gethostname()} sees no such file; put the documents on a file system that all "
            "machines see"
        )
    return path


def is_passing(error: MicolError) -> bool:
    """Whether the trouble is the machine's or the network's, and may be over when it is tried again."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno is not None


def reject(shard: Shard, record: int, records: int, reason: str, tagged: bool) -> dict[str, Any]:
    return {"file": shard.file, "record": record, "records": records, "reason": reason, "tagged": tagged}


def without_repeats(table: pa.Table, job: Job, number: int, problems: Rejects) -> pa.Table:
    """Without records whose id was given before, be it in another file."""
    again = pq.read_table(job.output.repeated, filters=pc.field("shard") == number)
    for row, first_shard, first_row in zip(
        *(again[name].to_pylist() for name in ("row", "first_shard", "first_row")), strict=True
    ):
        place = f"{job.shards[first_shard].file}, record {first_row}"
        name = table["id"].filter(pc.equal(table[LINE], row))[0].as_py()
        problems.add(row, RecordError(f"the id {name!r} was already given at {place}", ""))
    return table.filter(pc.invert(pc.is_in(table[LINE], again["row"].combine_chunks())))


def ids_of(documents: Path, shard: Shard, number: int) -> pa.Table:
    """The ids of a shard, and where each stands; of records that have none, and of broken files, nothing."""
    path = seen(documents / shard.file)
    try:
        pieces = parquet.read(path, IDS, Rejects(str(path)), quiet=True, rows=shard.rows)
        table = columns.concatenated(pieces, IDS.arrow)
    except MicolError as error:
        if is_passing(error):
            raise
        table = IDS.arrow.empty_table()
    shards = pa.repeat(pa.scalar(number, pa.int64()), len(table))
    return pa.table({"id": table["id"], "shard": shards, "row": table[LINE]})


def part_table(records: Sequence[dict[str, Any]], request: Request) -> pa.Table:
    """Suggestions as a table; reasons, which are of many forms, as JSON."""
    fields = [("id", pa.string()), ("name", pa.string()), ("score", pa.float64())]
    if request.explain:
        fields.append(("why", pa.string()))
        for record in records:
            for label in record["labels"]:
                label["why"] = json.dumps(label["why"], ensure_ascii=False)
    schema = pa.schema([("id", pa.string()), ("labels", pa.list_(pa.struct(fields)))])
    return pa.Table.from_pylist(list(records), schema)
