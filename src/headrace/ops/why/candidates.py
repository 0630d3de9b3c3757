"""Records that can have a part in rows of a view: found by the key that their stream has, or by the key under which steps group them.

A batch that brings nothing under the key to any step is done with as a whole; one that does is halved, down to single records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl
import pyarrow as pa

from headrace.engine.packet import Packet
from headrace.engine.program.program import Program
from headrace.log import Log
from headrace.operators.columns import OFFSET, PARTITION
from headrace.operators.event_time.epoch_time import BEGINNING, LATEST, EpochTime

APPENDED = "_appended_at"
NO_TIME = EpochTime(1, BEGINNING, BEGINNING)
_CHUNK = 20_000


class CandidateSearch:
    """Looks for records of a program's streams; `wanted` are columns of the view's key with their values."""

    def __init__(self, program: Program, log: Log, wanted: Mapping[str, pa.Scalar]) -> None:
        self._program, self._log = program, log
        self._wanted = {name: value.as_py() for name, value in wanted.items()}

    def of(self, stream: str, ends: Mapping[int, int]) -> pl.DataFrame:
        """The candidates of a stream in its log up to these offsets, in the order in which they were stored."""
        found = [self._chosen(stream, chunk) for chunk in self._chunks(stream, ends)]
        return pl.concat(found).sort(APPENDED, PARTITION, OFFSET, maintain_order=True) if found else pl.DataFrame()

    def _chunks(self, stream: str, ends: Mapping[int, int]) -> Iterator[pl.DataFrame]:
        topic = self._log.topic(stream)
        columns = [*self._program.origins[stream].columns.names, PARTITION, OFFSET, APPENDED]
        for partition, end in ends.items():
            first = self._log.partition(topic, partition).state().start
            whole = pl.DataFrame(self._log.read(stream, columns=columns, start=first, partition=partition)).filter(pl.col(OFFSET) < end)
            yield from whole.iter_slices(_CHUNK)

    def _chosen(self, stream: str, records: pl.DataFrame) -> pl.DataFrame:
        if not self._tells_apart():
            return records
        places = sorted({*self._by_columns(records), *self._by_steps(stream, records.with_row_index("_place"))})
        return records[places]

    def _tells_apart(self) -> bool:
        """Whether every step on the way has a column of the key; behind one without, every record may be in every row."""
        return bool(self._wanted) and all(set(operator.by) & set(self._wanted) for operator in self._program.operators.values())

    def _by_columns(self, records: pl.DataFrame) -> list[int]:
        known = [name for name in self._wanted if name in records.columns]
        if not known or any(not name.startswith("window_") for name in self._wanted if name not in known):
            return []
        equal = pl.all_horizontal(pl.col(name).eq_missing(pl.lit(self._wanted[name], records.schema[name])) for name in known)
        return records.select(equal.arg_true()).to_series().to_list()

    def _by_steps(self, stream: str, records: pl.DataFrame) -> Iterator[int]:
        taken = self._program.ingest(stream, records.drop("_place", APPENDED), NO_TIME, LATEST)
        if not any(self._fits(packet) for packet in taken.packets):
            return
        if records.height == 1:
            yield int(records.item(0, "_place"))
            return
        half = records.height // 2
        yield from self._by_steps(stream, records[:half])
        yield from self._by_steps(stream, records[half:])

    def _fits(self, packet: Packet) -> bool:
        if packet.target not in self._program.operators and packet.target not in self._program.outlets:
            return False
        known = [name for name in self._wanted if name in packet.frame.columns]
        equal = [pl.col(name).eq_missing(pl.lit(self._wanted[name], packet.frame.schema[name])) for name in known]
        return packet.frame.height > 0 if not equal else bool(packet.frame.select(pl.all_horizontal(equal).any()).item())
