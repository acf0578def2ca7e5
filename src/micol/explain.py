"""Why a label was suggested: where the document names it, or which telling words they share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from micol.classify import Classifier
from micol.records import Suggestion

WORD = re.compile(r"[^\W\d_]{3,}")
MOST_WORDS = 4


@dataclass(frozen=True)
class Explanation:
    """The place where a label's name stands in the text (None: nowhere), and words of both, rarest first."""

    named_at: tuple[int, int] | None
    shared_words: tuple[str, ...]

    def sentence(self, text: str) -> str:
        if self.named_at:
            start, end = self.named_at
            return f"named: “{excerpt(text, start, end)}”"
        if self.shared_words:
            return f"shares: {', '.join(self.shared_words)}"
        return "by meaning alone"


class Explainer:
    """Explains the suggestions of one classifier."""

    def __init__(self, classifier: Classifier) -> None:
        self.classifier = classifier
        self.label_words = [words(text) for text in classifier.labels.texts()]
        # How many labels have a word: those that many have tell nothing.
        self.frequency = Counter(word for label in self.label_words for word in label)

    def explain(self, text: str, suggestions: Sequence[Suggestion]) -> list[Explanation]:
        matches = self.classifier.exact.match([text])
        named = {
            int(label): (int(start), int(end))
            for label, start, end in zip(matches.labels, matches.starts, matches.ends, strict=True)
        }
        in_text = words(text)
        explanations = []
        for suggestion in suggestions:
            position = self.classifier.labels.position(suggestion.id)
            common = sorted(
                in_text & self.label_words[position], key=lambda word: (self.frequency[word], word)
            )
            telling = [
                word for word in common if self.frequency[word] <= max(10, len(self.label_words) // 10)
            ]
            explanations.append(Explanation(named.get(position), tuple(telling[:MOST_WORDS])))
        return explanations


def words(text: str) -> set[str]:
    return {word.lower() for word in WORD.findall(text)}


def excerpt(text: str, start: int, end: int, around: int = 24) -> str:
    """The matched words with a little of what stands around them, on one line."""
    before, after = text[max(0, start - around) : start], text[end : end + around]
    before = before[before.find(" ") + 1 :] if start > around else before
    after = after[: after.rfind(" ")] if end + around < len(text) and " " in after else after
    return " ".join(f"{before}[{text[start:end]}]{after}".split())
