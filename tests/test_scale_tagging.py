"""micol suggest --engine spark, on a real Spark: as the embedded engine, whoever is killed on the way."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import micol
import world
from micol import parquet
from micol.cli.evaluate import command as evaluate
from micol.cli.suggest import command as suggest
from micol.errors import MicolError, UsageError
from micol.scale import spark
from micol.scale.shards import Output, Plan
from micol.scale.suggest import in_a_sentence
from micol.scale.tagging import IDS, REPEATS, Job, Rejects, part_table, read_shard, tag_shard
from micol.schema import DEFAULT_SCHEMA
from micol.tagging import Request, Tagger
from processes import PATIENCE, Command, below, invoked

SIZE = 30
# One worker at a time, and a JVM that lives for seconds need not optimise itself.
SHORT_LIVED = [
    f"--spark={setting}"
    for setting in (
        "spark.master=local[1,4]",
        "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1",
        "spark.sql.adaptive.enabled=false",
        "spark.sql.codegen.wholeStage=false",
        "spark.sql.shuffle.partitions=1",
    )
]


@pytest.fixture(scope="module")
def model(
    tiny_bert: Path, docs_file: Path, labels_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A model that fuses evidence, so that the documents' metadata count."""
    folder = tmp_path_factory.mktemp("models") / "fused"
    micol.train(
        micol.Corpus.read(docs_file), micol.LabelSpace.read(labels_file), "P->P", base=str(tiny_bert),
        pairs=64, batch_size=32, output=folder,
    )  # fmt: skip
    return folder


def write_parquet(path: Path, records: list[dict[str, Any]], **options: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(records), path, **options)


@pytest.fixture(scope="module")
def good() -> list[dict[str, Any]]:
    """Documents without fault, but for one that names itself."""
    records = world.documents(400, seed=5, first=240)
    records[33]["references"].append(records[33]["id"])
    return records


