"""A table of an Iceberg catalog as a user declares it; nothing is opened here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from headrace.connectors.lake import LakeTable
from headrace.core.columns.names import Names, listed
from headrace.core.durations import Duration, duration
from headrace.core.errors import SettingsError
from headrace.core.secret import Secret
from headrace.core.where import says_where

if TYPE_CHECKING:
    from headrace.connectors.iceberg.output import IcebergOutput


@dataclass(frozen=True)
class IcebergTarget(LakeTable):
    """A table of an Iceberg catalog; see `iceberg`."""

    commits: ClassVar[str] = "makes one transaction of the table, with the epoch in a property"

    table: str
    warehouse: Path
    catalog: Secret
    client = ("pyiceberg.catalog.sql", "the client for Iceberg tables", "iceberg")

    def __post_init__(self) -> None:
        if len(self.table.split(".")) < 2 or not all(self.table.split(".")):
            raise SettingsError(f"{self.table!r} is not a name of an Iceberg table", hint='"namespace.table"')

    def output(self, columns: pa.Schema, key: tuple[str, ...]) -> IcebergOutput:
        """The table as a job writes it."""
        from headrace.connectors.iceberg.output import IcebergOutput

        return IcebergOutput(self, columns, key)

    def __str__(self) -> str:
        return f"Iceberg table {self.table}"


@says_where
def iceberg(  # noqa: PLR0913 - one option for each thing that may differ
    table: str,
    *,
    warehouse: str | Path,
    catalog: str | Secret | None = None,
    key: Names = (),
    append_only: bool = False,
    compact_every: int = 100,
    roll: Duration | None = None,
    history: Duration = "1 day",
) -> IcebergTarget:
    """A table of an Iceberg catalog as the target of a sink, exactly once: one transaction for each epoch, with its number in a property.

    `table` is `namespace.table`; its files are under `warehouse`, a directory. `catalog` is the address of the catalog's database, in which
    the catalog's name is `headrace`; by default SQLite in the warehouse. Facts are added or, with `key`, replace earlier ones; results that
    change replace and remove rows by their key; `append_only=True` refuses those. The table is created if it does not exist, and new
    columns of the results are added to it. A table of at least `compact_every` files and less than 256 MiB is rewritten as one file; 0
    disables this. With `roll`, epochs wait up to that long and become one transaction; when a run ends, all waiting epochs are committed.
    Versions older than `history` are removed when there are more than `compact_every` of them.

    >>> str(iceberg("shop.views_per_url", warehouse="lake"))
    'Iceberg table shop.views_per_url'
    """
    place = Path(warehouse)
    address = catalog if catalog is not None else f"sqlite:///{place.absolute()}/catalog.db"
    hidden = address if isinstance(address, Secret) else Secret(address)
    return IcebergTarget(
        table, place, hidden, key=listed(key), append_only=append_only, compact_every=compact_every,
        roll=None if roll is None else duration(roll), history=duration(history),
    )  # fmt: skip
