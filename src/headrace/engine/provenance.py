"""Provenance: the records of a stage as they came from their stream; late and bad ones are stored in that form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from headrace.engine.packet import Packet
from headrace.engine.planning.input import PROBLEM, RECORD
from headrace.engine.side_topics import dead_letters, late_records, undecoded
from headrace.operators.columns import OFFSET, PARTITION, ROW
from headrace.operators.expressions import REASON
from headrace.operators.expressions.dtypes import dtype
from headrace.plan.reserved import reserved
from headrace.plan.topics import dead_topic, late_topic

if TYPE_CHECKING:
    from headrace.engine.program.program import Origin

# The original record, where it travels along.
ORIGINAL = "_original"


class Provenance:
    """The records of a stage as their stream had them, each found by its row; None if they are not at hand.

    After a shuffle they are not: there, a record whose original may be needed carries it along.
    """

    def __init__(self, origin: Origin, records: pl.DataFrame | None = None) -> None:
        self.origin = origin
        self._records = records

    @classmethod
    def resembling(cls, origin: Origin, made: pl.DataFrame) -> Provenance:
        """For results of a user's function: only the columns of a row say what it was, as far as the stream has them too."""
        places = [_nothing(PARTITION, pl.Int32()), _nothing(OFFSET, pl.Int64())]
        return cls(origin, made.select_seq(*_resembling(origin, made), *places))

    def arrived(self, frame: pl.DataFrame) -> tuple[Provenance, pl.DataFrame]:
        """The originals that a frame carried along, and the frame with their rows."""
        if ORIGINAL not in frame.columns:
            return self, frame
        return Provenance(self.origin, frame.select_seq(ORIGINAL).unnest(ORIGINAL)), frame.drop(ORIGINAL).with_row_index(ROW)

    def with_originals(self, frame: pl.DataFrame, *, places: bool) -> pl.DataFrame:
        """The frame, whose records carry their originals and, on demand, their places."""
        if self._records is None:
            return frame
        wanted = (*self.origin.columns.names, *((PARTITION, OFFSET) if places else ()))
        came = self._records[frame.get_column(ROW)].select_seq(pl.struct(*wanted).alias(ORIGINAL))
        return (frame.drop(ROW, PARTITION, OFFSET, strict=False) if places else frame).hstack(came)

    def partitions(self, frame: pl.DataFrame) -> pl.Series | None:
        """The partition of its source for each record of a frame; None if that is not known."""
        if self._records is None or ROW not in frame.columns:
            return None
        found = self._records.get_column(PARTITION)[frame.get_column(ROW)]
        return None if found.null_count() else found

    def late(self, step: str, late: pl.DataFrame, watermark: int, shard: int) -> list[Packet]:
        """Late records for the late topic of their stream, with the window they missed."""
        if not self.origin.keeps_late:
            return []
        if self._records is not None:
            original = self._records[late.get_column(ROW)].select_seq(self.origin.columns.names)
        elif ORIGINAL in late.columns:
            original = late.select_seq(ORIGINAL).unnest(ORIGINAL)
        else:
            original = late.select_seq(_resembling(self.origin, late))
        return [Packet(late_topic(self.origin.name), shard, late_records(original, late, step, watermark))]

    def dead(self, step: str, bad: pl.DataFrame) -> Packet:
        """Bad records for the dead letters of their stream, with the reason and the place they came from."""
        if self._records is not None and ROW in bad.columns:
            original = self._records[bad.get_column(ROW)]
            places = original.select_seq(PARTITION, OFFSET)
            original = original.select_seq(self.origin.columns.names)
        else:
            none = pl.DataFrame(schema={PARTITION: pl.Int32, OFFSET: pl.Int64}).clear(bad.height)
            places = bad.select_seq(PARTITION, OFFSET) if PARTITION in bad.columns else none
            original = bad.select_seq(name for name in bad.columns if not reserved(name))
        return Packet(dead_topic(self.origin.name), 0, dead_letters(original, places, step, bad.get_column(REASON)))


def _resembling(origin: Origin, made: pl.DataFrame) -> list[pl.Expr]:
    """The columns of a stream, as far as the results have them: a late result is not a record of the stream."""
    kinds = [(column.name, dtype(column.type)) for column in origin.columns]
    return [pl.col(name) if made.schema.get(name) == kind else _nothing(name, kind) for name, kind in kinds]


def _nothing(name: str, kind: pl.DataType) -> pl.Expr:
    """A null in each row. A literal would be one row where no other column is selected."""
    return pl.repeat(None, pl.len(), dtype=kind).alias(name)


def decoded(origin: Origin, records: pl.DataFrame) -> tuple[pl.DataFrame, Packet | None]:
    """The records that their source could decode; the others are dead letters as they arrived."""
    if PROBLEM not in records.columns:
        return records, None
    problems = records.get_column(PROBLEM)
    letters = None
    if problems.null_count() < records.height:
        letters = Packet(dead_topic(origin.name), 0, undecoded(records.filter(problems.is_not_null()), origin.name))
        records = records.filter(problems.is_null())
    return records.drop(PROBLEM, RECORD), letters
