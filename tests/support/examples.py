"""Random examples: how many a test tries, and the seeds it draws them from.

`make soak` tries all of them and sets HEADRACE_EXAMPLES=soak; `make test` tries a quarter and sets HEADRACE_EXAMPLES=quarter; the inner
loop tries an eighth. Seeds are fixed unless HEADRACE_SEED is set, as `make fuzz` does.
"""

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
SOAK = os.environ.get("HEADRACE_EXAMPLES") == "soak"
INNER_LOOP = not SOAK and os.environ.get("HEADRACE_EXAMPLES") != "quarter"
_PART = 8 if INNER_LOOP else 1 if SOAK else 4
SEED = int(os.environ["HEADRACE_SEED"]) if os.environ.get("HEADRACE_SEED") else None


def examples(many: int) -> int:
    """`many` in `make soak`, a quarter of them in `make test`, an eighth in the inner loop."""
    return -(-many // _PART)


def seeds(many: int, block: int = 0) -> range:
    """The seeds of one test: `many` of them, fewer in the inner loop; each block of a parametrized test has its own.

    The range starts at 0, or at HEADRACE_SEED.
    """
    start = (SEED or 0) + block * many
    return range(start, start + examples(many))


def soaked(long: T, part: T) -> T:
    """The long one in `make soak`, its part elsewhere."""
    return long if SOAK else part


def some(many: Sequence[T], place: int, every: int = 3) -> Sequence[T]:
    """All of them in `make test` and `make soak`; in the inner loop one of `every`, others at each place: a few places show all of them."""
    return many[place % every :: every] if INNER_LOOP else many
