"""Declarations of tables in a data lake: facts or changes, and compaction of small files."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

import pyarrow as pa

from headrace.connectors.targets import AT_ONCE, STAGED, need_client
from headrace.core.counts import counts
from headrace.core.errors import SettingsError
from headrace.core.promise import Promise, Takes


@dataclass(frozen=True, kw_only=True)
class LakeTable:
    """A table whose rows are replaced and removed by their key, unless it is only added to."""

    client: ClassVar[tuple[str, str, str]]
    """The module that writes it, what that is, and the extra that installs it."""
    commits: ClassVar[str]
    """How the driver commits an epoch, in words."""
    key: tuple[str, ...] = ()
    append_only: bool = False
    compact_every: int = 100
    roll: timedelta | None = None
    history: timedelta = timedelta(days=1)

    @property
    def promise(self) -> Promise:
        takes = Takes.FACTS if self.append_only else Takes.LATEST
        return Promise(takes, "exactly once", f"{STAGED} {self.commits}", AT_ONCE)

    def check(self, columns: pa.Schema, key: tuple[str, ...]) -> None:
        """Raise if the client is missing, or the number of files to merge is out of range: before anything runs."""
        if not counts(self.compact_every, least=0):
            raise SettingsError(
                f"compact_every={self.compact_every!r} is not a number of commits or files", hint="give a whole number; 0 means never"
            )
        need_client(*self.client)
