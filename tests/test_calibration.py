"""How far scores are from the truth, by hand, and measured from a data set to a table."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("benchmarks_can_be_imported")


def test_only_what_people_would_see_counts() -> None:
    from calibration import around_half, off

    bins = [
        {"from": 0.0, "pairs": 1000, "score": 0.01, "right": 0.04},
        {"from": 0.4, "pairs": 30, "score": 0.5, "right": 0.6},
        {"from": 0.9, "pairs": 10, "score": 0.9, "right": 0.7},
    ]
    assert off(bins) == pytest.approx((30 * 0.1 + 10 * 0.2) / 40)
    assert around_half(bins) == "0.60"
    assert off(bins[:1]) == 0
    assert around_half(bins[:1]) == "none"


def test_each_data_set_is_measured_once_as_found_out_and_as_told(
    data_folder: Path, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import calibration
    from best import Data

    output = tmp_path / "rows.jsonl"
    arguments = ["x", str(data_folder), "--base", str(tiny_bert), "--output", str(output)]
    monkeypatch.setattr(sys, "argv", arguments)
    calibration.main()
    found, told = rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    calibration.main()
    assert [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()] == rows
    gold = [len(labels) for labels in Data.read(data_folder).test.gold]
    assert (found["labels per document"], told["labels per document"]) == ("found out", "told")
    assert told["expected"] == told["given"] == pytest.approx(sum(gold) / len(gold), abs=0.005)
    assert found["expected"] != told["expected"]
    assert (
        calibration.table(output).splitlines()[2].startswith(f"| {data_folder.name} | {told['given']:.1f} |")
    )
