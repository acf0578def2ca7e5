"""The GPU that Spark has set aside for a task, as torch will count it.

Spark hands out what its discovery script has printed: the numbers that nvidia-smi gives to all GPUs of a
machine. torch counts only those that CUDA_VISIBLE_DEVICES leaves it, and, unless it is told otherwise before
it starts, the fastest first.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING

from micol.errors import MicolError

if TYPE_CHECKING:
    from pyspark import TaskContext

ORDER, VISIBLE = "CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES"


def gpu_of(task: TaskContext) -> int | None:
    """Where torch counts the GPU of a task, None for a task without one; to be asked before torch is loaded.

    A worker keeps its process from task to task and may be sent to another GPU of its executor, so that all
    of them stay visible to it.
    """
    given = task.resources().get("gpu")
    if given is None:
        return None
    os.environ[ORDER] = "PCI_BUS_ID"
    return place_of(given.addresses[0], os.environ)


def place_of(address: str, environment: Mapping[str, str]) -> int:
    visible = environment.get(VISIBLE)
    seen = visible.split(",") if visible is not None else None
    if seen is None and address.isdecimal():
        return int(address)
    if seen is not None and address in seen:
        return seen.index(address)
    raise MicolError(
        f"Spark gave a task GPU {address!r} on {socket.gethostname()}, "
        + (f"where {VISIBLE}={visible} hides it" if seen is not None else "which is no number")
        + "; have the discovery script print the numbers that nvidia-smi shows"
    )
