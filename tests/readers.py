"""A reader of the documentation, who does what a page says: from top to bottom, in a folder of their own.

The folder holds the files that pages take as given. `micol` runs in processes forked from one that has torch
imported already; all other commands, in bash.
"""

from __future__ import annotations

import contextlib
import doctest
import gzip
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

import micol
import world
from conftest import write_lines
from pages import ROOT, Block, blocks, commands, fits
from processes import CONTEXT

DATA = ROOT / "tests/data"
PORT = "8080"
# For one command, on a machine that has much else to do.
PATIENCE = 600.0
ASSIGNMENT = re.compile(r"(\w+)=(\S+)")


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path) -> Path:
    """The files that pages take as given: documents, labels, a trained model, files of other formats."""
    folder = tmp_path_factory.mktemp("given")
    # So few that training on them, with the real encoder and every setting as it is, takes seconds.
    documents = world.documents(36)
    for number, document in enumerate(documents):
        document["authors"] += [f"b{number % world.TOPICS}", f"c{number % world.TOPICS}"]
    for name in ("DOCS.jsonl", "docs.jsonl"):
        write_lines(folder / name, documents)
    named = {"l1": "Web", "l3": "Webgraph", "l7": "Web page", "game": "Game"}
    labels = [*world.label_records(), *({"id": key, "names": [name]} for key, name in named.items())]
    for name in ("LABELS.jsonl", "labels.jsonl"):
        write_lines(folder / name, labels)
    write_lines(folder / "MORE.jsonl", [{"id": "l8", "names": ["One more"]}])
    (folder / "test_ids.txt").write_text("".join(f"d{number}\n" for number in range(12)), encoding="utf-8")
    runs = ("predictions", "ours0", "ours1", "ours2", "bm25", "other0", "other1", "other2")
    for shift, name in enumerate(runs):
        suggested = [{"id": f"t{(number + (number % (shift + 2) == 0)) % 12}"} for number in range(12)]
        write_lines(
            folder / f"{name}.jsonl",
            ({"id": f"d{number}", "labels": [label]} for number, label in enumerate(suggested)),
        )
    micol.train(
        micol.Corpus.read(folder / "DOCS.jsonl"), micol.LabelSpace.read(folder / "LABELS.jsonl"), "P->P",
        base=str(tiny_bert), output=folder / "MODEL", batch_size=16,
    )  # fmt: skip
    shutil.copytree(folder / "MODEL", folder / "model")
    foreign_files(folder)
    return folder


def foreign_files(folder: Path) -> None:
    """Samples of the formats that `micol import` reads, under the names that docs/formats.md uses."""
    part = folder / "data/works/updated_date=2026-01-01"
    part.mkdir(parents=True)
    (part / "part_000.gz").write_bytes(gzip.compress((DATA / "openalex/works.jsonl").read_bytes()))
    for name in ("pubmed26n0001.xml", "pubmed26n0002.xml"):
        (folder / f"{name}.gz").write_bytes(gzip.compress((DATA / "pubmed" / name).read_bytes()))
    shutil.copy(DATA / "pubmed/desc2026.xml", folder)
    with tarfile.open(folder / "articles.tar.gz", "w:gz") as archive:
        archive.add(DATA / "jats", "articles")
    shutil.copy(DATA / "arxiv/arxiv-metadata-oai-snapshot.json", folder)
    shutil.copytree(DATA / "debian", folder / "lists")
    shutil.copy(DATA / "debian/vocabulary", folder)
    shutil.copytree(DATA / "annif", folder, dirs_exist_ok=True)
    shutil.copy(DATA / "skos/vocabulary.ttl", folder)
    shutil.copytree(DATA / "release", folder / "release")
    for name in ("docs", "src", "tools", "benchmarks"):
        (folder / name).symlink_to(ROOT / name)


