"""The pages that work on the whole data set that ships, in a process beside that of the other pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from pages import ROOT
from readers import read_to_the_end
from test_docs import LARGE


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_the_page_runs(name: str, tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    (given / "src").symlink_to(ROOT / "src")
    read_to_the_end(ROOT / name, given, tmp_path / "folder")
