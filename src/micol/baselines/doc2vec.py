"""Doc2Vec (Le and Mikolov 2014): documents and labels as paragraph vectors in one space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from micol.benchmark.task import Task
from micol.errors import MicolError
from micol.progress import track
from micol.ranking import Ranking, rank_by_cosine
from micol.retrieve.tokens import words

if TYPE_CHECKING:
    from gensim.models.doc2vec import TaggedDocument


@dataclass(frozen=True)
class Doc2Vec:
    """PV-DBOW, trained on the training documents and label texts.

    Test documents and labels get their vectors in the same way, by inference, so that they can be compared.
    """

    supervised: ClassVar[bool] = False
    deterministic: ClassVar[bool] = False

    dimension: int = 100
    min_count: int = 2
    epochs: int = 40
    inference_epochs: int = 50
    # Words above this share of all are left out now and then.
    sample: float = 1e-4

    @property
    def title(self) -> str:
        return "Doc2Vec"

    def rank(self, task: Task, seed: int) -> Ranking:
        model = self.trained([*task.train.texts(), *task.label_texts], seed)
        documents = self.inferred(model, task.test_texts, "Doc2Vec reads documents")
        labels = self.inferred(model, task.label_texts, "Doc2Vec reads labels")
        return rank_by_cosine(documents, labels, task.candidates)

    def trained(self, texts: Sequence[str], seed: int) -> Any:
        try:
            from gensim.models import doc2vec
        except ImportError:
            raise MicolError('gensim is not installed; pip install "micol[baselines]"') from None

        class Stream:
            """gensim goes over the documents once for the vocabulary and once an epoch."""

            def __init__(self) -> None:
                self.tokens = [words(text) for text in texts]

            def __iter__(self) -> Iterator[TaggedDocument]:
                for number, tokens in enumerate(
                    track(self.tokens, "Doc2Vec training", len(self.tokens), "documents")
                ):
                    yield doc2vec.TaggedDocument(tokens, [number])

        # One worker: with several, the same seed would not give the same vectors.
        return doc2vec.Doc2Vec(
            Stream(), vector_size=self.dimension, min_count=self.min_count, epochs=self.epochs,
            sample=self.sample, dm=0, dbow_words=0, seed=seed, workers=1,
        )  # fmt: skip

    def inferred(self, model: Any, texts: Sequence[str], what: str) -> np.ndarray:
        """Unit vectors; zero for a text without a known word."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for number, text in enumerate(track(texts, what, len(texts), "texts")):
            known = [word for word in words(text) if word in model.wv]
            if known:
                # Inference draws at random, too: each text begins at the same point.
                model.random.seed(model.seed)
                vector = model.infer_vector(known, epochs=self.inference_epochs)
                vectors[number] = vector / max(float(np.linalg.norm(vector)), 1e-12)
        return vectors
