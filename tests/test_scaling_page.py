"""The page on scaling: its tables are those that the measured rates give."""

from __future__ import annotations

import subprocess
import sys

from pages import ROOT


def test_the_estimates_follow_from_the_results() -> None:
    script = ROOT / "benchmarks/openalex_estimate.py"
    printed = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    assert printed.count("\n| ") > 20
    page = (ROOT / "docs/scaling.md").read_text(encoding="utf-8")
    assert printed in page, f"run `python {script.relative_to(ROOT)} --write`"
