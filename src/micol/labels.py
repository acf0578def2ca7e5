"""Labels in columns: names, descriptions and their place in a hierarchy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from micol import columns, tables
from micol.errors import MicolError
from micol.files import reading, reason, suffixes
from micol.layout import LINE, Layout, Problems, RecordError, table_of
from micol.records import Label

# The original MICoL release calls its fields so; its `combined_text` repeats name and definition.
RELEASE_KEYS = {"id": "label", "names": "name", "description": "definition"}
LAYOUT = Layout(
    kind="label",
    texts=("description",),
    lists=("names", "parents"),
    substitutes={"names": "name"},
    release_keys=RELEASE_KEYS,
)
DELIMITED = (".csv", ".tsv")
SKOS = (".rdf", ".ttl", ".nt", ".n3", ".jsonld", ".owl")
MESH_ROOT = "DescriptorRecordSet"
SHOWN = 20  # warnings of one kind


class LabelSpace(tables.Records):
    """Labels in the order of their file, each id once, each with a name; parents are labels of the space."""

    kind = "label"

    def __init__(
        self, table: pa.Table, source: str, skipped: Iterable[str] = (), warnings: Iterable[str] = ()
    ) -> None:
        # id, description: string; names, parents (ids): list of strings
        self.table, self.source = table, source
        self.skipped, self.warnings = list(skipped), list(warnings)

    @classmethod
    def read(
        cls, path: str | Path, *, skip_bad: bool = False, other_parents: Sequence[str] = ()
    ) -> LabelSpace:
        """Reads JSON Lines (plain, .gz, .zst), Parquet, CSV, TSV, SKOS or MeSH descriptor XML.

        skip_bad: leave bad labels out and list them in `skipped`, instead of stopping at the first.
        other_parents: ids of labels elsewhere, for a file of labels that are to be added to those.
        """
        kind = suffixes(path)[0]
        is_foreign = kind in (*SKOS, ".xml")
        problems = Problems(str(path), skip_bad, "label" if is_foreign or tables.is_parquet(path) else "line")
        if kind in DELIMITED:
            from micol.formats import delimited

            table = table_of(delimited.labels(path), LAYOUT, problems)
        elif is_foreign:
            table = table_of(enumerate(map(as_record, foreign(path, kind)), start=1), LAYOUT, problems)
        else:
            table = tables.read(path, LAYOUT, problems)
        space = cls._checked(table, problems, other_parents)
        tables.not_empty(space.table, LAYOUT, problems)
        return space

    @classmethod
    def from_labels(
        cls, labels: Iterable[Label], *, source: str = "labels", other_parents: Sequence[str] = ()
    ) -> LabelSpace:
        problems = Problems(source, skip_bad=False, unit="label")
        table = table_of(enumerate(map(as_record, labels), start=1), LAYOUT, problems)
        return cls._checked(table, problems, other_parents)

    @classmethod
    def from_table(cls, table: pa.Table, source: str) -> LabelSpace:
        """From labels that were each checked before, but not together: parents may be missing."""
        table, unknown = with_known_parents(table.combine_chunks())
        return cls(table, source, (), [*unknown, *shared_names(table)])

    @classmethod
    def _checked(cls, table: pa.Table, problems: Problems, other_parents: Sequence[str] = ()) -> LabelSpace:
        table = with_names(table, problems)
        table = tables.checked(table, LAYOUT, problems).drop_columns([LINE])
        table, unknown = with_known_parents(table, other_parents)
        return cls(table, problems.source, problems.skipped, [*unknown, *shared_names(table)])

    def __getitem__(self, position: int) -> Label:
        if not -len(self) <= position < len(self):
            raise IndexError(f"there are {len(self)} labels, none is number {position}")
        return as_label(self.table.slice(position % len(self), 1).to_pylist()[0])

    def __iter__(self) -> Iterator[Label]:
        return map(as_label, tables.rows(self.table))

    @cached_property
    def names(self) -> list[tuple[str, ...]]:
        """All names of each label, the preferred one first."""
        indptr, values = columns.csr(self.table["names"])
        names = columns.strings(values)
        return [tuple(names[start:stop]) for start, stop in pairwise(indptr.tolist())]

    def texts(self) -> list[str]:
        """The paper's t_l of each label: preferred name and description, as `Label.text` joins them."""
        preferred = columns.strings(pc.list_element(self.table["names"], 0))
        both = zip(preferred, columns.strings(self.table["description"]), strict=True)
        return [f"{name}. {description}" if description else name for name, description in both]

    @cached_property
    def _upward(self) -> tuple[np.ndarray, np.ndarray]:
        """CSR: positions of each label's parents."""
        indptr, parents = columns.csr(self.table["parents"])
        positions = pc.index_in(parents, self.table["id"].combine_chunks())
        return indptr, positions.to_numpy(zero_copy_only=False)

    @cached_property
    def _downward(self) -> tuple[np.ndarray, np.ndarray]:
        """CSR: positions of each label's children."""
        indptr, parents = self._upward
        children = columns.rows_of_values(indptr)[np.argsort(parents, kind="stable")]
        return np.concatenate([[0], np.cumsum(np.bincount(parents, minlength=len(self)))]), children

    @cached_property
    def parents(self) -> list[tuple[int, ...]]:
        """The positions of each label's parents."""
        indptr, parents = self._upward
        positions = parents.tolist()
        return [tuple(positions[start:stop]) for start, stop in pairwise(indptr.tolist())]

    def branch(self, id: str) -> set[int]:
        """The positions of a label and of all that stand below it, be there circles or not."""
        indptr, children = self._downward
        found = {self.position(id)}
        waiting = list(found)
        while waiting:
            position = waiting.pop()
            below = set(children[indptr[position] : indptr[position + 1]].tolist()) - found
            found |= below
            waiting += below
        return found

    def write(self, path: str | Path) -> None:
        """Writes .jsonl (also .gz, .zst) or .parquet; the file appears whole or not at all."""
        tables.write(self.table, path, "labels")

    @cached_property
    def fingerprint(self) -> str:
        """sha256 over the labels and their order, the same whatever file they came from."""
        return columns.fingerprint(self.table, LAYOUT.columns)


