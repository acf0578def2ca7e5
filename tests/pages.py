"""Pages of Markdown and what is in them to run: commands with what they print, and Python.

A fenced block of `console` holds commands, behind `$ ` where what they print is shown below them; `…` in what
is shown stands for anything. A block of `python` is a program, or a dialogue of the interpreter (`>>>`). An
HTML comment on the line above a block says what is special about it:

    <!-- not run: REASON -->    the block is left alone
    <!-- exits with 2 -->       its last command fails in this way, on purpose
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(
    r"^(?:<!-- (?P<remark>[^\n]*) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)^```", re.DOTALL | re.MULTILINE
)
NOT_RUN = "not run: "
EXITS = "exits with "
PROMPT = "$ "
ANYTHING = "…"


class Block(NamedTuple):
    """A fenced block of a page, and the line on which it begins."""

    page: str
    line: int
    language: str
    text: str
    remark: str

    @property
    def is_run(self) -> bool:
        return self.language in ("console", "python") and not self.remark.startswith(NOT_RUN)

    @property
    def exit_code(self) -> int:
        return int(self.remark.removeprefix(EXITS)) if self.remark.startswith(EXITS) else 0


class Shown(NamedTuple):
    """A command, and what the page shows below it; None where it shows nothing."""

    command: str
    output: str | None


def pages() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(path: Path) -> list[Block]:
    text = path.read_text(encoding="utf-8")
    name = str(path.relative_to(ROOT))
    return [
        Block(
            name,
            text.count("\n", 0, found.start("language")) + 1,
            found["language"],
            found["text"],
            found["remark"] or "",
        )
        for found in BLOCK.finditer(text)
    ]


def commands(text: str) -> Iterator[Shown]:
    """The commands of a block, each with what is shown below it."""
    has_prompts = any(line.startswith(PROMPT) for line in text.splitlines())
    lines = text.splitlines()
    while lines:
        line = lines.pop(0)
        if not line.strip() or (not has_prompts and line.startswith("#")):
            continue
        assert not has_prompts or line.startswith(PROMPT), f"no command before {line!r}"
        command = line.removeprefix(PROMPT) if has_prompts else line
        while not is_whole(command):
            command += "\n" + lines.pop(0)
        output = []
        while has_prompts and lines and not lines[0].startswith(PROMPT):
            output.append(lines.pop(0))
        yield Shown(command, "\n".join(output) if output else None)


def is_whole(command: str) -> bool:
    """Whether a command ends here: no quote is open, and no backslash asks for the next line."""
    if command.endswith("\\"):
        return False
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return False
    return True


def fits(shown: str, printed: str) -> bool:
    """Whether this was printed, where `…` stands for anything."""
    parts = (re.escape(part) for part in shown.rstrip().split(ANYTHING))
    return re.fullmatch(".*".join(parts), printed.rstrip(), re.DOTALL) is not None
