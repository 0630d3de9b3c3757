"""A Delta table as a user declares it; nothing is opened here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.connectors.lake import LakeTable
from headrace.core.names import Names, listed

if TYPE_CHECKING:
    from headrace.connectors.delta.output import DeltaOutput


@dataclass(frozen=True)
class DeltaTarget(LakeTable):
    """A Delta table; see `delta`."""

    directory: Path
    client = ("deltalake", "the client for Delta tables", "delta")

    def output(self, columns: pa.Schema, key: tuple[str, ...]) -> DeltaOutput:
        """The table as a job writes it."""
        from headrace.connectors.delta.output import DeltaOutput

        return DeltaOutput(self.directory, columns, key, self.compact_every)

    def __str__(self) -> str:
        return f"Delta table {self.directory}"


def delta(directory: str | Path, *, key: Names = (), append_only: bool = False, compact_every: int = 100) -> DeltaTarget:
    """A Delta table as the target of a sink, exactly once: one commit for each epoch, which holds its number.

    Facts are added or, with `key`, replace earlier ones; results that change replace and remove rows by their key. The table is made if
    it is not there; columns that results have since then are added to it. After every `compact_every` commits small files are united,
    and those that are not part of the table for a week are removed; 0 leaves them.

    >>> str(delta("lake/views_per_url"))
    'Delta table lake/views_per_url'
    """
    return DeltaTarget(Path(directory), key=listed(key), append_only=append_only, compact_every=compact_every)
