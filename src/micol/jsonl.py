"""JSON Lines into tables: block by block, on every core, with errors that name the line."""

from __future__ import annotations

import json
import os
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa

from micol.files import STANDARD_INPUT, reading, reason, suffixes
from micol.layout import LINE, Layout, Problems, RecordError, Rows
from micol.progress import Progress

BLOCK_BYTES = 8 << 20
PIECE_BYTES = 1 << 20
MAX_LINE_BYTES = 64 << 20
SCANNED_FROM = 32 << 20
TYPICAL_COMPRESSION = 4
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
DAMAGE = (EOFError, OSError, zlib.error, pa.ArrowException)


class Block(NamedTuple):
    """Whole lines of a file."""

    data: bytes
    first_line: int

    @property
    def n_newlines(self) -> int:
        # bytes.count looks at one byte after the other, numpy at many together.
        return int(np.count_nonzero(np.frombuffer(self.data, dtype=np.uint8) == ord("\n")))


class Parsed(NamedTuple):
    """What came of a block: a table, and what is wrong with which line."""

    table: pa.Table
    errors: list[tuple[int, RecordError]]


def read(path: str | Path, layout: Layout, problems: Problems, *, quiet: bool = False) -> Iterator[pa.Table]:
    """The records of a file as tables, in order; what is wrong with others goes to `problems`.

    quiet: without progress, where reading is not what takes the time.
    """
    what = None if quiet else f"reading {path}"
    with reading(path) as stream, Progress(what, unit=f"{layout.kind}s") as progress:
        blocks = blocks_of(stream, problems)
        beginning = next(blocks, None)
        if beginning is None:
            return
        layout = layout.suited_to(first_keys(beginning.data))
        for table, errors in parsed(chain([beginning], blocks), layout, is_large(path)):
            for line, error in errors:
                problems.add(line, error)
            progress.advance(len(table))
            yield table


def blocks_of(stream: IO[bytes], problems: Problems) -> Iterator[Block]:
    """Cuts a stream into blocks of whole lines; a line beyond all measure is a problem, and left out."""
    waiting: list[memoryview] = []
    size, line, damage = 0, 1, None
    try:
        for lines in whole_lines(stream):
            waiting += lines or []
            size += sum(map(len, lines or []))
            if waiting and (lines is None or size >= BLOCK_BYTES):
                block = Block(b"".join(waiting), line)
                yield block
                line += block.n_newlines
                waiting, size = [], 0
            if lines is None:
                problems.add(line, too_long())
                line += 1
    except DAMAGE as error:
        damage = error
    if waiting:
        block = Block(b"".join(waiting), line)
        yield block
        line += block.n_newlines
    if damage:
        problems.add(line, cut_short(damage))


def whole_lines(stream: IO[bytes]) -> Iterator[list[memoryview] | None]:
    """The pieces of a stream that make up whole lines; None for each line that is too long."""
    begun: list[memoryview] = []  # the line that the last piece broke off in
    begun_size, is_given_up = 0, False
    for data in pieces_of(stream):
        piece, newline, end = memoryview(data), data.find(b"\n"), data.rfind(b"\n") + 1
        begun_size += newline if end else len(piece)
        if begun_size > MAX_LINE_BYTES and not is_given_up:
            yield None
            begun, is_given_up = [], True
        if end:
            yield [piece[newline + 1 : end]] if is_given_up else [*begun, piece[:end]]
            begun, is_given_up = [], False
            begun_size = len(piece) - end
        if not is_given_up:
            begun.append(piece[end:])
    if begun_size and not is_given_up:
        yield begun


def pieces_of(stream: IO[bytes]) -> Iterator[bytes]:
    """What a stream has at hand, a little at a time: what stands before the damage of a file is not lost."""
    start = stream.read(len(BYTE_ORDER_MARK))
    if start != BYTE_ORDER_MARK:
        yield start
    while piece := stream.read1(PIECE_BYTES):  # type: ignore[attr-defined]
        yield piece


def too_long() -> RecordError:
    return RecordError(
        f"the line is longer than {MAX_LINE_BYTES >> 20} MiB", "write each record on a line of its own"
    )


def cut_short(error: Exception) -> RecordError:
    return RecordError(
        f"the file is cut short or damaged here ({reason(error)})", "copy, download or compress it again"
    )


def first_keys(data: bytes) -> tuple[str, ...]:
    """The keys of the first record that can be read at all: they tell whose format it is."""
    for line in data.split(b"\n", 100)[:100]:
        try:
            record = loaded(line)
        except RecordError:
            continue
        if isinstance(record, dict):
            return tuple(record)
    return ()


def is_large(path: str | Path) -> bool:
    """Whether a file is worth the time it takes to load the scanner (or once, to compile it)."""
    if str(path) == STANDARD_INPUT:
        return False
    expansion = TYPICAL_COMPRESSION if suffixes(path)[1] else 1
    return Path(path).stat().st_size * expansion >= SCANNED_FROM


def parsed(blocks: Iterable[Block], layout: Layout, is_large: bool) -> Iterator[Parsed]:
    """Every block in turn, worked on by all cores."""
    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    waiting: deque[Future[Parsed]] = deque()
    read_so_far = 0
    with ThreadPoolExecutor(workers) as pool:
        try:
            for block in blocks:
                # What did not look large, a pipe for one, may turn out to be.
                parse = quickly if is_large or read_so_far >= SCANNED_FROM else exactly
                waiting.append(pool.submit(parse, block, layout))
                read_so_far += len(block.data)
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def quickly(block: Block, layout: Layout) -> Parsed:
    """The scanner takes the plain lines; only the others are looked at one by one."""
    from micol.scan import is_utf8, scanned

    # The scanner's scratch space is several times the block; a few monstrous lines are not worth it.
    if len(block.data) > 4 * BLOCK_BYTES or not is_utf8(block.data):
        return exactly(block, layout)
    table, others = scanned(block.data, block.first_line, block.n_newlines, layout)
    if not others:
        return Parsed(table, [])
    judged = one_by_one(others, layout)
    both = pa.concat_tables([table, judged.table])
    return Parsed(both.take(pa.array(np.argsort(both[LINE].to_numpy()))), judged.errors)


def exactly(block: Block, layout: Layout) -> Parsed:
    return one_by_one(enumerate(block.data.split(b"\n"), start=block.first_line), layout)


def one_by_one(lines: Iterable[tuple[int, bytes]], layout: Layout) -> Parsed:
    """What each line means, by Python's own JSON parser: the measure for the scanner."""
    rows, errors = Rows(layout), []
    for number, line in lines:
        if line.strip():
            try:
                rows.add(loaded(line), number)
            except RecordError as error:
                errors.append((number, error))
    return Parsed(rows.table(), errors)


def loaded(line: bytes) -> Any:
    try:
        return json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise RecordError(f"byte {error.start + 1} of the line is not UTF-8", "convert it to UTF-8") from None
    except json.JSONDecodeError as error:
        where = f"{error.msg} at character {error.pos + 1}"
        is_bracket = line.strip() in (b"[", b"{")  # of JSON that is spread over lines
        remedy = "write each record as one object on one line" if is_bracket else "correct the line"
        raise RecordError(f"not valid JSON ({where})", remedy) from None
    except (ValueError, RecursionError) as error:  # thousands of digits, or of brackets
        raise RecordError(f"not JSON that can be read ({reason(error)})", "correct the line") from None
