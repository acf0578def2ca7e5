"""Trains an encoder on examples: transformers' Trainer, with packed batches and our two losses.

The Trainer brings checkpoints, resuming, mixed precision, several GPUs and TensorBoard. What is ours is the
batch (sequences laid end to end), the order of examples, the losses, and the progress lines.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset, Sampler
from transformers import (
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.integrations import TensorBoardCallback

from micol.errors import MicolError
from micol.progress import Progress
from micol.rank import team
from micol.rank.bi_encoder import pool
from micol.rank.checkpoints import Checkpoints
from micol.rank.dropout import hash_dropout
from micol.rank.encoder import Encoder
from micol.rank.examples import Examples
from micol.rank.losses import info_nce, listwise
from micol.rank.memory import parts_that_fit, tokens_at_once
from micol.rank.negatives import Sides
from micol.rank.packing import FusedSelfAttention, Packed, can_pack, slice_sequences
from micol.rank.recorded import RecordedSteps, filled
from micol.rank.runtime import has_bfloat16
from micol.settings import Settings

# Tokens of a step that a GPU runs quicker than a CPU launches it.
MOST_TO_RECORD = 16_384
# Validation examples that pass through the encoder together.
EVALUATED_TOGETHER = 64


def compiler_options() -> dict[str, Any]:
    """Measured on an H200: the gradient of layer normalisation is faster in two kernels than in one."""
    return {name: False for name in ("triton.mix_order_reduction",) if name in torch._inductor.list_options()}


class BiModule(torch.nn.Module):
    """The encoder with pooling, as the Trainer wants to see it."""

    def __init__(self, encoder: Encoder, pooling: str) -> None:
        super().__init__()
        self.model, self.encoder, self.pooling = encoder.model, encoder, pooling

    def forward(self, **batch: Any) -> torch.Tensor:
        packed = Packed(**batch)
        return pool(self.encoder.hidden(packed), packed, self.pooling)


class CrossModule(torch.nn.Module):
    """The encoder with its linear score."""

    def __init__(self, encoder: Encoder, head: torch.nn.Linear) -> None:
        super().__init__()
        self.model, self.encoder, self.head = encoder.model, encoder, head

    def forward(self, **batch: Any) -> torch.Tensor:
        packed = Packed(**batch)
        cls_vectors = self.encoder.hidden(packed)[packed.starts[:-1].long()]
        return self.head(cls_vectors)[:, 0]


class EpochOrder(Sampler[int]):
    """The examples' own order, anew in each epoch, the same again after a restart."""

    def __init__(self, examples: Examples, batch_size: int, seed: int) -> None:
        self.examples, self.batch_size, self.seed, self.epoch = examples, batch_size, seed, 0

    def __len__(self) -> int:
        return len(self.examples)

    def __iter__(self) -> Iterator[int]:
        yield from self.examples.order(self.epoch, self.batch_size, self.seed).tolist()

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch


