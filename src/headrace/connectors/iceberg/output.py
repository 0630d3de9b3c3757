"""An Iceberg table as an output of the engine: each epoch is one transaction of the table, with its number in a property."""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table, Transaction
from pyiceberg.table.upsert_util import create_match_filter

from headrace.connectors.client_cache import ClientCache
from headrace.connectors.evolution import added
from headrace.connectors.iceberg.declaration import IcebergTarget
from headrace.connectors.output import Writer
from headrace.connectors.staged_output import StagedOutput
from headrace.connectors.staging import REMOVED

_log = logging.getLogger(__name__)
_MOST_REWRITTEN = 256 << 20
_PROPERTIES = {
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}
_FILES, _SIZE = "total-data-files", "total-files-size"
_catalogs = ClientCache[SqlCatalog](close=SqlCatalog.close)


@dataclass(frozen=True)
class IcebergOutput(StagedOutput):
    """A table of a catalog, its columns, and the key by which rows replace each other."""

    target: IcebergTarget
    columns: pa.Schema
    key: tuple[str, ...]

    def make(self) -> None:
        self.target.warehouse.mkdir(parents=True, exist_ok=True)
        catalog = self._catalog()
        catalog.create_namespace_if_not_exists(self.target.table.rpartition(".")[0])
        table = catalog.create_table_if_not_exists(self.target.table, schema=self.columns, properties=_PROPERTIES)
        if new := added(table.schema().as_arrow(), _widened(self.columns), self.target):
            with table.update_schema() as change:
                change.union_by_name(pa.schema(new))

    @property
    def roll(self) -> timedelta | None:  # type: ignore[override] # it is the target's
        return self.target.roll

    @property
    def staged_in(self) -> Path:
        return self.target.warehouse / ".staged" / self.target.table

    def committed(self, job: str, sink: str) -> int:
        return int(self._table().properties.get(_property(job, sink), -1))

    def commit(self, writer: Writer, epoch: int, rows: pa.Table) -> None:
        with self._table().transaction() as transaction:
            if self.key:
                self._merge(transaction, rows)
            else:
                transaction.append(rows)
            transaction.set_properties({_property(writer.job, writer.sink): str(epoch)})
        self._compact()

    def _merge(self, transaction: Transaction, rows: pa.Table) -> None:
        gone = rows.filter(pc.field(REMOVED)).drop_columns([REMOVED])
        kept = rows.filter(~pc.field(REMOVED)).drop_columns([REMOVED])
        if gone.num_rows:
            with warnings.catch_warnings():
                # A row that was added and removed between two epochs never existed for readers.
                warnings.filterwarnings("ignore", "Delete operation did not match any records")
                transaction.delete(create_match_filter(gone, list(self.key)))
        if kept.num_rows:
            transaction.upsert(kept, join_cols=list(self.key))

    def _compact(self) -> None:
        """Rewrite a table of many small files as one, in one transaction; pyiceberg cannot merge a part of them."""
        table, every = self._table(), self.target.compact_every
        snapshot = table.current_snapshot()
        if not every or snapshot is None or snapshot.summary is None:
            return
        oldest = datetime.now(UTC) - self.target.history
        if sum(known.timestamp_ms < oldest.timestamp() * 1000 for known in table.metadata.snapshots) > every:
            table.maintenance.expire_snapshots().older_than(oldest).commit()
        # The snapshot counts its own files; listing them would take longer the more there are.
        if int(snapshot.summary[_FILES] or 0) < every or int(snapshot.summary[_SIZE] or 0) > _MOST_REWRITTEN:
            return
        try:
            table.overwrite(table.scan().to_arrow())
        except CommitFailedException as error:
            # Another writer changed the table meanwhile; the next commit tries again.
            _log.info("the small files of %s stay for now: %s", self.target, error)

    def _table(self) -> Table:
        return self._catalog().load_table(self.target.table)

    def _catalog(self) -> SqlCatalog:
        target = self.target
        return _catalogs.get(
            target, lambda: SqlCatalog("headrace", uri=target.catalog.reveal(), warehouse=target.warehouse.absolute().as_uri())
        )


def _widened(columns: pa.Schema) -> pa.Schema:
    """The columns as Iceberg stores them: its integers have at least 32 bits."""
    return pa.schema([column.with_type(pa.int32()) if column.type in (pa.int8(), pa.int16()) else column for column in columns])


def _property(job: str, sink: str) -> str:
    return f"headrace.epoch.{job}/{sink}"
