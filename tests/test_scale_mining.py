"""Pair mining on DuckDB: reachable sets, exact distributions, no quadratic join, bad records."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import chisquare

from brute_force import PlainNetwork
from large_networks import (
    EVERY_LIMIT,
    LIST_ALWAYS,
    PAPER,
    PROPOSE,
    SOME_TRIALS,
    random_paths,
    random_records,
    write,
)
from micol.cli.pairs import command
from micol.corpus import Corpus
from micol.errors import MicolError, UsageError
from micol.metapath import MetaPath
from micol.scale import walks
from micol.scale.draws import Draws
from micol.scale.duck import Duck, duck
from micol.scale.mining import Mine
from micol.scale.proposals import Proposals
from processes import invoked
from random_networks import SCHEMA

PAPER_TEXTS = [text for text, _ in PAPER]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Duck]:
    with duck("500MB", str(tmp_path / "scratch")) as running:
        yield running
    assert not list((tmp_path / "scratch").iterdir())


@pytest.fixture(scope="module")
def made() -> list[dict[str, Any]]:
    return random_records(random.Random(1), 12)


@pytest.fixture(scope="module")
def docs(made: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> str:
    return write(tmp_path_factory.mktemp("network"), made, files=3)


@pytest.mark.parametrize(("text", "steps"), [*PAPER, *random_paths(random.Random(2), 8)])
def test_reachable_sets_are_those_of_the_definition_and_of_the_embedded_engine(
    engine: Duck, made: list[dict[str, Any]], docs: str, text: str, steps: list[Any]
) -> None:
    mine = Mine(engine, [docs], text, SCHEMA)
    found = engine.rows(mine.reachable())
    assert len(found) == len(set(found))
    assert set(found) == PlainNetwork(made).pairs(steps)
    network = Corpus.from_records(made, SCHEMA).network()
    path = MetaPath(text)
    assert set(found) == {(id, other) for id in network.ids for other in path.reachable(network, id)}


@pytest.mark.parametrize(
    ("text", "steps"), [*PAPER[2:5], *PAPER[6:7], *PAPER[9:], *random_paths(random.Random(3), 3)]
)
@pytest.mark.parametrize("limits", EVERY_LIMIT)
def test_pairs_are_distinct_come_in_rounds_and_are_all_there_are(
    engine: Duck, made: list[dict[str, Any]], docs: str, text: str, steps: list[Any], limits: Any
) -> None:
    existing = PlainNetwork(made).pairs(steps)
    mine = Mine(engine, [docs], text, SCHEMA)
    everything = mine.draw(10**9, seed=3, limits=limits)
    drawn = engine.rows(everything.query)
    assert Counter(drawn) == Counter(existing)
    assert (everything.pairs, everything.exhausted) == (len(existing), True)
    assert everything.anchors == len({anchor for anchor, _ in existing})
    # Nobody is an anchor for the k-th time before everybody who can be was one k - 1 times.
    times: Counter[str] = Counter()
    rounds = []
    for anchor, _ in drawn:
        times[anchor] += 1
        rounds.append(times[anchor])
    assert all(a <= b for a, b in pairwise(rounds))
    # Fewer pairs are a beginning of more.
    fewer = mine.draw(len(drawn) // 2, seed=3, limits=limits)
    assert engine.rows(fewer.query) == drawn[: len(drawn) // 2]
    assert fewer.exhausted == (len(drawn) == 0)


def test_the_order_of_rows_files_threads_and_batches_make_no_difference(
    engine: Duck, made: list[dict[str, Any]], docs: str, tmp_path: Path
) -> None:
    shuffled = random.Random(4).sample(made, len(made))
    others = write(tmp_path / "others", shuffled, files=1)
    for text in ("P->P<-P|P(AV)P", "PAP"):
        drawn = []
        for source, threads, batch in ((docs, 4, 10**6), (others, 1, 25)):
            engine.execute(f"SET threads = {threads}")
            engine.sizes = engine.sizes._replace(anchors=batch, instances=batch)
            drawn.append(engine.rows(Mine(engine, [source], text, SCHEMA).draw(40, 9, SOME_TRIALS).query))
        assert drawn[0] == drawn[1]
        assert drawn[0] != engine.rows(Mine(engine, [docs], text, SCHEMA).draw(40, 10, SOME_TRIALS).query)


def test_hubs_make_no_difference(engine: Duck, docs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs are held against each other from the end that is no hub."""
    for text in ("P<-P->P", "P<-(PP)->P", "P<-(PP)->P|P<-PAP", "P<-(PP)->P->P"):
        drawn = []
        for hub in (1, 1_000):
            monkeypatch.setattr(walks, "HUB", hub)
            drawn.append(engine.rows(Mine(engine, [docs], text, SCHEMA).draw(40, 9, SOME_TRIALS).query))
        assert len(drawn[0]) > 5
        assert drawn[0] == drawn[1]


