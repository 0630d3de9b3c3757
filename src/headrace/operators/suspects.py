"""Records of which only an operator's state can tell whether they are late: on their way to it, and what it says of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from headrace.operators.contract import START, STOP
from headrace.operators.entry import Entry
from headrace.operators.originals import ORIGINAL, Originals
from headrace.operators.packet import SUSPECTS, Packet, sharded

_PACKET, _PLACE = "_packet", "_place"


def suspected(entry: Entry, records: pl.DataFrame, came: Originals, shards: int) -> list[Packet]:
    """Doubtful records for the shards of an operator, with what they were when they came."""
    kind = f"{SUSPECTS}{came.origin.name}"
    return sharded(entry.operator, came.beside(records, places=False), entry.spec.by, shards, kind)


class Suspects:
    """The doubtful records of a shard in an epoch, by the packets they are in: united streams may have columns of their own."""

    def __init__(self, packets: Sequence[Packet]) -> None:
        self._packets = packets

    def numbered(self) -> list[pl.DataFrame]:
        """Records that know where they are, without what they were when they came."""
        return [
            packet.frame.drop(ORIGINAL, strict=False).with_columns(pl.lit(number).alias(_PACKET), pl.row_index(_PLACE))
            for number, packet in enumerate(self._packets)
        ]

    def judged(self, late: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
        """Those that the state found late: the stream they came from, and they themselves with the window they missed."""
        for number, packet in enumerate(self._packets):
            mine = late.filter(pl.col(_PACKET) == number)
            if mine.height:
                came = packet.frame[mine.get_column(_PLACE)]
                yield packet.kind.removeprefix(SUSPECTS), came.with_columns(mine.get_column(START), mine.get_column(STOP))
