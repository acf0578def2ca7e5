"""Networks in Parquet for the engines of micol.scale, and limits under which each way of drawing is taken."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from micol.rule import Limits
from random_networks import PAPER_STEPS, text_of

FIELDS = ("authors", "venue", "references", "replies", "citations")
TYPES = pa.schema([("id", pa.string()), *((field, pa.list_(pa.string())) for field in FIELDS)])

LIST_ALWAYS = Limits(listed=10**9)
PROPOSE = Limits(listed=0, trials=10**5)
SOME_TRIALS = Limits(listed=0, trials=30, share=10**9)
GIVE_UP_SOON = Limits(listed=0, trials=3, share=10**9)
EVERY_LIMIT = (Limits(), LIST_ALWAYS, GIVE_UP_SOON)


def write(folder: Path, records: Sequence[dict[str, Any]], files: int = 1, types: pa.Schema = TYPES) -> str:
    """A folder of Parquet files, with the records dealt out among them."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in range(files):
        table = pa.Table.from_pylist(list(records[file::files]), types)
        pq.write_table(table, folder / f"part-{file}.parquet")
    return str(folder)


def random_records(chance: random.Random, copies: int) -> list[dict[str, Any]]:
    """Small networks, none joined with another, side by side in one corpus."""
    return [record for copy in range(copies) for record in small_network(chance, f"{copy}:")]


def small_network(chance: random.Random, prefix: str) -> list[dict[str, Any]]:
    ids = [f"{prefix}d{number}" for number in range(chance.randint(1, 8))]
    linked = [*ids, *(f"{prefix}x{number}" for number in range(3))]
    made = []
    for id in ids:
        record: dict[str, Any] = {"id": id}
        for field, values, most in (("authors", "abcd", 4), ("venue", "vw", 2)):
            record[field] = [prefix + value for value in chance.choices(values, k=chance.randint(0, most))]
        for field in ("references", "replies", "citations"):
            others = chance.choices(linked, k=chance.randint(0, 4))
            record[field] = [other for other in others if other != id]
        made.append(record)
    return made


def random_paths(chance: random.Random, number: int) -> list[tuple[str, list[Any]]]:
    """Unions of chains of hops and meta-graphs: as text, and as steps for brute force."""
    paths = [
        [[random_step(chance) for _ in range(chance.randint(1, 3))] for _ in range(chance.randint(1, 2))]
        for _ in range(number)
    ]
    return [(text_of(path), path) for path in paths]


def random_step(chance: random.Random) -> tuple[str, ...]:
    arrow, other = chance.choices(["->", "<-"], k=2)
    kinds: list[tuple[str, ...]] = [
        ("node", chance.choice("AV")),
        ("link", "P", arrow),
        ("nodes", "".join(chance.choices("AV", k=chance.randint(2, 3)))),
        ("links", "".join(chance.choices("PR", k=chance.randint(2, 3))), arrow, other),
    ]
    return chance.choice(kinds)


PAPER = [(text, [steps]) for text, steps in PAPER_STEPS.items()]
