"""Elementary functions that a compiler can turn into vector instructions: no branches, no calls."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload
from numpy.polynomial import Chebyshev, Polynomial

from micol.compiled import WITHOUT_ENTRY

float32, int32, uint16 = np.float32, np.int32, np.uint16

# Sums may be taken in any order, and no value is infinite or not a number: what vector instructions need.
# Inlined, because a function that is called has machine code of its own and another in its kernel, which add
# up in other orders: a process that compiles would take the first, one that loads from disk the second.
fast = njit(error_model="numpy", fastmath=True, forceinline=True, **WITHOUT_ENTRY)

LOG2_E = float32(np.log2(np.e))
SMALLEST_EXPONENT = float32(-126.0)
EXPONENT_BIAS = int32(127)
MANTISSA_BITS = int32(23)
# 2^x for x between -1/2 and 1/2, by falling powers.
E5, E4, E3, E2, E1, E0 = (
    float32(coefficient)
    for coefficient in Chebyshev.interpolate(lambda x: 2.0**x, 5, domain=[-0.5, 0.5])
    .convert(kind=Polynomial)
    .coef[::-1]
)

# erfc(x) = t (A1 + t (A2 + …)) exp(-x²), t = 1 / (1 + P x), for x >= 0: Abramowitz and Stegun, 7.1.26.
P = float32(0.3275911)
A1, A2, A3, A4, A5 = (float32(a) for a in (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429))
ROOT_HALF = float32(np.sqrt(0.5))
HALF, ONE = float32(0.5), float32(1.0)

# A bfloat16 is the upper half of a float32, and numba knows it by its bits alone.
BFLOAT16_SHIFT = int32(16)
BFLOAT16_HALF = int32(1 << 15)

# Added to a number below 2^22, it leaves the nearest whole number in the last bits.
ROUNDER = float32(1.5 * 2**23)


def bitcast(source: types.Type, target: types.Type, target_ir: ir.Type) -> Any:
    """A function that reads the bits of one type as those of another."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.bitcast(values[0], target_ir)

    def typed(_: Any, value: Any) -> Any:
        return target(source), emit

    return intrinsic(typed)


bits_of = bitcast(types.float32, types.int32, ir.IntType(32))
float_of = bitcast(types.int32, types.float32, ir.FloatType())


def extreme(instruction: str) -> Any:
    """The smaller or the larger of two float32 by LLVM's own operation: it sees no reduction in `a < b`."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        of_two = ir.FunctionType(ir.FloatType(), (ir.FloatType(), ir.FloatType()))
        operation = builder.module.declare_intrinsic(instruction, (ir.FloatType(),), of_two)
        return builder.call(operation, values, fastmath=("fast",))

    def typed(_: Any, some: Any, other: Any) -> Any:
        return types.float32(types.float32, types.float32), emit

    return intrinsic(typed)


smaller, larger = extreme("llvm.minnum"), extreme("llvm.maxnum")


@fast
def exp(x: float) -> float:
    """e^x for x <= 0, to 4e-6 of itself; what would be below 1e-38 is 1e-38."""
    power = larger(x * LOG2_E, SMALLEST_EXPONENT)
    whole = np.floor(power + HALF)
    rest = power - whole
    fraction = ((((E5 * rest + E4) * rest + E3) * rest + E2) * rest + E1) * rest + E0
    return fraction * float_of(int32((int32(whole) + EXPONENT_BIAS) << MANTISSA_BITS))


@fast
def gelu(x: float) -> float:
    """x Φ(x), with the error function and not its tanh imitation, to 4e-7."""
    distance = abs(x) * ROOT_HALF
    t = ONE / (ONE + P * distance)
    tail = HALF * ((((A5 * t + A4) * t + A3) * t + A2) * t + A1) * t * exp(-distance * distance)
    return x * tail if x < 0 else x - x * tail


@fast
def nearest_byte(x: float) -> np.int8:
    """The whole number nearest to x, from 0 to 255, less 128."""
    return np.int8(bits_of(x + ROUNDER) ^ int32(128))


def wide(number: Any) -> np.float32:
    """The value of a float32, or of a bfloat16 given by its bits."""
    raise NotImplementedError("for kernels only")


@overload(wide, strict=False, jit_options={"fastmath": True})
def _wide(number: Any) -> Any:
    if number == types.uint16:
        return lambda number: float_of(int32(int32(number) << BFLOAT16_SHIFT))
    return lambda number: number


def stored(number: Any, place: Any) -> Any:
    """A float32 as it is, or as the bits of the nearest bfloat16, whichever the place is for."""
    raise NotImplementedError("for kernels only")


@overload(stored, strict=False, jit_options={"fastmath": True})
def _stored(number: Any, place: Any) -> Any:
    if place == types.uint16:
        return lambda number, place: uint16((bits_of(number) + BFLOAT16_HALF) >> BFLOAT16_SHIFT)
    return lambda number, place: number