@pytest.fixture(scope="module")
def docs(good: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Those documents in a folder of files, among records and a file that are poisoned."""
    folder = tmp_path_factory.mktemp("docs")
    poisoned = [
        *good[:57],
        {**good[0], "id": None},
        {**good[0], "id": ""},
        {**good[54], "title": "again, in the same shard"},
        *good[57:150],
        {**good[3], "title": "again, in another shard"},
    ]
    write_parquet(folder / "a.parquet", poisoned, row_group_size=37)
    elsewhere = [{**good[60], "title": "again, in another file"}, *good[150:305]]
    write_parquet(folder / "part=1" / "b.parquet", elsewhere)
    write_parquet(folder / "part=2" / "b.parquet", good[305:], row_group_size=1000)
    wrong = [{"id": f"w{number}", "title": number} for number in range(13)]
    write_parquet(folder / "wrong.parquet", wrong)
    write_parquet(folder / "_temporary" / "half.parquet", [{"id": "no data"}])
    return folder


@pytest.fixture(scope="module")
def expected(
    model: Path, good: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What the embedded engine suggests for the good documents."""
    folder = tmp_path_factory.mktemp("embedded")
    write_parquet(folder / "docs.parquet", good)
    output = folder / "out.jsonl"
    invoked(suggest, model, folder / "docs.parquet", "--skip-bad", "-o", output)
    return {record["id"]: record["labels"] for record in map(json.loads, output.open())}


def assert_alike(labels: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    """The same suggestions; documents that are read together with others may be off in the last digit."""
    for part in ("id", "name"):
        assert [label[part] for label in labels] == [label[part] for label in wanted]
    scores = [label["score"] for label in labels]
    assert scores == pytest.approx([label["score"] for label in wanted], abs=1e-5)


def parts(output: Path) -> int:
    return len(pa.dataset.dataset(output, format="parquet").files) if output.exists() else 0


def workers(driver: int) -> list[int]:
    """The Python workers that Spark has forked for a driver."""
    daemons = below(driver, b"pyspark.daemon")
    return [pid for pid, parent in daemons.items() if parent in daemons]


def lose_a_worker(command: Command, is_time: Any) -> None:
    """Kills a worker that has a task: one that is stopped while idle gets its next task before it dies."""
    deadline = time.monotonic() + PATIENCE
    while not (is_time() and workers(command.process.pid)):
        assert command.process.is_alive(), command.output
        assert time.monotonic() < deadline
        time.sleep(0.01)
    (worker,) = workers(command.process.pid)
    os.kill(worker, signal.SIGSTOP)
    time.sleep(0.5)
    os.kill(worker, signal.SIGKILL)


def tagged_by_spark(output: Path) -> list[dict[str, Any]]:
    """All parts as the one table that they are to every reader of partitioned Parquet."""
    records: list[dict[str, Any]] = pa.dataset.dataset(output, format="parquet").to_table().to_pylist()
    return records


@pytest.mark.slow
def test_drivers_and_workers_are_killed_and_nothing_is_lost_or_tagged_twice(
    model: Path, docs: Path, good: list[dict[str, Any]], expected: dict[str, Any], tmp_path: Path
) -> None:
    output = tmp_path / "out"
    usual = ["suggest", model, docs, "--engine", "spark", "--shard-size", SIZE, "-o", output, *SHORT_LIVED]

    killed = Command(usual, tmp_path)
    assert killed.kill_when(lambda: parts(output) > 3), killed.output
    before = {path: path.stat().st_mtime_ns for path in output.rglob("*.parquet")}
    assert 3 < parts(output) < len(Plan.of(str(docs), SIZE).shards)
    assert not (output / "_SUCCESS").exists()

    resumed = Command(usual, tmp_path)
    lose_a_worker(resumed, lambda: parts(output) > len(before) + 2)
    assert resumed.wait() == 0, resumed.output
    assert "going on: " in resumed.output
    assert "shards were begun anew, because the worker was lost" in resumed.output
    assert "400 documents tagged" in resumed.output
    assert "18 records were rejected" in resumed.output
    assert "1 were tagged without a part that was wrong" in resumed.output
    assert {path: path.stat().st_mtime_ns for path in before} == before

    found = tagged_by_spark(output)
    assert [record["id"] for record in found] == [record["id"] for record in good]
    for record in found:
        assert_alike(record["labels"], expected[record["id"]])
    assert not list(output.rglob(".*"))
    assert sorted(path.name for path in output.iterdir()) == sorted(
        ["_SUCCESS", "_begun.json", "_rejected", "_repeated", "part=1", "part=2"]
        + [f"a-{first:09}.parquet" for first in range(0, 154, SIZE)]
        + ["wrong-000000000.parquet"]
    )
    check_rejects(output, good)
    check_what_follows(output, model, docs, tmp_path)


def check_rejects(output: Path, good: list[dict[str, Any]]) -> None:
    lines = [json.loads(line) for path in (output / "_rejected").rglob("*.jsonl") for line in path.open()]
    found = {(line["file"], line["record"]): line for line in lines}
    assert len(found) == len(lines) == 7
    no_id = 'the document has no "id"'
    reasons = {
        ("a.parquet", 34): (f"\"references\" of '{good[33]['id']}' names the document itself", True),
        ("a.parquet", 58): (no_id, False),
        ("a.parquet", 59): (no_id, False),
        ("a.parquet", 60): (f"the id '{good[54]['id']}' was already given at a.parquet, record 55", False),
        ("a.parquet", 154): (f"the id '{good[3]['id']}' was already given at a.parquet, record 4", False),
        ("part=1/b.parquet", 1): (
            f"the id '{good[60]['id']}' was already given at a.parquet, record 64", False,
        ),
    }  # fmt: skip
    for place, (reason, is_tagged) in reasons.items():
        assert (found[place]["reason"], found[place]["tagged"]) == (reason, is_tagged)
    assert found["wrong.parquet", 1]["records"] == 13
    assert 'column "title" must hold strings, got int64' in found["wrong.parquet", 1]["reason"]


def check_what_follows(output: Path, model: Path, docs: Path, folder: Path) -> None:
    """Done is done; another request is refused; and the output is read by what comes next."""
    arguments = [model, docs, "--engine", "spark", "--shard-size", SIZE, "-o", output]
    again = invoked(suggest, *arguments)
    assert "400 documents tagged" in again.stderr
    for option in (("--limit", 3), ("--batch-size", 7), ("--shard-size", 20)):
        name = option[0].removeprefix("--").replace("-", " ")
        with pytest.raises(MicolError, match=rf"out: was begun with another {name} .*remove .*out to start"):
            invoked(suggest, *arguments, *option)
    edited = folder / "edited"
    shutil.copytree(model, edited)
    relabelled = micol.load(edited)
    relabelled.remove_labels(["t5"])
    relabelled.save_labels(edited)
    with pytest.raises(MicolError, match="out: was begun with another model"):
        invoked(suggest, edited, *arguments[1:])
    truth = folder / "docs.jsonl"
    micol.Corpus.read([docs / "part=1" / "b.parquet", docs / "part=2" / "b.parquet"]).write(truth)
    scores = json.loads(invoked(evaluate, output, truth, "--json", "--skip-bad").stdout)
    assert "P@1" in json.dumps(scores)
    part = next(output.glob("a-*.parquet"))
    shutil.copy(part, output / "part=1" / "b-000000000.parquet")
    with pytest.raises(MicolError, match=r"b-000000000.parquet: was not made by this run from rows 0"):
        invoked(suggest, *arguments)


def test_what_cannot_be_is_told_before_spark_starts(model: Path, docs: Path, tmp_path: Path) -> None:
    spark_to = ("--engine", "spark", "-o", tmp_path / "out")
    with pytest.raises(UsageError, match="--engine spark reads Parquet, a file or a folder of them"):
        invoked(suggest, model, write_lines(tmp_path), *spark_to)
    with pytest.raises(UsageError, match="needs -o OUT, a folder"):
        invoked(suggest, model, docs, "--engine", "spark")
    with pytest.raises(UsageError, match="takes neither --candidates nor --ids"):
        invoked(suggest, model, docs, *spark_to, "--ids", __file__)
    with pytest.raises(MicolError, match="lies in the folder of documents"):
        invoked(suggest, model, docs, "--engine", "spark", "-o", docs / "out")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").touch()
    with pytest.raises(MicolError, match="exists and is not the output of an earlier run"):
        invoked(suggest, model, docs, "--engine", "spark", "-o", tmp_path / "full")
    with pytest.raises(UsageError, match=r"--spark memory=8g: expected KEY=VALUE"):
        invoked(suggest, model, docs, *spark_to, "--spark", "memory=8g")


def write_lines(folder: Path) -> Path:
    path = folder / "docs.jsonl"
    path.write_text('{"id": "d1", "title": "x"}\n')
    return path


def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MicolError, match=r"needs Java 17 or newer.*apt-get install default-jre-headless"):
        spark.check_installed()
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MicolError, match=r"needs pyspark.*pip install 'micol\[scale\]'"):
        spark.check_installed()


def test_the_embedded_engine_reads_such_a_folder_too(
    model: Path, docs: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    folder = tmp_path / "docs"
    shutil.copytree(docs / "part=2", folder / "part=2")
    shutil.copytree(docs / "_temporary", folder / "_temporary")
    invoked(suggest, model, folder, "-o", tmp_path / "out.jsonl")
    found = {record["id"]: record["labels"] for record in map(json.loads, (tmp_path / "out.jsonl").open())}
    assert list(found) == micol.Corpus.read(folder).ids
    assert len(found) == 95
    for name, labels in found.items():
        assert_alike(labels, expected[name])


def job_of(docs: Path, output: Path, size: int) -> Job:
    """A job whose documents can be read, though there is no model to tag them with."""
    plan = Plan.of(str(docs), size)
    output.mkdir()
    pq.write_table(REPEATS.empty_table(), output / "_repeated")
    nothing = Output(output, "")
    return Job(docs, "", plan.folder, plan.shards, nothing, Request(), DEFAULT_SCHEMA, 1)


def test_a_shard_that_is_damaged_is_rejected_and_others_are_not(
    good: list[dict[str, Any]], tmp_path: Path
) -> None:
    docs = tmp_path / "docs.parquet"
    write_parquet(docs, good[100:160], row_group_size=30, compression="zstd")
    content = bytearray(docs.read_bytes())
    content[60:400] = bytes(340)
    docs.write_bytes(content)
    job = job_of(docs, tmp_path / "out", 30)
    corpus, rejects = read_shard(job, 0)
    assert len(corpus) == 0
    (reject,) = rejects
    assert (reject["record"], reject["records"], reject["tagged"]) == (1, 30, False)
    assert "docs.parquet: cut short or damaged" in reject["reason"]
    corpus, rejects = read_shard(job, 1)
    assert (corpus.ids, rejects) == ([record["id"] for record in good[130:160]], [])


def test_what_a_worker_does_not_see_is_not_taken_for_broken(
    model: Path, good: list[dict[str, Any]], tmp_path: Path
) -> None:
    docs = tmp_path / "docs.parquet"
    write_parquet(docs, good[100:130])
    job = job_of(docs, tmp_path / "out", 30)
    with pytest.raises(
        MicolError, match=r"is not the same model on .*; put the model folder on a file system"
    ):
        tag_shard(replace(job, model=model), 0, cpus=1, gpu=None)
    docs.unlink()
    with pytest.raises(MicolError, match="sees no such file; put the documents on a file system that all"):
        read_shard(job, 0)


def test_reasons_are_written_as_json(model: Path, good: list[dict[str, Any]]) -> None:
    tagger = Tagger(micol.load(model), Request(explain=True))
    batch = micol.Corpus.from_records(good[:4])
    rows = part_table(tagger.records(batch)[0], tagger.request).to_pylist()
    for row in rows:
        for label in row["labels"]:
            label["why"] = json.loads(label["why"])
    assert rows == tagger.records(batch)[0]
    assert rows[0]["labels"][0]["why"]["contributions"]


def test_pages_of_traces_become_a_sentence() -> None:
    from pyspark.errors import PythonException

    trace = 'Traceback:\n  File "x.py"\n{}\n\tat org.apache.spark.Task.run(Task.scala:147)'
    for line, sentence in (
        ("micol.errors.MicolError: a.parquet: gone", r"^a\.parquet: gone$"),
        (
            "ModuleNotFoundError: No module named 'micol'",
            r"given up \(ModuleNotFoundError: No .*goes on from",
        ),
    ):
        with pytest.raises(MicolError, match=sentence), in_a_sentence("out"):
            raise PythonException(trace.format(line))


@pytest.mark.parametrize("size", [1, 7, 36, 37, 100, 1000])
def test_shards_make_up_the_documents(docs: Path, size: int) -> None:
    plan = Plan.of(str(docs), size)
    names = [
        name
        for shard in plan.shards
        if shard.file != "wrong.parquet"
        for table in parquet.read(docs / shard.file, IDS, Rejects(shard.file), rows=shard.rows)
        for name in table["id"].to_pylist()
    ]
    whole = [
        name
        for file in ("a.parquet", "part=1/b.parquet", "part=2/b.parquet")
        for name in pq.read_table(docs / file, partitioning=None)["id"].to_pylist()
        if name
    ]
    assert names == whole
    assert plan.records == len(names) + 2 + 13
    assert max(len(shard.rows) for shard in plan.shards) <= size
    assert len({shard.part for shard in plan.shards}) == len(plan.shards)