class Numbers(Dataset[int]):
    """0, 1, 2, …: the collator looks the examples up."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, number: int) -> int:
        return number


class ContrastiveTrainer(Trainer):
    """The Trainer with our order, batches and losses."""

    def __init__(
        self,
        module: BiModule | CrossModule,
        settings: Settings,
        train: Examples,
        validation: Examples | None,
        **options: Any,
    ) -> None:
        self.settings, self.examples, self.validation = settings, train, validation
        self.most_tokens = tokens_at_once(module.model)
        self.is_recorded = can_record(module, settings)
        self.recorded: RecordedSteps | None = None
        super().__init__(
            model=module,
            train_dataset=Numbers(len(train)),
            eval_dataset=Numbers(len(validation)) if validation else None,
            data_collator=(
                partial(collate_filled, train, module.encoder.max_tokens)
                if self.is_recorded
                else train.collate
            ),
            **options,
        )

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """The mean loss over the validation examples, by batches like those of training.

        Several batches pass through the encoder together: small ones would keep a GPU waiting.
        """
        assert self.validation is not None
        size = self.settings.batch_size
        order = self.validation.order(0, size, self.settings.seed)
        at_once = size * max(1, EVALUATED_TOGETHER // size)
        model = self.model_wrapped
        model.eval()
        total = 0.0
        with torch.no_grad(), self.compute_loss_context_manager():
            for start in range(0, len(order), at_once):
                numbers = order[start : start + at_once]
                batch = self._prepare_inputs(self.validation.collate(numbers.tolist()))
                total += float(self.summed_loss(model, batch))
        metrics = {"eval_loss": total / len(order)}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def summed_loss(self, model: torch.nn.Module, inputs: dict[str, Any]) -> torch.Tensor:
        """The sum of the examples' losses; that of a pair depends on the others of its batch."""
        targets = inputs.pop("targets", None)
        if targets is not None:
            return listwise(model(**inputs).view(targets.shape), targets) * len(targets)
        documents = Sides.popped_from(inputs).documents
        vectors = model(**inputs).view(2, documents.shape[1], -1)
        size = self.settings.batch_size
        batches = zip(vectors.split(size, 1), documents.split(size, 1), strict=True)
        losses = [self.contrast(both[0], both[1], Sides(pairs)) * pairs.shape[1] for both, pairs in batches]
        return torch.stack(losses).sum()

    def _get_train_sampler(self, *_: Any) -> EpochOrder:
        return EpochOrder(self.examples, self.settings.batch_size, self.settings.seed)

    def compute_loss(  # type: ignore[override]
        self, model: torch.nn.Module, inputs: dict[str, Any], return_outputs: bool = False, **_: Any
    ) -> Any:
        targets = inputs.pop("targets", None)
        # A batch that was filled up ends with a sequence of padding.
        if targets is None:
            sides = Sides.popped_from(inputs)
            loss = self.contrast_all(model(**inputs)[: sides.documents.numel()], sides)
        else:
            loss = listwise(model(**inputs)[: targets.numel()].view(targets.shape), targets)
        return (loss, None) if return_outputs else loss

    def contrast_all(self, vectors: torch.Tensor, sides: Sides) -> torch.Tensor:
        """The loss of one's share of a batch against the whole of it; vectors of anchors, then positives."""
        anchors, positives = vectors.chunk(2)
        return self.contrast(anchors, team.everyones(positives), sides.everyones())

    def contrast(self, anchors: torch.Tensor, positives: torch.Tensor, sides: Sides) -> torch.Tensor:
        left_out = sides.left_out(len(anchors))
        return info_nce(anchors, positives, self.settings.temperature, left_out)

    def training_step(self, model: torch.nn.Module, inputs: dict[str, Any], *rest: Any) -> torch.Tensor:
        """A step on the whole batch at once, or in parts that fit into memory: the gradient is the same."""
        if self.is_recorded:
            return self.recorded_step(model, self._prepare_inputs(inputs))
        targets = inputs.get("targets")
        cached = self.settings.gradient_cache if targets is None else 0
        if not cached and len(inputs["ids"]) <= self.most_tokens:
            return super().training_step(model, inputs, *rest)
        inputs = self._prepare_inputs(inputs)
        starts = inputs["starts"].tolist()
        if cached:
            parts = [(at, min(at + cached, len(starts) - 1)) for at in range(0, len(starts) - 1, cached)]
        else:
            parts = parts_that_fit(starts, self.most_tokens, 1 if targets is None else targets.shape[1])
        model.train()
        step = self.cached_step if targets is None else self.accumulated_step
        return step(model, inputs, parts)

    def recorded_step(self, model: torch.nn.Module, inputs: dict[str, Any]) -> torch.Tensor:
        if self.recorded is None:
            self.recorded = RecordedSteps(model, lambda batch: self.loss_to_record(model, batch))
        return self.recorded(inputs)

    def loss_to_record(self, model: torch.nn.Module, batch: dict[str, Any]) -> torch.Tensor:
        model.train()
        with self.compute_loss_context_manager():
            loss: torch.Tensor = self.compute_loss(model, batch)
        return loss

    def accumulated_step(
        self, model: torch.nn.Module, inputs: dict[str, Any], parts: list[tuple[int, int]]
    ) -> torch.Tensor:
        """The loss is a mean over lists, so that of a batch is that of its parts, weighed by their size."""
        targets = inputs.pop("targets")
        batch, width = Packed(**inputs), targets.shape[1]
        total = torch.zeros((), device=targets.device)
        for first, last in parts:
            some = targets[first // width : last // width]
            with self.compute_loss_context_manager():
                scores = model(**vars(slice_sequences(batch, first, last)))
                loss = listwise(scores.view(some.shape), some) * (len(some) / len(targets))
            self.accelerator.backward(loss)
            total += loss.detach()
        return total

    def cached_step(
        self, model: torch.nn.Module, inputs: dict[str, Any], parts: list[tuple[int, int]]
    ) -> torch.Tensor:
        """Gradient caching (GradCache): a large batch of in-batch negatives in the memory of a small one.

        The vectors of all sequences come first; the loss gives each vector's gradient. The first part, which
        fills the memory, keeps its graph; each of the others is run again with a graph and given its vectors'
        gradients.
        """
        sides = Sides.popped_from(inputs)
        batch = Packed(**inputs)
        slices = [slice_sequences(batch, first, last) for first, last in parts]
        with self.compute_loss_context_manager():
            kept = model(**vars(slices[0]))
        states, vectors = [], [kept.detach()]
        with torch.no_grad(), self.compute_loss_context_manager():
            for part in slices[1:]:
                states.append(RandomState(self.args.device))
                vectors.append(model(**vars(part)))
        leaf = torch.cat(vectors).requires_grad_()
        loss = self.contrast_all(leaf, sides)
        loss.backward()
        assert leaf.grad is not None
        first, *others = leaf.grad.split([len(v) for v in vectors])
        self.accelerator.backward((kept * first).sum())
        del kept  # and its graph
        for part, state, gradient in zip(slices[1:], states, others, strict=True):
            # The same dropout as in the first pass.
            state.restore()
            with self.compute_loss_context_manager():
                again = model(**vars(part))
            self.accelerator.backward((again * gradient).sum())
        return loss.detach()


def collate_filled(examples: Examples, longest: int, numbers: Sequence[int]) -> dict[str, Any]:
    return filled(examples.collate(numbers), longest)


def can_record(module: BiModule | CrossModule, settings: Settings) -> bool:
    """Whether steps are so small that launching them takes longer than running them."""
    texts = settings.batch_size * (2 if settings.architecture == "bi" else 1 + settings.negatives)
    is_small = texts * module.encoder.max_tokens <= MOST_TO_RECORD
    is_plain = not settings.compile and not settings.gradient_cache and team.size() == 1
    return is_small and is_plain and module.encoder.device.type == "cuda" and can_pack(module.model)


class RandomState:
    """The random generators as they stand now."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.cpu = torch.get_rng_state()
        self.cuda = torch.cuda.get_rng_state(device) if device.type == "cuda" else None

    def restore(self) -> None:
        torch.set_rng_state(self.cpu)
        if self.cuda is not None:
            torch.cuda.set_rng_state(self.cuda, self.device)


class ShowProgress(TrainerCallback):
    """A bar or plain lines with the loss, the rate and the time left; stops when the loss is no number."""

    def __init__(self, what: str) -> None:
        self.what, self.started = what, 0.0
        self.progress: Progress | None = None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        self.started = time.monotonic()
        self.progress = Progress(self.what, state.max_steps, "steps")
        self.progress.begin_at(state.global_step)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        if self.progress:
            self.progress.advance()

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Any = None,
        **_: Any,
    ) -> None:
        loss = (logs or {}).get("loss")
        if loss is None or self.progress is None:
            return
        if not math.isfinite(float(loss)):
            raise MicolError(
                f"the training loss became {loss} at step {state.global_step}; lower the learning rate "
                f"(now {args.learning_rate:g}) or raise the temperature"
            )
        self.progress.note(f"loss {float(loss):.3f}")
        state.log_history[-1]["seconds"] = time.monotonic() - self.started

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        if self.progress:
            self.progress.close()


def fit(
    module: BiModule | CrossModule,
    settings: Settings,
    train: Examples,
    validation: Examples | None,
    checkpoints: Checkpoints,
    *,
    what: str = "training",
) -> list[dict[str, Any]]:
    """Trains the module in place and returns the log: steps with their losses and times."""
    steps = max(1, math.ceil(len(train) / settings.batch_size)) * settings.epochs
    device = module.encoder.device
    every = max(1, math.ceil(steps / max(settings.checkpoints, 1)))
    choose_best = settings.keep_best and settings.checkpoints > 0 and validation is not None
    arguments = TrainingArguments(
        output_dir=str(checkpoints.folder),
        per_device_train_batch_size=team.share_of(settings.batch_size),
        per_device_eval_batch_size=settings.batch_size,
        num_train_epochs=settings.epochs,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        warmup_steps=int(settings.warmup * steps),
        lr_scheduler_type="linear",
        optim="adamw_torch_fused",
        bf16=settings.bf16 and has_bfloat16(device),
        use_cpu=device.type == "cpu",
        ddp_find_unused_parameters=not can_pack(module.model),
        eval_strategy="steps" if choose_best else "no",
        eval_steps=every,
        save_strategy="steps" if settings.checkpoints else "no",
        save_steps=every,
        save_total_limit=2,
        load_best_model_at_end=choose_best,
        metric_for_best_model="loss" if choose_best else None,
        greater_is_better=False if choose_best else None,
        # Reading the loss waits for the device, so that the next batch is not packed meanwhile.
        logging_steps=max(1, steps // 40),
        logging_nan_inf_filter=False,
        # Another process packs the next batches while the device computes.
        dataloader_num_workers=1 if device.type == "cuda" else 0,
        disable_tqdm=True,
        report_to=[],
        remove_unused_columns=False,
        seed=settings.seed,
        log_level="error",
    )
    # A single process uses a single GPU: packed batches cannot be torn apart as DataParallel would.
    arguments._n_gpu = min(arguments.n_gpu, 1)
    keep_residuals_narrow(module.model)
    choose_dropout(module.model, settings)
    if settings.compile:
        hash_dropout(module.model)
        module.model.compile(dynamic=True, options=compiler_options())
    trainer = ContrastiveTrainer(
        module, settings, train, validation, args=arguments, callbacks=[ShowProgress(what)]
    )
    trainer.remove_callback(PrinterCallback)
    if checkpoints.tensorboard and team.is_leader():
        trainer.add_callback(tensorboard_logs(checkpoints.logs))
    start = checkpoints.newest()
    trainer.train(resume_from_checkpoint=str(start) if start else None)
    return list(trainer.state.log_history)


def choose_dropout(model: torch.nn.Module, settings: Settings) -> None:
    """Keeps the dropout of the base that is wanted."""
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout) and not settings.dropout:
            part.p = 0.0
        if isinstance(part, FusedSelfAttention) and not settings.attention_dropout:
            part.dropout.p = 0.0


def tensorboard_logs(folder: Path) -> TrainerCallback:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MicolError('TensorBoard is not installed; pip install "micol[tensorboard]"') from None
    return TensorBoardCallback(SummaryWriter(str(folder)))


def keep_residuals_narrow(model: torch.nn.Module) -> None:
    """Under autocast a layer norm returns float32, so that half of all memory traffic is twice as wide."""
    for part in model.modules():
        if isinstance(part, torch.nn.LayerNorm):
            part.register_forward_hook(narrow)


def narrow(_: torch.nn.Module, __: Any, out: torch.Tensor) -> torch.Tensor:
    kind = out.device.type
    return out.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else out
