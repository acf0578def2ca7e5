"""Speed of training and tagging on one GPU against the research code's way of working.

    python benchmarks/encoder_speed.py [--quick]

The peer, written here, works as the research code of 2021 did: every input padded to full length, fp32, the
published batch sizes, attention as plain matrix products, Adam parameter by parameter, and a document encoded
again for each of its candidates. Both sides run a BERT-base-size encoder with SciBERT's vocabulary and random
weights on the same synthetic token sequences, in the same process, one after the other.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig, BertModel

from micol.rank.bi_encoder import BiEncoder
from micol.rank.checkpoints import Checkpoints
from micol.rank.cross_encoder import CrossEncoder
from micol.rank.encoder import Encoder
from micol.rank.examples import ListExamples, PairExamples
from micol.rank.packing import PACKED_ATTENTION
from micol.rank.trainer import BiModule, CrossModule, fit
from micol.ranking import Ranking
from micol.settings import resolve

RESULTS = Path(__file__).parent / "results" / "encoder_speed.json"
VOCABULARY = 31_090
DEVICE = torch.device("cuda")


class NoTokenizer:
    """Stands where a tokenizer would: the benchmark works on token sequences."""

    cls_token_id, sep_token_id = 102, 103


def scibert_size(packed: bool) -> BertModel:
    torch.manual_seed(0)
    # Wide enough that the scores of a random encoder differ, so that rankings can be compared.
    config = BertConfig(vocab_size=VOCABULARY, initializer_range=0.05)
    config._attn_implementation = PACKED_ATTENTION if packed else "eager"
    return BertModel(config, add_pooling_layer=False).to(DEVICE)


def encoder(max_tokens: int) -> Encoder:
    return Encoder(scibert_size(packed=True), NoTokenizer(), max_tokens)  # type: ignore[arg-type]


def documents(n: int, limit: int = 254, seed: int = 0) -> list[np.ndarray]:
    """Token sequences with the lengths of abstracts: about 188 on average, cut at the limit."""
    generator = np.random.default_rng(seed)
    lengths = np.clip(generator.lognormal(5.25, 0.45, n), 16, limit).astype(int)
    return [generator.integers(200, VOCABULARY, length, dtype=np.int32) for length in lengths]


def labels(n: int, seed: int = 1) -> list[np.ndarray]:
    """Names with descriptions: about 45 tokens."""
    return documents_of_lengths(np.random.default_rng(seed), 3.6, 0.5, n)


def documents_of_lengths(
    generator: np.random.Generator, mean: float, sigma: float, n: int
) -> list[np.ndarray]:
    lengths = np.clip(generator.lognormal(mean, sigma, n), 4, 254).astype(int)
    return [generator.integers(200, VOCABULARY, length, dtype=np.int32) for length in lengths]


def matmul_rate(size: int = 8192, repeats: int = 30) -> float:
    """bf16 FLOP/s of a plain large matrix product on random data."""
    a, b = (torch.randn(size, size, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    for _ in range(5):
        a @ b
    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(repeats):
        a @ b
    torch.cuda.synchronize()
    return 2 * size**3 * repeats / (time.perf_counter() - started)


def flops_per_token(config: BertConfig, length: float, training: bool) -> float:
    """Matrix arithmetic of one real token in a sequence of that length: weights and attention."""
    weights = config.num_hidden_layers * (
        4 * config.hidden_size**2 + 2 * config.hidden_size * config.intermediate_size
    )
    attention = config.num_hidden_layers * 2 * length * config.hidden_size
    return (6 if training else 2) * (weights + attention)


def seconds_of(run: Callable[[], None]) -> float:
    torch.cuda.synchronize()
    started = time.perf_counter()
    run()
    torch.cuda.synchronize()
    return time.perf_counter() - started


def padded(sequences: list[np.ndarray], length: int) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.zeros(len(sequences), length, dtype=torch.long)
    mask = torch.zeros(len(sequences), length, dtype=torch.long)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = torch.from_numpy(sequence.astype(np.int64))
        mask[row, : len(sequence)] = 1
    return ids.to(DEVICE), mask.to(DEVICE)


def framed(*texts: np.ndarray) -> np.ndarray:
    parts: list[np.ndarray] = [np.array([102])]
    for text in texts:
        parts += [text, np.array([103])]
    return np.concatenate(parts)


def peer_bi_training(texts: list[np.ndarray], pairs: int) -> float:
    """Pairs a second: fp32, batch 8, every document padded to 256."""
    model = scibert_size(packed=False).train()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-5, foreach=False)

    def steps(first: int, last: int) -> None:
        for start in range(first, last, 8):
            sequences = [framed(texts[i]) for i in range(2 * start, 2 * start + 16)]
            ids, mask = padded(sequences, 256)
            vectors = model(input_ids=ids, attention_mask=mask).last_hidden_state[:, 0]
            unit = torch.nn.functional.normalize(vectors, dim=1)
            scores = unit[::2] @ unit[1::2].T / 0.05
            torch.nn.functional.cross_entropy(scores, torch.arange(8, device=DEVICE)).backward()
            optimiser.step()
            optimiser.zero_grad()

    steps(0, 40)
    return pairs / seconds_of(lambda: steps(40, 40 + pairs))


def peer_cross_training(texts: list[np.ndarray], pairs: int) -> float:
    """Pairs a second: fp32, batch 4, a positive and a negative each, padded to 512."""
    model = scibert_size(packed=False).train()
    head = torch.nn.Linear(768, 1).to(DEVICE)
    optimiser = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=1e-5, foreach=False)

    def steps(first: int, last: int) -> None:
        for start in range(first, last, 4):
            sequences = [
                framed(texts[3 * i], texts[3 * i + other])
                for i in range(start, start + 4)
                for other in (1, 2)
            ]
            ids, mask = padded(sequences, 512)
            scores = head(model(input_ids=ids, attention_mask=mask).last_hidden_state[:, 0]).view(4, 2)
            torch.nn.functional.cross_entropy(
                scores, torch.zeros(4, dtype=torch.long, device=DEVICE)
            ).backward()
            optimiser.step()
            optimiser.zero_grad()

    steps(0, 20)
    return pairs / seconds_of(lambda: steps(20, 20 + pairs))


def our_training(
    architecture: str, texts: list[np.ndarray], pairs: int, batch_size: int
) -> tuple[float, float]:
    """Pairs a second of `fit` once compiled and warm, and the mean length of its sequences."""
    max_tokens = 256 if architecture == "bi" else 512
    settings = resolve(
        architecture, "P->P", "paper",
        {"batch_size": batch_size, "epochs": 1, "keep_best": False, "checkpoints": 0, "compile": True,
         "attention_dropout": False},
    )  # fmt: skip
    model = encoder(max_tokens)
    numbers = np.arange(pairs)
    if architecture == "bi":
        module: BiModule | CrossModule = BiModule(model, "cls")
        examples: PairExamples | ListExamples = PairExamples(
            model.framing, texts, 2 * numbers, 2 * numbers + 1, np.arange(len(texts))
        )
        length = float(np.mean([len(text) for text in texts[: 2 * pairs]])) + 2
    else:
        module = CrossModule(model, torch.nn.Linear(768, 1, bias=False).to(DEVICE))
        lists = np.stack([3 * numbers + 1, 3 * numbers + 2], axis=1)
        targets = np.tile(np.array([1.0, 0.0], dtype=np.float32), (pairs, 1))
        examples = ListExamples(model.framing, texts, texts, 3 * numbers, lists, targets)
        length = float(np.mean([len(text) for text in texts[: 3 * pairs]])) * 2 + 3
    with tempfile.TemporaryDirectory() as folder:
        log = [
            entry
            for entry in fit(module, settings, examples, None, Checkpoints(Path(folder)))
            if "loss" in entry
        ]
    # The first half of the steps compiles and warms up; each log entry is written after a step.
    first, last = log[len(log) // 2], log[-1]
    return (last["step"] - first["step"]) * batch_size / (last["seconds"] - first["seconds"]), length


def peer_bi_tagging(texts: list[np.ndarray], names: list[np.ndarray], candidates: int, n: int) -> float:
    """Documents a second: fp32, document and label padded to 256 and encoded for every candidate."""
    model = scibert_size(packed=False).eval()
    generator = np.random.default_rng(2)

    def tag(count: int) -> None:
        for document in range(count):
            chosen = generator.integers(len(names), size=candidates)
            first, first_mask = padded([framed(texts[document])] * candidates, 256)
            second, second_mask = padded([framed(names[label]) for label in chosen], 256)
            a = model(input_ids=first, attention_mask=first_mask).last_hidden_state[:, 0]
            b = model(input_ids=second, attention_mask=second_mask).last_hidden_state[:, 0]
            torch.cosine_similarity(a, b).argsort(descending=True).cpu()

    with torch.inference_mode():
        tag(2)
        return n / seconds_of(lambda: tag(n))


def our_bi_tagging(texts: list[np.ndarray], names: list[np.ndarray], candidates: int) -> float:
    """Documents a second, every label encoded once within the time."""
    model = encoder(256)
    model.settle()
    ranker = BiEncoder(model, "cls")
    ranking = random_candidates(len(texts), len(names), candidates)

    def tag() -> None:
        label_vectors = ranker.vectors_of(names)
        ranker.rank(ranker.vectors_of(texts), label_vectors, ranking)

    tag()
    return len(texts) / seconds_of(tag)


def random_candidates(documents: int, labels: int, each: int) -> Ranking:
    generator = np.random.default_rng(3)
    rows = [
        [(int(label), 0.0) for label in generator.choice(labels, each, replace=False)]
        for _ in range(documents)
    ]
    return Ranking.from_rows(rows)


def cross_tagging(
    texts: list[np.ndarray], names: list[np.ndarray], candidates: int, peer_documents: int
) -> dict[str, float]:
    """Pairs a second of both ways, and how far their top fives agree, with the same weights."""
    model = encoder(512)
    head = torch.nn.Linear(768, 1, bias=False).to(DEVICE)
    torch.nn.init.normal_(head.weight)
    peer = scibert_size(packed=False).eval()
    ranking = random_candidates(len(texts), len(names), candidates)
    scores = np.empty(peer_documents * candidates, dtype=np.float32)

    def peer_tag() -> None:
        for document in range(peer_documents):
            chosen = ranking.row(document)[0]
            ids, mask = padded([framed(texts[document], names[label]) for label in chosen], 512)
            types = torch.zeros_like(ids)
            types[:, len(texts[document]) + 2 :] = 1
            hidden = peer(input_ids=ids, attention_mask=mask, token_type_ids=types * mask).last_hidden_state[
                :, 0
            ]
            scores[document * candidates : (document + 1) * candidates] = head(hidden)[:, 0].cpu().numpy()

    with torch.inference_mode():
        peer_rate = len(scores) / seconds_of(peer_tag)
    first = ranking.slice(0, peer_documents)
    slow = Ranking.from_entries(first.rows(), first.labels, scores, peer_documents)
    ours = CrossEncoder(model, head)
    model.settle()
    ours.rank(texts[:20], names, ranking.slice(0, 20))
    started = time.perf_counter()
    fast = ours.rank(texts, names, ranking)
    our_rate = len(ranking.labels) / (time.perf_counter() - started)
    same = [
        len(set(slow.row(i)[0][:5].tolist()) & set(fast.row(i)[0][:5].tolist())) / 5
        for i in range(peer_documents)
    ]
    return {
        "peer": peer_rate,
        "ours": our_rate,
        "ratio": our_rate / peer_rate,
        "top5_agreement": float(np.mean(same)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--output", type=Path, default=RESULTS)
    quick = parser.parse_args().quick
    texts, names = documents(110_000), labels(2_000)
    config = BertConfig()
    peak = matmul_rate()
    results: dict[str, object] = {
        "machine": torch.cuda.get_device_name(), "torch": torch.__version__, "matmul_tflops": peak / 1e12,
    }  # fmt: skip
    for architecture, peer, batch in (("bi", peer_bi_training, 512), ("cross", peer_cross_training, 256)):
        slow = peer(texts, 160 if quick else 480)
        fast, length = our_training(architecture, texts, batch * (20 if quick else 100), batch)
        flops = fast * 2 * length * flops_per_token(config, length, training=True)
        name = f"{architecture}_training"
        results[name] = {
            "peer_pairs_per_second": slow, "pairs_per_second": fast, "ratio": fast / slow,
            "batch_size": batch, "mean_tokens": length, "share_of_matmul_rate": flops / peak,
        }  # fmt: skip
        print(name, results[name], flush=True)
    slow = peer_bi_tagging(texts, names, 60, 10 if quick else 40)
    fast = our_bi_tagging(texts[: 5_000 if quick else 20_000], names, 60)
    results["bi_tagging"] = {
        "peer_documents_per_second": slow,
        "documents_per_second": fast,
        "ratio": fast / slow,
    }
    print("bi tagging", results["bi_tagging"], flush=True)
    results["cross_tagging"] = cross_tagging(texts[: 200 if quick else 1_000], names, 60, 20 if quick else 60)
    print("cross tagging", results["cross_tagging"], flush=True)
    output = parser.parse_args().output
    output.parent.mkdir(exist_ok=True)
    output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
