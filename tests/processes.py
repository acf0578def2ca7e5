"""The command: in this process, or in one of its own, which can be killed at any moment or denied disk space.

Such processes are forked from one that has torch imported already, so that each starts at once.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import click
from click.testing import CliRunner, Result

from micol.errors import MicolError

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["micol.training", "micol.tagging"])
PATIENCE = 120.0


def run(
    arguments: Sequence[str], output: Path, largest_file: int | None, environment: Mapping[str, str]
) -> None:
    """What happens in the process."""
    os.environ.update(environment)
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    with output.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.argv = ["micol", *arguments]
    from micol.cli import main

    main()


def below(process: int, words: bytes) -> dict[int, int]:
    """What a process has started, or those in turn, by some words of their commands; their parents."""
    parents: dict[int, int] = {}
    named = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if words in (path / "cmdline").read_bytes():
                named.add(int(path.name))
            parents[int(path.name)] = int((path / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue

    def above(pid: int) -> Iterator[int]:
        while pid := parents.get(pid, 0):
            yield pid

    return {pid: parents[pid] for pid in named if pid in parents and process in above(pid)}


def invoked(command: click.Command, *arguments: object) -> Result:
    """A command in this process; it ends well, or its sentence is raised."""
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    if isinstance(result.exception, MicolError):
        raise result.exception
    assert result.exit_code == 0, (result.output, result.exception)
    return result


class Command:
    """`micol ARGUMENTS` under way; `output` is what it says on standard output and standard error."""

    def __init__(
        self,
        arguments: Sequence[object],
        folder: Path,
        largest_file: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.log = folder / f"command-{time.monotonic_ns()}.log"
        self.log.touch()
        self.process = CONTEXT.Process(
            target=run, args=(list(map(str, arguments)), self.log, largest_file, environment or {})
        )
        self.process.start()

    @property
    def output(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def wait(self) -> int:
        self.process.join(PATIENCE)
        assert self.process.exitcode is not None, f"still running: {self.output}"
        return self.process.exitcode

    def kill_when(self, is_time: Callable[[], bool]) -> bool:
        """Kills the process (-9) once a condition holds; False if it has ended by itself before that."""
        deadline = time.monotonic() + PATIENCE
        while self.process.is_alive() and time.monotonic() < deadline:
            if is_time():
                self.process.kill()
                self.process.join()
                return self.process.exitcode == -signal.SIGKILL
            time.sleep(0.002)
        assert self.wait() == 0, self.output
        return False


def succeed(arguments: Sequence[object], folder: Path) -> str:
    """Runs a command to its end and returns what it said."""
    command = Command(arguments, folder)
    assert command.wait() == 0, command.output
    return command.output
