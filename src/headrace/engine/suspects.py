"""Suspects: records of which only an operator's state can tell whether they are late, on their way to it, and its verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from headrace.engine.entry import Entry
from headrace.engine.packet import SUSPECTS, Packet, sharded
from headrace.engine.provenance import ORIGINAL, Provenance
from headrace.operators.contract import START, STOP

_PACKET, _PLACE = "_packet", "_place"


def suspected(entry: Entry, records: pl.DataFrame, came: Provenance, shards: int) -> list[Packet]:
    """Suspect records for the shards of an operator, with their originals."""
    kind = f"{SUSPECTS}{came.origin.name}"
    return sharded(entry.exit, came.with_originals(records, places=False), entry.by, shards, kind)


class Suspects:
    """The suspects of a shard in an epoch, by their packets: the streams of a union may have different columns."""

    def __init__(self, packets: Sequence[Packet]) -> None:
        self._packets = packets

    def numbered(self) -> list[pl.DataFrame]:
        """Records that know their place, without their originals."""
        return [
            packet.frame.drop(ORIGINAL, strict=False).with_columns_seq(pl.lit(number).alias(_PACKET), pl.row_index(_PLACE))
            for number, packet in enumerate(self._packets)
        ]

    def judged(self, late: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
        """The records that the state found late: the stream they came from, and the records with the window they missed."""
        for number, packet in enumerate(self._packets):
            mine = late.filter(pl.col(_PACKET) == number)
            if mine.height:
                came = packet.frame[mine.get_column(_PLACE)]
                yield packet.kind.removeprefix(SUSPECTS), came.with_columns_seq(mine.get_column(START), mine.get_column(STOP))
