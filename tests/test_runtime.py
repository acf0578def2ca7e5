"""How a trained encoder computes: as quickly as the machine can, with the vectors it had."""

from __future__ import annotations

import itertools
import platform
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, BertConfig, BertModel, ElectraConfig, ElectraModel

import world
from micol.errors import MicolError, UsageError
from micol.rank.base import packaged_base
from micol.rank.bi_encoder import BiEncoder
from micol.rank.cross_encoder import CrossEncoder
from micol.rank.encoder import Encoder
from micol.rank.runtime import cores, has_bfloat16, has_int8, on_every_core
from micol.ranking import Ranking

CPU = torch.device("cpu")
TEXTS = [f"{record['title']}\n{record['abstract']}" for record in world.documents(60)]


@pytest.fixture(scope="session")
def tiny_electra(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its embeddings are narrower than its layers."""
    config = ElectraConfig(
        embedding_size=16, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
        max_position_embeddings=64, initializer_range=0.15,
    )  # fmt: skip
    return world.save_other(tmp_path_factory.mktemp("encoders") / "electra", tiny_bert, ElectraModel, config)


@pytest.fixture
def minilm() -> Path:
    folder = packaged_base()
    assert folder is not None
    return folder


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def save_bert_of(tiny_bert: Path, folder: Path, change=lambda model: None, **options) -> Path:
    """A BERT like the tiny one, with some things different."""
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(folder)
    model = BertModel(BertConfig.from_pretrained(tiny_bert, **options))
    with torch.no_grad():
        change(model)
    model.save_pretrained(folder)
    return folder


def exact_vectors(
    folder: Path, pooling: str, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> np.ndarray:
    with monkeypatch.context() as patch:
        patch.setenv("MICOL_PRECISION", "float32")
        return BiEncoder(Encoder.load(folder, 64), pooling).vectors(texts)


def settled(folder: Path, max_tokens: int = 64) -> Encoder:
    encoder = Encoder.load(folder, max_tokens)
    encoder.settle()
    return encoder


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("name", ["tiny_bert", "tiny_roberta", "tiny_electra"])
def test_vectors_stay_where_they_were(
    name: str, pooling: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = request.getfixturevalue(name)
    encoder = settled(folder)
    assert (encoder.quantised is not None) == has_int8(CPU)
    cosines = BiEncoder(encoder, pooling).vectors(TEXTS) * exact_vectors(folder, pooling, TEXTS, monkeypatch)
    assert cosines.sum(axis=1).min() > 0.998


def test_vectors_of_a_real_encoder_stay_where_they_were(
    minilm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [
        "tool to convert images between formats, with a library for other programs",
        "Role of microRNA-21 in the growth of glioblastoma cells",
        "GNU",
        " ".join(["astronomy software for the reduction of CCD images"] * 12),
    ]
    encoder = settled(minilm)
    assert (encoder.quantised is not None) == has_int8(CPU)
    cosines = BiEncoder(encoder, "mean").vectors(texts) * exact_vectors(minilm, "mean", texts, monkeypatch)
    assert cosines.sum(axis=1).min() > 0.998


def test_a_vector_does_not_depend_on_its_batch(minilm: Path) -> None:
    ranker = BiEncoder(settled(minilm), "mean")
    assert ranker.encoder.inference_dtype == torch.float32 or not has_int8(CPU)
    together = ranker.vectors(TEXTS)
    alone = np.concatenate([ranker.vectors([text]) for text in TEXTS[:12]])
    np.testing.assert_allclose(alone, together[:12], atol=1e-6 if has_int8(CPU) else 1e-2)


def test_several_threads_give_the_vectors_of_one(tiny_bert: Path, two_threads: None) -> None:
    ranker = BiEncoder(settled(tiny_bert), "mean")
    many = TEXTS * 20
    several = ranker.vectors(many)
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
    np.testing.assert_allclose(several, ranker.vectors(many), atol=1e-6)


def test_a_cross_encoder_keeps_its_scores(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = [label["names"][0] for label in world.label_records()]
    candidates = Ranking.from_rows([[(label, 0.0) for label in range(len(labels))]] * len(TEXTS))

    def scores() -> np.ndarray:
        ranker = CrossEncoder.untrained(settled(tiny_bert), 0)
        ranked = ranker.rank(ranker.tokenize(TEXTS), ranker.tokenize(labels), candidates)
        return np.stack([row[1][np.argsort(row[0])] for row in map(ranked.row, range(len(TEXTS)))])

    quick = scores()
    monkeypatch.setenv("MICOL_PRECISION", "float32")
    exact = scores()
    assert np.abs(quick - exact).max() < 0.2 * exact.std()
    assert np.corrcoef(quick.ravel(), exact.ravel())[0, 1] > 0.999


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_precision_can_be_forced(
    precision: str, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MICOL_PRECISION", precision)
    encoder = settled(tiny_bert)
    assert encoder.quantised is None
    assert encoder.model.dtype == encoder.inference_dtype == getattr(torch, precision)
    cosines = BiEncoder(encoder, "mean").vectors(TEXTS)
    cosines = cosines * exact_vectors(tiny_bert, "mean", TEXTS, monkeypatch)
    assert cosines.sum(axis=1).min() > 0.999


def test_an_unknown_precision_is_refused(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MICOL_PRECISION", "int4")
    with pytest.raises(UsageError, match=r"MICOL_PRECISION must be one of int8, float16.*'int4'"):
        settled(tiny_bert)


def test_another_activation_computes_in_floats(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save_bert_of(tiny_bert, tmp_path, hidden_act="relu")
    assert settled(folder).quantised is None
    monkeypatch.setenv("MICOL_PRECISION", "int8")
    with pytest.raises(MicolError, match="int8 needs BERT's layers with GELU"):
        settled(folder)


def test_an_encoder_that_int8_would_bend_computes_in_floats(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unusual(model: BertModel) -> None:
        """One value of each token is thousands of times the others, and no weight makes use of it."""
        for layer in model.encoder.layer:
            layer.intermediate.dense.bias[0] = 5000.0
            layer.output.dense.weight *= 4.0
            layer.output.dense.weight[:, 0] = 0.0

    folder = save_bert_of(tiny_bert, tmp_path, unusual)
    assert settled(folder).quantised is None
    monkeypatch.setenv("MICOL_PRECISION", "int8")
    with pytest.raises(MicolError, match="int8 would turn this encoder's vectors too far"):
        settled(folder)


def test_the_processor_is_asked() -> None:
    if platform.system() == "Linux" and platform.machine() == "x86_64":
        flags = Path("/proc/cpuinfo").read_text().split("flags", 1)[1].split("\n", 1)[0].split()
        assert has_int8(CPU) == ("avx512_vnni" in flags)
        assert has_bfloat16(CPU) == ("avx512_bf16" in flags)
    assert not has_int8(torch.device("cuda"))


class TestOnEveryCore:
    def test_results_come_in_order(self, two_threads: None) -> None:
        def late(number: int) -> int:
            time.sleep(0.002 * (number % 3))
            return number * number

        assert list(on_every_core(late, range(40))) == [number * number for number in range(40)]

    def test_several_work_at_once_with_one_thread_each(self, two_threads: None) -> None:
        meeting = threading.Barrier(2, timeout=20)

        def met(_: int) -> int:
            meeting.wait()  # would break if the other were not working at the same time
            return torch.get_num_threads()

        assert list(on_every_core(met, range(4))) == [1, 1, 1, 1]
        assert torch.get_num_threads() == 2

    @pytest.mark.parametrize("items", [0, 1])
    def test_a_single_one_has_all_threads(self, items: int, two_threads: None) -> None:
        seen = list(
            on_every_core(lambda _: (torch.get_num_threads(), threading.current_thread()), range(items))
        )
        assert seen == [(2, threading.current_thread())] * items

    def test_only_some_are_taken_ahead(self, two_threads: None) -> None:
        taken = itertools.count()
        numbers = (next(taken) for _ in itertools.repeat(None))  # without end
        assert list(itertools.islice(on_every_core(lambda number: number, numbers), 50)) == list(range(50))
        assert next(taken) < 60

    def test_errors_arrive_and_threads_are_as_before(self, two_threads: None) -> None:
        def refuse(number: int) -> int:
            if number == 5:
                raise MicolError("five")
            return number

        with pytest.raises(MicolError, match="five"):
            list(on_every_core(refuse, range(100)))
        assert torch.get_num_threads() == 2
        with cores(1) as core:  # a thread that starts later takes torch's last number, not ours
            assert core.submit(torch.get_num_threads).result() == 1
        found: list[int] = []
        thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
        thread.start()
        thread.join()
        assert found == [2]
