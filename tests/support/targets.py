"""A target of a sink that is nowhere."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headrace.core.promise import Promise, Takes


@dataclass(frozen=True)
class MemoryTarget:
    """Enough to be declared."""

    key: tuple[str, ...] = ()
    takes: Takes = Takes.LATEST

    @property
    def promise(self) -> Promise:
        return Promise(self.takes, "exactly once", "nothing is written", "never")

    def check(self, columns: pa.Schema, key: tuple[str, ...]) -> None:
        assert set(key) <= set(columns.names)
