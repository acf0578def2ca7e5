"""Candidates written and read back, and every way in which such a file can be wrong."""

import io
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from micol.corpus import Corpus
from micol.errors import MicolError
from micol.labels import LabelSpace
from micol.ranking import Ranking
from micol.records import Label
from micol.retrieve.candidates import CandidateWriter, read_candidates

LABELS = LabelSpace.from_labels([Label(f"l{i}", (f'na"me {i} é',)) for i in range(6)])
CORPUS = Corpus.from_records([{"id": name} for name in ("d0", "d1", 'd "2" ü')])
SCORES = st.floats(-1e6, 1e6, width=32).map(lambda score: score + 0.0)
ROWS = st.lists(st.dictionaries(st.integers(0, 5), SCORES), min_size=3, max_size=3)


@settings(max_examples=100, deadline=None)
@given(ROWS)
def test_what_is_written_is_read_back_to_the_bit(tmp_path_factory, rows):
    ranking = Ranking.from_rows([row.items() for row in rows])
    stream = io.BytesIO()
    writer = CandidateWriter(stream, LABELS)
    writer.write(CORPUS.ids[:1], ranking.slice(0, 1))
    writer.write(CORPUS.ids[1:], ranking.slice(1, 3))
    path = tmp_path_factory.mktemp("candidates") / "cand.jsonl"
    path.write_bytes(stream.getvalue())
    again = read_candidates(path, CORPUS, LABELS)
    for name in ("indptr", "labels", "scores"):
        assert np.array_equal(getattr(again, name), getattr(ranking, name))
    records = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [record["id"] for record in records] == CORPUS.ids
    for record in records:
        for entry in record["labels"]:
            assert entry["name"] == LABELS[LABELS.position(entry["id"])].name


def read(tmp_path, *lines) -> Ranking:
    path = tmp_path / "cand.jsonl"
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return read_candidates(path, Corpus.from_records([{"id": "d0"}, {"id": "d1"}]), LABELS)


def test_the_release_is_read_in_its_order(tmp_path):
    ranking = read(
        tmp_path,
        '{"paper": "d1", "label": ["l1"], "predicted_label": ["l5", "l0", "l3"]}',
        '{"paper": "d0", "label": [], "predicted_label": []}',
    )
    assert ranking.indptr.tolist() == [0, 0, 3]
    assert ranking.labels.tolist() == [5, 0, 3]
    assert ranking.scores.tolist() == pytest.approx([1, 1 / 2, 1 / 3])


def test_without_scores_the_order_counts(tmp_path):
    ranking = read(
        tmp_path,
        '{"id": "d0", "labels": [{"id": "l4"}, {"id": "l2"}, {"id": "l4"}]}',
        "",
        '{"id": "d1", "labels": []}',
    )
    assert ranking.labels.tolist() == [4, 2]


def test_documents_of_others_are_left_out_and_told(tmp_path, capsys):
    both = ('{"id": "d0", "labels": []}', '{"id": "d1", "labels": [{"id": "l1"}]}')
    assert read(tmp_path, '{"id": "x", "labels": [{"id": "unknown"}]}', *both).labels.tolist() == [1]
    assert "1 documents are not in records" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"id": "d0", "labels": []}'], r"no candidates for document 'd1' of records; make them with"),
        (['{"id": "x", "labels": []}'], r"no candidates for document 'd0' and 1 more of records"),
        (['{"id": "d0", "labels": [{"id": "l9"}]}'], r"cand\.jsonl:1: no label of labels has the id 'l9'"),
        (
            ['{"id": "d0", "labels": []}'] * 2,
            r"cand\.jsonl:2: document 'd0' has candidates on line 1 already",
        ),
        (["{"], r"cand\.jsonl:1: not valid JSON"),
        (["[]"], r"cand\.jsonl:1: expected an object, got "),
        (['{"id": "d0"}'], r'cand\.jsonl:1: "labels" must be a list, got '),
        (['{"id": "d0", "labels": ["l1"]}'], r'cand\.jsonl:1: "labels" must hold objects'),
        (['{"labels": []}'], r'cand\.jsonl:1: "id" must be one id'),
        (['{"paper": "d0", "predicted_label": [{}]}'], r'cand\.jsonl:1: "predicted_label" must be'),
        (['{"id": "d0", "labels": [{"id": "l1", "score": "high"}]}'], r'1: "score" must be a number'),
        (['{"id": "d0", "labels": [{"id": "l1", "score": NaN}]}'], r"cand\.jsonl:1: "),
        (['{"id": "d0", "labels": [{"id": "l1", "score": 1e400}]}'], r"cand\.jsonl:1: "),
        (['{"id": "d0", "labels": [{"id": "l1", "score": true}]}'], r'1: "score" must be a number'),
    ],
)
def test_what_is_wrong_is_told(tmp_path, lines, message):
    with pytest.raises(MicolError, match=message):
        read(tmp_path, *lines)


def test_a_score_that_single_precision_cannot_hold(tmp_path):
    huge = '{"id": "d0", "labels": [{"id": "l1", "score": %s}]}'
    with pytest.raises(MicolError, match="score"):
        read(tmp_path, huge % "1e300", '{"id": "d1", "labels": []}')
    with pytest.raises(MicolError, match="score"):
        read(tmp_path, huge % ("9" * 400), '{"id": "d1", "labels": []}')


def test_a_missing_file(tmp_path):
    with pytest.raises(MicolError, match="no such file"):
        read_candidates(tmp_path / "none.jsonl", CORPUS, LABELS)
