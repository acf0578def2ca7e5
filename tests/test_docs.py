"""Every command and every example of the documentation runs, and prints what its page shows."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pages import ROOT, blocks, pages
from readers import given, read_to_the_end

__all__ = ["given"]

# On the whole data set that ships; tests/test_docs_large.py runs them, beside these.
LARGE = ("README.md", "docs/examples/packages.md")
RUN = [
    path
    for path in pages()
    if any(block.is_run for block in blocks(path)) and str(path.relative_to(ROOT)) not in LARGE
]


@pytest.mark.slow
@pytest.mark.parametrize("path", RUN, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_page_runs(path: Path, given: Path, tmp_path: Path) -> None:
    read_to_the_end(path, given, tmp_path / "folder")


def test_what_is_not_run_says_why() -> None:
    for path in pages():
        for block in blocks(path):
            if block.remark:
                assert re.fullmatch(r"not run: .{8,}|exits with \d", block.remark), (path, block.remark)


def test_nothing_to_run_hides_in_other_blocks() -> None:
    for path in pages():
        for block in blocks(path):
            if block.language not in ("console", "python"):
                assert not re.search(r"^\$ ", block.text, re.MULTILINE), (path, block.line)
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r"^```\n(?=\$ )", text, re.MULTILINE), path
        assert not re.findall(r"\n\n {4}(?:\$ |micol |python )", text), f"{path}: fence it"


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(#[^)\s]+)?\)", text):
        target = (path.parent / link).resolve() if link else path
        if link.endswith(("reference/commands.md", "reference/python.md")):
            continue  # made when the site is built
        assert target.exists(), f"{path}: {link}"
        if anchor and target.suffix == ".md":
            assert anchor[1:] in anchors(target), f"{path}: {link}{anchor}"


def anchors(path: Path) -> set[str]:
    """What the headings of a page are called in links."""
    from markdown.extensions.toc import slugify

    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {slugify(re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", r"\1", heading), "-") for heading in headings}


def test_make_has_the_targets_that_pages_name() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for path in pages():
        for block in blocks(path):
            for target in re.findall(r"^(?:\$ )?make ([\w-]+)", block.text, re.MULTILINE):
                assert re.search(rf"^{target}:", makefile, re.MULTILINE), (path, target)


def test_the_schema_on_the_page_is_the_one_in_the_folder() -> None:
    page = (ROOT / "docs/schemas.md").read_text(encoding="utf-8")
    schema = (ROOT / "docs/examples/posts/schema.toml").read_text(encoding="utf-8")
    assert schema.split("\n", 1)[1] in page


def test_the_page_tells_of_every_format() -> None:
    from micol.formats import FORMATS

    page = (ROOT / "docs/formats.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^### (\w+)$", page, re.MULTILINE)) == set(FORMATS)


def test_examples_are_what_their_pages_say() -> None:
    works = (ROOT / "docs/examples/papers/works.jsonl").read_text(encoding="utf-8").splitlines()
    known = {json.loads(line)["id"] for line in works}
    assert len(known) == len(works) == 32
    assert all(set(json.loads(line)["referenced_works"]) <= known for line in works)


def test_files_that_the_architecture_names_are_there() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+(?:\.py|/))`", page))
    assert len(named) > 40
    for name in named:
        assert any((folder / name).exists() for folder in (ROOT / "src/micol", ROOT)), name


def test_every_part_of_the_program_is_in_the_architecture() -> None:
    """Packages by name; modules of the first level, unless they only help one that is there."""
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    for path in (ROOT / "src/micol").iterdir():
        if path.is_dir() and (path / "__init__.py").exists():
            assert f"`{path.name}/" in page, path.name


def test_names_of_the_program_in_pages_exist() -> None:
    for path in pages():
        text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for name in re.findall(r"`(micol\.[A-Za-z_][\w.]*)[(`]", text):
            assert resolved(name), f"{path}: {name}"


def resolved(name: str) -> bool:
    """Whether a dotted name leads to something: modules as far as there are any, then attributes."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part, None)
        return found is not None
    return False


def test_numbers_of_the_choice_are_those_of_the_program() -> None:
    from micol.evidence.choice import JUDGED_PAIRS, LEAST_PAIRS

    page = (ROOT / "docs/choosing-paths.md").read_text(encoding="utf-8")
    assert f"{JUDGED_PAIRS:,} pairs are drawn" in page
    assert f"fewer than {LEAST_PAIRS} pairs" in page


@pytest.fixture(scope="module")
def measured() -> dict[str, list[str]]:
    """What each program of the benchmarks prints of the results that are committed."""
    found = {}
    results = ROOT / "benchmarks/results"
    for name, program, *options in (
        ("classifier", "classifier", "--table"),
        ("development", "classifier", "--table", "--output", str(results / "development.jsonl")),
        ("best", "best", "--table"),
        ("cpu", "best", "--table", "--output", str(results / "best_cpu.jsonl")),
        ("calibration", "calibration", "--table"),
        ("further_sources", "further_sources", "--table"),
        ("joined_names", "poorer", "--table", "--output", str(results / "joined_names.jsonl")),
        ("path_choice", "path_choice"),
        ("poorer", "poorer", "--table"),
        ("reader", "best", "--table", "--output", str(results / "best_reader.jsonl")),
    ):
        command = [sys.executable, str(ROOT / f"benchmarks/{program}.py"), *options]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        found[name] = done.stdout.splitlines()
    return found


@pytest.mark.parametrize(
    ("page", "programs"),
    [
        ("results", ["classifier", "development"]),
        ("best", ["best", "cpu", "reader", "classifier", "path_choice", "poorer", "joined_names"]),
    ],
)
def test_numbers_in_tables_are_those_that_were_measured(
    page: str, programs: list[str], measured: dict[str, list[str]]
) -> None:
    text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    data = "debian|elife|pubmed" + ("|wordnet|foldoc|gcloud" if "development" in programs else "|pypi")
    rows = [line for line in text.splitlines() if re.match(rf"\| ({data}) \|", line)]
    printed = {line for program in programs for line in measured[program]}
    assert len(rows) > 20
    for row in rows:
        assert row in printed, f"docs/{page}.md: not what was measured: {row}"


def test_where_data_are_poorer_is_what_was_measured(measured: dict[str, list[str]]) -> None:
    printed = "\n".join(measured["poorer"])
    assert printed in (ROOT / "benchmarks/results/poorer.md").read_text(encoding="utf-8")
    at_a_glance, _, hierarchy = printed.split("\n\n")
    page = (ROOT / "docs/best.md").read_text(encoding="utf-8")
    assert at_a_glance in page
    assert hierarchy in page


@pytest.mark.parametrize(("page", "program"), [("best", "further_sources"), ("calibration", "calibration")])
def test_whole_tables_are_what_was_measured(page: str, program: str, measured: dict[str, list[str]]) -> None:
    assert "\n".join(measured[program]) in (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")


def test_the_first_numbers_of_the_readme_are_those_that_were_measured(measured: dict[str, list[str]]) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for system in ("best", "untrained encoder"):
        scores = []
        for data in ("debian", "elife", "pubmed"):
            (row,) = [line for line in measured["best"] if line.startswith(f"| {data} | {system} |")]
            scores.append(row.split(" | ")[3].removeprefix("0"))
        assert " / ".join(scores) in readme, f"{system}: {scores}"
