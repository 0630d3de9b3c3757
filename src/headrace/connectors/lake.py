"""What declarations of tables in a lake have in common: facts or changes, and small files that are united."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from headrace.connectors.targets import need_client
from headrace.core.counts import counts
from headrace.core.errors import SettingsError


@dataclass(frozen=True, kw_only=True)
class LakeTable:
    """A table whose rows are replaced and removed by their key, unless it is only added to."""

    client: ClassVar[tuple[str, str, str]]
    """The module that writes it, what that is, and which extra brings it."""
    key: tuple[str, ...] = ()
    append_only: bool = False
    compact_every: int = 100

    @property
    def replaces(self) -> bool:
        return True

    def check(self, columns: pa.Schema, key: tuple[str, ...]) -> None:
        """Raise if the client is missing, or files cannot be united so often: before anything runs."""
        if not counts(self.compact_every, least=0):
            raise SettingsError(
                f"compact_every={self.compact_every!r} is no number of commits or files", hint="give a whole number; 0 is never"
            )
        need_client(*self.client)
