"""UDA (Xie et al. 2020): back-translation and TF-IDF word replacement, as a source of pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from micol.errors import MicolError
from micol.progress import track

if TYPE_CHECKING:
    from micol.benchmark.task import Task
    from micol.ranking import Ranking


@dataclass(frozen=True)
class Uda:
    """A document and its rewritten self are a pair.

    With two translation models (there and back) a share of the texts is translated; all others have the words
    replaced that say little.
    """

    supervised: ClassVar[bool] = False
    deterministic: ClassVar[bool] = False

    architecture: str = "bi"
    # Share of the words that are replaced.
    strength: float = 0.3
    # Folders or hub ids of Marian-style models, such as Helsinki-NLP/opus-mt-en-fr and -fr-en.
    there: str = ""
    back: str = ""
    translated: float = 0.5
    base: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        from micol.baselines.contrastive import check_architecture

        check_architecture(self.architecture)
        for name in ("strength", "translated"):
            if not 0 <= getattr(self, name) <= 1:
                raise MicolError(f"{name} must lie between 0 and 1, got {getattr(self, name)}")
        if bool(self.there) != bool(self.back):
            raise MicolError("back-translation needs two models: there and back")

    @property
    def title(self) -> str:
        from micol.baselines.contrastive import ARCHITECTURE_NAMES

        how = "" if self.there else ", TF-IDF replacement only"
        return f"UDA ({ARCHITECTURE_NAMES[self.architecture]}{how})"

    def rank(self, task: Task, seed: int) -> Ranking:
        from micol.baselines.contrastive import Request, augmented_ranking

        def augment(texts: Sequence[str], generator: np.random.Generator) -> list[str]:
            return self.augment(texts, generator, task)

        request = Request(self.architecture, "UDA", self.base, self.settings, seed)
        return augmented_ranking(task, augment, request)

    def augment(
        self, texts: Sequence[str], generator: np.random.Generator, task: Task | None = None
    ) -> list[str]:
        count = round(self.translated * len(texts)) if self.there else 0
        done = []
        if count:
            from micol.baselines.back_translation import BackTranslator

            there, back = (task.model(name) or name if task else name for name in (self.there, self.back))
            translator = BackTranslator(there, back, int(generator.integers(1 << 31)))
            done = translator.translate(texts[:count])
        replacement = WordReplacement([text.split() for text in texts], self.strength, generator)
        rest = track(texts[count:], "TF-IDF replacement", len(texts) - count, "texts")
        return [*done, *(" ".join(replacement.replace(text.split())) for text in rest)]


class WordReplacement:
    """Replaces words of low TF-IDF by words that say little: UDA's appendix, section B.

    A word x of a text goes with probability min(p (C - tfidf(x)) / Z, 1), where C is the text's highest
    TF-IDF and Z the mean of C - tfidf. What comes is drawn in proportion to max S - S(w), where S(w) is
    freq(w) idf(w).
    """

    def __init__(
        self, texts: Sequence[Sequence[str]], strength: float, generator: np.random.Generator
    ) -> None:
        self.strength, self.generator = strength, generator
        documents = Counter(word for text in texts for word in set(text))
        frequency = Counter(word for text in texts for word in text)
        self.idf = {word: float(np.log(len(texts) / count)) for word, count in documents.items()}
        self.words = sorted(frequency)
        informative = np.array([frequency[word] * self.idf[word] for word in self.words])
        weights = informative.max(initial=0) - informative
        # Where all words are alike, any of them will do.
        self.cumulative = np.cumsum(weights if weights.sum() > 0 else np.ones(len(weights)))

    def replace(self, words: Sequence[str]) -> list[str]:
        counts = Counter(words)
        tfidf = np.array([counts[word] / len(words) * self.idf[word] for word in words])
        gap = tfidf.max(initial=0) - tfidf
        mean = gap.mean() if len(gap) else 0.0
        # A text whose words all weigh the same loses each of them with the same chance.
        chance = np.minimum(self.strength * gap / mean, 1) if mean > 0 else np.full(len(words), self.strength)
        goes = self.generator.random(len(words)) < chance
        comes = self.draw(int(goes.sum()))
        changed = list(words)
        for at, word in zip(np.flatnonzero(goes).tolist(), comes, strict=True):
            changed[at] = word
        return changed

    def draw(self, count: int) -> list[str]:
        at = np.searchsorted(self.cumulative, self.generator.random(count) * self.cumulative[-1], "right")
        return [self.words[position] for position in at.tolist()]
