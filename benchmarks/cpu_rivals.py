"""Other runtimes for CPUs, as peers of benchmarks/cpu_tagging.py: ONNX Runtime and OpenVINO.

    pip install onnx onnxruntime openvino nncf

Each gets what is best for it: batches of like lengths, as many at once as there are cores, each on one.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModel

from micol.rank.encoder import Encoder

Run = Callable[
    [np.ndarray, np.ndarray], np.ndarray
]  # ids and mask [N, longest] -> last layer [N, longest, dim]

PADDED_TOKENS = 1_024
CALIBRATION_TEXTS = 128
LIBRARIES = ("onnx", "onnxruntime", "openvino", "nncf")


def are_installed() -> bool:
    return all(find_spec(library) for library in LIBRARIES)


class Exported(torch.nn.Module):
    """The encoder as a function of ids and mask alone."""

    def __init__(self, base: str) -> None:
        super().__init__()
        self.model = AutoModel.from_pretrained(base, add_pooling_layer=False).eval()

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        types = torch.zeros_like(ids)
        hidden: torch.Tensor = self.model(ids, mask, types).last_hidden_state
        return hidden


class Padded:
    """Encodes texts through a runtime that takes padded batches."""

    def __init__(self, encoder: Encoder, run: Run, threads: int) -> None:
        self.encoder, self.run, self.threads = encoder, run, threads

    def vectors(self, texts: list[str]) -> np.ndarray:
        tokens = self.encoder.tokenize(texts)
        out = np.empty((len(texts), self.encoder.dimension), np.float32)

        def encode(rows: np.ndarray) -> None:
            ids, mask = padded([tokens[row] for row in rows], self.encoder)
            sums = np.einsum("ijk,ij->ik", self.run(ids, mask), mask.astype(np.float32))
            out[rows] = sums / np.linalg.norm(sums, axis=1, keepdims=True)

        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(encode, batches([len(text) + 2 for text in tokens])))
        return out


def batches(lengths: list[int]) -> Iterator[np.ndarray]:
    order, start = np.argsort(-np.array(lengths), kind="stable"), 0
    while start < len(order):
        end = start + max(1, PADDED_TOKENS // lengths[order[start]])
        yield order[start:end]
        start = end


def padded(tokens: list[np.ndarray], encoder: Encoder) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.array([len(text) + 2 for text in tokens])
    mask = np.arange(lengths.max())[None] < lengths[:, None]
    ids = np.zeros(mask.shape, np.int64)
    framing = encoder.framing
    ids[mask] = np.concatenate([[framing.first, *text, framing.last] for text in tokens])
    return ids, mask.astype(np.int64)


def rivals(base: str, encoder: Encoder, calibration: list[str], threads: int) -> dict[str, Padded]:
    """Every rival, compiled for so many threads; `calibration` are texts that int8 may find its scales by."""
    warnings.filterwarnings("ignore", category=torch.jit.TracerWarning)
    warnings.filterwarnings("ignore", module="torch.onnx")
    exported, sample = Exported(base), padded(encoder.tokenize(calibration[:3]), encoder)
    example = tuple(map(torch.from_numpy, sample))
    runs = {"ONNX Runtime, int8": onnx_int8(exported, example)}
    runs |= openvino_runs(
        exported, example, [padded(encoder.tokenize([text]), encoder) for text in calibration], threads
    )
    return {name: Padded(encoder, run, threads) for name, run in runs.items()}


def onnx_int8(exported: Exported, example: tuple[torch.Tensor, ...]) -> Run:
    """Dynamic quantisation, a scale for each output of a layer."""
    import onnxruntime
    from onnxruntime.quantization import QuantType, quantize_dynamic

    axes = {name: {0: "texts", 1: "tokens"} for name in ("ids", "mask", "hidden")}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    with tempfile.TemporaryDirectory() as name:
        exact, quick = Path(name) / "exact.onnx", Path(name) / "int8.onnx"
        torch.onnx.export(
            exported, example, exact, dynamo=False, input_names=["ids", "mask"], output_names=["hidden"],
            dynamic_axes=axes,
        )  # fmt: skip
        quantize_dynamic(exact, quick, per_channel=True, weight_type=QuantType.QInt8)
        session = onnxruntime.InferenceSession(quick, options, providers=["CPUExecutionProvider"])
    return lambda ids, mask: session.run(None, {"ids": ids, "mask": mask})[0]


def openvino_runs(
    exported: Exported,
    example: tuple[torch.Tensor, ...],
    calibration: list[tuple[np.ndarray, np.ndarray]],
    threads: int,
) -> dict[str, Run]:
    """bfloat16; int8 after training, with scales from the calibration texts."""
    import nncf
    import openvino

    core = openvino.Core()
    exact = openvino.convert_model(exported, example_input=example)
    quick = nncf.quantize(
        exact,
        nncf.Dataset(calibration, lambda batch: list(batch)),
        model_type=nncf.ModelType.TRANSFORMER,
        subset_size=CALIBRATION_TEXTS,
    )

    def compiled(model: openvino.Model, precision: str) -> Run:
        hints = {
            "INFERENCE_PRECISION_HINT": precision, "NUM_STREAMS": threads, "INFERENCE_NUM_THREADS": threads,
        }  # fmt: skip
        program = core.compile_model(model, "CPU", hints)
        return lambda ids, mask: program.create_infer_request().infer([ids, mask])[0]

    return {
        "OpenVINO, bfloat16": compiled(exact, "bf16"),
        "OpenVINO, int8": compiled(quick, "f32"),
        "OpenVINO, int8 and bfloat16": compiled(quick, "bf16"),
    }
