"""The classifier: labels, retrievers and a ranker, saved and loaded as one folder (Algorithm 2)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from micol.corpus import Corpus
from micol.errors import MicolError
from micol.evidence.fused import Fused, reader_of
from micol.evidence.fusion import Fusion
from micol.evidence.gather import LabelSide
from micol.evidence.memory import Memory
from micol.folder import (
    CROSS_ENCODER,
    ENCODER,
    MEMORY,
    EditedLabels,
    LabelTable,
    ModelFolder,
    preferred,
    resolved_config,
)
from micol.hub import model_path
from micol.labels import LabelSpace
from micol.rank.bi_encoder import BiEncoder
from micol.rank.cross_encoder import CrossEncoder
from micol.rank.encoder import Encoder
from micol.ranking import Ranking
from micol.records import Document, Label, Suggestion, Tagged
from micol.retrieve import BM25, ExactMatcher, retrieve
from micol.schema import Schema
from micol.settings import Settings

# Documents in flight at once: memory stays the same however many are tagged.
BATCH = 512

Documents = Corpus | Iterable[Document | Mapping[str, Any]]


class Classifier:
    """Tags documents: retrieves candidate labels, re-ranks them, returns the best."""

    def __init__(
        self,
        labels: LabelSpace,
        ranker: BiEncoder | CrossEncoder,
        label_vectors: np.ndarray | None,
        config: dict[str, Any],
        name_vectors: np.ndarray | None = None,
        remember: Callable[[], Memory] | None = None,
        reader: CrossEncoder | None = None,
    ) -> None:
        if not len(labels):
            raise MicolError(f"{labels.source}: holds no label, so there is nothing to tag with")
        self.labels, self.ranker, self.label_vectors, self.config = labels, ranker, label_vectors, config
        # Where evidence is fused, a cross-encoder is one source of it, beside the bi-encoder that ranks.
        self.name_vectors, self.remember, self.reader = name_vectors, remember, reader

    @classmethod
    def build(
        cls,
        labels: LabelSpace,
        ranker: BiEncoder | CrossEncoder,
        settings: Settings,
        training: Mapping[str, Any],
        corpus: Corpus,
        reader: CrossEncoder | None = None,
    ) -> Classifier:
        """A classifier around a ranker that has just been trained, and what reads labels beside it."""
        config = resolved_config(settings, training, corpus, labels)
        if isinstance(ranker, BiEncoder):
            config["pooling"] = ranker.pooling
        config["max_tokens"] = ranker.encoder.max_tokens
        ranker.encoder.settle()
        vectors = embed(ranker, labels.texts(), "embedding labels")
        if not settings.evidence:
            return cls(labels, ranker, vectors, config)
        assert isinstance(ranker, BiEncoder)
        assert vectors is not None
        names = embed(ranker, preferred(labels), "embedding names of labels")
        assert names is not None
        if reader is not None:
            config["reader"] = {"max_tokens": reader.encoder.max_tokens}
            reader.encoder.settle()
        memory = Memory.of(corpus, labels, ranker, names, vectors, settings.memory, settings.seed)
        fused = Fused.learned(memory, ranker, names, vectors, settings, reader)
        config["evidence"] = fused.fusion.as_dict()
        classifier = cls(labels, ranker, vectors, config, names, lambda: fused.memory, reader)
        classifier.fused = fused
        return classifier

    @cached_property
    def fused(self) -> Fused | None:
        """How the evidence is fused; None for a model that ranks by its encoder alone."""
        if self.remember is None:
            return None
        assert self.name_vectors is not None
        assert self.label_vectors is not None
        memory = self.remember()
        side = LabelSide.of(memory, self.labels, self.name_vectors, self.label_vectors)
        fusion = Fusion.from_dict(self.config["evidence"])
        return Fused(memory, side, fusion, reader_of(self.reader, self.labels, memory))

    @cached_property
    def exact(self) -> ExactMatcher:
        return ExactMatcher(self.labels.names)

    @cached_property
    def bm25(self) -> BM25:
        return BM25(self.labels.texts())

    @cached_property
    def label_tokens(self) -> list[np.ndarray]:
        assert isinstance(self.ranker, CrossEncoder)
        return self.ranker.tokenize(self.labels.texts())

    def suggest(
        self,
        documents: Documents,
        limit: int = 5,
        *,
        threshold: float | None = None,
        candidates: Ranking | None = None,
        include: Collection[str] = (),
        exclude: Collection[str] = (),
    ) -> Iterator[Tagged]:
        """Yields each document's best labels. `include` and `exclude` name labels, each with its branch.

        `candidates` take the place of retrieval; they hold a row for every document, in order.
        """
        allowed = self.allowed(include, exclude)
        position = 0
        for batch in batches_of(documents, BATCH, Schema(**self.config["schema"])):
            ready = candidates.slice(position, position + len(batch)) if candidates is not None else None
            position += len(batch)
            ranking = self.rank(batch, ready, allowed).top(limit)
            for row, document in enumerate(batch):
                yield Tagged(document.id, self.suggestions(*ranking.row(row), threshold))

    def suggestions(
        self, positions: np.ndarray, scores: np.ndarray, threshold: float | None
    ) -> tuple[Suggestion, ...]:
        return tuple(
            Suggestion(self.labels.ids[position], self.labels.names[position][0], float(score))
            for position, score in zip(positions, scores, strict=True)
            if threshold is None or score >= threshold
        )

    def rank(
        self,
        documents: Sequence[Document],
        candidates: Ranking | None = None,
        allowed: np.ndarray | None = None,
    ) -> Ranking:
        """All candidate labels of each document, best first."""
        if self.fused is None:
            return self.rank_texts([document.text for document in documents], candidates, allowed)
        assert isinstance(self.ranker, BiEncoder)
        return self.fused.rank(documents, self.ranker, candidates, allowed)

    def rank_texts(
        self, texts: list[str], candidates: Ranking | None = None, allowed: np.ndarray | None = None
    ) -> Ranking:
        """The same by the encoder alone, as in the paper: no evidence is fused."""
        settings = self.config["settings"]
        dense_top = int(settings["dense_top"])
        vectors = self.ranker.vectors(texts) if isinstance(self.ranker, BiEncoder) else None
        if candidates is None:
            candidates = retrieve(
                texts,
                exact=self.exact,
                bm25=self.bm25,
                bm25_top=int(settings["bm25_top"]),
                document_vectors=vectors,
                label_vectors=self.label_vectors,
                dense_top=dense_top,
                allowed=allowed,
            ).candidates
        elif allowed is not None:
            candidates = candidates.restrict(allowed)
        if isinstance(self.ranker, BiEncoder):
            assert vectors is not None
            assert self.label_vectors is not None
            return self.ranker.rank(vectors, self.label_vectors, candidates)
        return self.ranker.rank(self.ranker.tokenize(texts), self.label_tokens, candidates)

    def allowed(self, include: Collection[str], exclude: Collection[str]) -> np.ndarray | None:
        """A mask over labels: the branches of `include` (all labels, where empty) less those of `exclude`."""
        if not include and not exclude:
            return None
        mask = np.full(len(self.labels), not include)
        for wanted, branches in ((True, include), (False, exclude)):
            for label in branches:
                mask[list(self.labels.branch(label))] = wanted
        if not mask.any():
            raise MicolError("include and exclude leave no label to suggest; widen one of them")
        return mask

    def add_labels(self, labels: Iterable[Label]) -> int:
        """Adds labels; returns how many were embedded."""
        return self.take(self.label_table.added(labels, self.embed))

    def update_labels(self, labels: Iterable[Label]) -> int:
        """Puts labels in the place of those with the same ids; returns how many were embedded again."""
        return self.take(self.label_table.updated(labels, self.embed))

    def remove_labels(self, identifiers: Iterable[str]) -> None:
        """Removes labels; those below them stay, without that parent."""
        self.take(self.label_table.removed(identifiers))

    def embed(self, texts: list[str]) -> np.ndarray | None:
        return embed(self.ranker, texts)

    def take(self, edited: EditedLabels) -> int:
        """Takes an edited label space in the place of the present one."""
        self.labels, self.label_vectors = edited.table.labels, edited.table.vectors
        self.name_vectors = edited.table.name_vectors
        for name in ("exact", "bm25", "label_tokens"):
            self.__dict__.pop(name, None)
        known: Fused | None = self.__dict__.get("fused")
        if known is not None:
            assert self.name_vectors is not None
            assert self.label_vectors is not None
            self.fused = known.edited(self.labels, self.name_vectors, self.label_vectors)
        return edited.embedded

    @property
    def label_table(self) -> LabelTable:
        return LabelTable(self.labels, self.label_vectors, self.name_vectors)

    def save(self, folder: str | Path) -> None:
        """Writes the model folder, whole or not at all."""
        parts: dict[str, Callable[[Path], None]] = {ENCODER: self.ranker.save}
        if self.reader is not None:
            parts[CROSS_ENCODER] = self.reader.save
        if self.fused is not None:
            parts[MEMORY] = self.fused.memory.save
        ModelFolder(Path(folder)).write(self.config, self.label_table, parts)

    def save_labels(self, folder: str | Path) -> None:
        """Writes only the labels of a saved model, in one step."""
        self.label_table.write(ModelFolder(Path(folder)).labels)

    @classmethod
    def load(cls, model: str | Path) -> Classifier:
        """Loads a model folder, or a model of the hub by its name, such as "owner/name"."""
        folder = ModelFolder(model_path(model))
        config = folder.read_config()
        table = LabelTable.read(folder.labels)
        encoder = load_encoder(folder.encoder, config["max_tokens"])
        remember, reader = None, None
        if "evidence" in config:
            remember = partial(Memory.load, folder.memory, Schema(**config["schema"]))
        if "reader" in config:
            cross = load_encoder(folder.cross_encoder, config["reader"]["max_tokens"])
            reader = CrossEncoder.load_head(cross, folder.cross_encoder)
        ranker: BiEncoder | CrossEncoder
        if config["settings"]["architecture"] == "cross" and reader is None:
            ranker = CrossEncoder.load_head(encoder, folder.encoder)
        else:
            ranker = BiEncoder(encoder, config["pooling"])
        return cls(table.labels, ranker, table.vectors, config, table.name_vectors, remember, reader)


def load(model: str | Path) -> Classifier:
    """Loads a model folder, or a model of the hub by its name, such as "owner/name"."""
    return Classifier.load(model)


def load_encoder(folder: Path, max_tokens: int) -> Encoder:
    encoder = Encoder.load(folder, max_tokens, remedy="copy the model folder again")
    encoder.settle()
    return encoder


def embed(ranker: BiEncoder | CrossEncoder, texts: list[str], what: str | None = None) -> np.ndarray | None:
    """Label vectors as they are kept, half precision; a cross-encoder has none."""
    if not isinstance(ranker, BiEncoder):
        return None
    return ranker.vectors(texts, what).astype(np.float16)


def batches_of(documents: Documents, size: int, schema: Schema) -> Iterator[list[Document]]:
    """Documents in lists of `size`; dictionaries are read as lines of a JSONL file would be."""
    stream = (as_document(document, schema) for document in documents)
    while batch := list(islice(stream, size)):
        yield batch


def as_document(document: Document | Mapping[str, Any], schema: Schema) -> Document:
    if isinstance(document, Document):
        return document
    return next(iter(Corpus.from_records([document], schema)))
