"""Live changes to the labels: saved first, then shown, in one step each."""

from __future__ import annotations

import copy
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from micol.errors import MicolError
from micol.folder import EditedLabels, LabelTable, ModelFolder
from micol.records import Label
from micol.server.batcher import Batcher
from micol.server.metrics import Metrics
from micol.server.problems import RequestError, printable
from micol.server.state import Current, State

if TYPE_CHECKING:
    from micol.classify import Classifier

log = logging.getLogger("micol.server")

FileState = tuple[int, int, int]


@dataclass(frozen=True)
class Edited:
    """What a change came to."""

    state: State
    ids: tuple[str, ...]
    embedded: int


class LabelEditor:
    """Changes the labels of a model folder, one change after the other.

    A change is made to a copy, the copy is written to the folder (a temporary file that takes the old one's
    name), and only then takes the place of what requests are answered from: whatever goes wrong before that
    leaves both as they were.
    """

    def __init__(self, folder: Path, current: Current, batcher: Batcher, metrics: Metrics) -> None:
        self.folder, self.current, self.batcher, self.metrics = ModelFolder(folder), current, batcher, metrics
        self.lock = threading.Lock()
        self.on_disk = file_state(self.folder.labels)

    def add(self, labels: Sequence[Label]) -> Edited:
        def change(fresh: Classifier) -> int:
            refuse_repeats(labels)
            known = set(fresh.labels.ids)
            for label in labels:
                if label.id in known:
                    raise RequestError(409, f"there is a label with the id {printable(label.id)} already")
            check_parents(labels, known | {label.id for label in labels})
            return fresh.add_labels(labels)

        return self._change(change, (label.id for label in labels))

    def update(self, id: str, change_of: Callable[[Label], Label]) -> Edited:
        def change(fresh: Classifier) -> int:
            known = set(fresh.labels.ids)
            if id not in known:
                raise unknown(id)
            changed = change_of(fresh.labels[fresh.labels.position(id)])
            check_parents([changed], known)
            return fresh.update_labels([changed])

        return self._change(change, [id])

    def remove(self, ids: Sequence[str]) -> Edited:
        def change(fresh: Classifier) -> int:
            known = set(fresh.labels.ids)
            for id in ids:
                if id not in known:
                    raise unknown(id)
            if len(known) == len(set(ids)):
                raise RequestError(409, "the last label cannot be removed: a model needs at least one")
            fresh.remove_labels(ids)
            return 0

        return self._change(change, ids)

    def _change(self, change: Callable[[Classifier], int], ids: Iterable[str]) -> Edited:
        with self.lock:
            before = self.current.state
            fresh = self._latest(before)
            # On the model's thread, which alone may embed the texts of labels.
            embedded = self.batcher.call(lambda: change(fresh))
            state = State(fresh, before.revision + 1)
            self._save(fresh)
            self.current.state = state
            self.metrics.edit()
            return Edited(state, tuple(ids), embedded)

    def _latest(self, state: State) -> Classifier:
        """A copy, with the labels that are in the folder, where `micol labels` may have changed them."""
        fresh = copy.copy(state.classifier)
        if file_state(self.folder.labels) != self.on_disk:
            fresh.take(EditedLabels(LabelTable.read(self.folder.labels), 0))
        return fresh

    def _save(self, fresh: Classifier) -> None:
        try:
            fresh.save_labels(self.folder.path)
        except MicolError as error:
            log.error("a change of labels could not be saved: %s", error)
            raise RequestError(507, "the change could not be saved, so it was not made") from error
        self.on_disk = file_state(self.folder.labels)


def unknown(id: str) -> RequestError:
    return RequestError(404, f"no label has the id {printable(id)}")


def refuse_repeats(labels: Sequence[Label]) -> None:
    seen: set[str] = set()
    for label in labels:
        if label.id in seen:
            raise RequestError(409, f"the id {printable(label.id)} comes twice; give each label its own")
        seen.add(label.id)


def check_parents(labels: Iterable[Label], known: set[str]) -> None:
    for label in labels:
        for parent in label.parents:
            if parent == label.id:
                raise RequestError(409, f"the label {printable(label.id)} cannot be its own parent")
            if parent not in known:
                raise RequestError(
                    404, f"no label has the id {printable(parent)}, so none can stand below it"
                )


def file_state(path: Path) -> FileState:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns
