"""What requests are answered from: a classifier that is never changed, only replaced as a whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from micol.records import Document, Suggestion
from micol.server.browse import LabelIndex

if TYPE_CHECKING:
    from micol.classify import Classifier
    from micol.explain import Explainer


class State:
    """A classifier, complete with its indexes, and the number of changes that led to it."""

    def __init__(self, classifier: Classifier, revision: int = 0) -> None:
        self.classifier, self.revision = classifier, revision
        self.labels = LabelIndex(classifier.labels)
        self.warm_up()

    def warm_up(self) -> None:
        """Builds now what would otherwise be built by the first who asks."""
        classifier = self.classifier
        _ = classifier.exact, classifier.bm25, classifier.fused
        if self.architecture == "cross":
            _ = classifier.label_tokens

    @property
    def architecture(self) -> str:
        return self.classifier.ranker.architecture

    @cached_property
    def explainer(self) -> Explainer:
        from micol.explain import Explainer

        return Explainer(self.classifier)

    def strength(self, score: float) -> float:
        """A score between 0 and 1, for bars and for Annif: a cosine as it is, others by the logistic."""
        if self.architecture == "bi":
            return min(max(score, 0.0), 1.0)
        return 1 / (1 + math.exp(-min(max(score, -50.0), 50.0)))


def explain(state: State, document: Document, suggestions: Sequence[Suggestion]) -> list[dict[str, Any]]:
    """The reasons for each suggestion as plain values."""
    return [found.as_dict() for found in state.explainer.explain(document, suggestions)]


class Current:
    """The state of this moment. Readers take it once and keep it for the whole of their work."""

    def __init__(self, state: State) -> None:
        self.state = state
