"""The command: tables, JSON, files, and a sentence for everything that is wrong with its input."""

import csv
import json
from functools import partial

import pytest
from click.testing import CliRunner

from micol import evaluate
from micol.cli.evaluate import command
from micol.errors import MicolError
from micol.scoreboard import system_names
from processes import invoked

run = partial(invoked, command)

GOLD = {f"d{i}": [f"l{i % 3}", f"l{3 + i % 2}"] for i in range(8)}
GOLD["bare"] = []
TRAIN = {f"t{i}": [f"l{i % 5}"] for i in range(20)}


def write(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def write_documents(path, labels):
    return write(path, [{"id": d, "title": "t", "labels": ids, "venue": 3} for d, ids in labels.items()])


def write_predictions(path, rankings):
    return write(
        path,
        [
            {
                "id": d,
                "labels": [{"id": label, "name": label, "score": -rank} for rank, label in enumerate(row)],
            }
            for d, row in rankings.items()
        ],
    )


@pytest.fixture
def files(tmp_path):
    good = {d: [*labels, "l9"] for d, labels in GOLD.items() if labels}
    poor = {d: ["l9", "l8", labels[0]] for d, labels in GOLD.items() if labels}
    return {
        "docs": write_documents(tmp_path / "docs.jsonl", GOLD),
        "train": write_documents(tmp_path / "train.jsonl", TRAIN),
        "good": write_predictions(tmp_path / "good.jsonl", good),
        "poor": write_predictions(tmp_path / "poor.jsonl", poor),
        "labels": write(
            tmp_path / "labels.jsonl", [{"id": f"l{i}", "names": [f"Label {i}"]} for i in range(10)]
        ),
        "folder": tmp_path,
    }


def test_json_gives_the_scores_of_the_library(files):
    found = json.loads(run(files["good"], files["docs"], "--train-docs", files["train"], "--json").stdout)
    with pytest.warns(UserWarning, match="without gold labels"):
        expected = evaluate({d: [*ids, "l9"] for d, ids in GOLD.items() if ids}, GOLD, TRAIN)
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-12)
    assert found["PSP@1/P@1"] == pytest.approx(expected["PSP@1"] / expected["P@1"])
    assert (found["documents"], found["documents_without_gold_labels"]) == (8, 1)
    assert found["training_documents"] == 20
    assert found["warnings"] == []
    assert sum(part["assignments"] for part in found["slices"]) == 16


def test_propensity_scores_need_training_documents(files):
    found = json.loads(run(files["good"], files["docs"], "--json").stdout)
    assert "P@1" in found
    assert not any(name.startswith("PS") for name in found)


def test_tables_fit_a_terminal(files):
    result = run(
        files["good"],
        files["docs"],
        "--train-docs",
        files["train"],
        "--against",
        files["poor"],
        "--annif-names",
    )
    assert "documents judged: 8, with 2.00 gold labels each, of 5 different ones" in result.stdout
    assert "documents without gold labels, left out: 1" in result.stdout
    assert "0.0000**" in result.stdout  # P@1 of the poor system
    assert "Precision@5" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert result.stderr == ""


def test_stars_turn_to_plusses_where_the_other_system_is_better(files):
    assert "1.0000++" in run(files["poor"], files["docs"], "--against", files["good"]).stdout


def test_runs_of_several_seeds(files):
    folder = files["folder"]
    runs = []
    for seed in range(3):
        ranking = {d: (ids if int(d[1]) % 4 > seed else ids[::-1]) for d, ids in GOLD.items() if ids}
        ranking["d7"] = ["l9"] * (seed > 1)
        runs.append(write_predictions(folder / f"run{seed}.jsonl", ranking))
    arguments = [",".join(runs), files["docs"], "--against", files["poor"], "--against", ",".join(runs[:2])]
    result = run(*arguments)
    assert "run x3 against poor: 10,000 paired bootstrap resamples; Z-test over 3 and 1 runs" in result.stdout
    assert (
        "run x3 against run x2: 10,000 paired bootstrap resamples; t-test over 3 and 2 runs" in result.stdout
    )
    found = json.loads(run(*arguments, "--json").stdout)
    assert found["P@5"] == pytest.approx(sum(one["P@5"] for one in found["runs"]) / 3)
    assert set(found["standard_deviations"]) == set(found["runs"][0])
    comparison = found["against"][0]["comparison"]["P@3"]
    assert comparison["difference"] == pytest.approx(found["P@3"] - found["against"][0]["P@3"])
    assert comparison["test"] == "Z-test"


def test_single_runs_are_compared_by_bootstrap_alone(files):
    found = json.loads(run(files["good"], files["docs"], "--against", files["poor"], "--json").stdout)
    comparison = found["against"][0]["comparison"]["P@1"]
    assert (comparison["test"], comparison["test_p"], comparison["stars"]) == (None, None, "**")
    assert comparison["bootstrap_p"] < 0.01


