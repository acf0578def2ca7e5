"""Tables of a comparison: means, the best, stars as the paper's tests give them, and verdicts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from scipy import stats

from micol.baselines.contrastive import Micol
from micol.baselines.doc2vec import Doc2Vec
from micol.baselines.eda import Eda
from micol.baselines.match import Match
from micol.baselines.untuned import UntunedEncoder
from micol.benchmark.conditions import MEASURES, Candidates, Conditions, DataFiles, Report, Row
from micol.benchmark.figures import combination, overview, paths
from micol.benchmark.report import as_expected, as_html, as_markdown, sections
from micol.benchmark.results import Measured
from micol.benchmark.tables import main_rows, paper_tables, reference_of, row_verdict, verdict


def row(kind: str, system: object, *scores: float, name: str = "", report_as: str = "") -> Measured:
    """A row whose every measure has the same score in a run."""
    title = name or system.title  # type: ignore[attr-defined]
    runs = [dict.fromkeys(MEASURES, score) for score in scores]
    return Measured(Row(title, kind, system, report_as), runs, "" if runs else "no weights")  # type: ignore[arg-type]


def conditions(rows: list[Measured], expected: dict | None = None, **report) -> Conditions:
    data = DataFiles([Path("docs")], Path("labels"))
    made = tuple(measured.row for measured in rows)
    return Conditions(
        "c.toml", "Trial", (0, 1, 2), data, Candidates(), made, Report(**report), expected or {}
    )


OURS = row("micol", Micol("cross", "P->P<-P"), 0.70, 0.71, 0.72)
ROWS = [
    row("doc2vec", Doc2Vec(), 0.50, 0.51, 0.505),
    row("encoder", UntunedEncoder(), 0.69),
    row("encoder", UntunedEncoder(base="allenai/specter"), name="SPECTER"),
    row("eda", Eda(), 0.40, 0.41, 0.42, report_as="EDA"),
    row("eda", Eda("cross"), 0.69, 0.70, 0.71, report_as="EDA"),
    row("micol", Micol("bi", "PVP"), 0.60, 0.61, 0.62),
    row("micol", Micol("bi", "PAP"), 0.64, 0.65, 0.66),
    OURS,
    row("match", Match(), 0.90, 0.91, 0.92),
]


def cells(table, name: str) -> tuple[str, ...]:
    return next(line.cells for line in table.lines if line.name == name)


def test_stars_are_those_of_the_papers_tests():
    table = paper_tables(ROWS, conditions(ROWS))[0]
    assert cells(table, "Doc2Vec")[1] == "0.5050**"
    assert stats.ttest_ind(OURS.values("P@1"), [0.50, 0.51, 0.505]).pvalue < 0.01
    # EDA is a point below with the same spread: no test would call that better.
    assert cells(table, "EDA")[1] == "0.7000"
    assert stats.ttest_ind(OURS.values("P@1"), [0.69, 0.70, 0.71]).pvalue > 0.05
    # Against a single run the Z-test: 0.02 over 0.01 / sqrt(3) is 3.46.
    assert cells(table, "Untuned encoder")[1] == "0.6900**"
    assert 2 * stats.norm.sf(0.02 / (0.01 / 3**0.5)) < 0.01
    assert cells(table, OURS.name)[1] == "0.7100"
    # Nothing says that MATCH, which is better, is worse.
    assert cells(table, "MATCH (all training documents)")[1] == "0.9100"


def test_best_is_bold_among_zero_shot_systems_and_supervised_ones_stand_apart():
    table = paper_tables(ROWS, conditions(ROWS))[0]
    best = {line.name for line in table.lines if line.best}
    assert best == {OURS.name}
    assert table.lines[-1].group == "Supervised"
    assert {line.group for line in table.lines[:-1]} == {"Zero-shot"}


def test_main_tables_show_chosen_paths_and_the_better_of_two_architectures():
    names = [measured.name for measured in main_rows(ROWS, Report(paths=("P->P<-P",)))]
    assert names == [
        "Doc2Vec",
        "Untuned encoder",
        "SPECTER",
        "EDA",
        "MICoL (Bi-Encoder, PAP)",
        OURS.name,
        "MATCH (all training documents)",
    ]
    assert "MICoL (Bi-Encoder, PVP)" in [m.name for m in main_rows(ROWS, Report(paths=("PVP",)))]
    mine = [*ROWS, row("micol", Micol("bi", "PVP"), 0.1, name="my own")]
    assert "my own" in [m.name for m in main_rows(mine, Report(paths=()))]


def test_rows_that_were_not_measured_say_so():
    tables = paper_tables(ROWS, conditions(ROWS))
    assert cells(tables[0], "SPECTER")[0] == "not measured"
    markdown = as_markdown("Trial", [], sections(ROWS, conditions(ROWS), {}))
    assert "| SPECTER | no weights |" in markdown


def test_table_3_has_the_ratio_and_table_4_the_paths():
    _, third, fourth = paper_tables(ROWS, conditions(ROWS))
    assert third.header[-1] == "PSP@1/P@1"
    assert cells(third, OURS.name)[-1] == "0.71"
    assert [line.name for line in fourth.lines] == [
        "Untuned encoder",
        "MICoL (Bi-Encoder, PVP)",
        "MICoL (Bi-Encoder, PAP)",
        OURS.name,
    ]
    assert cells(fourth, "MICoL (Bi-Encoder, PVP)")[1].endswith("**")


def test_table_4_says_which_paths_were_put_together():
    whole = row("micol", Micol("bi", combine=("PVP", "PAP")), 0.63, name="top 2")
    assert paper_tables([*ROWS, whole], conditions([*ROWS, whole]))[2].caption.endswith(
        "top 2: pairs of PVP, PAP."
    )


def test_without_labels_of_training_documents_there_is_no_table_3():
    bare = [
        replace(
            measured,
            runs=[
                {name: run[name] for name in ("P@1", "P@3", "P@5", "NDCG@3", "NDCG@5")}
                for run in measured.runs
            ],
        )
        for measured in ROWS
    ]
    expected = {"Doc2Vec": {"P@1": 0.60, "PSP@1": 0.52}}
    markdown = as_markdown("Trial", [], sections(bare, conditions(bare, expected), {}))
    assert "Table 2" in markdown
    assert "Table 4" in markdown
    assert "PSP@1" not in markdown
    assert "PSP@1" not in as_expected(bare)


def test_reference_is_the_named_row_or_the_best_micol():
    assert reference_of(ROWS, Report()) is OURS
    assert reference_of(ROWS, Report(reference="Doc2Vec")) is ROWS[0]
    assert reference_of(ROWS, Report(reference="SPECTER")) is None
    assert reference_of(ROWS[:3], Report()) is None


@pytest.mark.parametrize(
    ("score", "word"),
    [(0.5, "OK"), (0.51, "OK"), (0.49, "OK"), (0.512, "near"), (0.47, "near"), (0.46, "off"), (0.6, "off")],
)
def test_verdicts(score, word):
    assert verdict(score, 0.5, Report()) == word


def test_the_verdict_on_a_row_is_that_on_its_worst_score():
    measured = row("doc2vec", Doc2Vec(), 0.5)
    assert row_verdict(measured, {"P@1": 0.5, "P@3": 0.505}, ("P@1", "P@3"), Report()) == "OK"
    assert row_verdict(measured, {"P@1": 0.5, "P@3": 0.6}, ("P@1", "P@3"), Report()) == "off (P@3 -0.100)"
    assert row_verdict(measured, {"P@1": 0.5, "P@3": 0.6}, ("P@1",), Report()) == "OK"
    assert row_verdict(measured, {}, ("P@1",), Report()) == ""
    assert row_verdict(replace(measured, runs=[]), {"P@1": 0.5}, ("P@1",), Report()) == ""


def test_expected_scores_stand_beside_the_measured_ones():
    expected = {"EDA": {"P@1": 0.70}, "Doc2Vec": {"P@1": 0.60, "PSP@1": 0.52}}
    made = conditions(ROWS, expected)
    tables = paper_tables(ROWS, made)
    assert cells(tables[0], "EDA")[-1] == "OK"
    assert cells(tables[0], "Doc2Vec")[-1] == "off (P@1 -0.095)"
    assert cells(tables[1], "Doc2Vec")[-1] == "near (PSP@1 -0.015)"
    markdown = as_markdown("Trial", [], sections(ROWS, made, {}))
    assert "| Doc2Vec | P@1 | 0.5050 | 0.6000 | -0.0950 | off |" in markdown


def test_markdown_and_html_keep_what_would_be_markup():
    parts = sections(ROWS, conditions(ROWS), {"labels": 3, "labels a document": 2.5})
    markdown = as_markdown("A <b>", ["Here."], parts)
    assert "| MICoL (Cross-Encoder, P->P&lt;-P) | 3 | **0.7100** |" in markdown
    assert "0.5050\\*\\*" in markdown
    assert "| labels a document | 2.50 |" in markdown
    page = as_html("A <b>", ["Here."], parts)
    assert "<h1>A &lt;b&gt;</h1>" in page
    assert "P-&gt;P&lt;-P" in page
    assert "<svg" in page
    # Nothing is loaded from elsewhere: what addresses there are name the SVG format.
    assert "src=" not in page
    assert "<link" not in page


def test_without_matplotlib_there_are_tables_all_the_same(monkeypatch, capsys):
    import sys

    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    parts = sections(ROWS, conditions(ROWS), {})
    assert "matplotlib is not installed" in capsys.readouterr().err
    assert len(as_markdown("Trial", [], parts)) > 1000


def test_present_means_can_be_pasted_as_expected_ones():
    import tomllib

    pasted = tomllib.loads(as_expected(ROWS))["expected"]
    assert pasted[OURS.name]["P@1"] == 0.71
    assert "SPECTER" not in pasted


def test_figures_show_what_there_is():
    whole = row("micol", Micol("bi", combine=("PVP", "PAP")), 0.63, 0.64, 0.65)
    figure = combination([*ROWS, whole])
    assert figure is not None
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["PVP", "PAP", "together"]
    assert combination(ROWS) is None
    shown = paths([*ROWS, whole])
    assert shown is not None
    assert [tick.get_text() for tick in shown.axes[0].get_xticklabels()] == ["PVP", "PAP", "P->P<-P"]
    assert paths(ROWS[:3]) is None
    assert len(overview(ROWS).axes) == 2
