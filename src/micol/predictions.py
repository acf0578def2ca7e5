"""Predictions: for each document its labels, best first; from a file, `Tagged` values or a mapping."""

from __future__ import annotations

import json
import math
import sys
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from micol.columns import strings
from micol.errors import MicolError
from micol.files import open_bytes, reading
from micol.progress import track
from micol.ranking import Ranking, first_of_each_label, row_bounds, row_numbers
from micol.records import Tagged
from micol.tables import files_of, is_parquet

EXPECTED = '{"id": "d1", "labels": [{"id": "l1", "score": 0.9}, …]}, as `micol suggest` writes it'
PARQUET = {
    "id": pa.string(),
    "labels": pa.list_(pa.struct([("id", pa.string()), ("score", pa.float64())])),
}
NO_SCORE = object()
LARGEST = sys.float_info.max

Row = tuple[str, list[str], list[float]]  # document, labels, scores (NaN where the file gives none)


@dataclass(frozen=True)
class Predictions:
    """Ranked labels of many documents in columns: row i holds `labels[codes[indptr[i]:indptr[i + 1]]]`."""

    ids: list[str]
    indptr: np.ndarray  # int64 [documents + 1]
    codes: np.ndarray  # int64 [entries]
    labels: pa.StringArray  # distinct label ids
    source: str
    repeated_labels: int = 0  # entries left out because their row had the label already
    rising_rows: int = 0  # rows whose scores rise, although the best label should come first

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def depth(self) -> int:
        """The length of the longest row."""
        return int(np.diff(self.indptr).max(initial=0))

    @classmethod
    def read(cls, path: str | Path) -> Predictions:
        """Reads what `micol suggest` writes: JSON Lines, plain, .gz or .zst, or `-` for standard input; or
        Parquet, a file or a folder of them.
        """
        files = files_of(path)
        if all(map(is_parquet, files)):
            return _from_parquet(files, str(path))
        try:
            with open_bytes(path) as file:
                return _from_rows(
                    track(_read(file, str(path)), f"reading {path}", unit="documents"), str(path)
                )
        except (OSError, EOFError, zlib.error) as error:
            raise MicolError(f"{path}: cannot be read to its end ({error}); make the file again") from error

    @classmethod
    def of(
        cls,
        predictions: Predictions | Iterable[Tagged] | Mapping[str, Sequence[str]],
        source: str = "predictions",
    ) -> Predictions:
        """From `Tagged` values, or from a mapping of document id to label ids, best first."""
        if isinstance(predictions, Predictions):
            return predictions
        if isinstance(predictions, Mapping):
            indptr, flat = flatten(predictions.values(), source)
            return _from_columns(list(predictions), indptr, flat, None, source)
        return _from_rows(map(_tagged_row, predictions), source)

    @classmethod
    def from_ranking(cls, ranking: Ranking, ids: Sequence[str], labels: Sequence[str]) -> Predictions:
        """From a ranking of label positions, for documents `ids` and the label space `labels`."""
        if len(ranking) != len(ids):
            raise MicolError(f"a ranking of {len(ranking)} documents was given {len(ids)} document ids")
        return cls(
            list(ids),
            ranking.indptr,
            ranking.labels.astype(np.int64),
            pa.array(labels, pa.string()),
            "ranking",
        )


def _tagged_row(tagged: Any) -> Row:
    if not isinstance(tagged, Tagged):
        raise MicolError(f"predictions: expected micol.Tagged values or a mapping, got {tagged!r:.60}")
    return tagged.id, [label.id for label in tagged.labels], [label.score for label in tagged.labels]


def _from_rows(rows: Iterable[Row], source: str) -> Predictions:
    ids: list[str] = []
    labels: list[list[str]] = []
    scores: list[float] = []
    for document, row_labels, row_scores in rows:
        ids.append(document)
        labels.append(row_labels)
        scores.extend(row_scores)
    indptr, flat = flatten(labels, source)
    return _from_columns(ids, indptr, flat, np.array(scores), source)


def flatten(rows: Collection[Collection[str]], source: str) -> tuple[np.ndarray, pa.StringArray]:
    """Lists of label ids as row pointers (int64, rows + 1) and flat values."""
    text = next((row for row in rows if isinstance(row, str)), None)
    if text is not None:
        raise MicolError(f"{source}: expected a list of label ids for each document, got {text!r:.60}")
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
    try:
        return indptr, pa.array(list(chain.from_iterable(rows)), pa.string())
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise MicolError(f"{source}: label ids must be strings ({error})") from error


def first_in_row(rows: np.ndarray, codes: np.ndarray, n_labels: int) -> np.ndarray:
    """A mask of the entries whose label has not come before in their row."""
    keys = np.sort(rows * n_labels + codes)
    # A plain sort is several times quicker than the one that says where the repeats are, and rows that have
    # any are rare.
    if (keys[1:] != keys[:-1]).all():
        return np.ones(len(codes), bool)
    return first_of_each_label(rows, codes)


