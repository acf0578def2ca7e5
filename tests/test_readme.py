"""Every command and example of the README runs as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    scripts = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}", "HF_HUB_OFFLINE": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that looks like the repository to the commands and takes their output."""
    (tmp_path / "src").symlink_to(ROOT / "src")
    return tmp_path


@pytest.mark.slow
def test_the_commands_run(folder: Path) -> None:
    script = "\n".join(block for block in blocks("console") if "micol " in block)
    result = run(["bash", "-euo", "pipefail", "-c", script], folder)
    assert result.returncode == 0, result.stderr
    assert "P@1" in result.stdout
    assert (folder / "suggestions.jsonl").read_text(encoding="utf-8").count("\n") == 1678
    assert (folder / "candidates.jsonl").exists()


@pytest.mark.slow
def test_the_python_example_runs(folder: Path) -> None:
    (example,) = blocks("python")
    result = run([sys.executable, "-c", example], folder)
    assert result.returncode == 0, result.stderr
    assert "packages share two maintainers with 0ad" in result.stdout
    assert "Chess" in result.stdout or "Game" in result.stdout or "Board" in result.stdout


def test_make_has_the_targets_it_names() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", "\n".join(blocks("console")), flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


def test_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / link).exists(), link
