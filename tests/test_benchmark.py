"""micol benchmark end to end on a small world: runs that resume, results that merge, the release's format."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import world
from micol.benchmark.conditions import Conditions
from micol.benchmark.kept import KeptArrays
from micol.benchmark.results import ResultFolder
from micol.benchmark.run import chosen_rows, collect, in_order
from micol.benchmark.task import Task
from micol.cli.benchmark import command
from micol.errors import MicolError, UsageError

CONDITIONS = """
title = "A small world"
seeds = [0, 1]
base = "{base}"

[data]
docs = "docs.jsonl"
labels = "labels.jsonl"
test_ids = "test_ids.txt"

[settings.bi]
recipe = "paper"
pairs = 200
batch_size = 32
epochs = 1
learning_rate = 3e-3
keep_best = false
checkpoints = 0
max_tokens = 48
attention_dropout = false
bf16 = false
pooling = "mean"

[[systems]]
system = "bm25"

[[systems]]
system = "encoder"
max_tokens = 48
name = "Untuned"

[[systems]]
system = "encoder"
name = "SPECTER"
base = "allenai/specter"

[[systems]]
system = "micol"
path = ["P->P", "PAP", "PVP"]

[[systems]]
system = "micol"
combine = 2

[[systems]]
system = "match"
training = [24, 100000]
epochs = 2
pretraining_epochs = 1
least_steps = 1
dimension = 16
layers = 1

[expected]
"Untuned" = {{ "P@1" = 0.99 }}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path, labels_file: Path) -> Path:
    folder = tmp_path_factory.mktemp("benchmark")
    records = world.documents(300)
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "docs.jsonl").write_text(lines)
    (folder / "test_ids.txt").write_text("\n".join(record["id"] for record in records[240:]))
    shutil.copy(labels_file, folder / "labels.jsonl")
    (folder / "world.toml").write_text(CONDITIONS.format(base=tiny_bert))
    return folder


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments], catch_exceptions=False)


@pytest.fixture(scope="module")
def done(folder: Path) -> tuple[Path, Result]:
    """The whole benchmark, run once."""
    output = folder / "out"
    return output, invoke(folder / "world.toml", "-o", output)


def files(output: Path) -> dict[str, int]:
    return {
        str(path.relative_to(output)): path.stat().st_mtime_ns for path in output.glob("results/*/*.json")
    }


def test_all_rows_are_measured_or_say_why_not(done, folder):
    output, result = done
    assert result.exit_code == 0
    rows = collect(
        Conditions.read(folder / "world.toml"),
        Conditions.read(folder / "world.toml").rows,
        ResultFolder(output / "results"),
    )
    by_name = {row.name: row for row in rows}
    assert len(by_name["Untuned"].runs) == len(by_name["Retrieval alone"].runs) == 1
    assert len(by_name["MICoL (Bi-Encoder, P->P)"].runs) == 2
    assert by_name["MICoL (Bi-Encoder, P->P)"].mean("P@1") > by_name["Untuned"].mean("P@1")
    assert "--weights" in by_name["SPECTER"].why_not
    assert "100,000 labelled training documents" in by_name["MATCH (100K training documents)"].why_not
    combined = by_name["MICoL (Bi-Encoder, top 2 paths together)"]
    assert len(combined.runs) == 2
    best = sorted(
        ("P->P", "PAP", "PVP"), key=lambda path: -by_name[f"MICoL (Bi-Encoder, {path})"].mean("P@1")
    )
    assert combined.row.options["combine"] == tuple(best[:2])


def test_report_stands_in_the_folder_and_on_standard_output(done):
    output, result = done
    markdown = (output / "report.md").read_text()
    assert result.stdout == markdown
    for title in ("Table 1", "Table 2", "Table 3", "Table 4", "Not measured", "Expected scores", "Appendix"):
        assert title in markdown
    assert "off (P@1" in markdown
    page = (output / "report.html").read_text()
    assert page.count("<svg") == 3
    assert {path.name for path in (output / "figures").iterdir()} == {
        "systems.png", "paths.png", "combination.png",
    }  # fmt: skip


def test_what_is_there_is_not_run_again(done, folder):
    output, _ = done
    before = files(output)
    again = invoke(folder / "world.toml", "-o", output)
    assert again.exit_code == 0
    after = files(output)
    # Failures are tried anew: the weights may have come.
    assert {name for name in before if before[name] != after[name]} == {
        name for name in before if name.endswith(".failed.json")
    }


