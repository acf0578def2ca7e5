"""One small file for each (row, seed), written whole: what is there need not be run again."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from micol.benchmark.conditions import Row
from micol.benchmark.kept import digest
from micol.errors import MicolError
from micol.files import replacing


@dataclass(frozen=True)
class Result:
    """The scores of one run of one row; `failed` says why there are none."""

    row: str
    kind: str
    options: Mapping[str, Any]
    seed: int
    data: Mapping[str, Any]
    scores: Mapping[str, float]
    seconds: float
    machine: Mapping[str, str]
    failed: str = ""

    def is_of(self, row: Row, seed: int) -> bool:
        """Whether it was made with the options that the row has now."""
        return (self.kind, self.seed) == (row.kind, seed) and plain(self.options) == plain(row.options)


class ResultFolder:
    """Results by row and seed. Those of several machines can be copied together into one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, row: Row, seed: int, *, failed: bool = False) -> Path:
        """Failures have names of their own, so that none takes the place of scores made elsewhere."""
        return self.folder / slug(row.name) / f"seed-{seed}{'.failed' if failed else ''}.json"

    def load(self, row: Row, seed: int) -> Result | None:
        """The result, where there is one that was made with these options; else why it failed."""
        return self._load(row, seed, failed=False) or self._load(row, seed, failed=True)

    def _load(self, row: Row, seed: int, *, failed: bool) -> Result | None:
        path = self.path(row, seed, failed=failed)
        try:
            result = Result(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise MicolError(
                f"{path}: is no result of `micol benchmark` ({error}); remove the file"
            ) from error
        return result if result.is_of(row, seed) else None

    def store(self, row: Row, result: Result) -> None:
        with replacing(self.path(row, result.seed, failed=bool(result.failed))) as temporary:
            text = json.dumps(asdict(result), indent=1, ensure_ascii=False)
            temporary.write_text(text + "\n", encoding="utf-8")
        if not result.failed:
            self.path(row, result.seed, failed=True).unlink(missing_ok=True)


@dataclass(frozen=True)
class Measured:
    """A row with all its runs, ready to be shown."""

    row: Row
    runs: Sequence[Mapping[str, float]]
    why_not: str = ""

    @property
    def name(self) -> str:
        return self.row.name

    def mean(self, measure: str) -> float:
        return float(np.mean([run[measure] for run in self.runs]))

    def deviation(self, measure: str) -> float:
        return float(np.std([run[measure] for run in self.runs], ddof=1)) if len(self.runs) > 1 else 0.0

    def values(self, measure: str) -> list[float]:
        return [run[measure] for run in self.runs]


def measured(results: Sequence[tuple[Row, Sequence[Result]]]) -> list[Measured]:
    """Rows with their runs; a row without any says why."""
    check_same_data([result for _, found in results for result in found if not result.failed])
    rows = []
    for row, found in results:
        runs = [result.scores for result in found if not result.failed]
        why_not = next((result.failed for result in found if result.failed), "not run yet")
        rows.append(Measured(row, runs, "" if runs else why_not))
    return rows


def check_same_data(results: Sequence[Result]) -> None:
    for result in results:
        if result.data != results[0].data:
            differing = [key for key in result.data if result.data[key] != results[0].data.get(key)]
            raise MicolError(
                f"the results of {result.row} and {results[0].row} come from different data "
                f"({', '.join(differing)}); remove those of one of them"
            )


def plain(options: Any) -> Any:
    """As JSON gives it back: tuples as lists."""
    return json.loads(json.dumps(options))


def slug(name: str) -> str:
    """A name for a folder, different for different rows."""
    words = (
        re.sub(r"[^A-Za-z0-9]+", "-", name.replace("->", " to ").replace("<-", " from ")).strip("-").lower()
    )
    return f"{words[:48].rstrip('-')}-{digest(name)[:6]}"


def machines(folder: ResultFolder) -> list[str]:
    """The machines that results come from, in words."""
    found = set()
    for path in sorted(folder.folder.glob("*/seed-*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        if not content.get("failed"):
            machine = content.get("machine", {})
            names = [machine.get("gpu"), machine.get("cpu"), f"{machine.get('cores')} cores"]
            names += [
                f"{name} {value}" for name, value in machine.items() if name not in ("gpu", "cpu", "cores")
            ]
            found.add(", ".join(name for name in names if name))
    return sorted(found)
