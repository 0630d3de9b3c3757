"""How many random examples a test tries: few in the inner loop, all of them in `make test`, which sets HEADRACE_EXAMPLES=all."""

import os

ALL = os.environ.get("HEADRACE_EXAMPLES") == "all"


def examples(many: int) -> int:
    """`many` in `make test`, an eighth of them in the inner loop."""
    return many if ALL else -(-many // 8)