def test_a_run_that_was_stopped_goes_on(done, folder, tmp_path):
    output, _ = done
    text = files(output)
    shutil.copytree(output, tmp_path / "out")
    lost = next(
        path for path in sorted((tmp_path / "out/results").glob("micol-bi-encoder-p-to-p-*/seed-1.json"))
    )
    kept = json.loads(lost.read_text())
    lost.unlink()
    invoke(folder / "world.toml", "-o", tmp_path / "out", "--systems", "MICoL (Bi-Encoder, P->P)")
    assert json.loads(lost.read_text())["scores"] == kept["scores"]
    assert set(files(tmp_path / "out")) == set(text)


def test_other_options_make_another_result(done, folder, tmp_path):
    output, _ = done
    shutil.copytree(output, tmp_path / "out")
    changed = (folder / "world.toml").read_text().replace("pairs = 200", "pairs = 100")
    (folder / "changed.toml").write_text(changed)
    report = invoke(folder / "changed.toml", "-o", tmp_path / "out", "--report-only").stdout
    assert "| MICoL (Bi-Encoder, P->P) | not run yet |" in report
    assert "| Untuned | 1 |" in report


def test_time_that_is_over_stops_the_run_between_two_systems(folder, tmp_path):
    result = invoke(folder / "world.toml", "-o", tmp_path, "--limit-minutes", "0")
    assert result.exit_code == 0
    assert "0 minutes are over; 15 runs are left for another time" in result.stderr
    assert "not run yet" in result.stdout


def test_results_of_two_machines_merge(done, folder, tmp_path):
    output, _ = done
    one, other = tmp_path / "one", tmp_path / "other"
    for part, pattern in ((one, "m*"), (other, "[!m]*")):
        for path in output.glob(f"results/{pattern}/*"):
            target = part / path.relative_to(output)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    shutil.copytree(one, other, dirs_exist_ok=True)
    merged = invoke(folder / "world.toml", "-o", other, "--report-only").stdout
    whole = (output / "report.md").read_text()
    # Table 1 is counted where the data is.
    assert merged.split("## Table 2")[1] == whole.split("## Table 2")[1]


def test_results_of_other_data_do_not_mix(done, folder, tmp_path):
    output, _ = done
    shutil.copytree(output, tmp_path / "out")
    path = next((tmp_path / "out/results").glob("untuned*/seed-0.json"))
    content = json.loads(path.read_text())
    content["data"]["test"] = "another"
    path.write_text(json.dumps(content))
    with pytest.raises(MicolError, match=r"come from different data \(test\)"):
        invoke(folder / "world.toml", "-o", tmp_path / "out", "--report-only")


def test_a_result_that_is_none_is_told(done, folder, tmp_path):
    output, _ = done
    shutil.copytree(output, tmp_path / "out")
    path = next((tmp_path / "out/results").glob("untuned*/seed-0.json"))
    path.write_text("{")
    with pytest.raises(MicolError, match=r"seed-0\.json: is no result of `micol benchmark`"):
        invoke(folder / "world.toml", "-o", tmp_path / "out", "--report-only")


def test_rows_and_seeds_can_be_chosen(folder):
    conditions = Conditions.read(folder / "world.toml")
    assert [row.name for row in chosen_rows(conditions, ["MICoL*P->P)", "bm25"])] == [
        "Retrieval alone",
        "MICoL (Bi-Encoder, P->P)",
    ]
    left = chosen_rows(conditions, [], ["micol", "match"])
    assert [row.name for row in left] == ["Retrieval alone", "Untuned", "SPECTER"]
    with pytest.raises(UsageError, match=r"'SVM': no row of .* fits; there are Retrieval alone, Untuned"):
        chosen_rows(conditions, ["SVM"])
    with pytest.raises(UsageError, match="the conditions have 0, 1"):
        invoke(folder / "world.toml", "--seeds", "7")
    with pytest.raises(UsageError, match="whole numbers with commas"):
        invoke(folder / "world.toml", "--seeds", "a")
    with pytest.raises(UsageError, match="--weights must be given as ID=FOLDER"):
        invoke(folder / "world.toml", "--weights", "x")


