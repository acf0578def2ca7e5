"""How kernels are compiled: once for a machine, and again when any of them changes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])

# What only kernels call needs no way in from Python, which takes half the time of compilation.
INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "error_model": "numpy"}
# numba's cache watches the file that a kernel stands in, but not the files of the functions that it calls.
SOURCES = sorted(Path(__file__).parent.glob("*.py"))
VERSION = hashlib.sha256(b"".join(source.read_bytes() for source in SOURCES)).hexdigest()[:16]
# A plain 0 would be a type of its own ("literally 0"), and have functions compiled again for it.
int64 = cast("Callable[[Any], int]", np.int64)


def inner(function: Function) -> Function:
    """For functions that only kernels call."""
    return cast(Function, njit(function, **INNER))


def kernel(function: Function) -> Function:
    """For functions that Python calls. They are kept in numba's cache under the version of all kernels."""
    function.__qualname__ += f"-{VERSION}"
    return cast(Function, njit(function, cache=True, error_model="numpy"))
