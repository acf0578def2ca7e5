"""The report of a comparison, in Markdown and as one HTML file that needs nothing beside it."""

from __future__ import annotations

import html
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from micol.benchmark import figures
from micol.benchmark.conditions import Conditions
from micol.benchmark.results import Measured
from micol.benchmark.tables import (
    TABLE_2,
    TABLE_3,
    Table,
    deviation_table,
    expected_table,
    known_measures,
    main_rows,
    missing_table,
    paper_tables,
    path_rows,
    statistics_table,
)
from micol.files import replacing
from micol.progress import say

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 68rem; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; font-size: 14px }
th, td { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #ddd }
th:first-child, td:first-child { text-align: left }
thead th { border-bottom: 2px solid #888 } tr.group th { text-align: left; background: #f3f3f3 }
.scroll { overflow-x: auto } p.caption, li { color: #555; font-size: 14px }
svg { max-width: 100%; height: auto }
"""


@dataclass(frozen=True)
class Picture:
    name: str
    title: str
    figure: Figure


def sections(
    rows: Sequence[Measured], conditions: Conditions, statistics: Mapping[str, float]
) -> list[Table | Picture]:
    tables = paper_tables(rows, conditions)
    found: list[Table | Picture | None] = [statistics_table(statistics) if statistics else None, *tables]
    found += pictures(rows, conditions)
    found.append(missing_table(rows))
    found.append(expected_table([*rows, *main_rows(rows, conditions.report)], conditions))
    found.append(deviation_table(rows))
    return [part for part in found if part is not None]


def pictures(rows: Sequence[Measured], conditions: Conditions) -> list[Table | Picture | None]:
    if not any(row.runs for row in rows):
        return []
    try:
        drawn = {
            "systems": ("All systems", figures.overview(main_rows(rows, conditions.report))),
            "paths": ("Meta-paths and meta-graphs", figures.paths(path_rows(rows))),
            "combination": ("Appendix: top paths and their pairs together", figures.combination(rows)),
        }
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "matplotlib":
            raise
        say("matplotlib is not installed, so the report has no pictures; `--report-only` adds them elsewhere")
        return []
    return [Picture(name, title, figure) for name, (title, figure) in drawn.items() if figure is not None]


def write_report(
    rows: Sequence[Measured],
    conditions: Conditions,
    statistics: Mapping[str, float],
    machines: Sequence[str],
    output: Path,
) -> str:
    """Writes report.md, report.html, figures/ and expected.toml; returns the Markdown."""
    parts = sections(rows, conditions, statistics)
    for part in parts:
        if isinstance(part, Picture):
            with replacing(output / "figures" / f"{part.name}.png") as temporary:
                part.figure.savefig(temporary, format="png", dpi=130)
    head = heading(rows, machines)
    texts = {
        "report.md": as_markdown(conditions.title, head, parts),
        "report.html": as_html(conditions.title, head, parts),
        "expected.toml": as_expected(rows),
    }
    for name, text in texts.items():
        with replacing(output / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return texts["report.md"]


def heading(rows: Sequence[Measured], machines: Sequence[str]) -> list[str]:
    done = [row for row in rows if row.runs]
    runs = sum(len(row.runs) for row in done)
    lines = [f"{runs} runs of {len(done)} rows; {len(rows) - len(done)} not measured."]
    return lines + [f"Measured on {name}." for name in machines]


def as_markdown(title: str, head: Sequence[str], parts: Sequence[Table | Picture]) -> str:
    blocks = [f"# {title}", "\n".join(head)]
    for content in parts:
        if isinstance(content, Picture):
            blocks.append(f"## {content.title}\n![{content.title}](figures/{content.name}.png)")
        else:
            blocks.append(f"## {content.title}\n{markdown_table(content)}")
            blocks += [markdown(content.caption)] if content.caption else []
    return "\n\n".join(blocks) + "\n"


def markdown_table(table: Table) -> str:
    lines = [
        f"| {' | '.join(map(markdown, table.header))} |",
        f"| --- |{' ---: |' * (len(table.header) - 1)}",
    ]
    group = ""
    several = len({line.group for line in table.lines}) > 1
    for line in table.lines:
        if several and line.group != group:
            group = line.group
            lines.append(f"| *{group}* |{' |' * (len(table.header) - 1)}")
        cells = [
            f"**{markdown(text)}**" if at in line.best else markdown(text)
            for at, text in enumerate(line.cells)
        ]
        lines.append(f"| {markdown(line.name)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def markdown(text: str) -> str:
    """A text with nothing in it that Markdown would take for its own."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")


def as_html(title: str, head: Sequence[str], parts: Sequence[Table | Picture]) -> str:
    body = [f"<h1>{html.escape(title)}</h1>", *(f"<p>{html.escape(line)}</p>" for line in head)]
    for content in parts:
        body.append(f"<h2>{html.escape(content.title)}</h2>")
        if isinstance(content, Picture):
            body.append(svg(content.figure))
            continue
        body.append(f'<div class="scroll">{html_table(content)}</div>')
        if content.caption:
            body.append(f'<p class="caption">{html.escape(content.caption)}</p>')
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{html.escape(title)}</title>\n"
        f'<meta name="viewport" content="width=device-width">\n<style>{STYLE}</style>\n</head>\n<body>\n'
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def html_table(table: Table) -> str:
    lines = [
        "<table>",
        "<thead><tr>",
        *(f"<th>{html.escape(name)}</th>" for name in table.header),
        "</tr></thead>",
    ]
    group = ""
    several = len({line.group for line in table.lines}) > 1
    for line in table.lines:
        if several and line.group != group:
            group = line.group
            lines.append(
                f'<tr class="group"><th colspan="{len(table.header)}">{html.escape(group)}</th></tr>'
            )
        cells = [
            f"<b>{html.escape(text)}</b>" if at in line.best else html.escape(text)
            for at, text in enumerate(line.cells)
        ]
        lines.append(
            f"<tr><td>{html.escape(line.name)}</td>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        )
    return "\n".join([*lines, "</table>"])


def svg(figure: Figure) -> str:
    """The picture as text inside the page."""
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    text = stream.getvalue()
    return text[text.index("<svg") :]


def as_expected(rows: Sequence[Measured]) -> str:
    """The present means as an [expected] table, ready for a file of conditions."""
    lines = ["[expected]"]
    measures = known_measures(rows, (*TABLE_2, *TABLE_3[:-1]))
    for row in rows:
        if row.runs:
            scores = ", ".join(f'"{measure}" = {row.mean(measure):.4f}' for measure in measures)
            name = row.name.replace("\\", "\\\\").replace('"', '\\"')
            lines.append(f'"{name}" = {{ {scores} }}')
    return "\n".join(lines) + "\n"
