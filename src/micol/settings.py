"""Every setting of training, visible at once, and the named recipes that fill them in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from micol.errors import UsageError

ARCHITECTURES = ("bi", "cross")
# What is chosen without labels: the path, and what the hierarchy says.
AUTO = "auto"
CHOICES = {
    "architecture": ARCHITECTURES,
    "pooling": ("auto", "cls", "mean"),
    "sampling": ("uniform", "node-first", "rarity"),
    "hierarchy": (AUTO, "special", "general"),
    "teacher": ("none", "bi"),
}
POSITIVE = (
    "pairs", "batch_size", "epochs", "learning_rate", "temperature", "negatives", "bm25_top", "memory",
)  # fmt: skip
NOT_NEGATIVE = (
    "validation_pairs", "hard_negatives", "gradient_cache", "weight_decay", "checkpoints", "dense_top",
    "seed",
)  # fmt: skip
SHARES = ("title_pairs", "warmup", "interpolate")
# [CLS], [SEP] and some words; two texts and their separators for the cross-encoder.
FEWEST_TOKENS = 8
# A document has some eighty candidate labels, not all of which can be right.
MOST_LABELS_PER_DOCUMENT = 40


@dataclass(frozen=True)
class Settings:
    """The resolved settings of one training run; saved with the model."""

    architecture: str
    path: str
    recipe: str
    pairs: int = 50_000
    validation_pairs: int = 1_000
    sampling: str = "uniform"
    # Share of pairs that are a title against the abstract of the same document: a label is short, a
    # document long, and metadata pairs are long against long.
    title_pairs: float = 0.0
    # Bi-encoder: pairs of alike documents that meet in a batch, each other's hard negatives; 0: by chance.
    hard_negatives: int = 0
    max_tokens: int = 256
    pooling: str = "auto"
    batch_size: int = 256
    gradient_cache: int = 0
    epochs: int = 1
    learning_rate: float = 2e-5
    warmup: float = 0.1
    weight_decay: float = 0.0
    temperature: float = 0.05
    # Cross-encoder: where the second texts and what to prefer among them come from.
    negatives: int = 1
    teacher: str = "none"
    # Share of the way from the untrained to the trained weights at which the model is saved.
    interpolate: float = 1.0
    keep_best: bool = False
    # How many times over the run training is saved, so that it can be resumed; 0: never.
    checkpoints: int = 10
    # The base's own dropout; that of attention is slow.
    dropout: bool = True
    attention_dropout: bool = False
    bf16: bool = True
    compile: bool = False
    bm25_top: int = 50
    dense_top: int = 0
    # Fuses what the encoder says with what the text names and what similar and linked documents name.
    evidence: bool = False
    # Documents kept with the model for that, drawn from those that it was trained on.
    memory: int = 50_000
    # Whether documents have the general labels above their special ones, too; auto: found out.
    hierarchy: str = AUTO
    # How many labels people give a document, so that scores are as high as they should be; 0: found out.
    labels_per_document: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        # Asked this way round, what is no number is refused, too.
        for name in POSITIVE:
            if not getattr(self, name) > 0:
                raise UsageError(f"{name} must be above 0, got {getattr(self, name)}")
        for name in NOT_NEGATIVE:
            if not getattr(self, name) >= 0:
                raise UsageError(f"{name} must be 0 or more, got {getattr(self, name)}")
        for name in SHARES:
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"{name} must be between 0 and 1, got {getattr(self, name)}")
        if not 0 <= self.labels_per_document <= MOST_LABELS_PER_DOCUMENT:
            raise UsageError(
                f"labels_per_document must be between 0 and {MOST_LABELS_PER_DOCUMENT}, "
                f"got {self.labels_per_document}"
            )
        if self.max_tokens < FEWEST_TOKENS:
            raise UsageError(f"max_tokens must be at least {FEWEST_TOKENS}, got {self.max_tokens}")
        if self.keep_best and not self.checkpoints:
            raise UsageError("keep_best chooses among checkpoints, and checkpoints is 0; raise it")
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise UsageError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}")
        if self.evidence and self.architecture == "cross" and self.teacher == "none":
            raise UsageError(
                "evidence is fused around a bi-encoder, and a cross-encoder without a teacher has none; "
                "set teacher to bi, or leave evidence out"
            )
        if self.teacher != "none" and self.architecture != "cross":
            raise UsageError("teacher is a setting of the cross-encoder; leave it out for the bi-encoder")

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


# The paper's appendix A.3. Its learning rate is not printed; 5e-5 is BERT's usual one.
PAPER: Mapping[str, Mapping[str, Any]] = {
    "bi": {
        "pairs": 50_000, "validation_pairs": 5_000, "batch_size": 8, "max_tokens": 256, "pooling": "cls",
        "epochs": 3, "learning_rate": 5e-5, "warmup": 0.0, "keep_best": True,
        "attention_dropout": True,
    },
    "cross": {
        "pairs": 50_000, "validation_pairs": 5_000, "batch_size": 4, "max_tokens": 512, "negatives": 1,
        "epochs": 3, "learning_rate": 5e-5, "warmup": 0.0, "keep_best": True,
        "attention_dropout": True,
    },
}  # fmt: skip

BEST: Mapping[str, Mapping[str, Any]] = {
    "bi": {
        "pairs": 12_800, "sampling": "rarity", "hard_negatives": 32, "interpolate": 0.5, "evidence": True,
    },
    "cross": {"max_tokens": 384, "batch_size": 32, "pairs": 20_000, "negatives": 7, "teacher": "bi"},
}  # fmt: skip

RECIPES = {"paper": PAPER, "best": BEST}

CROSS_ONLY = frozenset({"negatives", "teacher"})


def resolve(architecture: str, path: str, recipe: str, given: Mapping[str, Any]) -> Settings:
    """The recipe's settings with the given ones in their place; unknown names raise."""
    if recipe not in RECIPES:
        raise UsageError(f"recipe must be one of {', '.join(RECIPES)}, got {recipe!r}")
    if architecture not in ARCHITECTURES:
        raise UsageError(f"architecture must be one of {', '.join(ARCHITECTURES)}, got {architecture!r}")
    known = {field.name for field in fields(Settings)}
    for name in given:
        if name not in known:
            raise UsageError(f"unknown setting {name!r}; there are {', '.join(sorted(known))}")
    settings = Settings(architecture, path, recipe, **RECIPES[recipe][architecture])
    return replace(settings, **given)


def resolve_teacher(settings: Settings, given: Mapping[str, Any]) -> Settings | None:
    """The settings of a cross-encoder's teacher: those of the bi-encoder that the same request would train.

    What is given holds for both; what is not, each has from its own recipe. It teaches by its encoder alone.
    """
    if settings.teacher == "none":
        return None
    shared = {name: value for name, value in given.items() if name not in CROSS_ONLY}
    return resolve("bi", settings.path, settings.recipe, {**shared, "evidence": False})
