"""The newest records of a topic, and those that come after them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from headrace.log.consumer import Consumer, Place
from headrace.log.files.layout import BatchLayout
from headrace.log.groups.assignment import TopicPartition
from headrace.log.storage import Storage


@dataclass(frozen=True)
class Tail:
    """The records to show: all from `start` on, or without it the `last` records of each partition, or of one; never more than `limit`.

    `keep` filters and sees every column; `columns` are shown. With `follow` it waits for more.
    """

    start: Place | None = None
    last: int = 10
    limit: int | None = None
    partition: int | None = None
    columns: tuple[str, ...] | None = None
    keep: Callable[[pa.Table], pa.Table] | None = None
    follow: bool = False


def tail(storage: Storage, topic: str, wanted: Tail) -> Iterator[pa.Table]:
    """Records as they are found, up to the end as it was at the start, or without end."""
    layout = BatchLayout(storage.topic(topic))
    shown = wanted.columns if wanted.columns is not None else layout.visible_columns()
    layout.schema(shown)
    # The filter may use any column.
    read = tuple(dict.fromkeys((*(layout.visible_columns() if wanted.keep else ()), *shown, "_partition")))
    consumer = Consumer(storage)
    if wanted.partition is None:
        consumer.follow(topic, "beginning" if wanted.start is None else wanted.start)
    else:
        consumer.assign([(topic, wanted.partition)], "beginning" if wanted.start is None else wanted.start)
    ends = {place: consumer.positions()[place] + ahead for place, ahead in consumer.lag().items()}
    if wanted.start is None and wanted.keep is None:
        for (name, partition), end in ends.items():
            consumer.seek(max(consumer.position(name, partition), end - wanted.last), topic=name, partition=partition)
    found = _kept(_stored(consumer, ends, read), wanted)
    tables = chain(
        found if wanted.start is not None else _newest(found, wanted.last), _kept(_coming(consumer, read), wanted) if wanted.follow else ()
    )
    for table in _limited(tables, wanted.limit):
        yield table.select(list(shown))


def _stored(consumer: Consumer, ends: Mapping[TopicPartition, int], columns: tuple[str, ...]) -> Iterator[pa.Table]:
    while any(consumer.positions()[place] < end for place, end in ends.items()):
        table = consumer.poll(timeout="0s", columns=columns)
        if table is None:
            return
        yield table


def _coming(consumer: Consumer, columns: tuple[str, ...]) -> Iterator[pa.Table]:
    while True:
        table = consumer.poll(timeout="1 hour", columns=columns)
        if table is not None:
            yield table


def _kept(tables: Iterable[pa.Table], wanted: Tail) -> Iterator[pa.Table]:
    for table in tables:
        kept = wanted.keep(table) if wanted.keep else table
        if kept.num_rows:
            yield kept


def _newest(tables: Iterable[pa.Table], count: int) -> Iterator[pa.Table]:
    """The last records of each partition, one partition after the other."""
    kept: dict[int, pa.Table] = {}
    for table in tables:
        for partition in pc.unique(table["_partition"]).to_pylist():
            mine = table.filter(pc.equal(table["_partition"], partition))
            both = pa.concat_tables([kept[partition], mine]) if partition in kept else mine
            kept[partition] = both.slice(max(0, both.num_rows - count))
    yield from (kept[partition] for partition in sorted(kept) if kept[partition].num_rows)


def _limited(tables: Iterable[pa.Table], limit: int | None) -> Iterator[pa.Table]:
    left = limit
    if left == 0:
        return
    for table in tables:
        part = table if left is None else table.slice(0, left)
        yield part
        if left is not None:
            left -= part.num_rows
            if left == 0:
                return
