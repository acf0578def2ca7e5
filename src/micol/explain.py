"""Why a label was suggested: the matched words, the best sentence, each source's part, and the neighbours."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from micol.classify import Classifier
from micol.evidence.fused import Fused
from micol.evidence.gather import TAG_TRACE, TRACE, Gathered
from micol.evidence.sentences import spans
from micol.rank.bi_encoder import BiEncoder
from micol.ranking import Ranking
from micol.records import Document, Suggestion

WORD = re.compile(r"[^\W\d_]{3,}")
MOST_WORDS = 4
MOST_NEIGHBOURS = 3

Span = tuple[int, int]


@dataclass(frozen=True)
class Neighbour:
    """A remembered document that names the label or would be tagged with it, and how it was found: similar or
    linked.
    """

    id: str
    title: str
    via: str


@dataclass(frozen=True)
class Explanation:
    """The reasons for one suggestion; places are characters of the document's text."""

    named_at: tuple[Span, ...] = ()
    # Words of both, rarest first, where the label is not named.
    shared_words: tuple[str, ...] = ()
    best_sentence: Span | None = None
    # What each source of evidence adds to the score, where evidence is fused.
    contributions: Mapping[str, float] = field(default_factory=dict)
    neighbours: tuple[Neighbour, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {
            "named_at": [list(span) for span in self.named_at],
            "shared_words": list(self.shared_words),
            "best_sentence": list(self.best_sentence) if self.best_sentence else None,
            "contributions": {source: round(part, 4) for source, part in self.contributions.items()},
            "neighbours": [asdict(neighbour) for neighbour in self.neighbours],
        }

    def sentence(self, text: str) -> str:
        """The strongest reason in a few words."""
        if self.named_at:
            return f"named: “{excerpt(text, *self.named_at[0])}”"
        if self.neighbours and max(self.contributions, key=self.contributions.__getitem__) in (
            "similar documents",
            "linked documents",
        ):
            return f"as {self.neighbours[0].via} documents: {', '.join(n.id for n in self.neighbours)}"
        if self.shared_words:
            return f"shares: {', '.join(self.shared_words)}"
        if self.best_sentence:
            start, end = self.best_sentence
            return f"by meaning: “{' '.join(text[start:end].split())[:80]}”"
        return "by meaning alone"


class Explainer:
    """Explains the suggestions of one classifier."""

    def __init__(self, classifier: Classifier) -> None:
        self.classifier = classifier

    @cached_property
    def label_words(self) -> list[set[str]]:
        return [words(text) for text in self.classifier.labels.texts()]

    @cached_property
    def frequency(self) -> Counter[str]:
        """How many labels have a word: those that many have tell nothing."""
        return Counter(word for label in self.label_words for word in label)

    def explain(self, document: Document, suggestions: Sequence[Suggestion]) -> list[Explanation]:
        positions = [self.classifier.labels.position(suggestion.id) for suggestion in suggestions]
        if self.classifier.fused is None:
            return self.by_words(document.text, positions)
        return self.by_evidence(self.classifier.fused, document, positions)

    def by_words(self, text: str, positions: Sequence[int]) -> list[Explanation]:
        matches = self.classifier.exact.match([text])
        first = {
            int(label): (int(start), int(end))
            for label, start, end in zip(matches.labels, matches.starts, matches.ends, strict=True)
        }
        return [
            Explanation(occurrences(text, first.get(position)), self.shared_words(text, position))
            for position in positions
        ]

    def shared_words(self, text: str, position: int) -> tuple[str, ...]:
        common = words(text) & self.label_words[position]
        most = max(10, len(self.label_words) // 10)
        telling = sorted((self.frequency[word], word) for word in common if self.frequency[word] <= most)
        return tuple(word for _, word in telling[:MOST_WORDS])

    def by_evidence(self, fused: Fused, document: Document, positions: Sequence[int]) -> list[Explanation]:
        encoder = self.classifier.ranker
        assert isinstance(encoder, BiEncoder)
        asked = Ranking.from_rows([[(position, 0.0) for position in positions]])
        # Which labels a cross-encoder reads depends on all candidates.
        gathered = fused.gather([document], encoder, None if fused.reader else asked)
        if not np.isin(positions, gathered.keys).all():
            gathered = fused.gather([document], encoder, asked)
        similar = fused.memory.similar(gathered.vectors, fused.memory.own_positions([document]))
        linked = fused.memory.linked([document])
        places = np.searchsorted(gathered.keys, positions)
        found = []
        for position, place in zip(positions, places, strict=True):
            named = gathered.mentions.spans[gathered.mentions.labels == position].tolist()
            found.append(
                Explanation(
                    occurrences(document.text, named[0] if named else None),
                    self.shared_words(document.text, position),
                    best_sentence(fused, gathered, document, position),
                    fused.fusion.contributions(gathered.values[place]),
                    (
                        *naming(fused, linked, position, "linked"),
                        *naming(fused, similar, position, "similar"),
                    )[:MOST_NEIGHBOURS],
                )
            )
        return found


def occurrences(text: str, first: Sequence[int] | None) -> tuple[Span, ...]:
    """Where the name that was found first stands, there and further on."""
    if first is None:
        return ()
    start, end = first
    again = re.compile(rf"(?<!\w){re.escape(text[start:end])}(?!\w)", re.IGNORECASE)
    return ((start, end), *(match.span() for match in again.finditer(text, end)))


def best_sentence(fused: Fused, gathered: Gathered, document: Document, position: int) -> Span | None:
    """Where the sentence stands whose meaning is nearest to the label's name."""
    if not len(gathered.sentence_vectors):
        return None
    closeness = gathered.sentence_vectors @ fused.side.name_vectors[position].astype(np.float32)
    return spans(document.text)[int(closeness.argmax())]


def naming(fused: Fused, neighbours: csr_array, position: int, via: str) -> list[Neighbour]:
    """The neighbours that name a label or would be tagged with it, those that count most first."""
    facts = fused.side.facts
    named = facts.mentions[[position]] / (facts.mention_mean[position] + TRACE)
    tagged = facts.tags[[position]] / (facts.tag_mean[position] + TAG_TRACE)
    said = (named + tagged).toarray()[0]
    weights = neighbours.toarray()[0] * said
    order = np.argsort(-weights)[:MOST_NEIGHBOURS]
    documents = fused.memory.documents
    return [
        Neighbour(documents.ids[row], documents[int(row)].title, via) for row in order if weights[row] > 0
    ]


def words(text: str) -> set[str]:
    return {word.lower() for word in WORD.findall(text)}


def excerpt(text: str, start: int, end: int, around: int = 24) -> str:
    """The matched words with a little of what stands around them, on one line."""
    before, after = text[max(0, start - around) : start], text[end : end + around]
    before = before[before.find(" ") + 1 :] if start > around else before
    after = after[: after.rfind(" ")] if end + around < len(text) and " " in after else after
    return " ".join(f"{before}[{text[start:end]}]{after}".split())
