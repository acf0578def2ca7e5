"""How an encoder computes once it is trained: in the quickest arithmetic of the machine that keeps rankings.

On a GPU that is float16. On a CPU it is int8 where the processor has instructions for it, unless int8 turns
this encoder's vectors away from where they were; then bfloat16 where that is native, else float32.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, TypeVar

import torch
from torch.nn.functional import cosine_similarity

from micol.errors import MicolError, UsageError
from micol.rank.packing import last_hidden_states

if TYPE_CHECKING:
    from micol.rank.encoder import Encoder
    from micol.rank.int8.model import Int8Model

Item = TypeVar("Item")
Result = TypeVar("Result")

VARIABLE = "MICOL_PRECISION"
PRECISIONS = {
    "int8": torch.int8,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
}

# Of a text's exact and its int8 vector. Where it was lower, rankings changed by more than noise.
LEAST_COSINE = 0.99
# Some of everything that people tag: prose, names, numbers, formulas, another language, a single word, and
# all of it as one long text.
SENTENCES = (
    "Contrastive learning of document representations from citation networks",
    "We followed 1,284 patients with type 2 diabetes for 7.5 years; the hazard ratio was 0.73 (0.61-0.88).",
    "GNU Emacs is the extensible self-documenting text editor. This package has what all variants share.",
    "The crystal structure of the CRISPR-associated protein Cas9 at 2.6 Å shows two lobes around the RNA.",
    "Let G = (V, E) be a graph with n vertices; we show that its chromatic number is at most 2k + 1.",
    "Die Bibliothek erschließt ihre Bestände seit 1998 mit Schlagwörtern einer gemeinsamen Normdatei.",
    "zoology",
)
PROBE = (*SENTENCES, " ".join(SENTENCES))


def has_bfloat16(device: torch.device) -> bool:
    """Whether the hardware multiplies bfloat16 natively."""
    return device.type == "cuda" or bool(torch.cpu._is_avx512_bf16_supported())


def has_int8(device: torch.device) -> bool:
    """Whether the hardware multiplies bytes natively and adds them up without overflow."""
    return device.type == "cpu" and bool(torch.cpu._is_vnni_supported())


def float_precision(device: torch.device) -> torch.dtype:
    """On a GPU float16, as quick as bfloat16 and eight times as exact; on a CPU bfloat16 where native."""
    wanted = wanted_precision()
    if wanted is not None and wanted.is_floating_point:
        return wanted
    if device.type == "cuda":
        return torch.float16
    return torch.bfloat16 if has_bfloat16(device) else torch.float32


def wanted_precision() -> torch.dtype | None:
    """What the environment asks for."""
    name = os.environ.get(VARIABLE)
    if not name:
        return None
    if name not in PRECISIONS:
        raise UsageError(f"{VARIABLE} must be one of {', '.join(PRECISIONS)}, got {name!r}")
    return PRECISIONS[name]


def quantised(encoder: Encoder) -> Int8Model | None:
    """The encoder in int8, where that is wanted or else pays; None where it is to compute in floats."""
    wanted = wanted_precision()
    is_forced = wanted == torch.int8
    if not is_forced and (wanted is not None or not has_int8(encoder.device)):
        return None
    from micol.rank.int8.model import Int8Model, is_quantisable

    if encoder.device.type != "cpu":
        raise MicolError(f"{VARIABLE}=int8 is for CPUs and the encoder is on {encoder.device}; unset it")
    if not is_quantisable(encoder.model):
        if is_forced:
            raise MicolError(
                f"{VARIABLE}=int8 needs BERT's layers with GELU, and this encoder is a "
                f"{encoder.model.config.model_type}; unset it"
            )
        return None
    model = Int8Model(encoder.model, bfloat16=has_bfloat16(encoder.device))
    cosine = least_cosine(encoder, model)
    if cosine >= LEAST_COSINE:
        return model
    if is_forced:
        raise MicolError(
            f"{VARIABLE}=int8 would turn this encoder's vectors too far (cosine {cosine:.3f}, at least "
            f"{LEAST_COSINE} is needed); unset it"
        )
    return None


def least_cosine(encoder: Encoder, model: Int8Model) -> float:
    """The smallest cosine of a probe text's vector, [CLS] or mean, in float32 and in int8."""
    batch = encoder.framing.pack(encoder.tokenize(PROBE))
    encoder.model.eval()
    with torch.inference_mode():
        exact, quick = last_hidden_states(encoder.model, batch).float(), model.hidden(batch)
    starts = batch.starts.tolist()
    cosines = [
        cosine_similarity(pooled(exact, start, end), pooled(quick, start, end), dim=1).min()
        for start, end in pairwise(starts)
    ]
    return float(torch.stack(cosines).min())


def pooled(hidden: torch.Tensor, start: int, end: int) -> torch.Tensor:
    """The [CLS] vector and the mean of one sequence."""
    return torch.stack([hidden[start], hidden[start:end].mean(dim=0)])


def on_every_core(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """`work` of every item, in order; several at once, each on one core, and a single one on all of them.

    Cores that work on items of their own never wait for each other, as they do within each matrix product
    when they share one item.
    """
    threads = torch.get_num_threads()
    stream = iter(items)
    first = list(islice(stream, 2))
    if threads == 1 or len(first) < 2:
        yield from map(work, chain(first, stream))
        return
    pending: deque[Future[Result]] = deque()
    with cores(threads) as pool:
        for item in chain(first, stream):
            if len(pending) > 2 * threads:  # memory for some, not for all
                yield pending.popleft().result()
            pending.append(pool.submit(work, item))
        while pending:
            yield pending.popleft().result()


@contextmanager
def cores(count: int) -> Iterator[ThreadPoolExecutor]:
    """Threads that compute on one core each."""
    threads = torch.get_num_threads()
    with ThreadPoolExecutor(count, "micol", initializer=use_one_thread) as pool:
        try:
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)
            # torch takes the last number that any thread has set as that of threads yet to come.
            torch.set_num_threads(threads)


def use_one_thread() -> None:
    torch.get_num_threads()  # torch sets a thread's number on first use: let that be now, not later
    torch.set_num_threads(1)
