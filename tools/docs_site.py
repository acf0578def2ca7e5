"""What the site has beyond the pages of docs/: references from the program, results, formulas in MathML."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

from reference import commands_page, python_page

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
LINK = re.compile(r"(?<=\]\()([^)#\s:]+)(#[^)\s]*)?(?=\))")
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Adds the generated pages, and the files of the repository that pages refer to."""
    files.append(File.generated(config, "reference/commands.md", content=commands_page()))
    files.append(File.generated(config, "reference/python.md", content=python_page()))
    pages = list(files.documentation_pages())
    while pages:
        page = pages.pop()
        for target in outside(page.src_uri, page.content_string):
            if files.get_file_from_path(target) is None:
                added = File.generated(config, target, abs_src_path=str(ROOT / target))
                files.append(added)
                # What is referred to may refer on, such as a report to its figures.
                pages += [added] if added.is_documentation_page() else []
    return files


def outside(page: str, markdown: str) -> set[str]:
    """The files of the repository, outside docs/, that a page leads to."""
    found = set()
    for match in LINK.finditer(markdown):
        target = in_repository(page, match[1])
        if target is not None and not target.startswith("docs/") and (ROOT / target).is_file():
            found.add(target)
    return found


def in_repository(page: str, link: str) -> str | None:
    """Where a relative link leads to, seen from the repository's root; None for what lies outside it."""
    folder = posixpath.dirname(page)
    if (DOCS / page).exists():
        folder = posixpath.join("docs", folder)
    target = posixpath.normpath(posixpath.join(folder, link))
    return None if target.startswith("../") else target


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """On the site, docs/ is the root, and files from outside lie in it by their paths in the repository."""
    here = page.file.src_uri

    def moved(match: re.Match[str]) -> str:
        target = in_repository(here, match[1])
        if target is None:
            return match[0]
        return posixpath.relpath(target.removeprefix("docs/"), posixpath.dirname(here) or ".") + (
            match[2] or ""
        )

    return LINK.sub(moved, markdown)


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Formulas as MathML, which browsers show without any script."""
    return FORMULA.sub(
        lambda match: convert(unescaped(match[2]), display="block" if match[1] == "div" else "inline"), html
    )


def unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()
