"""Outputs that can tell, before a job starts, whether their system answers."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class Reachable(Protocol):
    """An output of another system."""

    def reach(self) -> None:
        """Raise if the system does not answer, or refuses the job. Nothing is changed."""
        ...
