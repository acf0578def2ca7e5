"""EDA (Wei and Zou 2019): four simple edits of a text, as a source of pairs for contrastive training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from micol.baselines.wordnet import WordNet
from micol.errors import MicolError
from micol.progress import track
from micol.retrieve.stop_words import ENGLISH

if TYPE_CHECKING:
    from micol.benchmark.task import Task
    from micol.ranking import Ranking


@dataclass(frozen=True)
class Eda:
    """A document and its edited self are a pair; each text gets one of the four edits."""

    supervised: ClassVar[bool] = False
    deterministic: ClassVar[bool] = False

    architecture: str = "bi"
    # Share of the words that an edit touches.
    strength: float = 0.1
    wordnet: str = "/usr/share/wordnet"
    base: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        from micol.baselines.contrastive import check_architecture

        check_architecture(self.architecture)
        if not 0 < self.strength < 1:
            raise MicolError(f"strength must lie between 0 and 1, got {self.strength}")

    @property
    def title(self) -> str:
        from micol.baselines.contrastive import ARCHITECTURE_NAMES

        return f"EDA ({ARCHITECTURE_NAMES[self.architecture]})"

    def rank(self, task: Task, seed: int) -> Ranking:
        from micol.baselines.contrastive import Request, augmented_ranking

        wordnet = WordNet.read(task.weights.get("wordnet", self.wordnet))

        def augment(texts: Sequence[str], generator: np.random.Generator) -> list[str]:
            edits = Edits(wordnet, self.strength, generator)
            return [edits.one_of_four(text) for text in track(texts, "EDA", len(texts), "texts")]

        request = Request(self.architecture, "EDA", self.base, self.settings, seed)
        return augmented_ranking(task, augment, request)


class Edits:
    """The four edits; words are what stands between spaces, and keep their commas."""

    def __init__(self, wordnet: WordNet, strength: float, generator: np.random.Generator) -> None:
        self.wordnet, self.strength, self.generator = wordnet, strength, generator

    def one_of_four(self, text: str) -> str:
        words = text.split()
        edits = (self.replace_synonyms, self.insert, self.swap, self.delete)
        edit = edits[self.generator.integers(len(edits))]
        return " ".join(edit(words))

    def times(self, words: Sequence[str]) -> int:
        return max(1, int(self.strength * len(words)))

    def synonym(self, word: str) -> str | None:
        """A word that can stand for this one, or None."""
        bare = word.strip(".,;:!?()[]\"'").lower()
        if bare in ENGLISH:
            return None
        choice = self.wordnet.synonyms(bare)
        return choice[self.generator.integers(len(choice))] if choice else None

    def replace_synonyms(self, words: list[str]) -> list[str]:
        """Words, chosen by chance, by synonyms; a word that is replaced is so wherever it stands."""
        left = self.times(words)
        changed = list(words)
        for word in self.generator.permutation(np.array(sorted(set(words)), dtype=object)):
            synonym = self.synonym(word)
            if synonym is not None:
                changed = [synonym if old == word else old for old in changed]
                left -= 1
            if not left:
                break
        return changed

    def insert(self, words: list[str]) -> list[str]:
        """Synonyms of some of the words, at any place."""
        changed = list(words)
        known = [synonym for word in dict.fromkeys(words) if (synonym := self.synonym(word)) is not None]
        if known:
            for _ in range(self.times(words)):
                changed.insert(
                    int(self.generator.integers(len(changed) + 1)), known[self.generator.integers(len(known))]
                )
        return changed

    def swap(self, words: list[str]) -> list[str]:
        changed = list(words)
        for _ in range(self.times(words)):
            one, other = self.generator.integers(len(changed), size=2)
            changed[one], changed[other] = changed[other], changed[one]
        return changed

    def delete(self, words: list[str]) -> list[str]:
        """Each word with the same chance, but never all of them."""
        kept = [word for word in words if self.generator.random() >= self.strength]
        return kept or [words[self.generator.integers(len(words))]]
