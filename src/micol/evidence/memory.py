"""What a model remembers of the documents that it was trained on: texts, metadata, vectors and guessed tags,
no labels of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array, vstack

from micol.corpus import CITATIONS, LABELS, Corpus
from micol.errors import MicolError
from micol.evidence.mentions import NameMatcher
from micol.evidence.near import NearMatcher, frequency_of_stems, stems
from micol.evidence.sentences import sentences_of
from micol.evidence.shares import Share
from micol.labels import LabelSpace
from micol.ranking import row_numbers
from micol.records import Document
from micol.schema import Schema

if TYPE_CHECKING:
    from micol.rank.bi_encoder import BiEncoder

# Documents over which the scores of a label are standardised, and labels over which those of a document are.
SAMPLE = 400
BACKGROUND = 1_000
# Documents whose words are counted.
COUNTED = 8_000

NEAREST = 50
TEMPERATURE = 0.1
MOST_LINKED = 30
# A value that more documents share (a common library, a journal) joins everything with everything.
HUB = 100
DIRECT_LINK = 2.0

# Of a sparse array, in the order in which it is made of them.
PARTS = ("data", "indices", "indptr")
DOCUMENTS_FILE, LABELS_FILE, ARRAYS_FILE = "documents.parquet", "labels.parquet", "arrays.safetensors"


@dataclass(frozen=True)
class Memory:
    """Documents with their vectors, and the sample and background that scores are standardised by."""

    documents: Corpus
    # The labels that training knew: adding labels later must not change what is said of others.
    labels: LabelSpace
    vectors: np.ndarray  # float16 [documents, dim]
    sample: np.ndarray  # int64: positions of some documents
    sentence_bounds: np.ndarray  # int64 [sample + 1]
    sentence_vectors: np.ndarray  # float16 [sentences of the sample, dim]
    background_names: np.ndarray  # float16 [background, dim]: vectors of some labels' names
    background_texts: np.ndarray  # float16 [background, dim]: and of their texts
    # [labels, documents]: the odds of what documents would be tagged with; None until they have been.
    tags: csr_array | None = None

    @classmethod
    def of(
        cls,
        corpus: Corpus,
        labels: LabelSpace,
        encoder: BiEncoder,
        name_vectors: np.ndarray,
        text_vectors: np.ndarray,
        most: int,
        seed: int,
    ) -> Memory:
        """Remembers at most so many documents of the corpus."""
        generator = np.random.default_rng((seed, 5))
        kept = np.sort(generator.permutation(len(corpus))[:most])
        documents = without_labels(corpus.select(kept))
        sample = np.sort(generator.permutation(len(documents))[:SAMPLE])
        background = np.sort(generator.permutation(len(labels))[:BACKGROUND])
        sentences, bounds = sentences_of([documents[int(position)] for position in sample])
        return cls(
            documents,
            labels,
            encoder.vectors(documents.texts(), "reading documents").astype(np.float16),
            sample,
            np.array(bounds, np.int64),
            encoder.vectors(sentences).astype(np.float16),
            name_vectors[background].astype(np.float16),
            text_vectors[background].astype(np.float16),
        )

    def with_tags(self, tags: csr_array) -> Memory:
        """The same documents, of which what has been worked out stays."""
        tagged = replace(self, tags=tags)
        tagged.__dict__.update({**self.__dict__, "tags": tags})
        return tagged

    def tags_at(self, places: np.ndarray) -> csr_array:
        """The tags of the labels at these places; nothing for those at -1."""
        nothing = csr_array((1, len(self.documents)), dtype=np.float32)
        if self.tags is None:
            return nothing[np.zeros(len(places), np.int64)]
        return csr_array(vstack([self.tags, nothing]))[places]

    @cached_property
    def texts(self) -> list[str]:
        return self.documents.texts()

    @cached_property
    def title_lengths(self) -> np.ndarray:
        lengths: np.ndarray = pc.utf8_length(self.documents.table["title"]).to_numpy()
        return lengths

    @cached_property
    def wide(self) -> np.ndarray:
        """The vectors as float32: products of float16 are slow on a CPU."""
        return self.vectors.astype(np.float32)

    @cached_property
    def centre(self) -> np.ndarray:
        centre: np.ndarray = self.wide.mean(axis=0)
        return centre

    @cached_property
    def directions(self) -> np.ndarray:
        """Unit vectors from the centre of all documents to each."""
        away = self.wide - self.centre
        directions: np.ndarray = away / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-9)
        return directions

    @cached_property
    def counted_stems(self) -> list[set[str]]:
        return [stems(text) for text in self.texts[:COUNTED]]

    @cached_property
    def stem_frequency(self) -> dict[str, int]:
        return frequency_of_stems(self.counted_stems)

    @cached_property
    def titled(self) -> Share:
        """Of the documents that name a label, those that name it in the title."""
        found = NameMatcher(self.labels.names).match(self.texts[:COUNTED])
        in_title = found.starts < self.title_lengths[row_numbers(found.indptr)]
        counts = np.bincount(found.labels, minlength=len(self.labels))
        return Share.of(np.bincount(found.labels, in_title, len(self.labels)), counts)

    def near_matcher(self, names: Sequence[Sequence[str]]) -> NearMatcher:
        return NearMatcher(names, self.stem_frequency, len(self.counted_stems))

    def similar(self, vectors: np.ndarray, own: np.ndarray) -> csr_array:
        """Weights of the nearest documents, [vectors, documents]; `own` is where each is itself, or -1."""
        nearest = min(NEAREST, len(self.documents) - 1)
        if nearest < 1:
            return csr_array((len(vectors), len(self.documents)), dtype=np.float32)
        cosines = vectors @ self.wide.T
        known = np.flatnonzero(own >= 0)
        cosines[known, own[known]] = -2
        columns = np.argpartition(-cosines, nearest - 1, axis=1)[:, :nearest]
        closeness = np.take_along_axis(cosines, columns, axis=1)
        weights = np.exp((closeness - closeness.max(axis=1, keepdims=True)) / TEMPERATURE)
        weights /= weights.sum(axis=1, keepdims=True)
        indptr = np.arange(len(vectors) + 1) * nearest
        shape = (len(vectors), len(self.documents))
        return csr_array((weights.ravel(), columns.ravel(), indptr), shape=shape)

    def linked(self, documents: Sequence[Document]) -> csr_array:
        """Weights of the documents joined to each by metadata; rare things in common weigh more."""
        indptr, columns, weights = [0], [], []
        for document in documents:
            positions, strength = self.joined(document)
            if len(positions) > MOST_LINKED:
                strongest = np.argpartition(-strength, MOST_LINKED)[:MOST_LINKED]
                positions, strength = positions[strongest], strength[strongest]
            columns.append(positions)
            weights.append(strength / max(strength.sum(), 1e-9))
            indptr.append(indptr[-1] + len(positions))
        shape = (len(documents), len(self.documents))
        flat = np.concatenate([np.empty(0), *weights]), np.concatenate([np.empty(0, np.int64), *columns])
        return csr_array((flat[0].astype(np.float32), flat[1], indptr), shape=shape)

    def joined(self, document: Document) -> tuple[np.ndarray, np.ndarray]:
        """Positions of the documents that share something with one or link to it, and how strongly."""
        found: list[np.ndarray] = []
        strengths: list[float] = []
        for name, holders in self.holders.items():
            for value in document.metadata.get(name, ()):
                sharing = holders.get(value)
                if sharing is not None and len(sharing) <= HUB:
                    found.append(sharing)
                    strengths.append(1 / np.log(2 + len(sharing)))
        for name in self.documents.schema.links.values():
            linked = [*document.metadata.get(name, ()), *document.metadata.get(CITATIONS, ())]
            towards = [self.position_of[value] for value in linked if value in self.position_of]
            found.append(np.array(towards, np.int64))
            strengths.append(DIRECT_LINK)
            from_there = self.holders[name].get(document.id)
            if from_there is not None:
                found.append(from_there)
                strengths.append(DIRECT_LINK)
        if not found:
            return np.empty(0, np.int64), np.empty(0)
        flat = np.concatenate(found)
        strength = np.repeat(strengths, [len(some) for some in found])
        positions, where = np.unique(flat, return_inverse=True)
        total = np.bincount(where, strength, len(positions))
        other = positions != self.position_of.get(document.id, -1)
        return positions[other], total[other]

    @cached_property
    def position_of(self) -> dict[str, int]:
        return {identifier: position for position, identifier in enumerate(self.documents.ids)}

    @cached_property
    def holders(self) -> dict[str, dict[str, np.ndarray]]:
        """For each metadata field and value the documents that have it, where there are two or more."""
        index: dict[str, dict[str, np.ndarray]] = {}
        for name in self.documents.schema.fields:
            indptr, values = self.documents.lists(name)
            encoded = values.dictionary_encode()
            codes = encoded.indices.to_numpy(zero_copy_only=False)
            rows = np.repeat(np.arange(len(self.documents)), np.diff(indptr))
            order = np.argsort(codes, kind="stable")
            bounds = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
            index[name] = {
                value: rows[order[start:end]]
                for value, start, end in zip(encoded.dictionary.to_pylist(), bounds, bounds[1:], strict=False)
            }
        return index

    def own_positions(self, documents: Sequence[Document]) -> np.ndarray:
        return np.array([self.position_of.get(document.id, -1) for document in documents], np.int64)

    def save(self, folder: Path) -> None:
        from safetensors.numpy import save_file

        folder.mkdir()
        self.documents.write(folder / DOCUMENTS_FILE)
        self.labels.write(folder / LABELS_FILE)
        names = (
            "vectors", "sample", "sentence_bounds", "sentence_vectors", "background_names", "background_texts"
        )  # fmt: skip
        arrays = {name: np.ascontiguousarray(getattr(self, name)) for name in names}
        if self.tags is not None:
            arrays |= {f"tags_{part}": getattr(self.tags, part) for part in PARTS}
        save_file(arrays, folder / ARRAYS_FILE)

    @classmethod
    def load(cls, folder: Path, schema: Schema) -> Memory:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        for name in (DOCUMENTS_FILE, LABELS_FILE, ARRAYS_FILE):
            if not (folder / name).is_file():
                raise MicolError(
                    f"{folder / name}: missing, so the model folder is not whole; copy it again or train anew"
                )
        try:
            arrays = load_file(folder / ARRAYS_FILE)
        except (OSError, SafetensorError) as error:
            raise MicolError(
                f"{folder / ARRAYS_FILE}: cannot be read ({error}); copy the model folder again"
            ) from error
        documents = Corpus.read(folder / DOCUMENTS_FILE, schema, cache=False)
        labels = LabelSpace.read(folder / LABELS_FILE)
        tags = [arrays.pop(f"tags_{part}", None) for part in PARTS]
        if tags[0] is not None:
            arrays["tags"] = csr_array(tuple(tags), shape=(len(labels), len(documents)))
        return cls(documents, labels, **arrays)


def without_labels(corpus: Corpus) -> Corpus:
    """Nobody who gets a model gets the labels that documents may have come with."""
    place = corpus.table.column_names.index(LABELS)
    none = pa.array([[]] * len(corpus), corpus.table.schema.field(LABELS).type)
    return Corpus(corpus.table.set_column(place, LABELS, none), corpus.schema, corpus.source)