# Document d shares a rare author with one document and prolific ones with many, some of them both.
UNEVEN: list[dict[str, Any]] = [
    {"id": "d", "authors": ["rare", "b", "c"], "venue": ["u", "v"], "references": ["x0", "x1", "x2"]},
    {"id": "e", "authors": ["rare"], "venue": ["u", "w"], "references": ["x0"]},
    *(
        {"id": f"b{n}", "authors": ["b"], "venue": ["u", "v"], "references": ["x1", "x2"][: n % 3]}
        for n in range(5)
    ),
    *(
        {"id": f"c{n}", "authors": ["b", "c"], "venue": ["u", "v"], "references": ["x1", "x2"]}
        for n in range(4)
    ),
]
COPIES = 1_500
UNEVEN_PATHS = ["PAP", "P->P<-P", "P(AA)P", "P(AV)P", "P->(PP)<-P", "PAPVP", "PVP(AV)P", "PAP|P->P<-P"]


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Many copies of the uneven corpus in one network: one call draws for the d of each."""
    copies = [
        {key: renamed(value, copy) for key, value in record.items()}
        for copy in range(COPIES)
        for record in UNEVEN
    ]
    return write(tmp_path_factory.mktemp("uneven"), copies)


def renamed(value: Any, copy: int) -> Any:
    return f"{copy}:{value}" if isinstance(value, str) else [renamed(part, copy) for part in value]


def p_value(engine: Duck, docs: str, text: str, limits: Any, round: int = 1) -> float:
    """Of the hypothesis that what each d draws in a round is uniform over all that it reaches."""
    mine = Mine(engine, [docs], text, SCHEMA)
    network = Corpus.from_records(UNEVEN, SCHEMA).network()
    reached = MetaPath(text).reachable(network, "d")
    anchors = engine.keep(
        "anchors", f"SELECT id AS anchor, 0 AS key, 0 AS h FROM {mine.network.documents} WHERE id LIKE '%:d'"
    )
    drawn = Draws(mine.walks, mine.chains, 5, limits).drawn(anchors, round)
    counts = Counter(
        positive.partition(":")[2]
        for (positive,) in engine.rows(f"SELECT positive FROM {drawn} WHERE round = {round}")
    )
    assert set(counts) <= reached
    assert counts.total() == COPIES
    return float(chisquare([counts[other] for other in sorted(reached)]).pvalue)


@pytest.mark.parametrize("text", UNEVEN_PATHS)
def test_each_document_is_equally_likely(engine: Duck, uneven: str, text: str) -> None:
    assert p_value(engine, uneven, text, PROPOSE) > 1e-4
    assert p_value(engine, uneven, text, LIST_ALWAYS) > 1e-4
    if text in ("PAP", "P(AV)P"):
        assert p_value(engine, uneven, text, PROPOSE, round=2) > 1e-4
        assert p_value(engine, uneven, text, EVERY_LIMIT[2]) > 1e-4


def test_the_test_of_uniformity_sees_what_acceptance_is_for(
    engine: Duck, uneven: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Proposals, "is_lucky", lambda self, times: "TRUE")
    for text in ("PAP", "P->P<-P", "P(AV)P", "PAP|P->P<-P"):
        assert p_value(engine, uneven, text, PROPOSE) < 1e-6


class Observed(Duck):
    """Knows the most rows that any operator of any query has put out."""

    most = 0

    def store(self, table: str, query: str) -> None:
        self.connection.execute("PRAGMA enable_profiling = 'no_output'")
        super().store(table, query)
        self.most = max(self.most, *row_counts(json.loads(self.connection.get_profiling_information("json"))))
        self.connection.execute("PRAGMA disable_profiling")


def row_counts(node: Any) -> Iterator[int]:
    if isinstance(node, dict):
        for name, value in node.items():
            if name in ("operator_cardinality", "intermediate_rows"):
                yield int(value)
            else:
                yield from row_counts(value)
    elif isinstance(node, list):
        for part in node:
            yield from row_counts(part)
    yield 0


HUB_DOCUMENTS = 4_000


@pytest.mark.parametrize("text", [*PAPER_TEXTS, "PAPVP", "PVPAP", "PVP|P->P<-P"])
def test_no_join_is_quadratic(engine: Duck, tmp_path: Path, text: str) -> None:
    """One venue has all documents, one document is cited by all, and one cites all."""
    chance = random.Random(6)
    ids = [f"d{number}" for number in range(HUB_DOCUMENTS)]
    records = [
        {
            "id": id,
            "authors": [f"a{chance.randrange(400)}" for _ in range(3)],
            "venue": ["v"],
            "references": [other for other in ["d0", *chance.sample(ids, 3)] if other != id],
        }
        for id in ids
    ]
    records[1]["references"] = [id for id in ids if id != "d1"]
    docs = write(tmp_path / "hubs", records)
    observed = Observed(engine.connection)
    mined = Mine(observed, [docs], text, SCHEMA).draw(300)
    assert mined.pairs == 300
    # All pairs of documents would be 16 million rows.
    assert observed.most < HUB_DOCUMENTS**2 / 20


BAD = [
    {"id": "a", "authors": ["x"], "references": ["b", "a"]},
    {"id": "b", "authors": ["x", "y"], "references": ["c"]},
    {"id": None, "authors": ["x"]},
    {"id": "", "authors": ["x"]},
    {"id": "b", "authors": ["z"], "references": ["b"]},
    {"id": "c", "authors": ["z"], "references": []},
]


def test_bad_records_stop_mining_or_are_listed_with_their_reasons(tmp_path: Path) -> None:
    docs = write(tmp_path / "bad", BAD)
    file = f"{docs}/part-0.parquet"
    arguments = [docs, "--path", "P->P|PAP", "--engine", "duckdb"]
    with pytest.raises(
        MicolError, match='record 1: "references" of "a" names the document itself; take that'
    ):
        invoked(command, *arguments)
    output = tmp_path / "pairs.parquet"
    said = invoked(command, *arguments, "--skip-bad", "-o", output).stderr
    rejected = pq.read_table(tmp_path / "pairs.rejected.parquet").to_pylist()
    assert [(row["file"], row["record"], row["id"], row["reason"]) for row in rejected] == [
        (file, 1, "a", '"references" of "a" names the document itself'),
        (file, 3, None, 'the document has no "id"'),
        (file, 4, "", 'the document has no "id"'),
        (file, 5, "b", '"references" of "b" names the document itself'),
        (file, 5, "b", f'the id "b" was already given at {file}, record 2'),
    ]
    assert f"left out by --skip-bad: {file}, record 3" in said
    pairs = {tuple(row.values()) for row in pq.read_table(output).to_pylist()}
    assert pairs == {("a", "b"), ("b", "a"), ("b", "c")}


def test_other_columns_and_keys_are_read_as_the_embedded_engine_reads_them(
    engine: Duck, tmp_path: Path
) -> None:
    """The original release's keys, whole numbers as ids, a single venue, and no column for a field at all."""
    table = pa.table({"paper": [1, 2, 3], "venue": ["v", "v", None], "reference": [[2, 2], [3], None]})
    pq.write_table(table, tmp_path / "release.parquet")
    source = str(tmp_path / "release.parquet")
    for text in ("PVP", "P->P", "PAP"):
        network = Corpus.read(source).network()
        path = MetaPath(text)
        found = set(engine.rows(Mine(engine, [source], text).reachable()))
        assert found == {(id, other) for id in network.ids for other in path.reachable(network, id)}