class Reader:
    """Follows a page as a reader would: one block after the other, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment: dict[str, str] = {}
        self.port = free_port()
        self.server: CONTEXT.Process | None = None

    def follow(self, block: Block) -> None:
        text = block.text.replace(PORT, self.port)
        if block.language == "python":
            self.run_python(text, block)
            return
        found = list(commands(text))
        for number, (command, output) in enumerate(found, start=1):
            expected = block.exit_code if number == len(found) else 0
            place = f"{block.page}:{block.line}: {command}"
            code, printed, said = self.run(command)
            assert code == expected, f"{place}\nexited with {code}\n{printed}{said}"
            if output is not None:
                assert any(fits(output, text) for text in (printed, said, printed + said)), (
                    f"{place}\nshown:\n{output}\n\nprinted:\n{printed}\n\nsaid:\n{said}"
                )

    def run(self, command: str) -> tuple[int, str, str]:
        """Exit code, what was printed, and what was said on standard error."""
        if assignment := ASSIGNMENT.fullmatch(command):
            self.environment[assignment[1]] = assignment[2]
            return 0, "", ""
        words = plain_words(self.expanded(command))
        if words is None or words[0] != "micol":
            return self.run_in_bash(command)
        if words[1] == "serve":
            return self.start_server(words[1:])
        return self.run_forked(run_micol, words[1:])

    def expanded(self, command: str) -> str:
        return re.sub(r"\$(\w+)", lambda found: self.environment.get(found[1], found[0]), command)

    def run_in_bash(self, command: str) -> tuple[int, str, str]:
        environment = {
            **os.environ, **self.environment, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }  # fmt: skip
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self.folder, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def run_python(self, text: str, block: Block) -> None:
        function = run_dialogue if ">>>" in text else run_program
        code, printed, said = self.run_forked(function, [text, f"{block.page}:{block.line}"])
        assert code == 0, f"{block.page}:{block.line}\n{printed}{said}"

    def run_forked(self, function: object, arguments: list[str]) -> tuple[int, str, str]:
        process = self.fork(function, arguments)
        process.join(PATIENCE)
        code = process.exitcode
        if code is None:
            process.kill()
            raise AssertionError(f"still running after {PATIENCE} s: {arguments}")
        return code, *(self.log(name).read_text(encoding="utf-8") for name in ("printed", "said"))

    def fork(self, function: object, arguments: list[str]) -> CONTEXT.Process:
        files = [str(self.log(name)) for name in ("printed", "said")]
        process = CONTEXT.Process(target=forked, args=(function, arguments, str(self.folder), files))
        process.start()
        return process

    def log(self, name: str) -> Path:
        return self.folder / f".{name}"

    def start_server(self, words: list[str]) -> tuple[int, str, str]:
        self.server = self.fork(run_micol, [*words, "--port", self.port])
        deadline = time.monotonic() + PATIENCE
        while "at http://" not in (said := self.said()):
            assert self.server.is_alive(), said
            assert time.monotonic() < deadline, said
            time.sleep(0.05)
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(self.port))):
                return 0, "", said
            time.sleep(0.05)

    def said(self) -> str:
        return self.log("said").read_text(encoding="utf-8") if self.log("said").exists() else ""

    def close(self) -> None:
        if self.server is not None:
            os.kill(self.server.pid or 0, signal.SIGTERM)
            self.server.join(PATIENCE)


def plain_words(command: str) -> list[str] | None:
    """The words of a command; None where only a shell understands it."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    return None if any(re.fullmatch(r"[|<>&;()]+", word) for word in words) else words


def free_port() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def forked(function: object, arguments: list[str], folder: str, files: list[str]) -> None:
    """What happens in a process of its own."""
    os.chdir(folder)
    for number, name in enumerate(files, start=1):
        with open(name, "wb") as file:
            os.dup2(file.fileno(), number)
    try:
        function(*([arguments] if function is run_micol else arguments))
    except SystemExit:
        raise
    except BaseException:
        traceback.print_exc()
        sys.exit(70)


def run_micol(arguments: list[str]) -> None:
    sys.argv = ["micol", *arguments]
    from micol.cli import main

    main()


def run_program(text: str, name: str) -> None:
    exec(compile(text, name, "exec"), {"__name__": "__main__"})


def run_dialogue(text: str, name: str) -> None:
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    if doctest.DocTestRunner().run(test).failed:
        sys.exit(1)


def runnable(path: Path) -> Iterator[Block]:
    """The blocks of a page that run; dialogues with the interpreter are one, as they share their names."""
    found = [block for block in blocks(path) if block.is_run]
    dialogues = [block for block in found if ">>>" in block.text]
    for block in found:
        if block not in dialogues:
            yield block
        elif block == dialogues[0]:
            yield block._replace(text="\n".join(each.text for each in dialogues))


def read_to_the_end(path: Path, given: Path, folder: Path) -> None:
    """Does what a page says, in a copy of what is given."""
    shutil.copytree(given, folder, symlinks=True)
    reader = Reader(folder)
    try:
        for block in runnable(path):
            reader.follow(block)
    finally:
        reader.close()
