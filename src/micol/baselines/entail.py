"""ZeroShot-Entail (Yin et al. 2019): does the document entail that it is about the label?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from micol.benchmark.task import Task
from micol.errors import MicolError
from micol.progress import Progress
from micol.ranking import Ranking

PAIRS_A_BATCH = 64
HOW_TO_PROVIDE = "give the folder or hub id of a model trained on natural language inference as `model`"


@dataclass(frozen=True)
class Entail:
    """An NLI cross-encoder: premise the document, hypothesis the template with the label's name."""

    supervised: ClassVar[bool] = False
    deterministic: ClassVar[bool] = True

    model: str = "FacebookAI/roberta-large-mnli"
    template: str = "this document is about {label}"
    max_tokens: int = 256

    def __post_init__(self) -> None:
        if "{label}" not in self.template:
            raise MicolError(f"template must hold {{label}}, got {self.template!r}")

    @property
    def title(self) -> str:
        return "ZeroShot-Entail"

    def rank(self, task: Task, seed: int) -> Ranking:
        hypotheses = [self.template.replace("{label}", names[0]) for names in task.labels.names]
        rows, labels = task.candidates.rows(), task.candidates.labels
        model = NliModel(task.model(self.model) or self.model, self.max_tokens)
        scores = model.entailment(
            [task.test_texts[row] for row in rows.tolist()], [hypotheses[label] for label in labels.tolist()]
        )
        return Ranking.from_entries(rows, labels, scores, len(task.candidates))


class NliModel:
    """A sequence classifier that says, among other things, whether its first text entails the second."""

    def __init__(self, source: str, max_tokens: int) -> None:
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        from micol.rank.encoder import best_device

        try:
            self.tokenizer: Any = AutoTokenizer.from_pretrained(source)
            self.model: Any = AutoModelForSequenceClassification.from_pretrained(source)
        except Exception as error:  # a foreign or damaged folder fails in a dozen ways
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise MicolError(
                f"{source}: the NLI model cannot be loaded ({reason}); {HOW_TO_PROVIDE}"
            ) from error
        self.model.to(best_device()).eval()
        self.max_tokens = max_tokens
        self.entails = entailment_class(self.model.config.id2label, source)

    def entailment(self, premises: Sequence[str], hypotheses: Sequence[str]) -> np.ndarray:
        """The logarithm of the probability of entailment of each pair."""
        import torch

        device = self.model.device
        # Pairs of like length share a batch, so that little of it is padding.
        order = np.argsort([-len(premise) for premise in premises], kind="stable")
        scores = np.empty(len(premises), dtype=np.float32)
        with (
            Progress("entailment", len(order), "pairs") as progress,
            torch.inference_mode(),
            torch.autocast(device.type, torch.float16, enabled=device.type == "cuda"),
        ):
            for start in range(0, len(order), PAIRS_A_BATCH):
                batch = order[start : start + PAIRS_A_BATCH]
                inputs = self.tokenizer(
                    [premises[at] for at in batch], [hypotheses[at] for at in batch],
                    truncation="only_first", max_length=self.max_tokens, padding=True, return_tensors="pt",
                ).to(device)  # fmt: skip
                logits = self.model(**inputs).logits.float()
                scores[batch] = logits.log_softmax(-1)[:, self.entails].cpu().numpy()
                progress.advance(len(batch))
        return scores


def entailment_class(names: dict[int, str], source: str) -> int:
    """Which of the classes means entailment: the one whose name begins so."""
    found = [number for number, name in names.items() if name.lower().startswith("entail")]
    if len(found) != 1:
        classes = ", ".join(names.values())
        raise MicolError(f"{source}: none of its classes ({classes}) is entailment; {HOW_TO_PROVIDE}")
    return int(found[0])
