"""Compiling inner loops to machine code, kept on disk between runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compiles on first call, without holding the interpreter's lock."""
    try:
        return cast(Function, njit(function, nogil=True, cache=True))
    except RuntimeError:
        # No folder to keep the machine code in (a read-only install without a home): compile in each run.
        return cast(Function, njit(function, nogil=True))


def inlined(function: Function) -> Function:
    """Becomes part of each compiled function that calls it: a call that passes arrays costs as much as
    several steps of an inner loop.
    """
    return cast(Function, njit(function, inline="always"))
