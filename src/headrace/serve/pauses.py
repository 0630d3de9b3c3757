"""Pauses of the interpreter that a server cannot afford: every client waits for them.

A full collection of garbage looks at all objects, those of the imported modules, too: 70 ms of CPU. And a thread that wants Python's lock
waits for up to five milliseconds while another one computes. The event loop wants it after every call of the system.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Seconds after which a thread that computes lets another one run. Below this, the change itself takes a noticeable share.
_TURN = 0.0005


@contextmanager
def short_turns() -> Iterator[None]:
    """Let threads change often for as long as the block lasts."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_TURN)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def collect_once() -> None:
    """Collect what is garbage, and exclude the rest from later collections. For a process that only serves, before its first client."""
    gc.collect()
    keep_what_is_there()


def let_go() -> None:
    """Let collections look at all objects again: at the end of the process, modules in C report those that were never freed."""
    gc.unfreeze()


def keep_what_is_there() -> None:
    """Exclude the present objects from later collections. This takes no time, and the little garbage among them stays."""
    gc.freeze()
