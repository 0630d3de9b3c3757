"""Floats compared by tolerance: the last digits of a result may depend on how it was added up.

Rounding both sides does not do: two neighbors may lie on either side of a boundary.
"""

from __future__ import annotations

import math
from typing import Any

TOLERANCE = 1e-12


def near(one: Any, two: Any, tolerance: float = TOLERANCE, absolute: float = 0.0) -> bool:
    """Equal, but floats only up to a relative or an absolute tolerance; nan equals nan, and lists are compared item by item.

    >>> near(1073741822.25, 1073741822.2499999), near([0.1 + 0.2, None], [0.3, None]), near(1.0, 1.001)
    (True, True, False)
    """
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(near(left, right, tolerance, absolute) for left, right in zip(one, two, strict=True))
    if isinstance(one, float) and isinstance(two, float):
        return math.isclose(one, two, rel_tol=tolerance, abs_tol=absolute) or (math.isnan(one) and math.isnan(two))
    return bool(one == two)


class Near(float):
    """A float inside a row that equals its neighbors, so that whole tables compare with `==`."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return near(float(self), float(other)) if isinstance(other, float) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other