def test_the_first_seed_of_all_rows_comes_first_and_what_waits_last(folder):
    conditions = Conditions.read(folder / "world.toml")
    order = [(work.row.name, work.seed) for work in in_order(conditions, conditions.rows, (0, 1))]
    seeds = [seed for name, seed in order if "together" not in name]
    assert seeds == sorted(seeds)
    assert [name for name, _ in order[-2:]] == 2 * ["MICoL (Bi-Encoder, top 2 paths together)"]
    assert sum(name == "Untuned" for name, _ in order) == 1
    later = in_order(conditions, conditions.rows, (1,))
    assert "Untuned" not in [work.row.name for work in later]


def test_kept_arrays_survive_damage(tmp_path):
    import numpy as np

    kept = KeptArrays(tmp_path)
    made = []

    def make():
        made.append(1)
        return {"a": np.arange(3)}

    for _ in range(2):
        assert kept.get("x", {"seed": 1}, make)["a"].tolist() == [0, 1, 2]
    kept.get("x", {"seed": 2}, make)
    assert len(made) == 2
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:20])
    assert kept.get("x", {"seed": 1}, make)["a"].tolist() == [0, 1, 2]
    assert len(made) == 3


RELEASE = Path(__file__).parents[1] / "benchmarks/conditions"


def save_release(folder: Path, name: str) -> None:
    """The small world in the files of the original release, phrases joined by underscores."""
    records = world.documents(300)
    cited_by: dict[str, list[str]] = {}
    for record in records:
        for target in record["references"]:
            cited_by.setdefault(target, []).append(record["id"])
    labels = world.label_records()
    for part, chosen in (("train", records[:240]), ("test", records[240:])):
        with (folder / f"{name}_{part}.json").open("w") as file:
            for record in chosen:
                paper = {
                    "paper": record["id"],
                    "text": f"{record['title']} {record['abstract']}".replace(" ", "_", 2),
                    "venue": record["venue"],
                    "author": record["authors"],
                    "reference": record["references"],
                    "citation": cited_by.get(record["id"], []),
                    "label": record["labels"],
                }
                file.write(json.dumps(paper) + "\n")
    with (folder / f"{name}_label.json").open("w") as file:
        for label in labels:
            entry = {"label": label["id"], "name": label["names"], "definition": label.get("description", "")}
            entry["combined_text"] = f"{label['names'][0]}. {entry['definition']}"
            file.write(json.dumps(entry) + "\n")
    with (folder / f"{name}_candidates.json").open("w") as file:
        for record in records[240:]:
            line = {
                "paper": record["id"],
                "label": record["labels"],
                "predicted_label": [e["id"] for e in labels],
            }
            file.write(json.dumps(line) + "\n")


@pytest.mark.parametrize(("conditions", "name"), [("mag-cs", "MAG"), ("pubmed-release", "PubMed")])
def test_the_release_runs_unchanged(conditions, name, tmp_path, tiny_bert):
    save_release(tmp_path, name)
    result = invoke(
        RELEASE / f"{conditions}.toml", "--data", tmp_path, "-o", tmp_path / "out", "--seeds", "0",
        "--weights", f"allenai/scibert_scivocab_uncased={tiny_bert}",
        "--systems", "encoder", "--systems", "doc2vec", "--systems", "entail", "--systems", "match",
        "--systems", "MICoL (Bi-Encoder, P->P)", "--skip", "MATCH (all*",
    )  # fmt: skip
    assert result.exit_code == 0
    measured = {line.split(" | ")[0]: line for line in result.stdout.splitlines() if line.startswith("| ")}
    for system in ("Doc2Vec", "SciBERT", "MICoL (Bi-Encoder, P->P)"):
        # Expected are the paper's scores, on other data.
        assert " off " in measured[f"| {system}"] or " near " in measured[f"| {system}"], measured[
            f"| {system}"
        ]
    assert "| SPECTER | not measured |" in result.stdout
    assert (
        "| ZeroShot-Entail | FacebookAI/roberta-large-mnli: the NLI model cannot be loaded" in result.stdout
    )
    scores = json.loads(
        next((tmp_path / "out/results").glob("micol-bi-encoder-p-to-p-*/seed-0.json")).read_text()
    )
    assert scores["scores"]["P@1"] > 0.3


def test_underscores_of_the_release_are_spaces(tmp_path):
    save_release(tmp_path, "MAG")
    conditions = Conditions.read(RELEASE / "mag-cs.toml", tmp_path)
    task = Task.read(conditions.data, conditions.candidates, KeptArrays(tmp_path / "cache"))
    assert not any("_" in text for text in [*task.test_texts, *task.train.texts()])
    assert len(task.train) == 240
    assert len(task.candidates.labels) == len(task.test) * len(task.labels)
