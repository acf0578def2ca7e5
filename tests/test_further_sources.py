"""Further sources of evidence say what their description does, and are tabled."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("benchmarks_can_be_imported")


def test_further_sources_are_what_they_are_called(data_folder: Path, tiny_bert: Path) -> None:
    import further_sources
    import settle
    from best import Data
    from micol.evidence.facts import LEAST_SPREAD
    from micol.retrieve import BM25
    from poorer import untrained_encoder

    data = Data.read(data_folder)
    encoder = untrained_encoder(data, str(tiny_bert))
    fused = settle.fused_around(data, encoder)
    memory, documents = fused.memory, list(data.test)
    pairs = fused.gather(documents, encoder)
    found = dict(further_sources.further_sources(data, fused, pairs))
    assert all(len(values) == len(pairs.keys) for values in found.values())
    texts = fused.side.text_vectors.astype(np.float64)
    background = memory.background_texts.astype(np.float64)
    index = BM25(data.labels.texts())

    def above_usual(scores: np.ndarray, others: np.ndarray) -> np.ndarray:
        return (scores - others.mean()) / others.std()

    def by_bm25(text: str) -> np.ndarray:
        scores = np.zeros(len(data.labels))
        labels, values = index.search([text], top=None).row(0)
        scores[labels] = values
        return above_usual(scores, scores)

    def by_similar(weights: Any) -> np.ndarray:
        mean = sum(w * memory.wide[d] for w, d in zip(weights.data, weights.indices, strict=True))
        mean = mean.astype(np.float64) / np.linalg.norm(mean)
        return above_usual(texts @ mean, background @ mean)

    near = memory.similar(pairs.vectors, memory.own_positions(documents))
    near_sample = memory.similar(memory.wide[memory.sample], memory.sample)
    usual = {
        "BM25": np.array([by_bm25(memory.texts[position]) for position in memory.sample]),
        "meaning of the similar": np.array(
            [by_similar(near_sample[[row]]) for row in range(len(memory.sample))]
        ),
    }
    for pair in np.random.default_rng(0).permutation(len(pairs.keys))[:20]:
        row, label = divmod(int(pairs.keys[pair]), len(data.labels))
        own = {"BM25": by_bm25(documents[row].text), "meaning of the similar": by_similar(near[[row]])}
        for source, scores in own.items():
            others = usual[source][:, label]
            expected = (scores[label] - others.mean()) / (others.std() + LEAST_SPREAD)
            assert found[source][pair] == pytest.approx(expected, abs=2e-3)


def test_further_sources_are_measured_once(
    data_folder: Path, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import further_sources

    output = tmp_path / "rows.jsonl"
    arguments = ["x", str(data_folder), "--base", str(tiny_bert), "--output", str(output)]
    monkeypatch.setattr(sys, "argv", arguments)
    further_sources.main()
    rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    further_sources.main()
    assert len(output.read_text(encoding="utf-8").splitlines()) == len(rows)
    table = further_sources.table(output).splitlines()
    mean = further_sources.mean_of_measures(rows[0]["scores"])
    assert table[2] == f"| none | 0 | {mean:.4f} | {mean:.4f} |"
    sources = list(dict.fromkeys(row["source"] for row in rows[1:]))
    assert sources == [
        "BM25", "meaning of the similar", "meaning of the linked", "what the similar mean",
        "tags of neighbours",
    ]  # fmt: skip
    assert len(table) == 3 + len(further_sources.WEIGHTS) * len(sources)
