"""What one request may ask for: a server that accepts anything serves nobody."""

from __future__ import annotations

from dataclasses import dataclass

MOST_LABELS = 1000  # that a document may be given, and that one change may hold
MOST_FILTERS = 100  # branches that a request may name
ANNIF_BATCH = 32  # documents, as Annif has it


@dataclass(frozen=True)
class Limits:
    """Sizes and times; each has an option of `micol serve`."""

    body_bytes: int = 8 << 20
    document_characters: int = 100_000
    documents: int = 256  # in one request
    waiting: int = 8192  # documents of all requests, before newcomers are asked to come later
    together: int = 512  # documents that are tagged in one batch
    seconds: float = 60.0  # for one request, from its first byte to its answer

    def as_dict(self) -> dict[str, float]:
        return {
            "body_bytes": self.body_bytes,
            "document_characters": self.document_characters,
            "documents": self.documents,
            "labels": MOST_LABELS,
            "seconds": self.seconds,
        }
