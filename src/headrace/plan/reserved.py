"""Reserved names of columns, which the engine adds to those of the user."""

from __future__ import annotations

import re

_NAMES = re.compile(
    r"""_(a([0-9]+|[0-9a-f]{16})(\..*)? | match[ ].* |
    added|again|alike|all|asked|at|before|candidates|cell|changed|coin|content|contents|count|drawn|due|earlier|end|epoch|fault|fires|first|
    follows|found|fresh|given|gone|group|had|headers|key|known|last|latest|news|next|number|offset|old|op|original|other|packet|pane|
    panes|partition|place|previous|problem|program|reason|record|revision|row|rows|sessions|single|spent|start|suspect|time|timers|
    tombstone|touched|true|until|was|window|wire)""",
    re.VERBOSE,
)


def reserved(name: str) -> bool:
    """Whether this name is refused for a column of the user's.

    >>> reserved("_time"), reserved("_a0"), reserved("_id"), reserved("time")
    (True, True, False, False)
    """
    return _NAMES.fullmatch(name) is not None
