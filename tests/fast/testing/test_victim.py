"""Writers that are to be killed, and their common parts."""

from __future__ import annotations

from importlib.util import find_spec

from headrace.testing.conformance.victim import LOADED


def test_what_is_loaded_ahead_is_there() -> None:
    """Else each writer would load it by itself, and nobody would say so."""
    assert [name for name in LOADED if find_spec(name) is None] == []