def _from_columns(
    ids: list[str], indptr: np.ndarray, flat: pa.StringArray, scores: np.ndarray | None, source: str
) -> Predictions:
    """Brings labels to codes; leaves out repeated ones and counts what is odd."""
    if not ids:
        raise MicolError(f"{source}: holds no predictions; expected one record a document, {EXPECTED}")
    if len(set(ids)) < len(ids):
        document, times = Counter(ids).most_common(1)[0]
        raise MicolError(f"{source}: document {document!r} has {times} rows; leave one row for each document")
    encoded = flat.dictionary_encode()
    codes = encoded.indices.to_numpy().astype(np.int64)
    rows = row_numbers(indptr)
    rising_rows = 0
    if scores is not None:
        rises = (scores[1:] > scores[:-1]) & (rows[1:] == rows[:-1])
        rising_rows = len(np.unique(rows[1:][rises]))
    first = first_in_row(rows, codes, len(encoded.dictionary))
    repeated = int(np.count_nonzero(~first))
    if repeated:
        indptr, codes = row_bounds(rows[first], len(ids)), codes[first]
    return Predictions(ids, indptr, codes, encoded.dictionary, source, repeated, rising_rows)


def _from_parquet(files: Sequence[str | Path], source: str) -> Predictions:
    found = [_parquet_columns(file) for file in track(files, f"reading {source}", len(files), "files")]
    ids, lengths, flat, scores = zip(*found, strict=True)
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(lengths), dtype=np.int64)])
    return _from_columns(
        list(chain.from_iterable(ids)), indptr, pa.concat_arrays(flat), np.concatenate(scores), source
    )


def _parquet_columns(path: str | Path) -> tuple[list[str], np.ndarray, pa.StringArray, np.ndarray]:
    """Ids, how many labels each has, and the labels' ids and scores."""
    with reading(path) as stream:
        file = pq.ParquetFile(stream)
        missing = {"id", "labels"}.difference(file.schema_arrow.names)
        if missing:
            raise MicolError(f"{path}: no column {min(missing)!r}; expected records {EXPECTED}")
        table = file.read(["id", "labels"]).combine_chunks()
    try:
        ids, labels = (table[name].cast(kind) for name, kind in PARQUET.items())
    except pa.ArrowException:
        raise MicolError(
            f"{path}: columns `id` and `labels` hold {table['id'].type} and {table['labels'].type}; expected "
            f"records {EXPECTED}"
        ) from None
    lengths = pc.fill_null(pc.list_value_length(labels), 0).to_numpy()
    entries = pc.list_flatten(labels).combine_chunks()
    names = entries.field("id")
    if ids.null_count or names.null_count:
        raise MicolError(f"{path}: an `id` of a document or of a label is null; expected records {EXPECTED}")
    scores = pc.fill_null(entries.field("score"), math.nan).to_numpy()
    return strings(ids), lengths, names, scores


def _read(file: IO[bytes], source: str) -> Iterator[Row]:
    # Not with pyarrow.json: a line that says `null` makes it crash (apache/arrow issue 47409).
    for number, line in enumerate(file, start=1):
        if line.strip():
            yield _parse(line, f"{source}:{number}")


def _parse(line: bytes, where: str) -> Row:
    try:
        record = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise MicolError(f"{where}: not UTF-8 ({error.reason}); expected {EXPECTED}") from error
    except (ValueError, RecursionError) as error:
        raise MicolError(f"{where}: not valid JSON ({error}); expected {EXPECTED}") from error
    if not isinstance(record, dict):
        raise MicolError(f"{where}: expected {EXPECTED}, got {record!r:.60}")
    document, entries = record.get("id"), record.get("labels")
    if not isinstance(document, str):
        raise MicolError(f"{where}: `id` must be a string, got {document!r:.60}; expected {EXPECTED}")
    if not isinstance(entries, list):
        raise MicolError(f"{where}: `labels` must be a list, got {entries!r:.60}; expected {EXPECTED}")
    return document, [_label(entry, where) for entry in entries], [_score(entry, where) for entry in entries]


def _label(entry: Any, where: str) -> str:
    if isinstance(entry, dict) and isinstance(entry.get("id"), str):
        label: str = entry["id"]
        return label
    raise MicolError(f"{where}: each label must have a string `id`, got {entry!r:.60}; expected {EXPECTED}")


def _score(entry: dict[str, Any], where: str) -> float:
    score = entry.get("score", NO_SCORE)
    if score is NO_SCORE:
        return math.nan
    # The bounds keep out NaN, the infinities, and whole numbers that no float can hold.
    if type(score) in (float, int) and -LARGEST <= score <= LARGEST:
        return float(score)
    raise MicolError(
        f"{where}: the score of label {entry['id']!r} must be a number, got {score!r:.60}; "
        "mend it, or leave all scores out: the order of the list is the ranking"
    )
