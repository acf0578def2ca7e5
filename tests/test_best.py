"""The default recipe against its parts: what is measured, and what an earlier run has measured already."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("benchmarks_can_be_imported")


@pytest.fixture
def rows_of(
    tmp_path: Path, data_folder: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[str]]:
    """Runs the benchmark and returns the systems of all rows so far."""
    import best

    output = tmp_path / "rows.jsonl"

    def run(*options: str) -> list[str]:
        arguments = ["x", str(data_folder), "--base", str(tiny_bert), "--output", str(output), *options]
        monkeypatch.setattr(sys, "argv", arguments)
        best.main()
        rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
        assert all(0 <= row["scores"][name] <= 1 for row in rows for name in best.SHOWN)
        return [row["system"] for row in rows]

    return run


@pytest.mark.slow
def test_what_an_earlier_run_has_measured_is_left_out(
    rows_of: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import best

    assert rows_of("--seeds", "0", "--no-parts") == ["best"]

    def unwanted(trial: best.Trial) -> None:
        raise AssertionError("the whole recipe was measured again")

    monkeypatch.setattr(best.Trial, "best", unwanted)
    systems = rows_of("--seeds", "0")
    capsys.readouterr()
    assert rows_of("--seeds", "0") == systems
    told = capsys.readouterr().err
    assert "rows.jsonl: has 1 of these results already; give another --output" in told
    assert f"has {len(systems) - 1} of these results already" in told
    assert {"rough sum", "without similar documents", "without tags of neighbours"} < {*systems}
    assert {"lexical ranking", "without training"} < {*systems}


@pytest.mark.slow
def test_the_reader_is_measured_with_and_without(rows_of: Callable[..., list[str]]) -> None:
    systems = rows_of("--seeds", "0", "--reader")
    assert systems[:2] == ["best with the cross-encoder", "the same without read together"]
    assert systems[-1] == "read together alone"