def as_label(row: dict[str, Any]) -> Label:
    return Label(row["id"], tuple(row["names"]), row["description"], tuple(row["parents"]))


def as_record(label: Label) -> dict[str, Any]:
    return {
        "id": label.id,
        "names": label.names,
        "description": label.description,
        "parents": label.parents,
    }


def foreign(path: str | Path, kind: str) -> Iterator[Label]:
    """Labels of the formats that are trees or graphs."""
    if kind == ".xml" and root_of(path) == MESH_ROOT:
        from micol.formats import mesh

        return mesh.labels(path)
    from micol.formats import skos

    return skos.labels(path)


def root_of(path: str | Path) -> str:
    """The name of an XML file's root element."""
    from lxml import etree

    with reading(path) as stream:
        try:
            for _, element in etree.iterparse(stream, events=("start",), resolve_entities=False):
                return str(etree.QName(element).localname)
        except etree.XMLSyntaxError as error:
            raise MicolError(
                f"{path}: not well-formed XML ({reason(error)}); expected SKOS or MeSH descriptors"
            ) from error
    raise MicolError(f"{path}: no XML in it; expected SKOS or MeSH descriptors")


def with_names(table: pa.Table, problems: Problems) -> pa.Table:
    """Trims names and descriptions; a label that then has no name is a problem."""
    indptr, values = columns.csr(table["names"])
    names = columns.tidy(columns.list_array(indptr, pc.utf8_trim_whitespace(values)))
    description = pc.utf8_trim_whitespace(table["description"])
    table = table.set_column(table.schema.get_field_index("names"), "names", names)
    table = table.set_column(table.schema.get_field_index("description"), "description", description)
    nameless = pc.equal(pc.list_value_length(names), 0)
    for row in np.flatnonzero(nameless.to_numpy(zero_copy_only=False)).tolist():
        error = RecordError(
            f"the label {table['id'][row].as_py()!r} has no name", "give every label at least one name"
        )
        problems.add(table[LINE][row].as_py(), error)
    return table.filter(pc.invert(nameless)).combine_chunks()


def with_known_parents(table: pa.Table, others: Sequence[str] = ()) -> tuple[pa.Table, list[str]]:
    """The table without parents that are no labels, or the label itself, and a warning for each kind."""
    warnings = []
    table, own = columns.without_own_id(table, "parents")
    if len(own):
        example = table["id"][int(own[0])].as_py()
        warnings.append(f"{len(own):,} labels are their own parents (such as {example!r}); that was left out")
    indptr, parents = columns.csr(table["parents"])
    ids = pa.concat_arrays([*table["id"].chunks, pa.array(others, pa.string())])
    known = pc.is_in(parents, ids).to_numpy(zero_copy_only=False)
    if not known.all():
        example = parents.filter(pa.array(~known))[0].as_py()
        count = int((~known).sum())
        warnings.append(f"{count:,} parents are not in the label space (such as {example!r}); left out")
    lists = columns.keep_values(columns.list_array(indptr, parents), known)
    return table.set_column(table.schema.get_field_index("parents"), "parents", lists), warnings


def shared_names(table: pa.Table) -> list[str]:
    """A warning for each preferred name, upper or lower case, that stands for several labels."""
    names = pc.utf8_lower(pc.list_element(table["names"], 0))
    counts = pc.value_counts(names)
    shared = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
    if not len(shared):
        return []
    ids: dict[str, list[str]] = {}
    is_shared = pc.is_in(names, shared)
    both = zip(columns.strings(names.filter(is_shared)), columns.strings(table["id"].filter(is_shared)))
    for name, id in both:
        ids.setdefault(name, []).append(id)
    warnings = [f"the name {name!r} stands for {len(ids[name])} labels: {listed(ids[name])}" for name in ids]
    more = len(warnings) - SHOWN
    return warnings if more <= 0 else [*warnings[:SHOWN], f"{more:,} more names stand for several labels"]


def listed(ids: list[str], most: int = 5) -> str:
    return ", ".join(ids[:most]) + (f" and {len(ids) - most:,} more" if len(ids) > most else "")
