"""Java's StrictMath.pow over whole columns, bit by bit; see `strict`."""

from __future__ import annotations

import numpy as np

from headrace.operators.expressions.numbers.strict import EXP, Numbers, Words, high, polynomial, with_high, without_low

_BASES = np.array([1.0, 1.5])
_LOG2_OF_BASES_HIGH = np.array([0.0, 5.84962487220764160156e-01])
_LOG2_OF_BASES_LOW = np.array([0.0, 1.35003920212974897128e-08])
_LOG = (
    5.99999999999994648725e-01, 4.28571428578550184252e-01, 3.33333329818377432918e-01, 2.72728123808534006489e-01,
    2.30660745775561754067e-01, 2.06975017800338417784e-01,
)  # fmt: skip
_LN2, _LN2_HIGH, _LN2_LOW = 6.93147180559945286227e-01, 6.93147182464599609375e-01, -1.90465429995776804525e-09
_OVERFLOW = 8.0085662595372944372e-0017
_TWO_THIRDS_LN2, _TWO_THIRDS_LN2_HIGH, _TWO_THIRDS_LN2_LOW = (
    9.61796693925975554329e-01,
    9.61796700954437255859e-01,
    -7.02846165095275826516e-09,
)
_INVERSE_LN2, _INVERSE_LN2_HIGH, _INVERSE_LN2_LOW = 1.44269504088896338700e00, 1.44269502162933349609e00, 1.92596299112661746887e-08


def power(x: Numbers, y: Numbers) -> Numbers:
    """x to the power of y."""
    x, y = (np.ascontiguousarray(side) for side in np.broadcast_arrays(x, y))
    size = np.abs(x)
    whole = np.isfinite(y) & (y == np.trunc(y))
    odd = whole & (np.fmod(y, 2.0) != 0)
    # Zero, infinity and one need no logarithm.
    simple = np.where(y < 0, 1.0 / size, size)
    value = np.where((size == 0) | np.isinf(size) | (size == 1), simple, _ordinary(size, y))
    value = np.where(np.signbit(x) & odd, -value, value)
    value = np.where((x < 0) & np.isfinite(x) & ~whole, np.nan, value)
    value = np.where((y == 0.5) & (x >= 0), np.sqrt(np.abs(x)), value)
    value = np.where(y == 2.0, x * x, np.where(y == 1.0, x, np.where(y == -1.0, 1.0 / x, value)))
    endless = np.where(size == 1, np.nan, np.where((size > 1) == (y > 0), np.inf, 0.0))
    value = np.where(np.isinf(y), endless, value)
    return np.where(y == 0, 1.0, np.where(np.isnan(x) | np.isnan(y), np.nan, value))


def _ordinary(size: Numbers, y: Numbers) -> Numbers:
    word, exponent = high(size), high(y) & 0x7FFFFFFF
    large = exponent > 0x41E00000
    (upper, lower), (near_upper, near_lower) = _log2(size), _log2_near_one(size)
    value = _exp2(np.where(large, near_upper, upper), np.where(large, near_lower, lower), y)
    beyond = (exponent > 0x43F00000) | (large & ((word < 0x3FEFFFFF) | (word > 0x3FF00000)))
    return np.where(beyond, np.where((size < 1) == (y < 0), np.inf, 0.0), value)


def _log2_near_one(size: Numbers) -> tuple[Numbers, Numbers]:
    t = size - 1.0
    w = (t * t) * (0.5 - t * (0.3333333333333333333333 - t * 0.25))
    u, v = _INVERSE_LN2_HIGH * t, t * _INVERSE_LN2_LOW - w * _INVERSE_LN2
    upper = without_low(u + v)
    return upper, v - (upper - u)


