"""Java's StrictMath over whole columns: exponentials, logarithms and powers with the same last digit.

StrictMath is defined by the algorithms of Sun's "freely distributable math library" (fdlibm, 1993), whose polynomials and splits of
constants are below; any other library, correct or not, sometimes rounds differently.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.float64]
Words: TypeAlias = npt.NDArray[np.int64]

_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_INVERSE_LN2 = 1.44269504088896338700e00
# Of e to the power of x, here and in powers.
EXP = (
    1.66666666666666019037e-01,
    -2.77777777770155933842e-03,
    6.61375632143793436117e-05,
    -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)
_LOG = (
    6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
    1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01,
)  # fmt: skip
_LARGEST, _SMALLEST = 7.09782712893383973096e02, -7.45133219101941108420e02
_INVERSE_LN10 = 4.34294481903251816668e-01
_LOG10_2_HIGH, _LOG10_2_LOW = 3.01029995663611771306e-01, 3.69423907715893078616e-13


def high(numbers: Numbers) -> Words:
    """The upper 32 bits: sign, exponent and 20 bits of the fraction."""
    return numbers.view(np.int64) >> 32


def with_high(numbers: Numbers, words: Words) -> Numbers:
    """The numbers with other upper 32 bits."""
    return ((numbers.view(np.int64) & 0xFFFFFFFF) | (words << 32)).view(np.float64)


def without_low(numbers: Numbers) -> Numbers:
    """The numbers without their lower 32 bits."""
    return (numbers.view(np.int64) & ~0xFFFFFFFF).view(np.float64)


def polynomial(number: Numbers, factors: tuple[float, ...]) -> Numbers:
    """factors[0] + number * (factors[1] + ...), from the inside out."""
    value = np.full_like(number, factors[-1])
    for factor in reversed(factors[:-1]):
        value = factor + number * value
    return value


def exp(x: Numbers) -> Numbers:
    """e to the power of x."""
    size = high(x) & 0x7FFFFFFF
    negative = x < 0
    near = size < 0x3FF0A2B2
    count = np.where(near, np.where(negative, -1, 1), np.trunc(_INVERSE_LN2 * x + np.where(negative, -0.5, 0.5)))
    reduced = (size > 0x3FD62E42) & np.isfinite(x) & (x <= _LARGEST) & (x >= _SMALLEST)
    count = np.where(reduced, count, 0.0)
    above = x - count * _LN2_HIGH
    below = count * _LN2_LOW
    rest = np.where(reduced, above - below, x)
    square = rest * rest
    c = rest - square * polynomial(square, EXP)
    plain = 1.0 - ((rest * c) / (c - 2.0) - rest)
    shifted = 1.0 - ((below - (rest * c) / (2.0 - c)) - above)
    power = count.astype(np.int64)
    raised = with_high(shifted, high(shifted) + (power << 20))
    lowered = with_high(shifted, high(shifted) + ((power + 1000) << 20)) * 2.0**-1000
    value = np.where(power == 0, plain, np.where(power >= -1021, raised, lowered))
    value = np.where(size < 0x3E300000, 1.0 + x, value)
    value = np.where(x > _LARGEST, np.inf, np.where(x < _SMALLEST, 0.0, value))
    return np.where(np.isnan(x), x, value)


def log(x: Numbers) -> Numbers:
    """The natural logarithm of numbers above zero, infinity and NaN; undefined for others."""
    tiny = x < 2.0**-1022
    scaled = np.where(tiny, x * 2.0**54, x)
    word = high(scaled)
    power = (word >> 20) - 1023 - np.where(tiny, 54, 0)
    word = word & 0x000FFFFF
    carry = (word + 0x95F64) & 0x100000
    scaled = with_high(scaled, word | (carry ^ 0x3FF00000))
    k = (power + (carry >> 20)).astype(np.float64)
    f = scaled - 1.0
    value = np.where((0x000FFFFF & (2 + word)) < 3, _log_near_one(f, k), _log_elsewhere(f, k, word))
    return np.where(np.isfinite(x), value, x)


def _log_near_one(f: Numbers, k: Numbers) -> Numbers:
    r = f * f * (0.5 - 0.33333333333333333 * f)
    value = np.where(k == 0, f - r, k * _LN2_HIGH - ((r - k * _LN2_LOW) - f))
    return np.where(f == 0, np.where(k == 0, 0.0, k * _LN2_HIGH + k * _LN2_LOW), value)


def _log_elsewhere(f: Numbers, k: Numbers, word: Words) -> Numbers:
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    odd = z * (_LOG[0] + w * (_LOG[2] + w * (_LOG[4] + w * _LOG[6])))
    even = w * (_LOG[1] + w * (_LOG[3] + w * _LOG[5]))
    r = odd + even
    half = 0.5 * f * f
    inner = ((word - 0x6147A) | (0x6B851 - word)) > 0
    with_half = np.where(k == 0, f - (half - s * (half + r)), k * _LN2_HIGH - ((half - (s * (half + r) + k * _LN2_LOW)) - f))
    without = np.where(k == 0, f - s * (f - r), k * _LN2_HIGH - ((s * (f - r) - k * _LN2_LOW) - f))
    return np.where(inner, with_half, without)


def log10(x: Numbers) -> Numbers:
    """The decimal logarithm of numbers above zero, infinity and NaN; undefined for others."""
    tiny = x < 2.0**-1022
    scaled = np.where(tiny, x * 2.0**54, x)
    word = high(scaled)
    power = (word >> 20) - 1023 - np.where(tiny, 54, 0)
    below = (power < 0).astype(np.int64)
    mantissa = with_high(scaled, (word & 0x000FFFFF) | ((0x3FF - below) << 20))
    k = (power + below).astype(np.float64)
    value = (k * _LOG10_2_LOW + _INVERSE_LN10 * log(mantissa)) + k * _LOG10_2_HIGH
    return np.where(np.isfinite(x), value, x)
