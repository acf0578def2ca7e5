"""A file of conditions: the data set, the systems and their options, the seeds, and the scores to expect."""

from __future__ import annotations

import tomllib
import types
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from itertools import product
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from micol.benchmark.registry import SYSTEMS, System, system_class
from micol.errors import MicolError
from micol.evaluation import PLAIN_METRICS, PROPENSITY_METRICS
from micol.files import CODECS, reading
from micol.scoreboard import RATIO
from micol.settings import ARCHITECTURES, resolve

MEASURES = (*PLAIN_METRICS, *PROPENSITY_METRICS, RATIO)
ENTRIES = {"title", "seeds", "base", "data", "candidates", "settings", "systems", "report", "expected"}
# What an entry of [[systems]] may say beside the options of its system.
ROW_KEYS = {"system", "name", "report_as"}


@dataclass(frozen=True)
class DataFiles:
    """Where documents and labels are; test documents have a file of their own, or their ids a list."""

    docs: list[Path]
    labels: Path
    test: list[Path] = field(default_factory=list)
    test_ids: Path | None = None
    schema: Path | None = None
    skip_bad: bool = False
    spaces: str = ""


@dataclass(frozen=True)
class Candidates:
    """The retrieval stage: a file, or exact names and BM25."""

    file: Path | None = None
    exact: bool = True
    bm25_top: int | None = 50
    bm25_threshold: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """What decides the candidates, wherever the file lies."""
        if self.file:
            return {"file": self.file.name}
        return {"exact": self.exact, "bm25_top": self.bm25_top, "bm25_threshold": self.bm25_threshold}


@dataclass(frozen=True)
class Report:
    """How results are shown and judged."""

    # Stars say that this row is better than another; by default the best MICoL row.
    reference: str = ""
    # MICoL's paths in Tables 2 and 3; the best one of each architecture is always there.
    paths: tuple[str, ...] = ("P->P<-P", "P<-(PP)->P")
    # How far a score may lie from the expected one.
    ok: float = 0.01
    near: float = 0.03


@dataclass(frozen=True)
class Row:
    """One system with its options: a row of the tables."""

    name: str
    kind: str
    system: System
    # Of the rows that are reported under one name, the best is shown.
    report_as: str = ""

    @property
    def options(self) -> dict[str, Any]:
        return asdict(self.system)  # type: ignore[call-overload, no-any-return]


@dataclass(frozen=True)
class Conditions:
    source: str
    title: str
    seeds: tuple[int, ...]
    data: DataFiles
    candidates: Candidates
    rows: tuple[Row, ...]
    report: Report
    expected: Mapping[str, Mapping[str, float]]

    @classmethod
    def read(cls, path: str | Path, folder: str | Path | None = None) -> Conditions:
        """Reads a TOML file; `folder` takes the place of the folder that it names for the data."""
        content = load(path)
        try:
            known(content, ENTRIES, "")
            rows = tuple(read_rows(content))
            return cls(
                str(path),
                of_type(content.get("title", Path(path).stem), str, "title"),
                read_seeds(content),
                read_data(table(content, "data", required=True), Path(path).parent, folder),
                read_candidates(content, Path(path).parent, folder),
                rows,
                read_report(content, rows),
                read_expected(content, rows),
            )
        except ConditionError as error:
            raise MicolError(f"{path}: {error}") from None


class ConditionError(Exception):
    """What is wrong with an entry; whoever knows the file adds its name."""


def load(path: str | Path) -> dict[str, Any]:
    with reading(path) as stream:
        data = stream.read()
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError:
        raise MicolError(f"{path}: not UTF-8; convert the file to UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise MicolError(f"{path}: not valid TOML ({error}); see docs/benchmark.md for an example") from None


def known(content: Mapping[str, Any], allowed: set[str], where: str) -> None:
    for key in content:
        if key not in allowed:
            raise ConditionError(f"unknown key {where}{key}; there are {', '.join(sorted(allowed))}")


def of_type(value: Any, hint: Any, key: str) -> Any:
    """The value, lists as tuples, where it is of the type; else an error that names the key."""
    if not fits(value, hint):
        raise ConditionError(f"{key} must be {described(hint)}, got {value!r:.60}")
    return tuple(value) if isinstance(value, list) else value


def fits(value: Any, hint: Any) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, part) for part in parts)
    if origin is tuple:
        return isinstance(value, list) and all(fits(entry, parts[0]) for entry in value)
    if origin is dict:
        return isinstance(value, dict)
    if hint is float:
        return isinstance(value, float | int) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return hint is not type(None) and isinstance(value, hint)


NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def described(hint: Any) -> str:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(described(part) for part in parts if part is not type(None))
    if origin is tuple:
        return f"a list, each entry {described(parts[0])}"
    return NAMES.get(hint, "a table")


def table(content: Mapping[str, Any], key: str, *, required: bool = False) -> dict[str, Any]:
    if required and key not in content:
        raise ConditionError(f"[{key}] is missing; see docs/benchmark.md for an example")
    found = content.get(key, {})
    if not isinstance(found, dict):
        raise ConditionError(f"[{key}] must be a table, got {found!r:.60}")
    return found


def read_seeds(content: Mapping[str, Any]) -> tuple[int, ...]:
    seeds: tuple[int, ...] = of_type(content.get("seeds", [0]), tuple[int, ...], "seeds")
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise ConditionError(f"seeds must be different whole numbers from 0 on, got {list(seeds)}")
    return seeds


def data_folder(content: Mapping[str, Any], beside: Path, folder: str | Path | None) -> Path:
    if folder is not None:
        return Path(folder)
    return beside / of_type(content.get("folder", "."), str, "data.folder")


def read_data(content: dict[str, Any], beside: Path, folder: str | Path | None) -> DataFiles:
    known(content, {entry.name for entry in fields(DataFiles)} | {"folder"}, "data.")
    base = data_folder(content, beside, folder)

    def files(key: str) -> list[Path]:
        names = of_type(content.get(key, []), str | tuple[str, ...], f"data.{key}")
        return [as_stored(base / name) for name in ([names] if isinstance(names, str) else names)]

    def file(key: str) -> Path | None:
        return as_stored(base / of_type(content[key], str, f"data.{key}")) if key in content else None

    docs, labels = files("docs"), file("labels")
    if not docs or labels is None:
        raise ConditionError("data.docs and data.labels must name the files of documents and labels")
    if ("test" in content) == ("test_ids" in content):
        raise ConditionError(
            "[data] must have either test (a file of test documents) or test_ids (a file of ids among docs)"
        )
    return DataFiles(
        docs,
        labels,
        files("test"),
        file("test_ids"),
        file("schema"),
        of_type(content.get("skip_bad", False), bool, "data.skip_bad"),
        of_type(content.get("spaces", ""), str, "data.spaces"),
    )


def as_stored(path: Path) -> Path:
    """The file, or the compressed one that is there in its place."""
    packed = (path.with_name(path.name + suffix) for suffix in CODECS)
    return path if path.exists() else next((other for other in packed if other.exists()), path)


def read_candidates(content: Mapping[str, Any], beside: Path, folder: str | Path | None) -> Candidates:
    given = table(content, "candidates")
    known(given, {entry.name for entry in fields(Candidates)}, "candidates.")
    hints = get_type_hints(Candidates) | {"file": str}
    values = {key: of_type(value, hints[key], f"candidates.{key}") for key, value in given.items()}
    if "file" in values:
        if len(values) > 1:
            raise ConditionError("candidates.file stands alone: what it holds is not searched for again")
        values["file"] = data_folder(table(content, "data"), beside, folder) / values["file"]
    if "bm25_threshold" in values:
        values.setdefault("bm25_top", None)
    return Candidates(**values)


