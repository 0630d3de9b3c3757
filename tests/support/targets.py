"""A target of a sink that is nowhere."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class MemoryTarget:
    """Enough to be declared."""

    key: tuple[str, ...] = ()
    append_only: bool = False
    replaces: bool = True

    def check(self, columns: pa.Schema, key: tuple[str, ...]) -> None:
        assert set(key) <= set(columns.names)
