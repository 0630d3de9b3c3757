"""Random records that fit the streams of an app: out of order, some late, some with nulls."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from headrace.core.clock import to_datetime
from headrace.log import Log
from headrace.plan.nodes import Source
from headrace.plan.watermarks import Bounded, LossBudget

_KEYS = 20
_NOTHING = 0.01
_LATE = 0.01
_PAUSE = 0.1
# The step of event time from record to record, and the disorder of records if no watermark says how late they may be.
_STEP, _DISORDER = 200_000, timedelta(seconds=10)


class GeneratedStream:
    """The records of one stream, drawn from a seed."""

    def __init__(self, source: Source, seed: int, begins_at: int) -> None:
        self._source, self._random = source, Random(f"{seed}/{source.name}")
        self._now = begins_at
        rule = source.watermark
        self._bound = rule.delay if isinstance(rule, Bounded) else rule.max if isinstance(rule, LossBudget) else _DISORDER

    def take(self, count: int) -> pa.Table:
        """The next records."""
        rows = [self._row() for _ in range(count)]
        return pa.Table.from_pylist(rows, schema=self._source.columns)

    def _row(self) -> dict[str, Any]:
        self._now += _STEP
        return {field.name: self._value(field) for field in self._source.columns}

    def _value(self, field: pa.Field) -> Any:
        if field.nullable and self._random.random() < _NOTHING:
            return None
        if self._source.time is not None and field.name == self._source.time.column:
            moment = to_datetime(self._now - self._delay() // timedelta(microseconds=1))
            return moment if field.type.tz else moment.replace(tzinfo=None)
        return value_of(field.type, self._random)

    def _delay(self) -> timedelta:
        """Mostly within what the stream allows; some records are far later."""
        if self._random.random() < _LATE:
            return 2 * self._bound + timedelta(hours=1) + self._random.random() * timedelta(hours=1)
        return 0.8 * self._random.random() * min(self._bound, timedelta(minutes=10))


class Generator(threading.Thread):
    """Sends records to all streams at about a given rate, until it is stopped."""

    def __init__(self, log: Log, sources: Sequence[Source], rate: int, seed: int) -> None:
        super().__init__(name="generator", daemon=True)
        # A day ago: event time runs faster than the clock, and must not overtake it.
        begins_at = log.clock.now() - timedelta(days=1) // timedelta(microseconds=1)
        self._log, self._streams = log, {source.name: GeneratedStream(source, seed, begins_at) for source in sources}
        self._batch = max(1, round(rate * _PAUSE / len(sources)))
        self._stop_asked = threading.Event()
        self.sent: Counter[str] = Counter()
        """How many records of each stream the log has acknowledged."""
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            with self._log.producer(acks="all") as producer:
                while not self._stop_asked.wait(_PAUSE):
                    for name, stream in self._streams.items():
                        producer.send_table(name, stream.take(self._batch))
                        producer.flush()
                        self.sent[name] += self._batch
        except BaseException as error:  # noqa: BLE001 - raised where the generator is stopped
            self.failure = error

    def stop(self) -> None:
        """Send no more; an error that happened meanwhile is raised."""
        self._stop_asked.set()
        self.join()
        if self.failure is not None:
            raise self.failure


def value_of(kind: pa.DataType, random: Random) -> Any:
    """A value of a type, one of a few where there are many, so that keys repeat.

    >>> value_of(pa.list_(pa.int8()), Random(1))
    [18]
    """
    types, number = pa.types, random.randrange(_KEYS)
    makers: list[tuple[Callable[[pa.DataType], bool], Callable[[], Any]]] = [
        (types.is_boolean, lambda: number % 2 == 0),
        (types.is_integer, lambda: number),
        (types.is_floating, lambda: number / 4),
        (types.is_decimal, lambda: Decimal(number % 9).scaleb(-kind.scale)),
        (types.is_binary, lambda: b"v%d" % number),
        (types.is_date, lambda: date(2026, 1, 1 + number)),
        (types.is_timestamp, lambda: datetime(2026, 1, 1, number, tzinfo=UTC if kind.tz else None)),
        (types.is_list, lambda: [value_of(kind.value_type, random) for _ in range(number % 3)]),
        (types.is_map, lambda: [(value_of(kind.key_type, random), value_of(kind.item_type, random))]),
        (types.is_struct, lambda: {field.name: value_of(field.type, random) for field in kind}),
    ]
    return next((make() for fits, make in makers if fits(kind)), f"v{number}")
