"""Files are streamed: ten times the file takes no more memory."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys

import numpy as np
import pytest

from micol.formats.base import Seen

MEASURE = """
import sys
from pathlib import Path
from micol.formats import module
from micol.formats.base import Options
from micol.formats.writing import write

name, source, folder = sys.argv[1:]
options = Options()
counts = write(module(name).read([source], options), folder, options)
# Unlike ru_maxrss, this peak is not inherited from the process that started this one.
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
print(counts["documents"], peak.split()[1])
"""
WORDS = " ".join(f"word{n}" for n in range(300))


def pubmed(number: int) -> str:
    return (
        f"<PubmedArticle><MedlineCitation><PMID>{number}</PMID><Article><ArticleTitle>{WORDS}</ArticleTitle>"
        f"<Abstract><AbstractText>{WORDS} {number}</AbstractText></Abstract></Article></MedlineCitation>"
        "</PubmedArticle>\n"
    )


INDEX = json.dumps({word: [place] for place, word in enumerate(WORDS.split())})


def openalex(number: int) -> str:
    return f'{{"id": "W{number}", "title": "{WORDS}", "abstract_inverted_index": {INDEX}}}\n'


def peak_megabytes(name: str, content: list[str], tmp_path, count: int) -> float:
    source = tmp_path / f"{count}.{'xml' if name == 'pubmed' else 'jsonl'}.gz"
    with gzip.open(source, "wt", compresslevel=1) as file:
        file.writelines(content)
    command = [sys.executable, "-c", MEASURE, name, str(source), str(tmp_path / f"out{count}")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    documents, kilobytes = map(int, done.stdout.split())
    assert documents == count
    return kilobytes / 1024


@pytest.mark.parametrize(("name", "record"), [("pubmed", pubmed), ("openalex", openalex)])
def test_memory_does_not_grow_with_the_file(tmp_path, name, record):
    peaks = []
    for count in (1_000, 10_000):
        content = [record(number) for number in range(count)]
        if name == "pubmed":
            content = ["<PubmedArticleSet>", *content, "</PubmedArticleSet>"]
        size = sum(map(len, content)) / 2**20
        peaks.append(peak_megabytes(name, content, tmp_path, count))
    # The larger file holds some 40 MB; its nine tenths more may cost a few, not their own size.
    assert size > 35
    assert peaks[1] - peaks[0] < 8, peaks


def test_ids_are_remembered_exactly():
    random = np.random.default_rng(0)
    seen, known = Seen(), set()
    for number in random.integers(0, 150_000, 200_000).tolist():
        assert seen.add(str(number)) == (number not in known)
        known.add(number)
