"""Inner loops compiled to machine code by numba: once for a machine, and again when any of them changes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit
from numba.core import event

from micol.progress import say

Function = TypeVar("Function", bound=Callable[..., Any])

# What only kernels call needs no way in from Python, which takes half of the time of compilation.
WITHOUT_ENTRY: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
WITHOUT_COUNTING: dict[str, Any] = {"_nrt": False}


def kernel(function: Function) -> Function:
    """For functions that Python calls; they do not hold the interpreter's lock, and are kept on disk."""
    # numba's cache watches the file that a function stands in, but not the files of those that it calls.
    function.__qualname__ += f"-{sources_version(Path(function.__code__.co_filename).parent)}"
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        return cast(Function, njit(function, cache=True, **options))
    except RuntimeError:
        # No folder to keep machine code in (a read-only install without a home): compile in each run.
        return cast(Function, njit(function, **options))


def inner(function: Function) -> Function:
    """For functions that only kernels call."""
    return cast(Function, njit(function, error_model="numpy", **WITHOUT_ENTRY))


def bare(function: Function) -> Function:
    """For functions that only kernels call and that make no arrays: references to arrays go uncounted, which
    for every array handed over costs two atomic operations.
    """
    return cast(Function, njit(function, error_model="numpy", **WITHOUT_ENTRY, **WITHOUT_COUNTING))


def inlined(function: Function) -> Function:
    """For functions that become part of each kernel that calls them: handing over arrays costs as much as
    several steps of an inner loop.
    """
    return cast(Function, njit(function, inline="always", error_model="numpy"))


@lru_cache
def sources_version(folder: Path) -> str:
    sources = sorted(folder.glob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]


class FirstCompilation(event.Listener):
    """Says once why a first run takes longer."""

    told = False

    def on_start(self, event: event.Event) -> None:
        if not self.told:
            self.told = True
            say("compiling for this machine, which takes some seconds; later runs start at once")

    def on_end(self, event: event.Event) -> None:
        pass


def compiling_is_told() -> AbstractContextManager[None]:
    """While it lasts, the person who waits is told if something must be compiled."""
    return cast(AbstractContextManager[None], event.install_listener("numba:compile", FirstCompilation()))