def test_per_label_report_and_plot_and_output(files):
    folder = files["folder"]
    result = run(
        *(files["good"], files["docs"], "--labels", files["labels"], "--train-docs", files["train"]),
        *("--per-label", folder / "l.csv", "--plot", folder / "p.png", "-o", folder / "scores.txt"),
        *("--against", files["poor"]),
    )
    assert result.stdout == ""
    assert (folder / "scores.txt").read_text().startswith("documents judged: 8")
    assert (folder / "p.png").read_bytes().startswith(b"\x89PNG")
    with (folder / "l.csv").open(newline="") as file:
        rows = {row["label"]: row for row in csv.DictReader(file)}
    assert rows["l3"]["name"] == "Label 3"
    assert rows["l3"]["training_documents"] == "4"
    assert rows["l9"]["suggested@5"] == "8"


def test_only_the_listed_documents_are_judged(files):
    ids = files["folder"] / "ids.txt"
    ids.write_text("d0\nd1\n\nnowhere\n")
    result = run(files["good"], files["docs"], "--ids", ids, "--json")
    found = json.loads(result.stdout)
    assert found["documents"] == 2
    assert found["warnings"] == [
        f"{ids}: ids that no document of {files['docs']} has, left out: 1, such as 'nowhere'"
    ]
    assert "warning: " in result.stderr


def test_judged_documents_are_no_training_documents(files):
    ids = files["folder"] / "ids.txt"
    ids.write_text("d0\nd1\n")
    both = json.loads(
        run(files["good"], files["docs"], "--ids", ids, "--train-docs", files["docs"], "--json").stdout
    )
    assert both["training_documents"] == 7
    assert both["warnings"][0].endswith("not counted as training documents: 2 of 9")


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ({"d0": ["l0"]}, "without predictions: 7 of 8"),
        ({**{d: ["l0"] for d in GOLD}, "q": ["l0"]}, "not among those to judge: 1, such as 'q'"),
        ({d: ["l0", "l0"] for d in GOLD}, "labels repeated in the list of their document: 9"),
        ({d: ["l77"] for d in GOLD}, "lacks: 1, such as 'l77'"),
    ],
)
def test_odd_predictions_are_told(files, rows, sentence):
    odd = write_predictions(files["folder"] / "odd.jsonl", rows)
    result = run(odd, files["docs"], "--labels", files["labels"], "--json")
    assert sentence in result.stderr
    assert any(sentence in warning for warning in json.loads(result.stdout)["warnings"])


def test_a_label_space_that_lacks_gold_labels_is_told(files):
    some = write(files["folder"] / "some.jsonl", [{"id": "l0", "names": ["L"]}])
    stderr = run(files["good"], files["docs"], "--labels", some).stderr
    assert "gold labels that it lacks: 4 of 5, such as 'l3', and 81.2% of all gold assignments" in stderr
    none = write(files["folder"] / "none.jsonl", [{"id": "other", "names": ["L"]}])
    with pytest.raises(MicolError, match="holds none of the gold labels"):
        run(files["good"], files["docs"], "--labels", none)


def test_bad_input_stops_with_a_sentence(files):
    folder = files["folder"]
    bad = folder / "bad.jsonl"
    bad.write_text('{"id": "d0", "labels": [{"id": "l0", "score": "high"}]}\n')
    with pytest.raises(MicolError, match=r"bad\.jsonl:1: the score of label 'l0' must be a number"):
        run(bad, files["docs"])
    with pytest.raises(MicolError, match="no such file"):
        run(folder / "missing.jsonl", files["docs"])
    with pytest.raises(MicolError, match="none of its 20 documents"):
        run(write_predictions(folder / "t.jsonl", TRAIN), files["docs"])
    ids = folder / "ids.txt"
    ids.write_text("nobody\n")
    with pytest.raises(MicolError, match="lists no document of"):
        run(files["good"], files["docs"], "--ids", ids)
    unlabelled = write_documents(folder / "unlabelled.jsonl", {"x": [], "y": []})
    with pytest.raises(MicolError, match="no training document has labels"):
        run(files["good"], files["docs"], "--train-docs", unlabelled)
    with pytest.raises(MicolError, match="all of its documents are judged here"):
        run(files["good"], files["docs"], "--train-docs", files["docs"])
    result = CliRunner().invoke(command, [files["good"], files["docs"], "--plot", "p.doc"])
    assert result.exit_code == 2
    assert ".png, .svg, .pdf" in result.stderr


def test_names_tell_systems_apart():
    assert system_names([["a/run0.jsonl.gz", "a/run1.jsonl.gz"], ["b/bm25.jsonl"]]) == ["run x2", "bm25"]
    assert system_names([["a/p.jsonl"], ["b/p.jsonl"]]) == ["a/p", "b/p"]
    assert system_names([["p.jsonl"], ["p.jsonl"]]) == ["1: p", "2: p"]
    assert system_names([["0/p.jsonl", "1/p.jsonl"]]) == ["p x2"]
    (name,) = system_names([["a-very-long-name-for-a-system.jsonl"]])
    assert len(name) == 18