def _log2(size: Numbers) -> tuple[Numbers, Numbers]:
    """The logarithm to base 2 in two parts, the upper one with its lower 32 bits empty."""
    tiny = size < 2.0**-1022
    scaled = np.where(tiny, size * 2.0**53, size)
    word = high(scaled)
    n = (word >> 20) - 0x3FF - np.where(tiny, 53, 0)
    fraction = word & 0x000FFFFF
    k = ((fraction > 0x3988E) & (fraction < 0xBB67A)).astype(np.int64)
    up = (fraction >= 0xBB67A).astype(np.int64)
    word = (fraction | 0x3FF00000) - (up << 20)
    scaled, base, t = with_high(scaled, word), _BASES[k], (n + up).astype(np.float64)
    u, v = scaled - base, 1.0 / (scaled + base)
    ss = u * v
    s_high = without_low(ss)
    t_high = with_high(np.zeros_like(scaled), ((word >> 1) | 0x20000000) + 0x00080000 + (k << 18))
    t_low = scaled - (t_high - base)
    s_low = v * ((u - s_high * t_high) - s_high * t_low)
    square = ss * ss
    r = square * square * polynomial(square, _LOG) + s_low * (s_high + ss)
    square = s_high * s_high
    t_high = without_low(3.0 + square + r)
    t_low = r - ((t_high - 3.0) - square)
    u, v = s_high * t_high, s_low * t_high + t_low * ss
    p_high = without_low(u + v)
    p_low = v - (p_high - u)
    z_high = _TWO_THIRDS_LN2_HIGH * p_high
    z_low = _TWO_THIRDS_LN2_LOW * p_high + p_low * _TWO_THIRDS_LN2 + _LOG2_OF_BASES_LOW[k]
    upper = without_low(((z_high + z_low) + _LOG2_OF_BASES_HIGH[k]) + t)
    return upper, z_low - (((upper - t) - _LOG2_OF_BASES_HIGH[k]) - z_high)


def _exp2(upper: Numbers, lower: Numbers, y: Numbers) -> Numbers:
    """2 to the power of y times the logarithm."""
    y_high = without_low(y)
    p_low, p_high = (y - y_high) * upper + y * lower, y_high * upper
    z = p_low + p_high
    word, low = high(z), z.view(np.int64) & 0xFFFFFFFF
    over = (word >= 0x40900000) & ((word != 0x40900000) | (low != 0) | (p_low + _OVERFLOW > z - p_high))
    smallest = 0xC090CC00 - 2**32
    under = (word < 0) & ((word & 0x7FFFFFFF) >= 0x4090CC00) & ((word != smallest) | (low != 0) | (p_low <= z - p_high))
    n, p_high = _whole_part(word, p_high)
    t = without_low(p_low + p_high)
    u, v = t * _LN2_HIGH, (p_low - (t - p_high)) * _LN2 + t * _LN2_LOW
    z = u + v
    w = v - (z - u)
    square = z * z
    t = z - square * polynomial(square, EXP)
    r = (z * t) / (t - 2.0) - (w + z * w)
    z = 1.0 - (r - z)
    raised = high(z) + (n << 20)
    value = np.where((raised >> 20) <= 0, np.ldexp(z, n.astype(np.int32)), with_high(z, raised))
    return np.where(over, np.inf, np.where(under, 0.0, value))


def _whole_part(word: Words, p_high: Numbers) -> tuple[Words, Numbers]:
    """The nearest whole number of an exponent with these upper bits, and the exponent without it."""
    size = word & 0x7FFFFFFF
    split = size > 0x3FE00000
    k = np.clip((size >> 20) - 0x3FF, -1, 20)
    n = word + (0x00100000 >> (k + 1))
    k = np.clip(((n & 0x7FFFFFFF) >> 20) - 0x3FF, 0, 20)
    whole = with_high(np.zeros_like(p_high), n & ~(0x000FFFFF >> k))
    count = ((n & 0x000FFFFF) | 0x00100000) >> (20 - k)
    count = np.where(word < 0, -count, count)
    return np.where(split, count, 0), np.where(split, p_high - whole, p_high)
