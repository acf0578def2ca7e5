"""Choosing the best few of many scored labels, fast.

A score and its label are packed into one whole number such that the greater number ranks higher: above, the
score's bits; below, the label's position, reversed. So ties are settled by rising label position for free.
"""

from __future__ import annotations

import numpy as np

from micol.compiled import inlined, inner

# Scores looked at together: mostly none of them is among the best, and loops of a fixed length run many
# values at a time.
CHUNK = 64
LOW_BITS = 0x7FFFFFFF


def in_chunks(labels: int) -> np.ndarray:
    """Room for one document's scores, float32 [chunks, CHUNK]; the last chunk may reach beyond the labels."""
    return np.empty((-(-labels // CHUNK), CHUNK), np.float32)


@inner
def choose_best(scores: np.ndarray, above: float, first_label: int, heap: np.ndarray, size: int) -> int:
    """Offers those of one document's scores [chunks, CHUNK] that lie above `above` to a heap that holds
    `size` packed ones already; how many it holds now. The labels are those from `first_label` on.
    """
    bits = scores.view(np.int32)
    maxima, best_maxima = np.empty(len(bits), np.int32), np.empty(len(heap), np.int64)
    n_best = 0
    for chunk in range(len(bits)):
        row, greatest = bits[chunk], np.int32(-LOW_BITS)
        for i in range(CHUNK):
            greatest = max(greatest, in_order_of_floats(row[i]))
        maxima[chunk] = greatest
        n_best = offer(best_maxima, n_best, np.int64(greatest))
    # There are at least as many scores from here on as there are chunks whose greatest is.
    floor = best_maxima[0] if n_best == len(heap) and n_best else np.int64(-LOW_BITS)
    if size == len(heap) and size:
        floor = max(floor, heap[0] >> 32)
    for chunk in range(len(bits)):
        if maxima[chunk] >= floor:
            for i in range(CHUNK):
                ordered = in_order_of_floats(bits[chunk, i])
                if ordered >= floor and scores[chunk, i] > above:
                    label = first_label + chunk * CHUNK + i
                    size = offer(heap, size, (np.int64(ordered) << 32) | (LOW_BITS - label))
    return size


@inner
def unpack_best_first(heap: np.ndarray, labels: np.ndarray, scores: np.ndarray) -> None:
    """Empties a heap into labels and scores, best first."""
    score_bits = scores.view(np.int32)
    for last in range(len(heap) - 1, -1, -1):
        worst = heap[0]
        sink(heap, last, heap[last])
        labels[last] = LOW_BITS - (worst & LOW_BITS)
        score_bits[last] = in_order_of_floats(np.int32(worst >> 32))


@inlined
def in_order_of_floats(bits: np.int32) -> np.int32:
    """Bits of a float32 as an int32 that sorts as the float does; applied again, the bits."""
    return bits if bits >= 0 else bits ^ np.int32(LOW_BITS)


@inner
def offer(heap: np.ndarray, size: int, value: np.int64) -> int:
    """Keeps the greatest values in `heap`, the least of them at its root; how many it holds now."""
    if size < len(heap):
        at = size
        while at > 0 and heap[(at - 1) // 2] > value:
            heap[at] = heap[(at - 1) // 2]
            at = (at - 1) // 2
        heap[at] = value
        size += 1
    elif size and value > heap[0]:
        sink(heap, size, value)
    return size


@inner
def sink(heap: np.ndarray, size: int, value: np.int64) -> None:
    """Puts a value in the place of the root."""
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = value
