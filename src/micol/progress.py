"""Progress on standard error: a bar on a terminal, a plain line now and then in a log."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")
SECONDS_BETWEEN_LINES = 10.0
EARLY = 0.02


def is_leader() -> bool:
    """Of several processes that train together, the first speaks and writes for all."""
    return os.environ.get("RANK", "0") == "0"


def say(message: str) -> None:
    """One line for the person who waits."""
    if is_leader():
        print(message, file=sys.stderr, flush=True)


def say_left_out(messages: Sequence[str], most: int = 20) -> None:
    """Which bad records were skipped, the first of them one by one."""
    for message in messages[:most]:
        say(f"left out by --skip-bad: {message}")
    if len(messages) > most:
        say(f"left out by --skip-bad: {len(messages) - most:,} more")


def say_warnings(warnings: Iterable[str], source: str = "") -> None:
    """What is odd about a source, a line each."""
    for warning in warnings:
        say(f"warning: {source}: {warning}" if source else f"warning: {warning}")


class Progress:
    """Counts work done; shows itself only when the work takes longer than a moment and has a name."""

    def __init__(self, what: str | None, total: int | None = None, unit: str = "") -> None:
        what = what if is_leader() else None
        self.what, self.total, self.unit, self.remark = what, total, unit, ""
        self.done = self.before = 0
        self.started = self.last_line = time.monotonic()
        # delay: work shorter than two seconds needs no bar.
        self.bar = (
            tqdm(total=total, desc=what, unit=f" {unit}", delay=2) if what and sys.stderr.isatty() else None
        )

    def advance(self, amount: int = 1) -> None:
        self.done += amount
        if self.bar is not None:
            self.bar.update(amount)
        elif self.what and time.monotonic() - self.last_line >= SECONDS_BETWEEN_LINES:
            self.last_line = time.monotonic()
            say(self.line())

    def begin_at(self, done: int) -> None:
        """Starts from work that an earlier run has done."""
        self.done = self.before = done
        if self.bar is not None:
            self.bar.update(done)

    def note(self, text: str) -> None:
        """A word beside the numbers, such as the loss."""
        self.remark = text
        if self.bar is not None:
            self.bar.set_postfix_str(text, refresh=False)

    def line(self) -> str:
        rate = (self.done - self.before) / max(time.monotonic() - self.started, 1e-9)
        parts = [f"{rate:,.1f}/s" if rate < 10 else f"{rate:,.0f}/s"]
        amount = f"{self.done:,} {self.unit}"
        if self.total:
            amount = f"{self.done:,} of {self.total:,} {self.unit}"
            # So early, what is left would be guessed from what only happens once, such as compiling.
            if self.done >= EARLY * self.total:
                parts.append(f"{(self.total - self.done) / max(rate, 1e-9):,.0f} s left")
        if self.remark:
            parts.append(self.remark)
        return f"{self.what}: {amount} ({', '.join(parts)})"

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def track(items: Iterable[T], what: str, total: int | None = None, unit: str = "") -> Iterator[T]:
    """Passes items through while showing progress, towards their number where it is known."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    with Progress(what, total, unit) as progress:
        for item in items:
            yield item
            progress.advance()