def test_the_command_writes_a_file_or_a_folder(docs: str, tmp_path: Path) -> None:
    arguments = [docs, "--path", "PAP", "-n", 30, "--engine", "duckdb", "--memory-limit", "300MB"]
    result = invoked(command, *arguments)
    lines = [tuple(line.split("\t")) for line in result.stdout.splitlines()]
    assert len(set(lines)) == 30
    file, folder = tmp_path / "pairs.parquet", tmp_path / "new" / "pairs"
    folder.parent.mkdir()
    (folder.parent / "pairs").mkdir()
    for output in (file, folder, folder):
        said = invoked(command, *arguments, "-o", output).stderr
        assert f"30 pairs by PAP from {len({a for a, _ in lines})} of" in said
        assert [tuple(row.values()) for row in pq.read_table(output).to_pylist()] == lines
    assert pq.read_metadata(file).metadata[b"path"] == b"PAP"
    assert [path.name for path in folder.parent.iterdir()] == ["pairs"]
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(MicolError, match="is no folder of Parquet files"):
        invoked(command, *arguments, "-o", folder)
    assert (folder / "notes.txt").exists()


def test_no_pair_at_all_is_explained(tmp_path: Path) -> None:
    docs = write(tmp_path / "bare", [{"id": "a", "authors": ["x"]}, {"id": "b", "authors": ["y"]}])
    for path, words in (("PVP", "no document has 'venue'"), ("PAP", "lead nowhere")):
        with pytest.raises(MicolError, match=words):
            invoked(command, docs, "--path", path, "--engine", "duckdb", "-o", tmp_path / "pairs.parquet")
    assert not (tmp_path / "pairs.parquet").exists()


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (["--engine", "duckdb", "--method", "rarity"], UsageError, "needs the embedded engine"),
        (["--memory-limit", "1GB"], UsageError, "--memory-limit is for --engine duckdb"),
        (
            ["--engine", "duckdb", "--spark", "spark.master=local"],
            UsageError,
            "--spark is for --engine spark",
        ),
        (["--engine", "duckdb", "--memory-limit", "much"], UsageError, "such as 3GB"),
        (["--engine", "duckdb", "docs.jsonl"], MicolError, "DuckDB reads documents from Parquet"),
        (["--engine", "duckdb", "none.parquet"], MicolError, "no such file or folder"),
    ],
)
def test_misuse_is_told(docs: str, arguments: list[str], kind: type[MicolError], words: str) -> None:
    with pytest.raises(kind, match=words):
        invoked(command, docs, "--path", "PAP", *arguments)


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    cases = {
        "floats": (pa.table({"id": ["a"], "authors": [1.5]}), 'column "authors" must hold strings or lists'),
        "lists": (pa.table({"id": [["a"]], "authors": ["x"]}), 'column "id" must hold strings, got'),
        "nameless": (pa.table({"authors": ["x"]}), 'has no column "id"'),
        "empty": (
            pa.table({"id": pa.array([], pa.string()), "authors": pa.array([], pa.string())}),
            "no document",
        ),
    }
    for name, (table, words) in cases.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
        with pytest.raises(MicolError, match=words):
            invoked(command, tmp_path / f"{name}.parquet", "--path", "PAP", "--engine", "duckdb")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(MicolError, match=r"broken\.parquet"):
        invoked(command, tmp_path / "broken.parquet", "--path", "PAP", "--engine", "duckdb")


@pytest.mark.parametrize(("engine_name", "package"), [("duckdb", "duckdb"), ("spark", "pyspark")])
def test_an_engine_that_is_not_installed_is_told(
    docs: str, engine_name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        MicolError, match=rf"needs {package}, which is not installed; pip install 'micol\[scale\]'"
    ):
        invoked(command, docs, "--path", "PAP", "--engine", engine_name)
