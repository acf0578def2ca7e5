"""Documents that wait, and who is next: short requests pass long ones, and nobody waits for ever.

Half of each batch goes to the shortest requests, so that they wait for no more than the batch under way. The
other half goes by turns, fair by self-clocking: each document is due when the work in front of it, had every
request an equal share, would be done. So a request with hundreds of documents gives way to each newcomer, and
however many short ones come, each batch has a document whose turn it is.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar


class Request(Protocol):
    def is_over(self) -> bool:
        """Whether nobody waits for the answer any more."""


R = TypeVar("R", bound=Request)


@dataclass
class Waiting(Generic[R]):
    """One document in the queue: which of which request, and what it costs."""

    request: R
    index: int
    cost: float
    due: float
    is_taken: bool = False

    @property
    def is_wanted(self) -> bool:
        return not (self.is_taken or self.request.is_over())


class FairQueue(Generic[R]):
    """Documents in two orders: by turns, and the shortest requests first."""

    def __init__(self) -> None:
        self.by_turn: list[tuple[float, int, Waiting[R]]] = []
        self.by_size: list[tuple[int, int, Waiting[R]]] = []
        self.clock = 0.0  # how far the work has come, in cost for each of those who share it
        self.accepted = 0
        self.length = 0

    def __len__(self) -> int:
        return self.length

    def add(self, request: R, costs: Sequence[float]) -> None:
        """Puts the documents of a request into the queue."""
        due = self.clock
        # By powers of two: among requests of about the same size, who came first is next.
        size = math.frexp(sum(costs))[1]
        for index, cost in enumerate(costs):
            due += cost
            self.accepted += 1
            waiting = Waiting(request, index, cost, due)
            heapq.heappush(self.by_turn, (due, self.accepted, waiting))
            heapq.heappush(self.by_size, (size, self.accepted, waiting))
        self.length += len(costs)

    def take(self, budget: float, most: int) -> list[Waiting[R]]:
        """A batch of about that cost, at least one document; what nobody waits for is let go."""
        short = self._take(self.by_size, budget / 2, most - 1, least=0)
        spent = sum(waiting.cost for waiting in short)
        by_turn = self._take(self.by_turn, budget - spent, most - len(short), least=1)
        self.clock = max([self.clock, *(waiting.due for waiting in by_turn)])
        self._tidy()
        return short + by_turn

    def _take(
        self, order: list[tuple[Any, int, Waiting[R]]], budget: float, most: int, least: int
    ) -> list[Waiting[R]]:
        taken: list[Waiting[R]] = []
        while order and len(taken) < most:
            waiting = order[0][-1]
            is_wanted = waiting.is_wanted
            if is_wanted and waiting.cost > budget and len(taken) >= least:
                break
            heapq.heappop(order)
            self.length -= not waiting.is_taken
            waiting.is_taken = True
            if is_wanted:
                taken.append(waiting)
                budget -= waiting.cost
        return taken

    def _tidy(self) -> None:
        """Forgets what was taken by the other order, lest it be kept for as long as somebody waits."""
        if not self.length:
            self.clock = 0.0  # all begin anew
        orders: tuple[list[Any], ...] = (self.by_turn, self.by_size)
        for order in orders:
            if len(order) > 2 * self.length:
                order[:] = [entry for entry in order if not entry[-1].is_taken]
                heapq.heapify(order)
