"""What declarations of tables in a lake have in common: facts or changes, and small files that are united."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from headrace.connectors.targets import need_client


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
        """Raise if the client is missing: before anything runs."""
        need_client(*self.client)
