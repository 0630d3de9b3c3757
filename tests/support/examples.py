"""How many random examples a test tries: few in the inner loop, all of them in `make test`, which sets HEADRACE_EXAMPLES=all."""

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
ALL = os.environ.get("HEADRACE_EXAMPLES") == "all"


def examples(many: int) -> int:
    """`many` in `make test`, an eighth of them in the inner loop."""
    return many if ALL else -(-many // 8)


def some(many: Sequence[T], place: int, every: int = 3) -> Sequence[T]:
    """All of them in `make test`; in the inner loop one of `every`, others at each place, so that a few places show all of them."""
    return many if ALL else many[place % every :: every]
