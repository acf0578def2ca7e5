"""The hierarchy of labels: how special each is, and which stand above which.

Of what a text names, people take the special; some give the general labels above it as well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from statistics import fmean, pstdev

import numpy as np
from scipy.sparse import csr_array

from micol.labels import LabelSpace

# The least share of labels that stand below or above another for depth to tell anything.
LEAST_PLACED = 0.5


def specificity(space: LabelSpace, trained: LabelSpace) -> np.ndarray:
    """How many spreads the logarithm of each label's depth lies above the usual; 0 outside of any hierarchy.

    Where most labels are outside, there is no usual depth: all are 0.
    Labels that training knew have the depth that they had then: an edit of one moves no other.
    """
    then = depths(trained.parents)
    special = {label: math.log1p(then[label]) for label in with_place(trained.parents)}
    if len(special) < LEAST_PLACED * len(trained):
        return np.zeros(len(space), np.float32)
    usual, spread = fmean(special.values()), pstdev(special.values()) or 1.0
    position = {identifier: label for label, identifier in enumerate(trained.ids)}
    known = {
        label: position[identifier] for label, identifier in enumerate(space.ids) if identifier in position
    }
    now = depths(space.parents, {label: then[before] for label, before in known.items()})
    values = np.zeros(len(space), np.float32)
    for label in with_place(space.parents) - known.keys():
        values[label] = (math.log1p(now[label]) - usual) / spread
    for label, before in known.items():
        values[label] = (special.get(before, usual) - usual) / spread
    return values


def parents_then(space: LabelSpace, trained: LabelSpace) -> csr_array:
    """[trained labels, labels]: 1 where a label stood right above another when training saw them."""
    now = {identifier: position for position, identifier in enumerate(space.ids)}
    pairs = [
        (label, now[trained.ids[parent]])
        for label, above in enumerate(trained.parents)
        for parent in above
        if trained.ids[parent] in now
    ]
    rows, columns = np.array(pairs, np.int64).reshape(-1, 2).T
    return csr_array((np.ones(len(pairs), np.float32), (rows, columns)), shape=(len(trained), len(space)))


def with_place(parents: Sequence[Sequence[int]]) -> set[int]:
    """The labels that stand below or above another."""
    return {label for label, above in enumerate(parents) if above}.union(chain.from_iterable(parents))


def depths(parents: Sequence[Sequence[int]], known: Mapping[int, float] | None = None) -> dict[int, float]:
    """Steps from the top to each label, over several parents their mean; those that are known stay.

    Of labels in a circle, only parents count that a way from the top leads to.
    """
    depth = dict(known or {})
    children: dict[int, list[int]] = {}
    waiting: dict[int, int] = {}
    for label, above in enumerate(parents):
        if label not in depth:
            unknown = [parent for parent in above if parent not in depth]
            waiting[label] = len(unknown)
            for parent in unknown:
                children.setdefault(parent, []).append(label)
    level = [label for label, missing in waiting.items() if not missing]
    while waiting:
        if not level:
            level = [label for label in waiting if any(parent in depth for parent in parents[label])]
            level = level or list(waiting)
        found = {label: [depth[parent] for parent in parents[label] if parent in depth] for label in level}
        depth.update({label: 1 + fmean(above) if above else 0.0 for label, above in found.items()})
        for label in level:
            del waiting[label]
        freed = [child for label in level for child in children.get(label, ()) if child in waiting]
        for child in freed:
            waiting[child] -= 1
        level = [child for child in dict.fromkeys(freed) if not waiting[child]]
    return depth
