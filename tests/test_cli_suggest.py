"""micol suggest: streams, resumes after kill -9 to the same bytes, and says what it could not do."""

from __future__ import annotations

import gzip
import json
import random
import resource
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import micol
import world
from conftest import write_lines
from micol.cli import cli
from micol.errors import MicolError
from micol.partial import partial_file
from micol.progress import Progress
from micol.schema import DEFAULT_SCHEMA
from micol.tagging import Request, Tagger, Tally, documents_of, even_batches, tag_all
from processes import Command, succeed


@pytest.fixture(scope="module")
def model(
    tiny_bert: Path, docs_file: Path, labels_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A bi-encoder that finds candidates for every text."""
    folder = tmp_path_factory.mktemp("models") / "bi"
    micol.train(
        micol.Corpus.read(docs_file), micol.LabelSpace.read(labels_file), "P->P", base=str(tiny_bert),
        init_only=True, output=folder,
    )  # fmt: skip
    return folder


def suggest(*arguments: object, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, ["suggest", *map(str, arguments)], input=stdin, catch_exceptions=False)


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_line_for_each_document_best_label_first(model: Path, unseen_file: Path, tmp_path: Path) -> None:
    result = suggest(model, unseen_file, "--limit", 3, "-o", tmp_path / "out.jsonl")
    assert result.exit_code == 0
    assert result.stdout == ""
    assert "120 documents tagged" in result.stderr
    found = records((tmp_path / "out.jsonl").read_text())
    assert [record["id"] for record in found] == [f"d{number}" for number in range(240, 360)]
    for record in found:
        scores = [label["score"] for label in record["labels"]]
        assert 1 <= len(scores) <= 3
        assert scores == sorted(scores, reverse=True)
        assert set(record["labels"][0]) == {"id", "name", "score"}
    assert list(tmp_path.iterdir()) == [tmp_path / "out.jsonl"]


def test_every_way_in_and_out_gives_the_same(model: Path, unseen_file: Path, tmp_path: Path) -> None:
    expected = suggest(model, unseen_file).stdout
    assert len(records(expected)) == 120
    content = unseen_file.read_bytes()
    assert suggest(model, "-", stdin=content).stdout == expected
    (tmp_path / "docs.jsonl.gz").write_bytes(gzip.compress(content))
    assert suggest(model, tmp_path / "docs.jsonl.gz").stdout == expected
    micol.Corpus.read(unseen_file).write(tmp_path / "docs.parquet")
    assert suggest(model, tmp_path / "docs.parquet").stdout == expected
    for name in ("out.jsonl", "out.jsonl.gz", "out.jsonl.zst"):
        suggest(model, unseen_file, "-o", tmp_path / name)
        assert pa.input_stream(str(tmp_path / name)).read().decode() == expected
    assert suggest(model, unseen_file, "--batch-size", 7).stdout.count("\n") == 120


def test_the_command_gives_what_the_library_gives(model: Path, unseen_file: Path) -> None:
    tagged = micol.load(model).suggest(micol.Corpus.read(unseen_file), limit=5)
    for record, document in zip(records(suggest(model, unseen_file).stdout), tagged, strict=True):
        assert record["id"] == document.id
        assert [label["id"] for label in record["labels"]] == [label.id for label in document.labels]
        assert [label["score"] for label in record["labels"]] == pytest.approx(
            [label.score for label in document.labels], abs=1e-6
        )


def test_what_could_not_be_done_is_counted(model: Path, tmp_path: Path) -> None:
    topic = " ".join(world.words_of(3))
    docs = write_lines(
        tmp_path / "docs.jsonl",
        [
            {"id": "usual", "title": topic},
            {"id": "empty", "title": ""},
            {"id": "foreign", "title": "qqqq qqqq"},
            {"id": "long", "title": topic, "abstract": " ".join([topic] * 20)},
        ],
    )
    result = suggest(model, docs)
    assert [len(record["labels"]) > 0 for record in records(result.stdout)] == [True, False, False, True]
    assert result.stderr.splitlines() == [
        "4 documents tagged",
        "1 have no text, so they got no label",
        "1 have a text, but no candidate label",
        "1 are longer than the 62 tokens that are read; the rest was cut",
    ]
    high = suggest(model, docs, "--threshold", 0.999)
    assert "2 have candidates, but none reaches the threshold" in high.stderr
    assert [record["labels"] for record in records(high.stdout)] == [[], [], [], []]


def test_include_and_exclude_take_branches(model: Path, unseen_file: Path) -> None:
    def suggested(*options: object) -> set[str]:
        found = records(suggest(model, unseen_file, "--limit", 50, *options).stdout)
        return {label["id"] for record in found for label in record["labels"]}

    everything = suggested()
    assert {"t0", "t1", "t2"} < everything
    odd = suggested("--include", "odd")
    assert odd == {label for label in everything if label.startswith("t") and int(label[1:]) % 2}
    assert suggested("--include", "odd group") == odd
    assert suggested("--exclude", "odd") == everything - odd - {"odd"}
    assert suggested("--include", "odd", "--exclude", "t3", "--exclude", "t5") == odd - {"t3", "t5"}
    assert suggested("--include", "t3", "--include", "t4") == {"t3", "t4"}


def test_labels_that_cannot_be_meant_are_refused(
    model: Path, tiny_bert: Path, unseen_file: Path, tmp_path: Path
) -> None:
    with pytest.raises(MicolError, match=r"no label has the id or the preferred name 'evenly'; find it"):
        suggest(model, unseen_file, "--include", "evenly")
    with pytest.raises(MicolError, match="include and exclude leave no label to suggest"):
        suggest(model, unseen_file, "--include", "t3", "--exclude", "odd")
    twins = micol.LabelSpace.from_labels([micol.Label("a", ("twin",)), micol.Label("b", ("twin",))])
    micol.train(
        micol.Corpus.read(unseen_file), twins, "P->P", base=str(tiny_bert), init_only=True,
        output=tmp_path / "model",
    )  # fmt: skip
    with pytest.raises(MicolError, match="'twin' is the name of 2 labels; say which by id: a, b"):
        suggest(tmp_path / "model", unseen_file, "--include", "twin")


def test_only_listed_documents(model: Path, unseen_file: Path, tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("d300\nd241\n\nelsewhere\n")
    result = suggest(model, unseen_file, "--ids", tmp_path / "ids.txt")
    assert [record["id"] for record in records(result.stdout)] == ["d241", "d300"]
    assert "1 of its ids are of no document" in result.stderr
    (tmp_path / "ids.txt").write_text("elsewhere\n")
    with pytest.raises(MicolError, match=r"ids.txt: lists no document of .*unseen.jsonl"):
        suggest(model, unseen_file, "--ids", tmp_path / "ids.txt", "-o", tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()


def test_ready_candidates_take_the_place_of_retrieval(model: Path, unseen_file: Path, tmp_path: Path) -> None:
    names = [f"d{number}" for number in range(240, 360)]
    ours = [{"id": name, "labels": [{"id": "t1"}, {"id": "t2", "score": 4}]} for name in names]
    random.Random(0).shuffle(ours)
    write_lines(tmp_path / "ours.jsonl", ours)
    release = [{"paper": name, "label": [], "predicted_label": ["t2", "t1"]} for name in names]
    write_lines(tmp_path / "release.json", release)
    outputs = [
        suggest(model, unseen_file, "--candidates", tmp_path / name).stdout
        for name in ("ours.jsonl", "release.json")
    ]
    assert outputs[0] == outputs[1]
    for record in records(outputs[0]):
        assert sorted(label["id"] for label in record["labels"]) == ["t1", "t2"]
    write_lines(tmp_path / "few.jsonl", ours[:50])
    with pytest.raises(MicolError, match=r"few.jsonl: holds no candidates for document 'd.*micol candidates"):
        suggest(model, unseen_file, "--candidates", tmp_path / "few.jsonl")
    write_lines(tmp_path / "other.jsonl", [{"id": "d240", "labels": [{"id": "nowhere"}]}])
    with pytest.raises(MicolError, match=r"other.jsonl:1: .*no label has the id 'nowhere'"):
        suggest(model, unseen_file, "--candidates", tmp_path / "other.jsonl")


def test_bad_records_stop_or_are_left_out(model: Path, tmp_path: Path) -> None:
    docs = tmp_path / "docs.jsonl"
    docs.write_text('{"id": "a", "title": "x"}\n{"id": \n{"title": "no id"}\n{"id": "b", "title": "y"}\n')
    with pytest.raises(MicolError, match=r"docs.jsonl:2: not valid JSON"):
        suggest(model, docs)
    result = suggest(model, docs, "--skip-bad")
    assert [record["id"] for record in records(result.stdout)] == ["a", "b"]
    assert result.stderr.count("left out by --skip-bad") == 2
    with pytest.raises(MicolError, match="no such file"):
        suggest(model, tmp_path / "nowhere.jsonl")
    with pytest.raises(MicolError, match="no such model folder"):
        suggest(tmp_path / "nowhere", docs)


# Interruptions


@pytest.fixture(scope="module")
def many_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lines(tmp_path_factory.mktemp("many") / "docs.jsonl", world.documents(1200, seed=5))


@pytest.fixture(scope="module")
def expected(model: Path, many_file: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What a run that nothing interrupts gives."""
    folder = tmp_path_factory.mktemp("whole")
    succeed(["suggest", model, many_file, "--batch-size", 20, "-o", folder / "out.jsonl"], folder)
    return (folder / "out.jsonl").read_bytes()


@pytest.mark.parametrize("seed", range(2))
def test_killed_at_any_moment_tagging_goes_on_to_the_same_bytes(
    seed: int, model: Path, many_file: Path, expected: bytes, tmp_path: Path
) -> None:
    arguments = ["suggest", model, many_file, "--batch-size", 20, "-o", tmp_path / "out.jsonl"]
    partial = tmp_path / "out.jsonl.partial"
    generator = random.Random(seed)
    kills = 0
    for _ in range(5):
        before = partial.stat().st_size if partial.exists() else 0
        pause = generator.uniform(0, 0.15)

        def is_time(before: int = before, pause: float = pause) -> bool:
            if partial.exists() and partial.stat().st_size > before:
                time.sleep(pause)
                return True
            return False

        kills += Command(arguments, tmp_path).kill_when(is_time)
    assert kills >= 2
    if partial.exists():
        assert "going on after" in succeed(arguments, tmp_path)
    assert (tmp_path / "out.jsonl").read_bytes() == expected
    assert not list(tmp_path.glob("out.jsonl.*"))


class KilledError(Exception):
    pass


def interrupt(*arguments: object, stdin: bytes | None = None) -> None:
    """Leaves behind what a run leaves that is killed in its fourth batch."""
    tag = Tagger.tag
    done = 0

    def tag_three(self: Tagger, *rest: Any) -> tuple[bytes, Tally]:
        nonlocal done
        done += 1
        if done == 4:
            raise KilledError
        return tag(self, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tagger, "tag", tag_three)
        with pytest.raises(KilledError):
            suggest(*arguments, stdin=stdin)


@pytest.mark.parametrize("damage", ["half a line", "half a journal line", "an unsaved batch", "nothing"])
def test_what_a_crash_leaves_behind_is_cut_off(
    damage: str, model: Path, many_file: Path, expected: bytes, tmp_path: Path
) -> None:
    output = tmp_path / "out.jsonl"
    interrupt(model, many_file, "--batch-size", 20, "-o", output)
    partial, journal = tmp_path / "out.jsonl.partial", tmp_path / "out.jsonl.partial.journal"
    assert partial.read_bytes() == b"".join(expected.splitlines(keepends=True)[:60])
    if damage == "half a line":
        partial.write_bytes(partial.read_bytes() + b'{"id": "d6')
    if damage == "half a journal line":
        journal.write_bytes(journal.read_bytes()[:-5])
    if damage == "an unsaved batch":
        partial.write_bytes(partial.read_bytes()[:-400])
    result = suggest(model, many_file, "--batch-size", 20, "-o", output)
    done = 40 if damage in ("half a journal line", "an unsaved batch") else 60
    assert f"going on after {done} documents" in result.stderr
    assert "1,200 documents tagged" in result.stderr
    assert output.read_bytes() == expected


def test_a_partial_output_of_another_run_is_not_gone_on_with(
    model: Path, many_file: Path, labels_file: Path, tmp_path: Path
) -> None:
    docs, output = tmp_path / "docs.jsonl", tmp_path / "out.jsonl"
    shutil.copy(many_file, docs)
    usual = [model, docs, "--batch-size", 20, "-o", output]
    interrupt(*usual)
    afresh = r"remove it and .*out.jsonl.partial.journal to start afresh"
    with pytest.raises(MicolError, match=rf"begun with another limit \(5; now 3\);.* {afresh}"):
        suggest(*usual, "--limit", 3)
    with pytest.raises(MicolError, match=rf"begun with another exclude \(\[\]; now \['t1'\]\); .*{afresh}"):
        suggest(*usual, "--exclude", "t1")
    other = tmp_path / "model"
    shutil.copytree(model, other)
    edited = micol.load(other)
    edited.remove_labels(["t5"])
    edited.save_labels(other)
    with pytest.raises(MicolError, match=rf"begun with another model .*{afresh}"):
        suggest(other, *usual[1:])
    with docs.open("a") as file:
        file.write('{"id": "new", "title": "x"}\n')
    with pytest.raises(MicolError, match=rf"begun with another documents .*{afresh}"):
        suggest(*usual)
    assert not output.exists()
    (tmp_path / "out.jsonl.partial").unlink()
    (tmp_path / "out.jsonl.partial.journal").unlink()
    assert suggest(*usual).exit_code == 0


def test_from_standard_input_too_tagging_goes_on(
    model: Path, many_file: Path, expected: bytes, tmp_path: Path
) -> None:
    output, content = tmp_path / "out.jsonl", many_file.read_bytes()
    arguments = [model, "-", "--batch-size", 20, "-o", output]
    interrupt(*arguments, stdin=content)
    lines = content.splitlines(keepends=True)
    for others in (lines[::-1], lines[:30]):
        with pytest.raises(MicolError, match="the first 60 documents are not those that an earlier run has"):
            suggest(*arguments, stdin=b"".join(others))
    assert suggest(*arguments, stdin=content).exit_code == 0
    assert output.read_bytes() == expected


def test_two_runs_do_not_write_the_same_output(tmp_path: Path) -> None:
    with partial_file(tmp_path / "out.jsonl", {}) as first:
        first.append(b"one\n", {"n": 1})
        with (
            pytest.raises(MicolError, match=r"out.jsonl.partial: another process is writing it"),
            partial_file(tmp_path / "out.jsonl", {}),
        ):
            pass
    assert (tmp_path / "out.jsonl").read_bytes() == b"one\n"


def test_a_full_disk_is_a_sentence_and_nothing_is_lost(
    model: Path, many_file: Path, expected: bytes, tmp_path: Path
) -> None:
    arguments = ["suggest", model, many_file, "--batch-size", 20, "-o", tmp_path / "out.jsonl"]
    command = Command(arguments, tmp_path, largest_file=30_000)
    assert command.wait() == 1
    assert "out.jsonl.partial: could not be written (File too large); free disk space" in command.output
    assert "Traceback" not in command.output
    assert not (tmp_path / "out.jsonl").exists()
    assert "going on after" in succeed(arguments, tmp_path)
    assert (tmp_path / "out.jsonl").read_bytes() == expected


def test_memory_does_not_grow_with_the_documents(model: Path, tmp_path: Path) -> None:
    """The second half of a file of 160 MB needs no memory beyond the first half's."""
    docs = tmp_path / "docs.jsonl"
    with docs.open("w") as file:
        for number, record in enumerate(world.documents(120) * 34):
            padded = {**record, "id": f"d{number}", "authors": ["x" * 40_000]}
            file.write(json.dumps(padded) + "\n")
    resident: list[int] = []

    class Nowhere:
        state: ClassVar[dict[str, Any]] = {}

        def append(self, content: bytes, state: Mapping[str, Any]) -> None:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            resident.append(pages * resource.getpagesize())

    tagger = Tagger(micol.load(model), Request())
    batches = documents_of(str(docs), 100, DEFAULT_SCHEMA, False, None, [])
    assert tag_all(tagger, batches, None, Nowhere(), Progress(None)).documents == 4080
    half = len(resident) // 2
    assert max(resident[half:]) - max(resident[:half]) < 40 << 20


def test_batches_are_even_whatever_comes_in() -> None:
    corpus = micol.Corpus.from_records(world.documents(120))
    pieces = [
        corpus.select(range(start, stop)) for start, stop in [(0, 5), (5, 6), (6, 77), (77, 77), (77, 120)]
    ]
    batches = list(even_batches(pieces, 20, None))
    assert [len(batch) for batch in batches] == [20] * 6
    assert [name for batch in batches for name in batch.ids] == corpus.ids
    odd = {name for name in corpus.ids if int(name[1:]) % 2}
    batches = list(even_batches(pieces, 25, odd))
    assert [len(batch) for batch in batches] == [25, 25, 10]
    assert list(even_batches(pieces, 20, set())) == []


def test_parquet_of_any_layout_streams(model: Path, unseen_file: Path, tmp_path: Path) -> None:
    table = micol.Corpus.read(unseen_file).table
    pq.write_table(table, tmp_path / "docs.parquet", row_group_size=11)
    assert suggest(model, tmp_path / "docs.parquet").stdout == suggest(model, unseen_file).stdout