def read_rows(content: Mapping[str, Any]) -> Iterator[Row]:
    """The rows of [[systems]]: an option that is given a list of values makes a row for each of them."""
    entries = content.get("systems", [])
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise ConditionError(
            f"[[systems]] must be there at least once, with system = one of {', '.join(SYSTEMS)}"
        )
    shared = table(content, "settings")
    known(shared, set(ARCHITECTURES), "settings.")
    base = of_type(content.get("base", ""), str, "base")
    seen: set[str] = set()
    for number, entry in enumerate(entries, start=1):
        for row in expanded(entry, base, shared, f"systems[{number}]"):
            if row.name in seen:
                raise ConditionError(
                    f"systems[{number}]: a row before it is called {row.name!r} too; give each its own name"
                )
            seen.add(row.name)
            yield row


def expanded(entry: dict[str, Any], base: str, shared: Mapping[str, Any], where: str) -> Iterator[Row]:
    kind = of_type(entry.get("system"), str, f"{where}.system")
    try:
        system = system_class(kind)
    except MicolError as error:
        raise ConditionError(f"{where}.system: {error}") from None
    hints = {
        name: hint
        for name, hint in get_type_hints(system).items()
        if name in {option.name for option in fields(system)}  # type: ignore[arg-type]
    }
    known(entry, set(hints) | ROW_KEYS, f"{where}.")
    given = {key: value for key, value in entry.items() if key not in ROW_KEYS}
    several = {
        key: value for key, value in given.items() if isinstance(value, list) and not fits(value, hints[key])
    }
    for values in product(*several.values()):
        options = given | dict(zip(several, values, strict=True))
        options = {key: of_type(value, hints[key], f"{where}.{key}") for key, value in options.items()}
        if base and "base" in hints:
            options.setdefault("base", base)
        if "settings" in hints:
            options["settings"] = trained_with(options, shared, where)
        try:
            made = system(**options)
        except MicolError as error:
            raise ConditionError(f"{where}: {error}") from None
        yield Row(
            named(of_type(entry.get("name", ""), str, f"{where}.name"), made, where),
            kind,
            made,
            of_type(entry.get("report_as", ""), str, f"{where}.report_as"),
        )


def trained_with(options: Mapping[str, Any], shared: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The settings of contrastive training: the row's own, and those of [settings.bi] or [settings.cross].

    A row with a recipe of its own has nothing to do with those, which belong to another one.
    """
    architecture = options.get("architecture", "bi")
    own = options.get("settings", {})
    settings = own if "recipe" in own else {**table(shared, str(architecture)), **own}
    rest = {name: value for name, value in settings.items() if name != "recipe"}
    try:
        resolve(str(architecture), "", settings.get("recipe", "best"), rest)
    except (MicolError, TypeError) as error:
        raise ConditionError(f"{where}: settings: {error}") from None
    return settings


def named(template: str, system: System, where: str) -> str:
    if not template:
        return system.title
    try:
        return template.format(**asdict(system))  # type: ignore[call-overload]
    except (KeyError, ValueError, IndexError):
        options = ", ".join(f"{{{name}}}" for name in asdict(system))  # type: ignore[call-overload]
        raise ConditionError(
            f"{where}.name may hold options in braces ({options}), got {template!r}"
        ) from None


def read_report(content: Mapping[str, Any], rows: tuple[Row, ...]) -> Report:
    given = table(content, "report")
    hints = get_type_hints(Report)
    known(given, set(hints), "report.")
    report = Report(**{key: of_type(value, hints[key], f"report.{key}") for key, value in given.items()})
    if report.reference and report.reference not in {row.name for row in rows}:
        raise ConditionError(f"report.reference: no row is called {report.reference!r}")
    if not 0 < report.ok <= report.near:
        raise ConditionError(
            f"report.ok must be above 0 and not above report.near, got {report.ok}, {report.near}"
        )
    return report


def read_expected(content: Mapping[str, Any], rows: tuple[Row, ...]) -> dict[str, dict[str, float]]:
    expected = table(content, "expected")
    names = {row.name for row in rows} | {row.report_as for row in rows if row.report_as}
    for name, scores in expected.items():
        if name not in names:
            raise ConditionError(f"expected: no row is called {name!r}")
        known(of_type(scores, dict[str, float], f"expected.{name}"), set(MEASURES), f"expected.{name}.")
        for measure, score in scores.items():
            of_type(score, float, f"expected.{name}.{measure}")
    return expected
