"""Files of conditions: what they may say, and what is said about what they may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from micol.baselines.contrastive import Micol
from micol.baselines.match import Match
from micol.benchmark.conditions import Candidates, Conditions
from micol.errors import MicolError

SHIPPED = sorted((Path(__file__).parents[1] / "benchmarks/conditions").glob("*.toml"))
DATA = '[data]\ndocs = "docs.jsonl"\nlabels = "labels.jsonl"\ntest_ids = "ids.txt"\n'
SYSTEM = '[[systems]]\nsystem = "bm25"\n'


def read(tmp_path: Path, text: str, folder: str | None = None) -> Conditions:
    path = tmp_path / "conditions.toml"
    path.write_text(text, encoding="utf-8")
    return Conditions.read(path, folder)


def test_files_lie_beside_the_conditions_or_where_the_caller_says(tmp_path):
    text = f'{DATA}folder = "data"\nskip_bad = true\n{SYSTEM}'
    data = read(tmp_path, text).data
    assert data.docs == [tmp_path / "data/docs.jsonl"]
    assert data.test_ids == tmp_path / "data/ids.txt"
    assert data.skip_bad
    assert read(tmp_path, text, "/elsewhere").data.labels == Path("/elsewhere/labels.jsonl")


def test_compressed_files_take_the_place_of_plain_ones(tmp_path):
    (tmp_path / "docs.jsonl.zst").touch()
    data = read(tmp_path, DATA + SYSTEM).data
    assert data.docs == [tmp_path / "docs.jsonl.zst"]
    assert data.labels == tmp_path / "labels.jsonl"


def test_a_list_of_values_makes_a_row_for_each(tmp_path):
    conditions = read(
        tmp_path,
        f"""seeds = [3, 4]
{DATA}
[settings.bi]
recipe = "paper"
pairs = 100
[settings.cross]
pairs = 50
[[systems]]
system = "micol"
architecture = ["bi", "cross"]
path = ["P->P", "PAP"]
[[systems]]
system = "micol"
combine = ["P->P", "PAP"]
settings = {{ pairs = 70 }}
[[systems]]
system = "micol"
name = "other recipe"
path = "PAP"
settings = {{ recipe = "best", epochs = 2 }}
[[systems]]
system = "match"
training = [10000, "all"]
name = "MATCH with {{training}}"
""",
    )
    names = [row.name for row in conditions.rows]
    assert names == [
        "MICoL (Bi-Encoder, P->P)",
        "MICoL (Bi-Encoder, PAP)",
        "MICoL (Cross-Encoder, P->P)",
        "MICoL (Cross-Encoder, PAP)",
        "MICoL (Bi-Encoder, P->P and PAP)",
        "other recipe",
        "MATCH with 10000",
        "MATCH with all",
    ]
    systems = [row.system for row in conditions.rows]
    assert systems[0] == Micol(path="P->P", settings={"recipe": "paper", "pairs": 100})
    assert systems[3] == Micol("cross", "PAP", settings={"pairs": 50})
    assert systems[4] == Micol(combine=("P->P", "PAP"), settings={"recipe": "paper", "pairs": 70})
    assert systems[5] == Micol(path="PAP", settings={"recipe": "best", "epochs": 2})
    assert systems[6] == Match(training=10_000)
    assert conditions.seeds == (3, 4)


def test_candidates_are_searched_for_or_read(tmp_path):
    assert read(tmp_path, DATA + SYSTEM).candidates == Candidates(bm25_top=50)
    found = read(tmp_path, f"{DATA}{SYSTEM}[candidates]\nbm25_threshold = 400\n").candidates
    assert (found.bm25_top, found.bm25_threshold) == (None, 400)
    found = read(tmp_path, f'{DATA}{SYSTEM}[candidates]\nfile = "c.json"\n').candidates
    assert found.file == tmp_path / "c.json"
    assert found.as_dict() == {"file": "c.json"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title = ", "not valid TOML"),
        (SYSTEM, r"\[data\] is missing"),
        (DATA, r"\[\[systems\]\] must be there at least once"),
        (DATA + SYSTEM + "[other]\n", "unknown key other; there are base, candidates, data"),
        (DATA + "colour = 1\n" + SYSTEM, "unknown key data.colour"),
        (DATA + 'test = "t.jsonl"\n' + SYSTEM, "either test .* or test_ids"),
        ("data = 3\n" + SYSTEM, r"\[data\] must be a table, got 3"),
        (DATA.replace('"docs.jsonl"', "7") + SYSTEM, "data.docs must be a text or a list, .*got 7"),
        (
            DATA + SYSTEM + '[[systems]]\nsystem = "svm"\n',
            r"systems\[2\].system: 'svm' is no system; there are",
        ),
        (DATA + SYSTEM + "[[systems]]\n", r"systems\[2\].system must be a text, got None"),
        (DATA + SYSTEM + "colour = 1\n", r"unknown key systems\[1\].colour"),
        (DATA + SYSTEM + SYSTEM, r"systems\[2\]: a row before it is called 'Retrieval alone' too"),
        (
            DATA + '[[systems]]\nsystem = "match"\nepochs = "many"\n',
            r"systems\[1\].epochs must be a whole number",
        ),
        (
            DATA + '[[systems]]\nsystem = "match"\nepochs = true\n',
            r"systems\[1\].epochs must be a whole number",
        ),
        (DATA + '[[systems]]\nsystem = "micol"\n', r"systems\[1\]: micol needs either a path or combine"),
        (
            DATA + '[[systems]]\nsystem = "micol"\npath = "PAP"\nsettings = { colour = 1 }\n',
            "unknown setting 'colour'",
        ),
        (
            DATA + '[[systems]]\nsystem = "micol"\npath = "PAP"\nname = "{colour}"\n',
            "may hold options in braces",
        ),
        (DATA + SYSTEM + '[expected]\n"MICoL" = { "P@1" = 0.5 }\n', "expected: no row is called 'MICoL'"),
        (
            DATA + SYSTEM + '[expected]\n"Retrieval alone" = { "F@1" = 0.5 }\n',
            "unknown key expected.Retrieval alone.F@1",
        ),
        (
            DATA + SYSTEM + '[expected]\n"Retrieval alone" = { "P@1" = "high" }\n',
            "expected.Retrieval alone.P@1 must be a number",
        ),
        (DATA + SYSTEM + '[report]\nreference = "X"\n', "report.reference: no row is called 'X'"),
        (DATA + SYSTEM + "[report]\nok = 0.5\n", "report.ok must be above 0 and not above report.near"),
        ("seeds = []\n" + DATA + SYSTEM, "seeds must be different whole numbers"),
        ("seeds = [1, 1]\n" + DATA + SYSTEM, "seeds must be different whole numbers"),
        (DATA + SYSTEM + '[candidates]\nfile = "c"\nbm25_top = 3\n', "candidates.file stands alone"),
        (DATA + SYSTEM + "[settings.tri]\n", "unknown key settings.tri"),
    ],
)
def test_what_is_wrong_is_told_with_the_file_and_the_key(tmp_path, text, message):
    with pytest.raises(MicolError, match=rf"conditions\.toml: .*{message}"):
        read(tmp_path, text)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_conditions_can_be_read(path):
    conditions = Conditions.read(path)
    kinds = {row.kind for row in conditions.rows}
    assert kinds >= {"doc2vec", "encoder", "entail", "eda", "uda", "micol", "match"}
    paths = {
        (row.options["architecture"], row.options["path"]) for row in conditions.rows if row.kind == "micol"
    }
    assert len({path for architecture, path in paths if architecture == "bi"} - {""}) >= 10
    assert conditions.seeds == (0, 1, 2)


def test_five_are_shipped():
    assert {path.stem for path in SHIPPED} == {"debian", "elife", "mag-cs", "pubmed", "pubmed-release"}


DOCS = Path(__file__).parents[1] / "docs/benchmark.md"


def example(language: str) -> str:
    return DOCS.read_text(encoding="utf-8").split(f"```{language}\n")[1].split("```")[0]


def test_the_documented_conditions_can_be_read(tmp_path):
    conditions = read(tmp_path, example("toml"))
    assert len(conditions.rows) == 24
    assert conditions.rows[1].options["base"] == "allenai/scibert_scivocab_uncased"


def test_every_system_is_documented():
    from micol.benchmark.registry import SYSTEMS

    text = DOCS.read_text(encoding="utf-8")
    assert all(f"| `{kind}` |" in text for kind in SYSTEMS)
