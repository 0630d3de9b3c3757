"""A Delta table as a user declares it; nothing is opened here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from headrace.connectors.lake import LakeTable
from headrace.connectors.targets import path_of
from headrace.core.columns.names import Names, listed
from headrace.core.durations import Duration, duration
from headrace.core.where import says_where

if TYPE_CHECKING:
    from headrace.connectors.delta.output import DeltaOutput


@dataclass(frozen=True)
class DeltaTarget(LakeTable):
    """A Delta table; see `delta`."""

    commits: ClassVar[str] = "makes one commit, with the epoch as its application transaction"

    directory: Path
    client = ("deltalake", "the client for Delta tables", "delta")

    def output(self, columns: pa.Schema, key: tuple[str, ...]) -> DeltaOutput:
        """The table as a job writes it."""
        from headrace.connectors.delta.output import DeltaOutput

        return DeltaOutput(self.directory, columns, key, self.roll, self.compact_every, self.history)

    def __str__(self) -> str:
        return f"Delta table {self.directory}"


@says_where
def delta(  # noqa: PLR0913 - one option for each thing a table is declared with
    directory: str | Path, *, key: Names = (), append_only: bool = False, compact_every: int = 100, roll: Duration | None = None,
    history: Duration = "1 day",
) -> DeltaTarget:  # fmt: skip
    """A Delta table as the target of a sink, exactly once: one commit for each epoch, which contains its number.

    Facts are added or, with `key`, replace earlier ones; results that change replace and remove rows by their key; `append_only=True`
    refuses those. The table is created if it does not exist, and new columns of the results are added to it. With `roll`, epochs wait up to
    that long and become one commit; when a run ends, all waiting epochs are committed. A table that is created here keeps its earlier
    versions for `history`: the more versions there are, the longer a commit takes. After every `compact_every` commits, small files are
    merged and files that no version needs are removed; 0 disables this.

    >>> str(delta("lake/views_per_url", roll="10 seconds"))
    'Delta table lake/views_per_url'
    """
    return DeltaTarget(
        path_of(directory), key=listed(key), append_only=append_only, compact_every=compact_every,
        roll=None if roll is None else duration(roll), history=duration(history),
    )  # fmt: skip
